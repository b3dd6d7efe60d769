@name@_params @name@_default_params(void)
{
    @name@_params params;
@defaults@
    return params;
}

@in_range@
@bits_of@
static CUresult set_words(CUdeviceptr words, CUstream stream, const @name@_params *params)
{
    const struct {
        unsigned int number;
        uint32_t value;
    } all[] = {
@words@
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && result == CUDA_SUCCESS; i++) {
        /* A fill holds its value, so that no host memory has to outlive the call. */
        result = cuMemsetD32Async(words + 4 * all[i].number, all[i].value, 1, stream);
    }
    return result;
}

