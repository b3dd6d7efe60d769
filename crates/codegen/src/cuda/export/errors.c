const char *@name@_error(CUresult result)
{
    const char *text = NULL;
    switch ((int)result) {
    case (int)CUDA_SUCCESS:
        return "there is no error";
    case (int)CUDA_ERROR_OUT_OF_MEMORY:
        return "there is not enough memory";
    case (int)CUDA_ERROR_NO_BINARY_FOR_GPU:
        return "the package has no code for this GPU, or the GPU has too little shared memory";
    case (int)CUDA_ERROR_FILE_NOT_FOUND:
        return "there is no such file, or the package contains no code and no file was given";
    case (int)@NAME@_ERROR_NULL:
        return "an argument, or the address of a buffer or the workspace, is NULL";
    case (int)@NAME@_ERROR_ALIGNMENT:
        return "an input or output does not start at a multiple of @aligned@, or the workspace at one of @alignment@ bytes";
    case (int)@NAME@_ERROR_SIZE:
        return "a size is out of its range, which the header says, or the sizes cannot be used together";
    case (int)@NAME@_ERROR_STRIDE:
        return "the strides of a buffer do not fit: in storage order, the first is 1, and each further one at least the "
               "extent before it times its stride; or all are 0, which is dense";
    case (int)@NAME@_ERROR_PARAM:
        return "a Param is out of its range, which the header says";
    default:
        return cuGetErrorString(result, &text) == CUDA_SUCCESS && text != NULL ? text : "the error is unknown";
    }
}

