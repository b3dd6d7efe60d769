"""References for the operators of the suite, `apps/operators/*.tc`. A function has the name of a definition; where that means
the same as an example of the notation, it is the example's."""

import numpy as np

import examples
from cases import Case
from operations import EPS, convolved, delays, padded, scattered, softmax_of, statistics, windows
from tracked import Tracked, einsum

CASES = []


def operator(file, *cases):
    """Adds a definition of a file, at several choices of sizes and integer scalars."""

    def add(function):
        for number, sizes in enumerate(cases, 1):
            CASES.append(Case(f"{file}.tc", f"{function.__name__}.{number}", sizes, function))
        return function

    return add


# Products.

operator("bmm", dict(B=3, N=5, M=9, K=7))(examples.bmm)
operator("tmm", dict(M=5, N=9, K=15))(examples.tmm)
operator("kronecker", dict(D0=3, N0=2, D1=4, N1=5, D2=5, N2=3, M=5))(examples.kronecker)


@operator("bmm", dict(B=2, N=7, M=5, K=9))
def bmm_first(draw):
    return {"Z": einsum("bmn,bmk->bnk", draw.floats("X", "B M N"), draw.floats("Y", "B M K"))}


@operator("bmm", dict(B=3, N=5, M=7, K=3))
def bmm_second(draw):
    return {"Z": einsum("bnm,bkm->bnk", draw.floats("X", "B N M"), draw.floats("Y", "B K M"))}


@operator("gmm", dict(M=11, K=7, N=9))
def gmm(draw):
    return {"O": einsum("ik,kj->ij", draw.floats("A", "M K"), draw.floats("B", "K N"))}


@operator("gmv", dict(M=13, K=19))
def gmv(draw):
    return {"O": einsum("ik,k->i", draw.floats("A", "M K"), draw.floats("B", "K"))}


@operator("bilinear", dict(I=5, J=7, K=3, L=9), dict(I=3, J=1, K=11, L=5))
def bilinear(draw):
    a, b, c = draw.floats("A", "I K"), draw.floats("B", "J K L"), draw.floats("C", "I L")
    at_once = np.einsum("ik,jkl,il->ij", a.value, b.value, c.value)
    in_steps = einsum("ik,ijk->ij", a, einsum("jkl,il->ijk", b, c))
    return {"O": in_steps.otherwise(at_once)}


@operator("bcm", dict(R=3, F=5, Q=2), dict(R=2, F=4, Q=3))
def bcm(draw):
    """A block is nearest to the circulant matrix whose every diagonal, which goes on at the left edge, is the block's mean."""
    blocks = draw.floats("A", "R F Q F")
    side = draw.sizes["F"]
    twice = np.concatenate([blocks.value, blocks.value], axis=3)
    diagonals = [np.diagonal(twice[..., t : t + side], axis1=1, axis2=3) for t in range(side)]
    first = Tracked(np.stack(diagonals, 2)).sum(3) / side
    rows = [np.stack([np.roll(part, i, axis=2) for i in range(side)], 1) for part in (first.value, first.error)]
    return {"O": Tracked(*rows)}


# Layers.

operator("mlp", dict(B=3, M=13, N=9))(examples.mlp1)
operator("mlp", dict(B=5, N=7, O=9, P=6, Q=5))(examples.mlp3)


@operator(
    "wavenet",
    dict(d=1, B=1, R=3, T=11, C=5, S=4),
    dict(d=4, B=2, R=5, T=13, C=3, S=7),
    dict(d=9, B=1, R=2, T=7, C=3, S=3),
)
def wavenet(draw):
    d, x = draw.scalar("d"), draw.floats("X", "B R T")

    def causal(weights, bias):
        return delays(x, draw.floats(weights, "C R 2"), d) + draw.floats(bias, "C")[:, None]

    def mixed(weights, bias, channels):
        return einsum("bct,nc->bnt", z, draw.floats(weights, f"{channels} C")) + draw.floats(bias, channels)[:, None]

    z = causal("FW", "FB").tanh() * (1.0 / (1.0 + (-causal("GW", "GB")).exp()))
    return {"Res": x + mixed("RW", "RB", "R"), "Skip": mixed("SW", "SB", "S")}


# Windows.

operator("gconv", dict(N=1, G=3, C=2, H=7, W=5, F=3, KH=3, KW=4), dict(N=2, G=2, C=3, H=8, W=5, F=3, KH=7, KW=1))(
    examples.gconv
)


def padded_input(draw, dims, kept):
    """The scalars of a convolution, and its input with zeros around the last dimensions."""
    stride, zeros = draw.scalar("s"), draw.scalar("p")
    return [stride] * kept, padded(draw.floats("I", dims), kept, zeros)


