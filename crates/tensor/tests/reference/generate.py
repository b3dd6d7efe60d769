"""Reference data for the examples of the notation: `python3 generate.py` writes `data/*/*.npy` and `manifest.txt`.

An example is a function below. It draws inputs, computes the results with NumPy alone, and returns both. Integers and
what only selects or moves values are exact. Floats are computed in double precision and rounded; `tracked.py` bounds what
a computation in the type of the result may differ. A line of the manifest says

    FILE def=NAME sizes=M:5,K:7 scalars=a:0.75 inputs=A,x outputs=C:2.5e-06

where FILE is in `../examples`, and the number after a result is the largest difference allowed; 0 means the same bits.
"""

import pathlib
import shutil
import zlib

import numpy as np
from numpy.lib import format as npy

from tracked import Tracked, einsum

HERE = pathlib.Path(__file__).parent
EXAMPLES = []


def example(**sizes):
    """Adds an example; its function takes inputs from a `Draw` and returns results by name."""

    def add(function):
        EXAMPLES.append((function, sizes))
        return function

    return add


class Draw:
    """Inputs by name, from a seed that depends on the example alone."""

    def __init__(self, name, sizes):
        self.random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.sizes, self.inputs, self.scalars = sizes, {}, {}

    def shape(self, dims):
        return tuple(self.sizes.get(dim) or int(dim) for dim in dims.split())

    def floats(self, name, dims, dtype="float32"):
        """Floats around 0, of either sign."""
        self.inputs[name] = self.random.uniform(-1.0, 1.0, self.shape(dims)).astype(dtype)
        return Tracked(self.inputs[name], 0.0, dtype)

    def halves(self, name, dims, dtype):
        """Floats of 16 bits around 0, to be computed with in 32 bits."""
        self.inputs[name] = rounded(self.random.uniform(-1.0, 1.0, self.shape(dims)), dtype)
        return Tracked(floats_of(self.inputs[name]), 0.0, "float32")

    def ints(self, name, dims, low, high, dtype="int32"):
        """Integers from `low` to `high`, both included."""
        self.inputs[name] = self.random.integers(low, high + 1, self.shape(dims)).astype(dtype)
        return self.inputs[name]

    def scalar(self, name, value):
        self.scalars[name] = value
        return value


# Floats of 16 bits. NumPy has no bfloat16: its arrays have raw bytes, `V2`, the upper half of a float32.


def rounded(values, dtype):
    """Values in a narrower type, to the nearest, ties to even."""
    if dtype != "bfloat16":
        return values.astype(dtype)
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").view("V2")


def floats_of(values):
    """Values of 16 bits as float32."""
    if values.dtype != np.dtype("V2"):
        return values.astype(np.float32)
    return (values.view("<u2").astype("<u4") << 16).view("<f4")


def half_product(draw, dtype):
    """At the sizes below, sums in any order round to the same values."""
    a, b = draw.halves("A", "M K", dtype), draw.halves("B", "K N", dtype)
    return {"C": einsum("ik,kj->ij", a, b).rounded(dtype)}


@example(M=5, K=37, N=3)
def mm_float16(draw):
    return half_product(draw, "float16")


@example(M=3, K=41, N=7)
def mm_bfloat16(draw):
    return half_product(draw, "bfloat16")


# Products.


@example(M=13, K=7)
def mv(draw):
    return {"C": einsum("ik,k->i", draw.floats("A", "M K"), draw.floats("x", "K"))}


@example(M=11, K=5)
def mv2(draw):
    return {"C": einsum("ik,k->i", draw.floats("A", "M K"), draw.floats("x", "K"))}


@example(N=5, M=11, K=7)
def sgemm(draw):
    a, b = draw.scalar("a", 0.75), draw.scalar("b", -1.25)
    old, left, right = draw.floats("C_in", "N K"), draw.floats("A", "N M"), draw.floats("B", "M K")
    # One more rounding for the factor of every product, and one more term in the sum: the old value.
    products = left[:, :, None] * a * right[None, :, :]
    terms = np.concatenate([products.value, (old * b).value[:, None, :]], axis=1)
    errors = np.concatenate([products.error, (old * b).error[:, None, :]], axis=1)
    return {"C": Tracked(terms, errors).sum(1)}


@example(M=7, N=5, K=13)
def tmm(draw):
    return {"C": einsum("mk,nk->mn", draw.floats("A", "M K"), draw.floats("B", "N K"))}


