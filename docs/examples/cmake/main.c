/* Blurs a picture and brightens the result, on one stream. */

#include <stdio.h>
#include <stdlib.h>

#include "brighten.h"
#include "soften.h"

enum { WIDTH = SOFTEN_INPUT_EXTENT_0, HEIGHT = SOFTEN_INPUT_EXTENT_1 };

static float picture[WIDTH * HEIGHT];

static void check(CUresult result, const char *doing)
{
    if (result != CUDA_SUCCESS) {
        /* Every package says the same. */
        fprintf(stderr, "could not %s: %s\n", doing, brighten_error(result));
        exit(1);
    }
}

int main(void)
{
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        picture[i] = (float)(i % 7) / 7.0f;
    }

    CUdevice device;
    CUcontext context;
    check(cuInit(0), "find a driver");
    check(cuDeviceGet(&device, 0), "find a GPU");
    check(cuDevicePrimaryCtxRetain(&context, device), "use the GPU");
    check(cuCtxSetCurrent(context), "use the GPU");

    soften_pipeline *soften;
    brighten_pipeline *brighten;
    CUdeviceptr soften_workspace, brighten_workspace;
    check(soften_create(&soften, NULL), "load soften");
    check(brighten_create(&brighten, NULL), "load brighten");
    check(soften_allocate_workspace(&soften_workspace), "allocate memory");
    check(brighten_allocate_workspace(&brighten_workspace), "allocate memory");

    CUdeviceptr input, soft, output;
    check(cuMemAlloc(&input, sizeof picture), "allocate memory");
    check(cuMemAlloc(&soft, sizeof picture), "allocate memory");
    check(cuMemAlloc(&output, sizeof picture), "allocate memory");
    check(cuMemcpyHtoD(input, picture, sizeof picture), "copy the picture");

    soften_buffers between;
    between.input = input;
    between.output = soft;
    check(soften_run(soften, NULL, soften_workspace, &between, NULL), "run soften");

    brighten_buffers after;
    after.input = soft;
    after.output = output;
    brighten_params params = brighten_default_params();
    params.gain = 2.0f;
    params.offset = 0.25f;
    check(brighten_run(brighten, NULL, brighten_workspace, &after, &params), "run brighten");

    check(cuMemcpyDtoH(picture, output, sizeof picture), "copy the result");
    printf("the middle of the picture: %f\n", picture[WIDTH / 2 + HEIGHT / 2 * WIDTH]);

    check(cuMemFree(input), "free memory");
    check(cuMemFree(soft), "free memory");
    check(cuMemFree(output), "free memory");
    check(cuMemFree(soften_workspace), "free memory");
    check(cuMemFree(brighten_workspace), "free memory");
    check(brighten_destroy(brighten), "unload brighten");
    check(soften_destroy(soften), "unload soften");
    check(cuDevicePrimaryCtxRelease(device), "release the GPU");
    return 0;
}