@operator(
    "conv1d",
    dict(s=1, p=1, B=2, C=3, L=13, F=5, KL=4),
    dict(s=3, p=2, B=1, C=5, L=15, F=3, KL=7),
    dict(s=2, p=0, B=3, C=7, L=9, F=4, KL=1),
)
def conv1d(draw):
    strides, image = padded_input(draw, "B C L", 1)
    return {"O": convolved(image, draw.floats("K", "F C KL"), strides)}


@operator(
    "conv2d",
    dict(s=1, p=1, B=2, C=3, H=5, W=7, F=3, KH=3, KW=4),
    dict(s=2, p=2, B=1, C=2, H=9, W=11, F=3, KH=7, KW=3),
    dict(s=3, p=0, B=1, C=3, H=11, W=8, F=5, KH=1, KW=4),
)
def conv2d(draw):
    strides, image = padded_input(draw, "B C H W", 2)
    return {"O": convolved(image, draw.floats("K", "F C KH KW"), strides)}


@operator(
    "conv3d",
    dict(s=1, p=1, B=1, C=2, D=3, H=5, W=5, F=3, KD=3, KH=1, KW=4),
    dict(s=2, p=2, B=2, C=1, D=5, H=3, W=7, F=2, KD=4, KH=7, KW=3),
    dict(s=3, p=0, B=1, C=2, D=7, H=5, W=4, F=3, KD=3, KH=4, KW=1),
)
def conv3d(draw):
    strides, image = padded_input(draw, "B C D H W", 3)
    return {"O": convolved(image, draw.floats("K", "F C KD KH KW"), strides)}


@operator(
    "depthwise",
    dict(s=1, p=0, B=2, C=3, H=7, W=9, M=1, KH=3, KW=3),
    dict(s=2, p=2, B=1, C=3, H=9, W=7, M=3, KH=4, KW=7),
    dict(s=3, p=1, B=1, C=5, H=11, W=5, M=2, KH=1, KW=3),
)
def depthwise(draw):
    strides, image = padded_input(draw, "B C H W", 2)
    kernel = draw.floats("K", "C M KH KW")
    return {"O": einsum("bchwyx,cmyx->bcmhw", windows(image, kernel.shape[2:], strides), kernel)}


@operator(
    "grouped",
    dict(s=1, p=2, B=1, G=3, C=2, H=5, W=7, F=3, KH=3, KW=4),
    dict(s=2, p=0, B=2, G=2, C=3, H=9, W=7, F=2, KH=7, KW=3),
    dict(s=3, p=1, B=1, G=5, C=1, H=7, W=11, F=3, KH=4, KW=1),
)
def grouped(draw):
    strides, image = padded_input(draw, "B G C H W", 2)
    kernel = draw.floats("K", "G F C KH KW")
    return {"O": einsum("bgchwyx,gfcyx->bgfhw", windows(image, kernel.shape[3:], strides), kernel)}


@operator(
    "dilated",
    dict(s=1, p=1, d=2, B=1, C=3, H=7, W=9, F=5, KH=3, KW=4),
    dict(s=2, p=2, d=3, B=2, C=2, H=11, W=9, F=3, KH=4, KW=3),
    dict(s=3, p=0, d=1, B=1, C=2, H=9, W=13, F=3, KH=1, KW=7),
)
def dilated(draw):
    strides, image = padded_input(draw, "B C H W", 2)
    return {"O": convolved(image, draw.floats("K", "F C KH KW"), strides, draw.scalar("d"))}