@example(B=3, N=5, M=11, K=7)
def bmm(draw):
    return {"Z": einsum("bnm,bmk->bnk", draw.floats("X", "B N M"), draw.floats("Y", "B M K"))}


@example(B=2, N=7, M=5, K=3)
def tbmm(draw):
    return {"Z": einsum("bnm,bkm->bnk", draw.floats("X", "B N M"), draw.floats("Y", "B K M"))}


@example(D0=2, N0=3, D1=5, N1=7, D2=4, N2=5, M=3)
def kronecker(draw):
    w0, w1, w2 = draw.floats("W0", "D0 N0"), draw.floats("W1", "D1 N1"), draw.floats("W2", "D2 N2")
    p = einsum("mabn,dn->mabd", draw.floats("X", "M N0 N1 N2"), w2)
    q = einsum("mane,dn->made", p, w1)
    return {"Y": einsum("mnef,dn->mdef", q, w0)}


@example(P=3, Q=5, R=7, S=4, T=2)
def outer(draw):
    return {"O": einsum("pqr,srt->psqt", draw.floats("A", "P Q R"), draw.floats("B", "S R T"))}


@example(N=5, K=11)
def counts(draw):
    a, w = draw.ints("A", "N K", -9, -2), draw.ints("w", "K", 0, 255, "uint8")
    wrapped = np.array([np.multiply.reduce(row.astype(np.int64)) for row in a]).astype(np.int32)
    return {"total": a @ w.astype(np.int32), "product": wrapped, "least": np.floor_divide(a, 3).min()}


# Layers.


def layer(x, weights, bias):
    return (einsum("bm,nm->bn", x, weights) + bias[None, :]).relu()


@example(B=5, M=11, N=7)
def mlp1(draw):
    return {"O": layer(draw.floats("I", "B M"), draw.floats("W", "N M"), draw.floats("C", "N"))}


@example(B=3, N=11, O=7, P=5, Q=6)
def mlp3(draw):
    o2 = layer(draw.floats("I", "B N"), draw.floats("W2", "O N"), draw.floats("B2", "O"))
    o3 = layer(o2, draw.floats("W3", "P O"), draw.floats("B3", "P"))
    o4 = layer(o3, draw.floats("W4", "Q P"), draw.floats("B4", "Q"))
    return {"O2": o2, "O3": o3, "O4": o4}


@example(B=3, I=7, H=5, G=3)
def gru(draw):
    x, h = draw.floats("x", "B I"), draw.floats("h", "B H")
    a = einsum("bi,gji->bgj", x, draw.floats("W", "G H I"))
    c = einsum("bk,gjk->bgj", h, draw.floats("U", "G H H"))
    z = 1.0 / (1.0 + (-a[:, 0] - c[:, 0]).exp())
    r = 1.0 / (1.0 + (-a[:, 1] - c[:, 1]).exp())
    n = (a[:, 2] + r * c[:, 2]).tanh()
    return {"y": (1.0 - z) * n + z * h}


# Windows.


def windows(image, kernel, stride):
    """The sums of products over the last two dimensions of `image` (b, c, h, w) and `kernel` (f, c, y, x)."""
    (b, _, height, width), (f, _, y, x) = image.value.shape, kernel.value.shape
    h, w = (height - y) // stride[0] + 1, (width - x) // stride[1] + 1
    value, error = np.zeros((b, f, h, w)), np.zeros((b, f, h, w))
    for i in range(h):
        for j in range(w):
            top, left = i * stride[0], j * stride[1]
            one = einsum("bcyx,fcyx->bf", image[:, :, top : top + y, left : left + x], kernel)
            value[:, :, i, j], error[:, :, i, j] = one.value, one.error
    return Tracked(value, error, image.dtype)


