"""Reference data for texts in the notation: `python3 generate.py` writes `data/*/*/*.npy`, `examples.txt` and `operators.txt`.

A case is a function in `examples.py` or `operators.py`, at some sizes. It draws inputs, computes the results with NumPy
alone, and returns both. Integers and what only selects or moves values are exact. Floats are computed in double precision
and rounded; `tracked.py` bounds what a computation in the type of the result may differ. A line of the manifest says

    FILE def=NAME case=FOLDER sizes=M:5,K:7 scalars=a:0.75 inputs=A,x outputs=C:2.5e-06

where FILE is in `../examples` or in `apps/operators`, FOLDER has the arrays, and the number after a result is the largest
difference allowed; 0 means the same bits.
"""

import pathlib
import shutil

import examples
import operators
from cases import write

HERE = pathlib.Path(__file__).parent


def generate(name, cases):
    folder = HERE / "data" / name
    shutil.rmtree(folder, ignore_errors=True)
    lines = [write(case, folder) for case in sorted(cases, key=lambda case: case.name)]
    (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    generate("examples", examples.CASES)
    generate("operators", operators.CASES)
