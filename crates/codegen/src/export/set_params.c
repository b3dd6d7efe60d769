@bits_of@
/* A fill holds its value, so that no host memory has to outlive the call. */
static CUresult set_word(const @name@_pipeline *pipeline, CUstream stream, unsigned int number, uint32_t word)
{
    return cuMemsetD32Async(pipeline->workspace + @offset@ + 4 * number, word, 1, stream);
}

@head@
{
    if (pipeline == NULL@or_outside@) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = CUDA_SUCCESS;
@set_words@
    return result;
}

