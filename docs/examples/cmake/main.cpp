// Brightens a picture in two ways at the same time: two streams share one pipeline, each run has its own workspace.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "brighten.h"

static void check(CUresult result, const char *doing)
{
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error(std::string("could not ") + doing + ": " + brighten_error(result));
    }
}

// Device memory that frees itself.
class Memory {
public:
    explicit Memory(std::size_t bytes) { check(cuMemAlloc(&start, bytes), "allocate memory"); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory() { cuMemFree(start); }
    operator CUdeviceptr() const { return start; }

private:
    CUdeviceptr start = 0;
};

// One run: its stream, its workspace and its output.
struct Run {
    explicit Run(std::size_t bytes) : workspace(brighten_workspace_bytes()), output(bytes)
    {
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "create a stream");
    }
    ~Run() { cuStreamDestroy(stream); }

    Memory workspace;
    Memory output;
    CUstream stream = nullptr;
};

static void brighten(const brighten_pipeline *pipeline)
{
    const std::size_t width = BRIGHTEN_INPUT_EXTENT_0, height = BRIGHTEN_INPUT_EXTENT_1;
    std::vector<float> picture(width * height, 0.25f);
    Memory input(BRIGHTEN_INPUT_BYTES);
    check(cuMemcpyHtoD(input, picture.data(), BRIGHTEN_INPUT_BYTES), "copy the picture");

    Run runs[] = {Run(BRIGHTEN_OUTPUT_BYTES), Run(BRIGHTEN_OUTPUT_BYTES)};
    float gain = 1.0f;
    for (Run &run : runs) {
        brighten_buffers buffers{};
        buffers.input = input;
        buffers.output = run.output;
        brighten_params params = brighten_default_params();
        params.gain = gain;
        params.offset = 0.0f;
        check(brighten_run(pipeline, run.stream, run.workspace, &buffers, &params), "run brighten");
        gain += 1.0f;
    }
    for (Run &run : runs) {
        check(cuStreamSynchronize(run.stream), "wait");
        check(cuMemcpyDtoH(picture.data(), run.output, BRIGHTEN_OUTPUT_BYTES), "copy the result");
        std::printf("the middle of the picture: %f\n", static_cast<double>(picture[width / 2 + height / 2 * width]));
    }
}

int main()
try {
    CUdevice device;
    CUcontext context;
    check(cuInit(0), "find a driver");
    check(cuDeviceGet(&device, 0), "find a GPU");
    check(cuDevicePrimaryCtxRetain(&context, device), "use the GPU");
    check(cuCtxSetCurrent(context), "use the GPU");

    brighten_pipeline *pipeline;
    check(brighten_create(&pipeline, nullptr), "load brighten");
    brighten(pipeline);
    check(brighten_destroy(pipeline), "unload brighten");
    check(cuDevicePrimaryCtxRelease(device), "release the GPU");
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
