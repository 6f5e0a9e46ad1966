"""Tensors that are described by expressions, and reading their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlcweb.ir.array import ArrayOf
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.node import Node, attribute, node, reference
from mlcweb.ir.overloads import overloads
from mlcweb.te.errors import ExpressionError
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.expr import Arithmetic, PrimExpr

if TYPE_CHECKING:
    from mlcweb.te.operation import Operation


def _operator(name: str, *operands: Any) -> Tensor:
    """`a + b`, `-a` … of whole tensors: `mlcweb.topi` broadcasts them."""
    return provided("mlcweb.te.tensor", name)(*operands)


_methods = overloads(_operator)


@node
class Tensor(Node):
    """One output of an operation: `op.outputs[value_index]`.

    `tensor[i, j]` (or `tensor(i, j)`) is an element, as an expression of `dtype`.
    """

    shape: ArrayOf[PrimExpr]
    dtype: dtypes.DataType = attribute()
    op: Operation = reference()
    value_index: int = attribute(default=0)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        """Tensors are equal that are the same output of one operation."""
        if not isinstance(other, Tensor):
            return NotImplemented
        return self.op is other.op and self.value_index == other.value_index

    def __hash__(self) -> int:
        return hash((self.op, self.value_index))

    @property
    def name(self) -> str:
        if self.op.num_outputs == 1:
            return self.op.name
        return f"{self.op.name}.v{self.value_index}"

    def __call__(self, *indices: Any) -> ProducerLoad:
        if len(indices) != self.ndim:
            raise ExpressionError(
                f'Tensor "{self.name}" has {self.ndim} dimension(s); {len(indices)} index(es) given'
            )
        return ProducerLoad(self, tuple(arithmetic.convert(index) for index in indices))

    def __getitem__(self, indices: Any) -> ProducerLoad | TensorSlice:
        return TensorSlice(self, ())[indices]

    def __len__(self) -> int:
        raise TypeError(f'Tensor "{self.name}" is not a sequence; its extents are in .shape')

    __add__, __radd__ = _methods("add")
    __sub__, __rsub__ = _methods("subtract")
    __mul__, __rmul__ = _methods("multiply")
    __truediv__, __rtruediv__ = _methods("divide")

    def __neg__(self) -> Tensor:
        return _operator("negative", self)

    def astype(self, dtype: str, span: Any = None) -> Tensor:
        return _operator("cast", self, dtypes.full_name(dtype))

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, op.name={self.op.name})"


class TensorSlice(Arithmetic):
    """A tensor with some of its leading indices given: `A[i]` of a matrix, before `[j]`."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor = tensor
        self.indices = indices

    def __getitem__(self, indices: Any) -> ProducerLoad | TensorSlice:
        more = indices if isinstance(indices, (tuple, list)) else (indices,)
        if any(isinstance(index, slice) for index in more):
            raise ExpressionError(
                f'Tensor "{self.tensor.name}" is indexed by expressions; for a range of elements '
                "use topi.strided_slice"
            )
        all_indices = (*self.indices, *more)
        if len(all_indices) < self.tensor.ndim:
            return TensorSlice(self.tensor, all_indices)
        return self.tensor(*all_indices)

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    def asobject(self) -> ProducerLoad:
        """The element, where all indices are given; an error that counts them elsewhere."""
        return self.tensor(*self.indices)

    def __repr__(self) -> str:
        return f"TensorSlice({self.tensor!r}, indices={list(self.indices)})"


@node
class ProducerLoad(PrimExpr):
    """Reads an element of a tensor. Becomes a `BufferLoad` when the tensor becomes a buffer."""

    producer: Tensor = reference()
    indices: ArrayOf[PrimExpr]

    @property
    def dtype(self) -> str:
        return self.producer.dtype

    def __repr__(self) -> str:
        return f"{self.producer.name}[{', '.join(map(repr, self.indices))}]"
