/* A driver that does nothing but say what was asked of it, and fails where it is told to. */

#include "cuda.h"

#include <stdio.h>
#include <string.h>

/* From the program under test: the call that fails, and the kinds of a kernel's arguments, `p` for a pointer
 * and `i` for an int. */
extern const char *failing;
const char *arguments_of(const char *kernel);

struct CUmod_st { int loaded; };
struct CUfunc_st { char name[64]; };

static struct CUmod_st module_store;
static struct CUfunc_st functions[256];
static int function_count;

#define WORKSPACE 0x700000000000ULL

static int fails(const char *call)
{
    return strcmp(call, failing) == 0;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    printf("load %s\n", file);
    if (fails("cuModuleLoad")) return CUDA_ERROR_FILE_NOT_FOUND;
    *module = &module_store;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const unsigned char *bytes = image;
    unsigned int sum = 0;
    for (int i = 0; i < 256; i++) sum += (unsigned int)(i + 1) * bytes[i];
    printf("load own code %u\n", sum);
    if (fails("cuModuleLoadData")) return CUDA_ERROR_UNKNOWN;
    *module = &module_store;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    printf("unload %d\n", module == &module_store);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (fails("cuModuleGetFunction") || module != &module_store || function_count == 256) return CUDA_ERROR_UNKNOWN;
    strncpy(functions[function_count].name, name, sizeof functions[0].name - 1);
    *function = &functions[function_count++];
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    printf("attribute %d of %s: %d\n", attribute, function->name, value);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    printf("allocate %zu\n", bytes);
    if (fails("cuMemAlloc")) return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = WORKSPACE;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr pointer)
{
    printf("free %d\n", pointer == WORKSPACE);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream)
{
    printf("set %llu to %08x, %zu times%s\n", pointer - WORKSPACE, value, count, stream ? " on the stream" : "");
    return fails("cuMemsetD32Async") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    printf("wait%s\n", stream ? " for the stream" : "");
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void **arguments, void **extra)
{
    printf("launch %s grid %u %u %u block %u %u %u shared %u%s%s:", function->name, grid_x, grid_y, grid_z, block_x,
           block_y, block_z, shared_bytes, stream ? " on the stream" : "", extra ? " with extras" : "");
    for (const char *kind = arguments_of(function->name); *kind; kind++, arguments++) {
        if (*kind == 'p') {
            printf(" %llu", *(CUdeviceptr *)*arguments);
        } else {
            printf(" %d", *(int *)*arguments);
        }
    }
    printf("\n");
    return fails("cuLaunchKernel") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
