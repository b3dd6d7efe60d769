/* A driver that does nothing but say what was asked of it, and fails where it is told to. Its GPU has the compute
 * capability of STUB_COMPUTE in the environment, 9.0 unless given; its driver has the version of STUB_DRIVER, 13000
 * unless given; and code was compiled for the architecture of STUB_CODE, 90 unless given. */

#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

__attribute__((weak)) const char *failing = "";

__attribute__((weak)) const char *arguments_of(const char *kernel)
{
    (void)kernel;
    return "";
}

struct CUmod_st { int loaded; };
struct CUfunc_st { char name[64]; };
struct CUstream_st { int number; };
struct CUctx_st { int current; };

static struct CUmod_st module_store;
static struct CUfunc_st functions[256];
static int function_count;
static struct CUstream_st streams[16];
static int stream_count;
static struct CUctx_st context_store;
static int allocation_count;

/* Each allocation starts so many bytes after the one before. */
#define MEMORY 0x700000000000ULL
#define APART 0x10000000000ULL

static int fails(const char *call)
{
    return strcmp(call, failing) == 0;
}

CUresult cuInit(unsigned int flags)
{
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int setting(const char *variable, int usual)
{
    const char *given = getenv(variable);
    return given != NULL ? atoi(given) : usual;
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
    *text = result == CUDA_ERROR_UNKNOWN ? "unknown error" : NULL;
    return *text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = setting("STUB_DRIVER", 13000);
    return fails("cuDriverGetVersion") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const char *given = getenv("STUB_COMPUTE");
    int major = 9;
    int minor = 0;
    if (device != 0 || (given != NULL && sscanf(given, "%d.%d", &major, &minor) != 2)) return CUDA_ERROR_UNKNOWN;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? major : minor;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = &context_store;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    return context == &context_store ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return fails("cuCtxGetDevice") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
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
    const unsigned char *bytes = (const unsigned char *)image;
    unsigned int sum = 0;
    for (int i = 0; i < 256; i++) sum += (unsigned int)(i + 1) * bytes[i];
    printf("load own code %u\n", sum);
    if (fails("cuModuleLoadData")) return CUDA_ERROR_UNKNOWN;
    if (fails("cubin") && bytes[0] != '.') return CUDA_ERROR_NO_BINARY_FOR_GPU;
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

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    if (attribute != CU_FUNC_ATTRIBUTE_PTX_VERSION || function == NULL) return CUDA_ERROR_INVALID_VALUE;
    *value = setting("STUB_CODE", 90);
    return fails("cuFuncGetAttribute") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    printf("attribute %d of %s: %d\n", attribute, function->name, value);
    return fails("cuFuncSetAttribute") ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    printf("allocate %zu\n", bytes);
    if (fails("cuMemAlloc")) return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = MEMORY + (CUdeviceptr)allocation_count++ * APART;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr pointer)
{
    printf("free %llu\n", (pointer - MEMORY) / APART);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream)
{
    printf("set %llu to %08x, %zu times%s\n", pointer - MEMORY, value, count, stream ? " on the stream" : "");
    return fails("cuMemsetD32Async") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    printf("copy %zu bytes to the device\n", bytes);
    return to >= MEMORY && from != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    printf("copy %zu bytes from the device\n", bytes);
    memset(to, 0, bytes);
    return from >= MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    if (flags != CU_STREAM_NON_BLOCKING || stream_count == 16) return CUDA_ERROR_INVALID_VALUE;
    *stream = &streams[stream_count];
    streams[stream_count].number = stream_count;
    stream_count++;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    return stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    printf("wait%s\n", stream ? " for the stream" : "");
    return CUDA_SUCCESS;
}

static CUresult say_launch(const char *kind, CUfunction function, const unsigned int *grid, const unsigned int *block,
                           unsigned int shared_bytes, CUstream stream, void **arguments, void **extra)
{
    printf("%s %s grid %u %u %u block %u %u %u shared %u%s%s:", kind, function->name, grid[0], grid[1], grid[2], block[0],
           block[1], block[2], shared_bytes, stream ? " on the stream" : "", extra ? " with extras" : "");
    for (const char *argument = arguments_of(function->name); *argument; argument++, arguments++) {
        if (*argument == 'p') {
            printf(" %llu", *(CUdeviceptr *)*arguments);
        } else {
            printf(" %d", *(int *)*arguments);
        }
    }
    printf("\n");
    return fails("cuLaunchKernel") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared_bytes, CUstream stream, void **arguments, void **extra)
{
    unsigned int grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    return say_launch("launch", function, grid, block, shared_bytes, stream, arguments, extra);
}

#if CUDA_VERSION >= 11080
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    unsigned int grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    unsigned int block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    if (config->numAttrs != 1 || config->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        || config->attrs->value.programmaticStreamSerializationAllowed != 1) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return say_launch("launch early", function, grid, block, config->sharedMemBytes, config->hStream, arguments, extra);
}
#endif
