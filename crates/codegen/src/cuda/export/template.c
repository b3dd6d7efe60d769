/* @title@: loads and launches the kernels of @name@.cu. @name@.h says how to use it. */

#include "@name@.h"

#include <stdlib.h>
#include <string.h>

enum {
@numbers@
    kernel_count
};

static const struct {
    const char *entry;
    unsigned int grid[3];
    unsigned int threads;
    unsigned int dynamic_shared_bytes;
} kernels[kernel_count] = {
@kernels@
};

struct @name@_pipeline {
    CUmodule module;
    CUfunction functions[kernel_count];
@early_field@
};

@code@
static CUresult load(@name@_pipeline *pipeline, const char *file)
{
    if (file != NULL) {
        return cuModuleLoad(&pipeline->module, file);
    }
    return @load_own@;
}

@early@
static CUresult find_kernels(@name@_pipeline *pipeline)
{
    for (int i = 0; i < kernel_count; i++) {
        CUfunction *function = &pipeline->functions[i];
        CUresult result = cuModuleGetFunction(function, pipeline->module, kernels[i].entry);
        /* More than 48 KB must be allowed first. */
        if (result == CUDA_SUCCESS && kernels[i].dynamic_shared_bytes > 0) {
            result = cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)kernels[i].dynamic_shared_bytes);
            if (result == CUDA_ERROR_INVALID_VALUE) {
                return CUDA_ERROR_NO_BINARY_FOR_GPU;
            }
        }
@find_early@
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

@errors@
CUresult @name@_create(@name@_pipeline **created, const char *file)
{
    if (created == NULL) {
        return @NAME@_ERROR_NULL;
    }
    *created = NULL;
    @name@_pipeline *pipeline = (@name@_pipeline *)calloc(1, sizeof *pipeline);
    if (pipeline == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = load(pipeline, file);
    if (result == CUDA_SUCCESS) {
        result = find_kernels(pipeline);
    }
    if (result != CUDA_SUCCESS) {
        @name@_destroy(pipeline);
        return result;
    }
    *created = pipeline;
    return CUDA_SUCCESS;
}

@layout@
size_t @name@_workspace_bytes(@only_sizes@)
{
@workspace_bytes@
}

CUresult @name@_allocate_workspace(@size_parameter@CUdeviceptr *workspace)
{
@allocatable@
    /* CUDA allocates no empty memory. */
    size_t bytes = @name@_workspace_bytes(@pass_sizes@);
    return cuMemAlloc(workspace, bytes > 0 ? bytes : 1);
}

@params@
static CUresult launch(const @name@_pipeline *pipeline, CUstream stream, int kernel, const unsigned int *grid,
                       unsigned int dynamic_shared_bytes, void **arguments@follows@)
{
@launch_early@
    return cuLaunchKernel(pipeline->functions[kernel], grid[0], grid[1], grid[2], kernels[kernel].threads, 1, 1,
                          dynamic_shared_bytes, stream, arguments, NULL);
}

static CUresult usable(CUdeviceptr memory, unsigned int alignment)
{
    if (memory == 0) {
        return @NAME@_ERROR_NULL;
    }
    return memory % alignment == 0 ? CUDA_SUCCESS : @NAME@_ERROR_ALIGNMENT;
}

@run_head@
{
    if (pipeline == NULL || buffers == NULL@or_no_sizes@) {
        return @NAME@_ERROR_NULL;
    }
    CUresult result = CUDA_SUCCESS;
@lay_out@
@usable@
@values@
@locals@
@launches@
    return result;
}

CUresult @name@_destroy(@name@_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return CUDA_SUCCESS;
    }
    CUresult unloaded = pipeline->module != NULL ? cuModuleUnload(pipeline->module) : CUDA_SUCCESS;
    free(pipeline);
    return unloaded;
}
