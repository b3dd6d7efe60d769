"""Operations that several references share, written from what they mean."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tracked import Tracked, einsum

# What is added to a variance, as a float32.
EPS = float(np.float32(1e-5))

# The names of the last dimensions of an image, and those of a kernel.
PLACES, TAPS = "dhw", "zyx"


def layer(x, weights, bias):
    """A linear layer, of which everything below 0 is 0."""
    return (einsum("bm,nm->bn", x, weights) + bias[None, :]).relu()


def windows(image, extents, strides=None, apart=1):
    """The windows of some extents in the last dimensions of `image`, which begin `strides` points from each other. Their
    places stand before their points, of which only those `apart` from each other are kept."""
    strides = strides or [1] * len(extents)
    last = tuple(range(-len(extents), 0))
    reach = [apart * (extent - 1) + 1 for extent in extents]
    kept = (..., *[slice(None, None, stride) for stride in strides], *[slice(None, None, apart)] * len(extents))
    value, error = (sliding_window_view(array, reach, last)[kept] for array in (image.value, image.error))
    return Tracked(value, error, image.dtype)


def padded(image, dims, zeros):
    """`image` with zeros on both sides of its last dimensions."""
    return image.pad([(0, 0)] * (image.value.ndim - dims) + [(zeros, zeros)] * dims)


def convolved(image, kernel, strides=None, apart=1):
    """A convolution of `image` (b, c, ...) with `kernel` (f, c, ...), over what remains of their dimensions."""
    taps = kernel.shape[2:]
    places, points = PLACES[-len(taps) :], TAPS[-len(taps) :]
    formula = f"bc{places}{points},fc{points}->bf{places}"
    return einsum(formula, windows(image, taps, strides, apart), kernel)


def scattered(image, kernel, stride, cuts):
    """A transposed convolution: every point of `image` (b, c, ...) adds `kernel` (c, f, ...), times its value, to the
    result, `stride` points apart. Then `cuts` points are cut off at both ends of each dimension.

    The bound counts the products that meet in a point; those with a zero cost nothing."""
    assert not image.error.any() and not kernel.error.any()
    (batch, channels, *extents), (_, filters, *taps) = image.shape, kernel.shape
    full = [stride * (extent - 1) + tap for extent, tap in zip(extents, taps)]
    value, size, terms = np.zeros((3, batch, filters, *full))
    for place in np.ndindex(*extents):
        to = (..., *[slice(stride * at, stride * at + tap) for at, tap in zip(place, taps)])
        point = image.value[(..., *place)]
        value[to] += np.einsum("bc,cf...->bf...", point, kernel.value)
        size[to] += np.einsum("bc,cf...->bf...", np.abs(point), np.abs(kernel.value))
        terms[to] += channels
    kept = (..., *[slice(cut, extent - cut) for cut, extent in zip(cuts, full)])
    return Tracked(value, terms * image.unit * size, image.dtype)[kept]


def delays(inputs, kernel, delay):
    """A causal convolution with two taps, the second `delay` steps back."""
    early = np.zeros_like(inputs.value)
    early[:, :, delay:] = inputs.value[:, :, :-delay]
    both = Tracked(np.concatenate([inputs.value, early], 1))
    taps = Tracked(np.concatenate([kernel.value[:, :, 1], kernel.value[:, :, 0]], 1))
    return einsum("brt,cr->bct", both, taps)


def statistics(values, *axes):
    """Mean and variance, the latter as the mean of squared deviations. Its bound is that of the mean square less the squared
    mean, which loses more digits."""
    count = np.prod([values.shape[axis] for axis in axes])
    mean = values.sum(*axes) / count
    difference = (values * values).sum(*axes) / count - mean * mean
    deviations = values.value - values.value.mean(axes, keepdims=True)
    return mean, difference.otherwise((deviations**2).mean(axes))


def softmax_of(rows):
    e = (rows - rows.max(1)[:, None]).exp()
    return e / e.sum(1)[:, None]