@example(B=2, C=3, H=11, W=9, F=5, KH=3, KW=2)
def conv2d(draw):
    return {"O": windows(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"), (1, 1))}


@example(B=1, C=2, H=13, W=11, F=3, KH=5, KW=4)
def strided(draw):
    return {"O": windows(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"), (2, 3))}


@example(B=1, C=2, H=11, W=13, F=3, KH=2, KW=5)
def strides(draw):
    s, t = draw.scalar("s", 3), draw.scalar("t", 2)
    return {"O": windows(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"), (s, t))}


@example(N=2, G=3, C=5, H=7, W=6, F=4, KH=3, KW=2)
def gconv(draw):
    image, kernel, bias = draw.floats("I", "N G C H W"), draw.floats("K", "G F C KH KW"), draw.floats("B", "G F")
    groups = [windows(image[:, g], kernel[g], (1, 1)) + bias[g][None, :, None, None] for g in range(3)]
    values, errors = [one.value for one in groups], [one.error for one in groups]
    return {"O": Tracked(np.stack(values, 1), np.stack(errors, 1))}


@example(M=13, N=5)
def conv1d(draw):
    image, kernel = draw.floats("I", "M"), draw.floats("K", "N")
    shifted = np.stack([image.value[i : i + 5] for i in range(9)])
    return {"O": einsum("ix,x->i", Tracked(shifted), kernel)}


@example(B=2, C=3, H=11, W=7)
def pool(draw):
    image = draw.floats("I", "B C H W").value.astype(np.float32)
    return {"O": image[:, :, :10, :6].reshape(2, 3, 5, 2, 3, 2).max((3, 5))}


def delays(inputs, kernel, delay):
    """A causal convolution with two taps, the second `delay` steps back."""
    early = np.zeros_like(inputs.value)
    early[:, :, delay:] = inputs.value[:, :, :-delay]
    both = Tracked(np.concatenate([inputs.value, early], 1))
    taps = Tracked(np.concatenate([kernel.value[:, :, 1], kernel.value[:, :, 0]], 1))
    return einsum("brt,cr->bct", both, taps)


@example(B=2, R=3, T=11, C=5)
def causal(draw):
    return {"O": delays(draw.floats("D", "B R T"), draw.floats("F", "C R 2"), 4)}


@example(B=3, R=2, T=13, C=5)
def delayed(draw):
    d = draw.scalar("d", 5)
    return {"O": delays(draw.floats("D", "B R T"), draw.floats("F", "C R 2"), d)}


# Tables. Some indices lie outside and are clamped.


@example(E=11, D=7, B=5, L=13)
def lut(draw):
    table, at = draw.floats("T", "E D"), draw.ints("I", "B L", -2, 12)
    return {"O": table[np.clip(at, 0, 10)].sum(1)}


@example(E=11, D=3, B=5, L=7, F=6, M=2)
def lut2(draw):
    first, at = draw.floats("T", "E D"), draw.ints("I", "B L", 0, 10)
    second, to = draw.floats("S", "F D"), draw.ints("J", "B M", 0, 7, "uint8")
    return {"O": first[at].sum(1), "P": second[np.clip(to, 0, 5)].sum(1)}


@example(E=13, D=5, B=7)
def pick(draw):
    table, at = draw.floats("T", "E D"), draw.ints("I", "B", -3, 15)
    return {"O": table.value.astype(np.float32)[np.clip(at, 0, 12)]}


@example(E=11, D=3, B=7)
def gather_int64(draw):
    table, at = draw.floats("T", "E D"), draw.ints("I", "B", -2, 12, "int64")
    at[2:5] = [2**32 + 3, -(2**33) + 5, 2**62]
    return {"O": table.value.astype(np.float32)[np.clip(at, 0, 10)]}


@example(N=5, K=13)
def sum_int64(draw):
    a, w = draw.ints("A", "N K", -(2**40), 2**40, "int64"), draw.ints("w", "K", 0, 2**20, "uint64")
    return {"total": a.sum(1), "dot": a @ w.astype(np.int64), "most": w.max()}


# Norms.


def statistics(rows):
    mean = rows.sum(1) / rows.value.shape[1]
    return mean, (rows * rows).sum(1) / rows.value.shape[1] - mean * mean


@example(N=5, K=13)
def moments(draw):
    mean, var = statistics(draw.floats("I", "N K"))
    return {"mean": mean, "var": var}


@example(N=7, K=11)
def layernorm(draw):
    rows, g, h = draw.floats("I", "N K"), draw.floats("g", "K"), draw.floats("h", "K")
    eps = draw.scalar("eps", 0.0625)
    mean, var = statistics(rows)
    result = (rows - mean[:, None]) * (var + eps)[:, None].rsqrt() * g[None, :] + h[None, :]
    return {"O": result, "mean": mean, "var": var}


@example(N=5, K=17)
def layernorm_double(draw):
    rows, g = draw.floats("I", "N K", "float64"), draw.floats("g", "K", "float64")
    mean, var = statistics(rows)
    return {"O": (rows - mean[:, None]) * (var + np.longdouble(1e-5))[:, None].rsqrt() * g[None, :] + 0.1}


@example(N=2, C=3, H=7, W=5)
def batchnorm(draw):
    image = draw.floats("I", "N C H W")
    mean = image.sum(0, 2, 3) / 70.0
    d = image - mean[None, :, None, None]
    v = (d * d).sum(0, 2, 3) / 70.0
    return {"O": d * v[None, :, None, None].rsqrt(), "mean": mean}


@example(N=2, G=3, D=5, H=4, W=7)
def groupnorm(draw):
    image, gamma, beta = draw.floats("I", "N G D H W"), draw.floats("gamma", "G D"), draw.floats("beta", "G D")
    mu = image.sum(2, 3, 4) / 140.0
    var = (image * image).sum(2, 3, 4) / 140.0 - mu * mu + float(np.float32(1e-5))
    wide = (slice(None), slice(None), None, None, None)
    scale = gamma[None, :, :, None, None] * (image - mu[wide]) * var[wide].rsqrt()
    return {"O": scale + beta[None, :, :, None, None]}


@example(N=5, D=11)
def softmax(draw):
    rows = draw.floats("I", "N D")
    e = (rows - rows.max(1)[:, None]).exp()
    return {"O": e / e.sum(1)[:, None]}


@example(N=5, D=13)
def softmax_double(draw):
    rows = draw.floats("I", "N D", "float64")
    e = (rows - rows.max(1)[:, None]).exp()
    return {"O": e / e.sum(1)[:, None]}


@example(Q=7, D=5, T=13, V=3)
def attention(draw):
    queries, keys, values = draw.floats("queries", "Q D"), draw.floats("keys", "T D"), draw.floats("values", "T V")
    scale = draw.scalar("scale", 0.4375)
    s = einsum("qd,td->qt", queries, keys)
    e = ((s - s.max(1)[:, None]) * scale).exp()
    return {"O": einsum("qt,tv->qv", e, values) / e.sum(1)[:, None]}


# Small ones.


@example(I=13)
def average(draw):
    b = draw.floats("B", "I").value.astype(np.float32)
    return {"A": b[0:12:2] + b[1:13:2]}


@example(I=11)
def reverse(draw):
    return {"A": draw.floats("B", "I").value.astype(np.float32)[::-1].copy()}


@example(N=5, K=13, M=7)
def precondition(draw):
    b, c, d = draw.floats("B", "N"), draw.floats("C", "K"), draw.floats("D", "M")
    at = np.add.outer(np.arange(5), np.arange(7))
    return {"A": b[:, None] * c[at] * d[None, :]}


@example(N=7)
def fill(draw):
    draw.floats("A", "N")
    return {"B": np.full(7, draw.scalar("c", -0.375), np.float32)}


def listed(pairs):
    return ",".join(f"{name}:{value}" for name, value in pairs)


def save(path, values):
    """Writes an array; raw bytes as `<V2`, which says more than NumPy's `|V2`."""
    if values.dtype != np.dtype("V2"):
        np.save(path, values)
        return
    with open(path, "wb") as file:
        header = {"descr": "<V2", "fortran_order": False, "shape": values.shape}
        npy.write_array_header_1_0(file, header)
        file.write(values.tobytes())


def allowed_difference(result):
    """How far a result may be from the reference. What is within the bounds before the last rounding often rounds to the
    same value everywhere, and is then exact."""
    if not isinstance(result, Tracked):
        return "0"
    ends = [rounded(result.value + sign * 1.1 * result.error, result.stored) for sign in (-1, 1)]
    same = result.stored != result.dtype and ends[0].tobytes() == ends[1].tobytes()
    return "0" if same else f"{result.bound():.3g}"


def write(function, sizes):
    """Writes the arrays of an example; its line of the manifest."""
    name = function.__name__
    draw = Draw(name, sizes)
    results = function(draw)
    place = HERE / "data" / name
    place.mkdir(parents=True)
    allowed = []
    for array, result in results.items():
        values = rounded(result.value, result.stored) if isinstance(result, Tracked) else np.asarray(result)
        save(place / f"{array}.npy", values)
        allowed.append((array, allowed_difference(result)))
    for array, values in draw.inputs.items():
        save(place / f"{array}.npy", values)
    fields = [f"def={name}", f"sizes={listed(sizes.items())}", f"scalars={listed(draw.scalars.items())}"]
    return " ".join([f"{name}.tc", *fields, f"inputs={','.join(draw.inputs)}", f"outputs={listed(allowed)}"])


if __name__ == "__main__":
    shutil.rmtree(HERE / "data", ignore_errors=True)
    lines = [write(function, sizes) for function, sizes in sorted(EXAMPLES, key=lambda one: one[0].__name__)]
    (HERE / "manifest.txt").write_text("\n".join(lines) + "\n")
