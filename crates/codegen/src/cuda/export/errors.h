/* What the functions return where an argument is wrong, besides CUDA's own codes, which are smaller. Nothing was launched
 * or written then. */
#define @NAME@_ERROR_NULL ((CUresult)1001)      /* an argument, or the address of a buffer or the workspace, is NULL */
#define @NAME@_ERROR_ALIGNMENT ((CUresult)1002) /* a buffer or the workspace is not aligned */
#define @NAME@_ERROR_SIZE ((CUresult)1003)      /* a size is out of its range, or the sizes cannot be used together */
#define @NAME@_ERROR_STRIDE ((CUresult)1004)    /* the strides of a buffer do not fit its sizes */
#define @NAME@_ERROR_PARAM ((CUresult)1005)     /* a Param is out of its range */

/* What a result means, as part of a sentence; for other errors what the driver says. Never NULL. */
const char *@name@_error(CUresult result);

