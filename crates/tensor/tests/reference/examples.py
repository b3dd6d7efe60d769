"""References for the examples of the notation, `../examples/*.tc`. An example is a function with the name of its file."""

import numpy as np

from cases import Case
from operations import EPS, convolved, delays, layer, softmax_of, statistics, windows
from tracked import Tracked, einsum

CASES = []


def example(**sizes):
    """Adds an example at some sizes."""

    def add(function):
        name = function.__name__
        CASES.append(Case(f"{name}.tc", name, sizes, function))
        return function

    return add


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
    x = draw.floats("X", "M N0 N1 N2")
    at_once = np.einsum("mabc,da,eb,fc->mdef", x.value, w0.value, w1.value, w2.value)
    in_steps = einsum("mnef,dn->mdef", einsum("mane,dn->made", einsum("mabn,dn->mabd", x, w2), w1), w0)
    return {"Y": in_steps.otherwise(at_once)}


@example(P=3, Q=5, R=7, S=4, T=2)
def outer(draw):
    return {"O": einsum("pqr,srt->psqt", draw.floats("A", "P Q R"), draw.floats("B", "S R T"))}


@example(N=5, K=11)
def counts(draw):
    a, w = draw.ints("A", "N K", -9, -2), draw.ints("w", "K", 0, 255, "uint8")
    wrapped = np.array([np.multiply.reduce(row.astype(np.int64)) for row in a]).astype(np.int32)
    return {"total": a @ w.astype(np.int32), "product": wrapped, "least": np.floor_divide(a, 3).min()}


# Layers.


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


@example(B=2, C=3, H=11, W=9, F=5, KH=3, KW=2)
def conv2d(draw):
    return {"O": convolved(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"))}


@example(B=1, C=2, H=13, W=11, F=3, KH=5, KW=4)
def strided(draw):
    return {"O": convolved(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"), (2, 3))}


@example(B=1, C=2, H=11, W=13, F=3, KH=2, KW=5)
def strides(draw):
    s, t = draw.scalar("s", 3), draw.scalar("t", 2)
    return {"O": convolved(draw.floats("I", "B C H W"), draw.floats("K", "F C KH KW"), (s, t))}


@example(N=2, G=3, C=5, H=7, W=6, F=4, KH=3, KW=2)
def gconv(draw):
    image, kernel, bias = draw.floats("I", "N G C H W"), draw.floats("K", "G F C KH KW"), draw.floats("B", "G F")
    return {"O": einsum("ngchwyx,gfcyx->ngfhw", windows(image, kernel.shape[3:]), kernel) + bias[..., None, None]}


@example(M=13, N=5)
def conv1d(draw):
    image, kernel = draw.floats("I", "M"), draw.floats("K", "N")
    return {"O": einsum("ix,x->i", windows(image, kernel.shape), kernel)}


@example(B=2, C=3, H=11, W=7)
def pool(draw):
    image = draw.floats("I", "B C H W").value.astype(np.float32)
    return {"O": image[:, :, :10, :6].reshape(2, 3, 5, 2, 3, 2).max((3, 5))}


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
    last = draw.sizes["E"] - 1
    table, at = draw.floats("T", "E D"), draw.ints("I", "B L", -2, last + 2)
    return {"O": table[np.clip(at, 0, last)].sum(1)}


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


@example(N=5, K=13)
def moments(draw):
    mean, var = statistics(draw.floats("I", "N K"), 1)
    return {"mean": mean, "var": var}


@example(N=7, K=11)
def layernorm(draw):
    rows, g, h = draw.floats("I", "N K"), draw.floats("g", "K"), draw.floats("h", "K")
    eps = draw.scalar("eps", 0.0625)
    mean, var = statistics(rows, 1)
    result = (rows - mean[:, None]) * (var + eps)[:, None].rsqrt() * g[None, :] + h[None, :]
    return {"O": result, "mean": mean, "var": var}


@example(N=5, K=17)
def layernorm_double(draw):
    rows, g = draw.floats("I", "N K", "float64"), draw.floats("g", "K", "float64")
    mean, var = statistics(rows, 1)
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
    mean, var = statistics(image, 2, 3, 4)
    wide = (..., None, None, None)
    scale = gamma[..., None, None] * (image - mean[wide]) * (var + EPS)[wide].rsqrt()
    return {"O": scale + beta[..., None, None]}


@example(N=5, D=11)
def softmax(draw):
    return {"O": softmax_of(draw.floats("I", "N D"))}


@example(N=5, D=13)
def softmax_double(draw):
    return {"O": softmax_of(draw.floats("I", "N D", "float64"))}


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
