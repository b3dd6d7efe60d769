"""Values in double precision, or more for results in double, each with a bound on how far a computation in a narrower type may be from it.

The bounds are those of running error analysis, to first order: every operation passes on the bounds of its operands and
adds one rounding, u * |result|. A sum of n terms adds (n - 1) * u * sum |term|, which holds in any order. Second-order
terms and the rounding of the stored value are covered by `bound`, which adds a tenth and one rounding.
"""

import numpy as np

UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}

# The relative error of the exponential, and that of tanh relative to 1, as the tests of `lang::math` allow.
EXP, TANH = {"float32": 5e-7, "float64": 4 * 2.0**-52}, 3e-7


class Tracked:
    """An array of values and one of bounds, computed in `dtype` elsewhere."""

    def __init__(self, value, error=0.0, dtype="float32", stored=None):
        self.value = np.asarray(value, dtype=np.longdouble if dtype == "float64" else np.float64)
        self.error = np.broadcast_to(np.asarray(error, dtype=np.float64), self.value.shape)
        self.dtype, self.stored = dtype, stored or dtype
        self.unit = UNIT[dtype]

    @property
    def shape(self):
        return self.value.shape

    def _rounded(self, value, error):
        return Tracked(value, error + self.unit * np.abs(value), self.dtype)

    def _other(self, other):
        return other if isinstance(other, Tracked) else Tracked(other, 0.0, self.dtype)

    def __add__(self, other):
        other = self._other(other)
        return self._rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other):
        return self + (-self._other(other))

    def __neg__(self):
        return Tracked(-self.value, self.error, self.dtype)

    def __mul__(self, other):
        other = self._other(other)
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return self._rounded(self.value * other.value, error)

    def __truediv__(self, other):
        other = self._other(other)
        quotient = self.value / other.value
        error = (self.error + np.abs(quotient) * other.error) / np.abs(other.value)
        return self._rounded(quotient, error)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return self._other(other) - self

    def __rtruediv__(self, other):
        return self._other(other) / self

    def __getitem__(self, at):
        return Tracked(self.value[at], self.error[at], self.dtype)

    def rsqrt(self):
        """`1 / sqrt(x)`, in two operations."""
        value = 1.0 / np.sqrt(self.value)
        return Tracked(value, self.error * value**3 / 2 + 2 * self.unit * value, self.dtype)

    def exp(self):
        value = np.exp(self.value)
        return Tracked(value, value * (self.error + EXP[self.dtype]), self.dtype)

    def tanh(self):
        value = np.tanh(self.value)
        return Tracked(value, self.error * (1 - value**2) + TANH, self.dtype)

    def relu(self):
        return Tracked(np.maximum(self.value, 0.0), self.error, self.dtype)

    def max(self, axis):
        return Tracked(self.value.max(axis), self.error.max(axis), self.dtype)

    def sum(self, *axes):
        terms = np.prod([self.value.shape[axis] for axis in axes])
        error = self.error.sum(axes) + (terms - 1) * self.unit * np.abs(self.value).sum(axes)
        return Tracked(self.value.sum(axes), error, self.dtype)

    def pad(self, widths):
        """With zeros around it, as `numpy.pad`."""
        return Tracked(np.pad(self.value, widths), np.pad(self.error, widths), self.dtype)

    def otherwise(self, value):
        """The same bounds for a value that was computed in another way, with the same result."""
        assert np.allclose(np.float64(value), np.float64(self.value), rtol=0.0, atol=1e-13)
        return Tracked(value, self.error, self.dtype)

    def rounded(self, stored):
        """The same value for a result that is rounded once more, into a narrower type."""
        return Tracked(self.value, self.error, self.dtype, stored)

    def bound(self):
        """The largest bound, for results that are stored in `stored`."""
        return float((1.1 * self.error + UNIT[self.stored] * np.abs(self.value)).max())


def einsum(formula, a, b):
    """The sum of products of two operands, as `numpy.einsum`."""
    left, _ = formula.split("->")
    names = dict(zip(left.replace(",", ""), a.value.shape + b.value.shape))
    terms = np.prod([size for name, size in names.items() if name not in formula.split("->")[1]])
    size = np.einsum(formula, np.abs(a.value), np.abs(b.value))
    error = np.einsum(formula, np.abs(a.value), b.error) + np.einsum(formula, a.error, np.abs(b.value))
    return Tracked(np.einsum(formula, a.value, b.value), error + terms * a.unit * size, a.dtype)
