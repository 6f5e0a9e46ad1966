"""One operator of a graph as converters see it: its inputs, attributes and version.

A converter is a function of a `Node` that gives the values of its outputs: expressions of the graph
level, or tensors that are known (known.py). `@converter("Add")` registers one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mlcweb.relax import expr as E
from mlcweb.relax import op
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import ArrayLike
from mlcweb.relax.frontend.common import Extent, as_extents
from mlcweb.relax.frontend.onnx import schema
from mlcweb.relax.frontend.onnx.errors import ConstantNeeded, OnnxError, OpNotImplemented, importing
from mlcweb.relax.frontend.onnx.known import Element, Known, as_known
from mlcweb.relax.frontend.onnx.schema import Proto
from mlcweb.relax.frontend.onnx.tensors import host_tensor
from mlcweb.relax.struct_info import ShapeStructInfo, TensorStructInfo
from mlcweb.tir import arithmetic
from mlcweb.tir.expr import PrimExpr, Select
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb import te


@dataclass(frozen=True)
class TensorSequence:
    """A sequence of tensors that the graph makes."""

    values: tuple[Value, ...]


MAX_EXTENTS = 64
"""Tensors have fewer axes; a longer vector that is to be a shape is a mistake, and each of its
numbers would be a variable."""


@dataclass(eq=False, slots=True)
class Weight:
    """A weight that is a parameter of the function, and what it is in the model. An operator that
    needs its elements when the model is imported reads them there."""

    var: E.Var
    constant: E.Constant
    read: bool = False
    used: bool = False

    def use(self) -> E.Var:
        self.used = True
        return self.var


Value: TypeAlias = E.Expr | Known | TensorSequence | Weight | None
"""A value of the graph; None for an optional input that is left out."""

Converter: TypeAlias = Callable[["Node"], Value | Sequence[Value]]

CONVERTERS: dict[str, Converter] = {}
"""By operator: "Conv", or "com.microsoft.Gelu" for those of other domains."""


def converter(*op_types: str) -> Callable[[Converter], Converter]:
    """Register a function as the converter of operators."""

    def decorate(function: Converter) -> Converter:
        CONVERTERS.update(dict.fromkeys(op_types, function))
        return function

    return decorate


_COUNTS = {"strides", "dilations", "kernel_shape", "group", "blocksize", "num_outputs",
           "hidden_size", "num_heads", "kv_num_heads"}  # fmt: skip
"""Attributes that are positive integers in every operator that has them."""


def title(op_type: str, name: str, outputs: Iterable[str], opset: int) -> str:
    """A node as messages call it."""
    which = f'"{name}"' if name else f"that gives {', '.join(outputs)}"
    return f"{op_type} {which} (opset {opset})"


class Node:
    """A node of the graph that is being imported."""

    def __init__(
        self, proto: Proto, inputs: Sequence[Value], opset: int, builder: BlockBuilder
    ) -> None:
        self.op_type: str = proto.op_type
        self.name: str = proto.name
        self.inputs = list(inputs)
        self.input_names: list[str] = list(proto.input)
        self.outputs: list[str] = list(proto.output)
        self.opset = opset
        self.builder = builder
        self.attrs = _Attributes(self)
        with importing(self.__str__):
            for attribute in proto.attribute:
                self.attrs[attribute.name] = attribute_value(attribute)
        for name in _COUNTS & self.attrs.keys():
            self._check_count(name, self.attrs[name])

    def __str__(self) -> str:
        return title(self.op_type, self.name, self.outputs, self.opset)

    def described(self) -> str:
        """The node with its attributes, for errors that may be due to any of them."""
        attributes = [f"{name}={_short(value)}" for name, value in self.attrs.items()]
        return f"{self} with {', '.join(attributes)}" if attributes else str(self)

    def _check_count(self, name: str, value: object) -> None:
        counts = value if isinstance(value, list) else [value]
        if not all(isinstance(count, int) and count > 0 for count in counts):
            raise self.wrong(f"{name}={_short(value)} must be positive integers")

    def unsupported(self, what: str) -> OpNotImplemented:
        """The error that says which form of the operator is not there."""
        return OpNotImplemented(f"{self}: {what}")

    def wrong(self, what: str) -> OnnxError:
        return OnnxError(f"{self}: {what}")

    # Inputs

    def has(self, index: int) -> bool:
        """Whether an optional input is there."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def known(self, index: int) -> Known | None:
        """An input's elements, where they are known."""
        return as_known(self.inputs[index]) if self.has(index) else None

    def expression(self, value: Value) -> E.Expr:
        """A value of the graph as an expression."""
        return as_expression(value, self.builder)

    def required(self, index: int) -> E.Expr | Known:
        """An input that must be there. Raises: OnnxError."""
        value = self.inputs[index] if self.has(index) else None
        if value is None:
            raise self.wrong(f"input {index} is missing")
        if isinstance(value, TensorSequence):
            raise self.wrong(f"input {index} is a sequence; it must be a tensor")
        return value.var if isinstance(value, Weight) else value

    def tensor(self, index: int) -> E.Expr:
        """An input as an expression."""
        self.required(index)
        return as_expression(self.inputs[index], self.builder)

    def tensors(self) -> list[E.Expr]:
        return [self.tensor(index) for index in range(len(self.inputs))]

    def can_know(self, index: int) -> bool:
        """Whether `needed` gives an input's elements."""
        return self.known(index) is not None or isinstance(self.inputs[index], Weight)

    def needed(self, index: int, what: str) -> Known:
        """An input that must be known; `what` it is, for messages. Raises: ConstantNeeded."""
        self.required(index)
        value, tensor = self.inputs[index], self.known(index)
        if isinstance(value, Weight):
            value.read, tensor = True, as_known(value.constant)
        if tensor is None:
            name = self.input_names[index]
            raise ConstantNeeded(
                f'{self}: {what} (input "{name}") must be known when the model is imported: make '
                "it an initializer, or the result of Constant and Shape",
                name,
            )
        return tensor

    def ints(self, index: int, what: str) -> list[int]:
        """An input as a list of integers."""
        tensor = self.needed(index, what)
        if tensor.symbolic:
            raise self.unsupported(f"{what} depends on a symbolic extent: {tensor.elements}")
        return [int(element) for element in tensor.elements]

    def extents(self, index: int, what: str) -> list[Extent]:
        """An input as a list of integers and symbolic extents."""
        return list(self.needed(index, what).elements)

    def elements(self, index: int, what: str) -> list[Extent]:
        """An input of integers as numbers, or where they come with a run, as extents that are read
        from the tensor. Raises: ConstantNeeded if it is not known how many there are."""
        value = self.required(index)
        count = math.prod(self.shape(index)) if isinstance(value, E.Expr) else None
        if self.known(index) is not None or not isinstance(count, int):
            return self.extents(index, what)
        if count > MAX_EXTENTS:
            raise self.unsupported(f"a {what} of {count} numbers that come with a run")
        return self.extents_in(op.reshape(self.tensor(index), [count]), count, what)

    def extents_in(self, vector: E.Expr, count: int, what: str) -> list[Extent]:
        """The elements of a vector of integers as extents, which a run reads."""
        name = self.builder.get_unique_name(what.replace(" ", "_"))
        extents = [PrimVar(f"{name}_{place}", "int64") for place in range(count)]
        whole = self.emit(op.astype(self.emit(vector), "int64"))
        shape = self.emit(op.tensor_to_shape(whole))
        self.builder.match_cast(shape, ShapeStructInfo(extents))
        return list(extents)

    def number(self, index: int, what: str) -> Element:
        """An input of one element as a number."""
        tensor = self.needed(index, what)
        if len(tensor.elements) != 1:
            raise self.wrong(f"{what} must be one number, not {len(tensor.elements)}")
        return tensor.elements[0]

    # What is known of inputs

    def info(self, index: int) -> TensorStructInfo:
        value = self.required(index)
        return self.info_of(value if isinstance(value, E.Expr) else self.tensor(index))

    def info_of(self, value: E.Expr) -> TensorStructInfo:
        info = value.struct_info
        if not isinstance(info, TensorStructInfo):
            raise self.wrong(f"expected a tensor, not {info}")
        return info

    def shape(self, index: int = 0) -> list[Extent]:
        """An input's extents: integers, and expressions where they are symbolic."""
        value = self.required(index)
        if isinstance(value, Known):
            return list(value.shape)
        return self.shape_of(value, f"input {index}")

    def shape_of(self, value: E.Expr, what: str = "a result") -> list[Extent]:
        """A tensor's extents: integers, and expressions where they are symbolic."""
        values = self.info_of(value).values
        if values is None:
            raise self.unsupported(f"the shape of {what} is not known")
        return as_extents(values)

    def static_shape(self, index: int = 0, axes: Sequence[int] | None = None) -> list[int]:
        """Some of an input's extents (default: all), which must be integers."""
        shape = self.shape(index)
        chosen = shape if axes is None else [shape[axis] for axis in axes]
        numbers = [extent for extent in chosen if not isinstance(extent, PrimExpr)]
        if len(numbers) < len(chosen):
            raise self.unsupported(f"extents of the shape {shape} of input {index} are symbolic")
        return numbers

    def ndim(self, index: int = 0) -> int:
        return len(self.shape(index))

    def dtype(self, index: int = 0) -> str:
        value = self.required(index)
        return value.dtype if isinstance(value, Known) else self.info(index).dtype

    # Results

    def emit(self, value: E.Expr) -> E.Expr:
        """Bind an expression to a variable."""
        return self.builder.emit(value)

    def fields(self, value: E.Expr, count: int = 2) -> list[E.Expr]:
        """Bind a tuple, and each of its fields, to variables."""
        whole = self.emit(value)
        return [self.emit(E.TupleGetItem(whole, place)) for place in range(count)]

    def const(self, value: ArrayLike, dtype: str) -> E.Constant:
        """A constant from a number or a nested list."""
        return E.const(value, dtype)


