"""Sequences of tensors, whose lengths are known when a model is imported, and optional values."""

from __future__ import annotations

from mlcweb.relax import op
from mlcweb.relax.expr import TupleGetItem
from mlcweb.relax.frontend.onnx.arguments import normalized
from mlcweb.relax.frontend.onnx.known import known
from mlcweb.relax.frontend.onnx.node import Node, TensorSequence, Value, converter
from mlcweb.tir.expr import PrimExpr


def _sequence(node: Node, index: int = 0) -> list[Value]:
    value = node.inputs[index]
    if not isinstance(value, TensorSequence):
        raise node.wrong(f"input {index} must be a sequence of tensors that the graph makes")
    return list(value.values)


def _position(node: Node, index: int, length: int) -> int:
    """A place in a sequence, which may be counted from the end."""
    place = int(node.number(index, "the position"))
    if not -length <= place < length:
        raise node.wrong(f"the position {place} is outside of a sequence of {length}")
    return place % length


@converter("SequenceConstruct")
def _construct(node: Node) -> Value:
    return TensorSequence(tuple(node.inputs))


@converter("SequenceEmpty")
def _empty(node: Node) -> Value:
    return TensorSequence(())


@converter("SequenceAt")
def _at(node: Node) -> Value:
    values = _sequence(node)
    return values[_position(node, 1, len(values))]


@converter("SequenceInsert")
def _insert(node: Node) -> Value:
    values = _sequence(node)
    place = _position(node, 2, len(values) + 1) if node.has(2) else len(values)
    return TensorSequence((*values[:place], node.required(1), *values[place:]))


@converter("SequenceErase")
def _erase(node: Node) -> Value:
    values = _sequence(node)
    del values[_position(node, 1, len(values)) if node.has(1) else len(values) - 1]
    return TensorSequence(tuple(values))


@converter("SequenceLength")
def _length(node: Node) -> Value:
    return known((), (len(_sequence(node)),), "int64")


@converter("SplitToSequence")
def _split(node: Node) -> Value:
    """Parts of given lengths, or of one length but for the last; without either slices of 1."""
    axis = normalized(node, node.attrs.get("axis", 0), node.ndim(0))
    extent = node.shape(0)[axis]
    if isinstance(extent, PrimExpr):
        raise node.unsupported(f"a sequence of the symbolic length {extent}")
    sizes = [1] * extent
    if node.has(1):
        lengths = node.ints(1, "the split")
        sizes = lengths
        if not node.shape(1):
            (size,) = lengths
            sizes = [min(size, extent - start) for start in range(0, extent, size)]
    ends = [sum(sizes[:count]) for count in range(1, len(sizes))]
    x = node.tensor(0)
    whole = node.emit(op.split(x, ends, axis)) if ends else None
    parts = [x if whole is None else TupleGetItem(whole, place) for place in range(len(sizes))]
    if not node.has(1) and not node.attrs.get("keepdims", 1):
        parts = [op.squeeze(node.emit(part), [axis]) for part in parts]
    return TensorSequence(tuple(node.emit(part) for part in parts))


@converter("ConcatFromSequence")
def _concat(node: Node) -> Value:
    values = [node.expression(value) for value in _sequence(node)]
    axis = node.attrs["axis"]
    if node.attrs.get("new_axis", 0):
        return op.stack(values, axis)
    return op.concat(values, axis)


@converter("Optional", "OptionalGetElement")
def _optional(node: Node) -> tuple[Value]:
    return (node.inputs[0] if node.inputs else None,)


@converter("OptionalHasElement")
def _has_element(node: Node) -> Value:
    return known((), (node.has(0),), "bool")
