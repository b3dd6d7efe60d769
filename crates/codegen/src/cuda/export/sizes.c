/* What follows from the sizes and strides of a run. */
typedef struct {
    int64_t stride[@buffers@][@dims@];
    size_t offset[@buffers@];
@words_field@
    size_t bytes;
} layout;

/* Computes the strides of an array: dense ones, or those that were given, unless all of these are 0. Returns the number of
 * elements from the first to the last; 0 if the strides do not fit the extents, -1 if a dense array is too large. */
static int64_t place(int dims, const int64_t *extent, const int *order, const int64_t *given, int64_t *stride)
{
    int64_t least = 1, last = 0;
    bool dense = true;
    for (int d = 0; d < dims && given != NULL; d++) {
        dense = dense && given[d] == 0;
    }
    for (int i = 0; i < dims; i++) {
        int d = order[i];
        int64_t points = extent[d] > 1 ? extent[d] : 1;
        stride[d] = dense ? least : given[d];
        if (stride[d] < least || stride[d] > @most@ || (i == 0 && stride[d] != 1)) {
            return dense ? -1 : 0;
        }
        least = stride[d] * points;
        last += (points - 1) * stride[d];
        if (last >= @most@) {
            return dense ? -1 : 0;
        }
    }
    return last + 1;
}

/* Lays out the buffers of a run. Without buffers, inputs and outputs are dense. */
static CUresult lay_out(@sizes@const @name@_buffers *buffers, layout *at)
{
    (void)buffers;
    at->bytes = 0;
@locals@
@ranges@
@values@
@conditions@
@place@
@words@
    return CUDA_SUCCESS;
}

