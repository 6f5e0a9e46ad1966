"""The reducers that everybody needs: sum, prod, max, min."""

from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.reduction import comm_reducer

sum = comm_reducer(
    lambda x, y: arithmetic.add(x, y), lambda dtype: arithmetic.const(0, dtype), name="sum"
)
prod = comm_reducer(
    lambda x, y: arithmetic.multiply(x, y), lambda dtype: arithmetic.const(1, dtype), name="prod"
)
max = comm_reducer(lambda x, y: arithmetic.maximum(x, y), intrinsics.min_value, name="max")
min = comm_reducer(lambda x, y: arithmetic.minimum(x, y), intrinsics.max_value, name="min")