@operator(
    "shift",
    dict(k=3, N=1, H=5, W=7, C=11),
    dict(k=4, N=2, H=5, W=3, C=13),
    dict(k=1, N=3, H=3, W=5, C=3),
)
def shift(draw):
    """Channel by channel, what a window sees at one of its places; the window's centre is at k / 2, rounded down."""
    k = draw.scalar("k")
    image, offsets = draw.floats("I", "N H W C").value.astype(np.float32), draw.ints("S", "C", 0, k * k - 1)
    around = (k // 2, k - 1 - k // 2)
    wide = np.pad(image, [(0, 0), around, around, (0, 0)])
    _, height, width, _ = image.shape
    moved = [
        wide[:, down : down + height, right : right + width, channel]
        for channel, (down, right) in enumerate(zip(*np.divmod(offsets, k)))
    ]
    return {"O": np.stack(moved, 3)}


# Transposed convolutions.


def without_stride(draw, dims, taps):
    """A transposed convolution of stride 1, whose input is padded with `q` zeros, so that the rest of each side is cut off."""
    q, image, kernel = draw.scalar("q"), draw.floats("I", f"B C {dims}"), draw.floats("K", f"C F {taps}")
    return {"O": scattered(image, kernel, 1, [extent - 1 - q for extent in kernel.shape[2:]])}


@operator(
    "transposed",
    dict(q=3, B=2, C=3, L=11, F=5, KL=4),
    dict(q=4, B=1, C=5, L=9, F=3, KL=7),
    dict(q=0, B=1, C=7, L=5, F=3, KL=1),
    dict(q=-1, B=1, C=3, L=9, F=3, KL=3),
)
def transposed1d(draw):
    return without_stride(draw, "L", "KL")


@operator(
    "transposed",
    dict(q=2, B=1, C=3, H=5, W=7, F=5, KH=3, KW=4),
    dict(q=3, B=2, C=2, H=7, W=5, F=3, KH=7, KW=4),
    dict(q=0, B=1, C=5, H=9, W=7, F=3, KH=1, KW=3),
)
def transposed2d(draw):
    return without_stride(draw, "H W", "KH KW")


@operator(
    "transposed",
    dict(q=2, B=1, C=2, D=3, H=5, W=4, F=3, KD=3, KH=4, KW=3),
    dict(q=1, B=2, C=3, D=5, H=3, W=3, F=2, KD=2, KH=3, KW=4),
)
def transposed3d(draw):
    return without_stride(draw, "D H W", "KD KH KW")


def with_stride(draw, dims, taps):
    """A transposed convolution of any stride; `k` is how many taps along the longest side reach one point."""
    stride, cut = draw.scalar("s"), draw.scalar("p")
    image, kernel = draw.floats("I", f"B C {dims}"), draw.floats("K", f"C F {taps}")
    sides = kernel.shape[2:]
    draw.scalar("k", -(-max(sides) // stride))
    return {"O": scattered(image, kernel, stride, [cut] * len(sides))}


@operator(
    "transposed",
    dict(s=1, p=1, B=1, C=3, H=5, W=7, F=3, KH=3, KW=4),
    dict(s=2, p=2, B=2, C=3, H=5, W=3, F=3, KH=4, KW=3),
    dict(s=2, p=1, B=1, C=2, H=3, W=5, F=5, KH=3, KW=7),
    dict(s=3, p=0, B=1, C=3, H=4, W=3, F=2, KH=7, KW=4),
    dict(s=3, p=0, B=1, C=2, H=3, W=5, F=3, KH=1, KW=2),
    dict(s=3, p=1, B=1, C=5, H=3, W=4, F=2, KH=6, KW=5),
)
def strided2d(draw):
    return with_stride(draw, "H W", "KH KW")


@operator(
    "transposed",
    dict(s=1, p=1, B=1, C=2, D=3, H=4, W=5, F=2, KD=3, KH=2, KW=4),
    dict(s=2, p=0, B=1, C=2, D=3, H=2, W=3, F=2, KD=5, KH=3, KW=4),
    dict(s=3, p=0, B=1, C=1, D=2, H=3, W=2, F=1, KD=2, KH=7, KW=3),
    dict(s=2, p=2, B=2, C=1, D=3, H=3, W=4, F=2, KD=3, KH=4, KW=1),
    dict(s=3, p=1, B=1, C=2, D=2, H=3, W=2, F=1, KD=3, KH=4, KW=5),
)
def strided3d(draw):
    return with_stride(draw, "D H W", "KD KH KW")


# Tables: some indices of the first lie outside and are clamped.

operator("lut", dict(E=13, D=5, B=7, L=9))(examples.lut)


@operator("lut", dict(E=9, D=5, B=3, L=7, E2=5, D2=3, L2=11))
def lut2(draw):
    first, at = draw.floats("T", "E D"), draw.ints("I", "B L", 0, draw.sizes["E"] - 1)
    second, to = draw.floats("T2", "E2 D2"), draw.ints("I2", "B L2", 0, draw.sizes["E2"] - 1)
    return {"O": first[at].sum(1), "O2": second[to].sum(1)}


# Norms.

operator("moments", dict(N=7, K=15))(examples.moments)
operator("groupnorm", dict(N=2, G=3, D=2, H=5, W=7), dict(N=1, G=5, D=3, H=3, W=3))(examples.groupnorm)


@operator("softmax_layernorm", dict(N=5, D=13), dict(N=3, D=31))
def softmax_layernorm(draw):
    # Values whose exponentials are infinite as floats.
    inputs = draw.floats("I", "N D", around=100.0, most=3.0)
    rows, g, h = softmax_of(inputs), draw.floats("g", "D"), draw.floats("h", "D")
    mean, var = statistics(rows, 1)
    return {"O": (rows - mean[:, None]) * (var + EPS)[:, None].rsqrt() * g + h}
