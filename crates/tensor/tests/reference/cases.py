"""Cases of reference data: what an operation is computed from, and how its arrays and its line of the manifest are written."""

import dataclasses
import zlib
from typing import Callable

import numpy as np
from numpy.lib import format as npy

from tracked import Tracked


@dataclasses.dataclass
class Case:
    """A definition at some sizes. The function is named as the definition; it takes inputs from a `Draw` and returns results by name."""

    file: str
    name: str
    sizes: dict
    function: Callable


class Draw:
    """Inputs by name, from a seed that depends on the name of the case alone."""

    def __init__(self, name, sizes):
        self.random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.sizes, self.inputs, self.scalars = dict(sizes), {}, {}

    def shape(self, dims):
        return tuple(self.sizes.get(dim) or int(dim) for dim in dims.split())

    def floats(self, name, dims, dtype="float32", around=0.0, most=1.0):
        """Floats at most `most` away from `around`, on either side."""
        self.inputs[name] = self.random.uniform(around - most, around + most, self.shape(dims)).astype(dtype)
        return Tracked(self.inputs[name], 0.0, dtype)

    def halves(self, name, dims, dtype):
        """Floats of 16 bits around 0, to be computed with in 32 bits."""
        self.inputs[name] = rounded(self.random.uniform(-1.0, 1.0, self.shape(dims)), dtype)
        return Tracked(floats_of(self.inputs[name]), 0.0, "float32")

    def ints(self, name, dims, low, high, dtype="int32"):
        """Integers from `low` to `high`, both included."""
        self.inputs[name] = self.random.integers(low, high + 1, self.shape(dims)).astype(dtype)
        return self.inputs[name]

    def scalar(self, name, value=None):
        """A scalar, whose value is by default given among the sizes."""
        self.scalars[name] = self.sizes.pop(name) if value is None else value
        return self.scalars[name]


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


def write(case, folder):
    """Writes the arrays of a case to a folder of its own; its line of the manifest."""
    draw = Draw(case.name, case.sizes)
    results = case.function(draw)
    place = folder / case.name
    place.mkdir(parents=True)
    allowed = []
    for array, result in results.items():
        values = rounded(result.value, result.stored) if isinstance(result, Tracked) else np.asarray(result)
        save(place / f"{array}.npy", values)
        allowed.append((array, allowed_difference(result)))
    for array, values in draw.inputs.items():
        save(place / f"{array}.npy", values)
    fields = [f"def={case.function.__name__}", f"case={case.name}"]
    fields += [f"sizes={listed(draw.sizes.items())}", f"scalars={listed(draw.scalars.items())}"]
    return " ".join([case.file, *fields, f"inputs={','.join(draw.inputs)}", f"outputs={listed(allowed)}"])
