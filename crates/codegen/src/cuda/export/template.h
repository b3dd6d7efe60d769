/* @title@: the kernels of @name@.cu, for C and C++.
 *
 * Made by @made_by@ for @devices@, at the sizes below; pipeline @hash@.
 *
 *     @name@_pipeline *pipeline;
 *     CUresult result = @name@_create(&pipeline, NULL);
 *
@example_sizes@
 *     CUdeviceptr workspace;
 *     result = @name@_allocate_workspace(@run_sizes@&workspace);
 *
 *     @name@_buffers buffers;
@example@
 *     result = @name@_run(pipeline, stream, workspace, @run_sizes@&buffers, NULL);
 *
 *     result = cuMemFree(workspace);
 *     result = @name@_destroy(pipeline);
 *
 * A CUDA context must be current in the calling thread: cuCtxSetCurrent makes it so, or any use of CUDA's
 * runtime. Every function returns CUDA_SUCCESS (0), an error of the driver, one of these, or one of @NAME@_ERROR_...
 * below. @name@_error says what a result means.
 *
 *     CUDA_ERROR_OUT_OF_MEMORY (2)        there is not enough memory
 *     CUDA_ERROR_NO_BINARY_FOR_GPU (209)  there is no code for this GPU, or it has too little shared memory
 *     CUDA_ERROR_FILE_NOT_FOUND (301)     there is no such file, or @name@.c contains no code and no file was given
 *
 * There is no global state, and a pipeline does not change between create and destroy. All that a run writes is its
 * outputs and its workspace, so runs with different ones may overlap: on several streams, in several threads, in a
 * graph that is replayed beside other runs. Runs that share a workspace must not overlap, as on one stream.
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
@fixed@
@errors@
@sizes_type@
/* The loaded kernels. */
typedef struct @name@_pipeline @name@_pipeline;

/* Device memory of the sizes above. Each starts at a multiple of @aligned@, and none overlaps
 * another. */
typedef struct @name@_buffers {
@fields@
} @name@_buffers;

@params@
/* Loads the kernels for the GPU of the current context, from `file`, a cubin or PTX file made of @name@.cu. If
 * `file` is NULL, takes the code in @name@.c:@code@
 * If anything fails, *pipeline is NULL. */
CUresult @name@_create(@name@_pipeline **pipeline, const char *file);

/* The bytes of device memory that a run needs besides its inputs and outputs. */
size_t @name@_workspace_bytes(@only_sizes@);

/* Allocates so many bytes in the current context; cuMemFree frees them. */
CUresult @name@_allocate_workspace(@size_parameter@CUdeviceptr *workspace);

/* Launches all kernels on a stream and does not wait for them. Outputs are written in full. May be captured in a
 * graph, which then keeps the arguments of this call. The workspace has workspace_bytes() bytes, starts at a multiple
 * of 256 bytes, and may hold anything; 0 if it needs none.
 * @params_argument@ */
@run_head@;

/* Unloads the kernels. All runs must be over. NULL is allowed. */
CUresult @name@_destroy(@name@_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