class _Attributes(dict[str, Any]):
    """The attributes of a node by name; one that must be there and is not is an error."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node

    def __missing__(self, name: str) -> Any:
        raise self.node.wrong(f'the attribute "{name}" is missing')


def _short(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = f"a tensor of {value.dtype}" if hasattr(value, "dtype") else repr(value)
    return text if len(text) <= 60 else f"{text[:60]} …"


def as_expression(value: Value, builder: BlockBuilder) -> E.Expr:
    """A value of the graph as an expression."""
    if value is None:
        raise OnnxError("A value is needed that is left out")
    if isinstance(value, Weight):
        return value.use()
    if isinstance(value, TensorSequence):
        return E.Tuple([as_expression(each, builder) for each in value.values])
    if not isinstance(value, Known):
        return value
    if not value.symbolic:
        return value.constant()
    vector = builder.emit_te(_tensor_of, list(value.elements), value.dtype)
    return vector if len(value.shape) == 1 else builder.emit(op.reshape(vector, value.shape))


def _tensor_of(elements: Sequence[Element], dtype: str) -> te.Tensor:
    """A tensor of one dimension whose elements depend on symbolic extents."""
    from mlcweb import te

    def element(i: PrimExpr) -> PrimExpr:
        value = arithmetic.cast(dtype, elements[-1])
        for place in reversed(range(len(elements) - 1)):
            element_value = arithmetic.cast(dtype, elements[place])
            value = Select(arithmetic.equal(i, place), element_value, value)
        return value

    return te.compute((len(elements),), element, name="shape")


def attribute_value(attribute: Proto) -> Any:
    """An attribute as a plain value: strings as str, tensors as Known or constants."""
    kind = attribute.type or _guessed_kind(attribute)
    if kind == schema.FLOAT:
        return attribute.f
    if kind == schema.INT:
        return attribute.i
    if kind == schema.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == schema.TENSOR:
        constant = E.Constant(host_tensor(attribute.t))
        return as_known(constant) or constant
    if kind == schema.GRAPH:
        return attribute.g
    if kind == schema.FLOATS:
        return list(attribute.floats)
    if kind == schema.INTS:
        return list(attribute.ints)
    if kind == schema.STRINGS:
        return [text.decode("utf-8", "replace") for text in attribute.strings]
    return None


def _guessed_kind(attribute: Proto) -> int:
    """Models from before 2017 do not say the kind: it is that of the field that is set."""
    for kind, field in (
        (schema.FLOATS, "floats"), (schema.INTS, "ints"), (schema.STRINGS, "strings"),
        (schema.TENSOR, "t"), (schema.GRAPH, "g"), (schema.STRING, "s"), (schema.FLOAT, "f"),
    ):  # fmt: skip
        if getattr(attribute, field):
            return kind
    return schema.INT
