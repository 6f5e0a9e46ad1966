"""Writes references.json: what the references in TVM 0.27's `topi.testing` give for some calls.

    .venv-oracle/bin/python tests/testing/record_references.py

For each call the shape, the first elements and the sum of the products with 1, 2, 3, … and so on.
`MLCWEB_RECORD_PATH` names a folder with packages that TVM's module imports.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_name("references.json")


def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The name of a reference and its arguments."""
    random = np.random.default_rng(0)

    def f(*shape: int) -> Any:
        return random.standard_normal(shape).astype("float32")

    x, g, b, m, v = f(2, 6, 4, 4), f(6), f(6), f(6), abs(f(6))
    for training in (False, True):
        yield "batch_norm", (x, g, b, m, v, 1, 1e-5, True, True, training, 0.1)
    last = (f(4), f(4), f(4), abs(f(4)))
    yield "batch_norm", (x, *last, 3, 1e-3, False, True, False, 0.1)
    yield "group_norm_python", (x, g, b, 3, 1, [2, 3])
    yield "group_norm_python", (x.transpose(0, 2, 3, 1), g, b, 2, 3, [1, 2])
    yield "instance_norm_python", (f(2, 3, 4), f(1, 1, 4), f(1), (1, 2))
    yield "instance_norm_python", (f(2, 3, 4), np.float32(2), None, (2,))
    for axis, size in ((1, 3), (3, 5), (1, 4)):
        yield "lrn_python", (x, size, axis, 2.0, 0.1, 0.75)
    yield "adaptive_pool", (x, (3, 2), "avg", "NCHW")
    yield "adaptive_pool", (x, (3, 3), "max", "NHWC")
    yield "adaptive_pool", (f(1, 2, 7), 3, "avg", "NCW")
    yield "adaptive_pool", (f(1, 5, 4, 3, 2), (2, 3, 2), "max", "NDHWC")
    yield "conv1d_ncw_python", (f(2, 3, 9), f(4, 3, 3), 2, 1, 1)
    yield "conv1d_ncw_python", (f(2, 3, 9), f(4, 3, 3), 1, "SAME", 2)
    yield "group_conv1d_ncw_python", (f(2, 4, 9), f(6, 2, 3), 1, (1, 2), 1, 2)
    yield "space_to_batch_nd_python", (f(2, 4, 6, 3), (2, 3), (0, 0), (0, 0))
    yield "space_to_batch_nd_python", (f(2, 3, 6), (2, 3), (0, 0), (1, 0), 2.0)
    yield "batch_to_space_nd_python", (f(12, 2, 3, 3), (2, 3), (0, 1), (1, 0))
    yield "batch_to_space_nd_python", (f(12, 2, 3), (2,), (0,), (1,))
    yield "sequence_mask", (f(3, 5, 2), np.array([1, 3, 2, 5, 0]), -1.0, 0)
    yield "sequence_mask", (f(3, 5), np.array([1, 3, 5]), 0.5, 1)
    yield "searchsorted_ref", (np.sort(f(7)), f(2, 3, 4), True, "int32")
    yield "searchsorted_ref", (np.sort(f(2, 7)), f(2, 4), False, "int64")
    for k, length in ((0, 4), (1, 4), (-2, 2), ((0, 0), 4)):
        yield "matrix_set_diag", (f(2, 4, 5), f(2, length), k)
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT"):
        yield "matrix_set_diag", (f(2, 4, 5), f(2, 4, 4), (-2, 1), align)
    for reduction in ("mean", "sum", "none"):
        yield "nll_loss", (x, random.integers(0, 6, (2, 4, 4)), abs(g), reduction, 3)
    for axis, begin, end in ((1, 1, 4), (-1, -3, -1), (0, 0, 0)):
        yield "slice_axis_python", (x, axis, begin, end)
    yield "strided_set_python", (x[0, 0], f(2, 2), [0, 1], [4, 4], [2, 2])


def summary(found: Any) -> list[Any]:
    """What is recorded of a result: of each of several."""
    if isinstance(found, list):
        return [part for each in found for part in summary(each)]
    flat = np.ravel(found).astype("float64")
    weighted = float(flat @ np.arange(1, flat.size + 1))
    return [list(np.shape(found)), [round(float(n), 4) for n in flat[:6]], round(weighted, 3)]


def main() -> None:
    from types import ModuleType

    sys.path.extend(filter(None, [os.environ.get("MLCWEB_RECORD_PATH")]))
    for name in ("scipy", "scipy.signal", "scipy.special"):  # imported, and not used by these calls
        sys.modules.setdefault(name, ModuleType(name))
    sys.modules["scipy"].__path__ = []
    vars(sys.modules["scipy.special"]).setdefault("logsumexp", None)
    from tvm.topi import testing

    reshape = np.reshape
    np.reshape = lambda a, *args, newshape=None, **more: (  # NumPy 2 has no `newshape`
        reshape(a, *args, **more) if newshape is None else reshape(a, newshape)
    )
    answers = [[name, summary(getattr(testing, name)(*args))] for name, args in calls()]
    ANSWERS.write_text("[\n" + ",\n".join(map(json.dumps, answers)) + "\n]\n")


if __name__ == "__main__":
    main()
