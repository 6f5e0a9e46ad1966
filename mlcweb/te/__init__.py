"""Tensor expressions: tensors described by the expression of their elements.

`placeholder`, `compute`, `extern`, `scan` and `reduce_axis` (operation.py, scan.py, reduction.py)
describe; `sum`, `prod`, `max`, `min` (reducers.py) reduce; `create_prim_func` (prim_func.py) makes
a TensorIR function of it. Everything elementwise comes from tir.
"""

from mlcweb.te import operation, tensor
from mlcweb.te.operation import (
    ComputeOp, ExternOp, Operation, PlaceholderOp, compute, extern, placeholder, var,
)  # fmt: skip
from mlcweb.te.extern_primfunc import extern_primfunc
from mlcweb.te.prim_func import create_prim_func
from mlcweb.te.scan import ScanOp, scan
from mlcweb.tir.reducers import max, min, prod, sum
from mlcweb.tir.reduction import CommReducer, Reduce, comm_reducer, reduce_axis, thread_axis
from mlcweb.te.tag import tag_scope
from mlcweb.te.tensor import ProducerLoad, Tensor, TensorSlice
from mlcweb.tir.constructors import CONSTRUCTORS, size_var
from mlcweb.tir.arithmetic import const, divide as div, floordiv, floormod, truncdiv, truncmod
from mlcweb.tir.arithmetic import floordiv as indexdiv, floormod as indexmod
from mlcweb.tir.intrinsics import (
    absolute as abs, if_then_else, isinf, isnan, max_value, min_value, power, unary_functions,
)  # fmt: skip
from mlcweb.tir.logic import all, any
from mlcweb.tir.op_functions import FUNCTIONS

globals().update(unary_functions)
globals().update({name: FUNCTIONS[name] for name in ("fmod", "isfinite", "popcount", "logaddexp")})
SizeVar = CONSTRUCTORS["SizeVar"]
