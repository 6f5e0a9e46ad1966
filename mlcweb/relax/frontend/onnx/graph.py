"""Walking a graph of ONNX: values by name, and a converter or a folding for each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import SimpleNamespace

from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.onnx import arguments, control
from mlcweb.relax.frontend.onnx.errors import OnnxError, OpNotImplemented, importing
from mlcweb.relax.frontend.onnx.folding import fold
from mlcweb.relax.frontend.onnx.known import Known, as_known, known, known_list
from mlcweb.relax.frontend.onnx.node import (
    CONVERTERS,
    Node,
    TensorSequence,
    Value,
    Weight,
    as_expression,
    converter,
    title,
)
from mlcweb.relax.frontend.onnx.schema import Proto
from mlcweb.relax.frontend.onnx.tensors import host_tensor
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.expr import IntImm

_STANDARD = ("", "ai.onnx")

MAX_INLINED_NODES = 20_000
"""How many nodes the functions that a model brings along may come to, each counted at each call.
Functions that call others twice, level by level, would soon be more than memory holds."""


class Inlining:
    """What has been written in place of calls of functions so far, in a whole model."""

    def __init__(self) -> None:
        self.nodes = 0
        self.open: list[str] = []

    def enter(self, function: Proto) -> None:
        name = f"{function.domain}.{function.name}"
        if name in self.open:
            around = " -> ".join([*self.open[self.open.index(name) :], name])
            raise OnnxError(f"The function {name} calls itself: {around}")
        self.nodes += len(function.node)
        if self.nodes > MAX_INLINED_NODES:
            raise OnnxError(
                f"The functions of the model come to more than {MAX_INLINED_NODES} nodes when they "
                f"are written in place of their calls, the last by {name}: call fewer functions "
                "from functions, or make them operators of the graph"
            )
        self.open.append(name)


class Graph:
    """Imports the nodes of one graph, or of a function that a model brings along."""

    def __init__(
        self,
        builder: BlockBuilder,
        opset: int,
        functions: Mapping[tuple[str, str], Proto],
        folder: Path | None,
        inlining: Inlining | None = None,
    ) -> None:
        self.inlining = inlining or Inlining()
        self.builder = builder
        self.opset = opset
        self.functions = functions
        self.folder = folder
        self.values: dict[str, Value] = {"": None}

    def initializers(self, tensors: Sequence[Proto]) -> None:
        for tensor in tensors:
            self.values[tensor.name] = E.Constant(host_tensor(tensor, self.folder))

    def value(self, name: str, user: str) -> Value:
        if name not in self.values:
            raise OnnxError(f'{user} uses the value "{name}", which nothing before it gives')
        return self.values[name]

    def expression(self, name: str) -> E.Expr:
        """An output of the graph as an expression."""
        value = self.value(name, "The graph")
        if value is None:
            raise OnnxError(f'The graph uses the value "{name}" as an output, which is left out')
        return as_expression(value, self.builder)

    def nodes(self, protos: Sequence[Proto]) -> None:
        """Import nodes, which are in an order in which they can be computed."""
        for proto in protos:
            user = title(proto.op_type, proto.name, proto.output, self.opset)
            inputs = [self.value(name, user) for name in proto.input]
            node = Node(proto, inputs, self.opset, self.builder)
            with importing(node.described):
                results = self._results(proto, node)
                for name, result in zip(proto.output, results, strict=False):
                    if name:
                        self.values[name] = self._bound(result, node)
            missing = [name for name in proto.output[len(results) :] if name]
            if missing:
                raise OpNotImplemented(f'{user}: the output "{missing[0]}" is not supported')

    def _results(self, proto: Proto, node: Node) -> Sequence[Value]:
        inputs = node.inputs
        function = self.functions.get((proto.domain, proto.op_type))
        if function is not None:
            return self._inlined(function, proto, inputs)
        if proto.op_type in CONTROL and proto.domain in _STANDARD:
            return CONTROL[proto.op_type](self, node)
        name = proto.op_type if proto.domain in _STANDARD else f"{proto.domain}.{proto.op_type}"
        values = [as_known(value) for value in inputs]
        if any(v is not None for v in values) and all(
            v is not None or source is None for v, source in zip(values, inputs, strict=True)
        ):
            folded = fold(name, node, values)
            if folded is not None:
                return (folded,)
        convert = CONVERTERS.get(name)
        if convert is None:
            similar = get_close_matches(name, CONVERTERS, 2)
            there = f"; there is {' and '.join(similar)}" if similar else ""
            raise OpNotImplemented(f"{node}: the operator {name} is not supported{there}")
        result = convert(node)
        if result is None or isinstance(result, (E.Expr, Known, TensorSequence, Weight)):
            return (result,)
        return result

    def _bound(self, result: Value, node: Node) -> Value:
        """A value that can be used many times: calls are bound to variables."""
        if isinstance(result, Known) and min(result.shape, default=0) < 0:
            raise node.wrong(f"the result has a negative extent: {result.shape}")
        if isinstance(result, (Known, E.Var, E.Constant, Weight)) or result is None:
            return result
        if isinstance(result, TensorSequence):
            return TensorSequence(tuple(self._bound(each, node) for each in result.values))
        var = self.builder.emit(result)
        info = var.struct_info
        extents = info.values if isinstance(info, TensorStructInfo) else None
        if any(isinstance(extent, IntImm) and extent.value < 0 for extent in extents or ()):
            raise node.wrong(f"the result has a negative extent: {info}")
        return var

    def body(self, graph: Proto, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a graph inside of this one, whose nodes are put in its place."""
        self.values.update(zip([parameter.name for parameter in graph.input], inputs, strict=True))
        self.initializers(graph.initializer)
        self.nodes(graph.node)
        return [self.value(output.name, "The graph") for output in graph.output]

    def _inlined(self, function: Proto, call: Proto, inputs: list[Value]) -> Sequence[Value]:
        opsets = {entry.domain: entry.version for entry in function.opset_import}
        opset = opsets.get("", opsets.get("ai.onnx", self.opset))
        self.inlining.enter(function)
        body = Graph(self.builder, opset, self.functions, self.folder, self.inlining)
        inputs = inputs + [None] * (len(function.input) - len(inputs))
        body.values.update(zip(function.input, inputs, strict=True))
        call_attributes = {attribute.name: attribute for attribute in function.attribute_proto}
        call_attributes |= {attribute.name: attribute for attribute in call.attribute}
        body.nodes([_with_attributes(node, call_attributes) for node in function.node])
        self.inlining.open.pop()
        return [body.value(name, f"The function {function.name}") for name in function.output]


