/* The kernels that wait for the one before them, and so can be launched before it has ended. */
static const bool waits[kernel_count] = {@waits@};

/* Whether the driver can do that with a kernel. Code for older architectures does not wait. */
static CUresult find_early(CUfunction function, bool *early)
{
#if CUDA_VERSION >= 12030
    int driver = 0;
    int architecture = 0;
    CUresult result = cuDriverGetVersion(&driver);
    if (result == CUDA_SUCCESS) {
        result = cuFuncGetAttribute(&architecture, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
    }
    *early = driver >= 12030 && architecture >= 90;
    return result;
#else
    (void)function;
    *early = false;
    return CUDA_SUCCESS;
#endif
}

