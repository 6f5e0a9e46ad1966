"""The reducers that everybody needs: sum, prod, max, min."""

from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir.reduction import comm_reducer

sum = comm_reducer(arithmetic.add, lambda dtype: arithmetic.const(0, dtype), name="sum")
prod = comm_reducer(arithmetic.multiply, lambda dtype: arithmetic.const(1, dtype), name="prod")
max = comm_reducer(arithmetic.maximum, intrinsics.min_value, name="max")
min = comm_reducer(arithmetic.minimum, intrinsics.max_value, name="min")
