/* @title@: loads and launches the kernels of @name@.cu. @name@.h says how to use it. */

#include "@name@.h"

#include <stdlib.h>
#include <string.h>

enum {
@numbers@
    KERNELS
};

static const struct {
    const char *entry;
    unsigned int grid[3];
    unsigned int threads;
    unsigned int dynamic_shared_bytes;
} kernels[KERNELS] = {
@kernels@
};

struct @name@_pipeline {
    CUmodule module;
    CUfunction functions[KERNELS];
    CUdeviceptr workspace;
};

@code@
static CUresult load(@name@_pipeline *pipeline, const char *file)
{
    if (file != NULL) {
        return cuModuleLoad(&pipeline->module, file);
    }
    return @load_own@;
}

static CUresult find_kernels(@name@_pipeline *pipeline)
{
    for (int i = 0; i < KERNELS; i++) {
        CUfunction *function = &pipeline->functions[i];
        CUresult result = cuModuleGetFunction(function, pipeline->module, kernels[i].entry);
        /* Only shared memory beyond 48 KB is dynamic, and that must be allowed first. */
        if (result == CUDA_SUCCESS && kernels[i].dynamic_shared_bytes > 0) {
            result = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)kernels[i].dynamic_shared_bytes);
        }
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult launch(const @name@_pipeline *pipeline, CUstream stream, int kernel, void **arguments)
{
    const unsigned int *grid = kernels[kernel].grid;
    return cuLaunchKernel(pipeline->functions[kernel], grid[0], grid[1], grid[2], kernels[kernel].threads, 1, 1,
                          kernels[kernel].dynamic_shared_bytes, stream, arguments, NULL);
}

static bool is_usable(CUdeviceptr buffer)
{
    return buffer != 0 && buffer % 16 == 0;
}

CUresult @name@_create(@name@_pipeline **created, const char *file)
{
    if (created == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *created = NULL;
    @name@_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (pipeline == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = load(pipeline, file);
    if (result == CUDA_SUCCESS) {
        result = find_kernels(pipeline);
    }
@allocate@
    if (result != CUDA_SUCCESS) {
        @name@_destroy(pipeline);
        return result;
    }
    *created = pipeline;
    return CUDA_SUCCESS;
}

@set_params@
CUresult @name@_run(@name@_pipeline *pipeline, CUstream stream, const @name@_buffers *buffers)
{
    if (pipeline == NULL || buffers == NULL@or_unusable@) {
        return CUDA_ERROR_INVALID_VALUE;
    }
@locals@
    CUresult result;
@launches@
    return CUDA_SUCCESS;
}

CUresult @name@_destroy(@name@_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return CUDA_SUCCESS;
    }
    CUresult freed = pipeline->workspace != 0 ? cuMemFree(pipeline->workspace) : CUDA_SUCCESS;
    CUresult unloaded = pipeline->module != NULL ? cuModuleUnload(pipeline->module) : CUDA_SUCCESS;
    free(pipeline);
    return freed != CUDA_SUCCESS ? freed : unloaded;
}
