/* What a program may tell the stub: the call that fails, and the kinds of a kernel's arguments, `p` for a pointer and
 * `i` for an int. */
#ifndef STUB_H
#define STUB_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char *failing;
const char *arguments_of(const char *kernel);

#ifdef __cplusplus
}
#endif

#endif
