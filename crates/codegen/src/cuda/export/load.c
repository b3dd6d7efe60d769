enum { code_count = @count@ };

/* In the order in which to try them: machine code from the newest architecture to the oldest, then PTX. */
static const struct {
    bool is_ptx;
    int major;
    int minor;
    const unsigned char *bytes;
} codes[code_count] = {
@codes@
};

/* GPUs run machine code of their own generation that is not newer, and all PTX that is not newer. */
static CUresult load_own(CUmodule *module)
{
    CUdevice device;
    int major = 0;
    int minor = 0;
    CUresult result = cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS) {
        result = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    }
    if (result == CUDA_SUCCESS) {
        result = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    /* Embedded GPUs refuse machine code of others, but not PTX. */
    result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    for (int i = 0; i < code_count && result == CUDA_ERROR_NO_BINARY_FOR_GPU; i++) {
        bool same = major == codes[i].major && minor >= codes[i].minor;
        if (same || (codes[i].is_ptx && major > codes[i].major)) {
            result = cuModuleLoadData(module, codes[i].bytes);
        }
    }
    return result;
}

