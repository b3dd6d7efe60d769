/* @title@: the kernels of @name@.cu, from C.
 *
 * Made by @made_by@ for @device@ (@arch@), at the sizes below; pipeline @hash@.
 *
 *     @name@_pipeline *pipeline;
 *     CUresult result = @name@_create(&pipeline, NULL);
 *
 *     @name@_buffers buffers = {@example@};
 *     result = @name@_run(pipeline, stream, &buffers);
 *
 *     result = @name@_destroy(pipeline);
 *
 * A CUDA context must be current in the calling thread: cuCtxSetCurrent makes it so, or any use of CUDA's
 * runtime. Every function gives back what the driver answers, 0 (CUDA_SUCCESS) if all is well.
 *
 * There is no global state. A pipeline has one workspace, so its runs must come one after the other, as they do
 * on one stream; for runs at the same time, make several.
 */
#ifndef WARPLOOM_@NAME@_H
#define WARPLOOM_@NAME@_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of inputs and outputs. Indices of dimension d run from MIN_d to MIN_d + EXTENT_d - 1. The element at
 * i0, i1, ... is (i0 - MIN_0) * STRIDE_0 + (i1 - MIN_1) * STRIDE_1 + ... elements from the start. */

@sizes@
/* Device memory that a pipeline takes for itself. */
#define @NAME@_WORKSPACE_BYTES @workspace@

@values@
/* Kernels with what they need to run. */
typedef struct @name@_pipeline @name@_pipeline;

/* Device memory of the sizes above. Each starts at a multiple of 16 bytes, and none overlaps another. */
typedef struct @name@_buffers {
@fields@
} @name@_buffers;

/* Loads the kernels and allocates the workspace. `file` is a cubin or PTX file made of @name@.cu; NULL takes the
 * code that @name@.c holds, and gives CUDA_ERROR_FILE_NOT_FOUND if it holds none. A cubin for another GPU is
 * refused with CUDA_ERROR_NO_BINARY_FOR_GPU; PTX works on all GPUs that are not older than its architecture.
 * If anything fails, *pipeline is NULL. */
CUresult @name@_create(@name@_pipeline **pipeline, const char *file);

@set_params@
/* Launches all kernels on a stream and does not wait for them. Outputs are written in full. May be captured in a
 * graph. */
CUresult @name@_run(@name@_pipeline *pipeline, CUstream stream, const @name@_buffers *buffers);

/* Frees everything that create made. All runs must be over. NULL is allowed. */
CUresult @name@_destroy(@name@_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