def _with_attributes(node: Proto, call_attributes: Mapping[str, Proto]) -> Proto:
    """A node of a function with the attributes that it takes from the call put in."""
    attributes = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            attributes.append(attribute)
        elif attribute.ref_attr_name in call_attributes:
            source = call_attributes[attribute.ref_attr_name]
            attributes.append(SimpleNamespace(**{**vars(source), "name": attribute.name}))
    return SimpleNamespace(**{**vars(node), "attribute": attributes})


@converter("Shape")
def _shape(node: Node) -> Value:
    start, end = node.attrs.get("start", 0), node.attrs.get("end")
    return known_list(node.shape()[start:end])


@converter("Size")
def _size(node: Node) -> Value:
    shape = node.shape()
    count = arguments._quotient(shape, [])
    return Known((), (count,), "int64")


@converter("Constant")
def _constant(node: Node) -> Value:
    for name, make in _CONSTANTS.items():
        if name in node.attrs:
            return make(node.attrs[name])
    raise node.unsupported(f"constants of {', '.join(node.attrs) or 'no value'}")


def _tensor(value: object) -> Value:
    if not isinstance(value, Known | E.Constant):
        raise TypeError("value must be a tensor")
    return value


_CONSTANTS = {
    "value": _tensor,
    "value_float": lambda value: known((), (value,), "float32"),
    "value_floats": lambda value: known_list(value, "float32"),
    "value_int": lambda value: known((), (value,), "int64"),
    "value_ints": known_list,
}

CONTROL = {"If": control.branch, "Loop": control.loop, "Scan": control.scan}
"""Operators with graphs inside."""
