"""If, Loop and Scan: graphs inside of a graph. Loops are written out, step by step.

Each is a function of the graph that is being imported and the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlcweb.relax import op
from mlcweb.relax.expr import TupleGetItem
from mlcweb.relax.frontend.onnx.arguments import normalized
from mlcweb.relax.frontend.onnx.errors import ConstantNeeded
from mlcweb.relax.frontend.onnx.known import as_known, known
from mlcweb.relax.frontend.onnx.node import Node, Value, as_expression
from mlcweb.tir.expr import PrimExpr

if TYPE_CHECKING:
    from mlcweb.relax.frontend.onnx.graph import Graph

MAX_STEPS = 1024
"""Loops of more steps are not written out."""


def branch(graph: Graph, node: Node) -> Sequence[Value]:
    """With a condition that is known the branch that is taken; else both, and a choice of each
    result where they have the same shape."""
    bodies = [node.attrs["then_branch"], node.attrs["else_branch"]]
    condition = node.known(0)
    if condition is not None:
        return graph.body(bodies[0 if node.number(0, "the condition") else 1], ())
    pairs = list(zip(*(graph.body(body, ()) for body in bodies), strict=True))
    results = []
    for pair in pairs:
        one, other = (as_expression(value, graph.builder) for value in pair)
        if str(one.struct_info) != str(other.struct_info):
            node.needed(0, "the condition of branches that give different shapes")
        results.append(node.emit(op.where(node.tensor(0), one, other)))
    return results


def loop(graph: Graph, node: Node) -> Sequence[Value]:
    """A loop whose number of steps is known when the model is imported."""
    body, carried = node.attrs["body"], list(node.inputs[2:])
    count = int(node.number(0, "the number of steps")) if node.has(0) else None
    goes_on = bool(node.number(1, "the condition")) if node.has(1) else True
    scanned: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
    step = 0
    while goes_on and (count is None or step < count):
        if step == MAX_STEPS:
            raise node.unsupported(f"more than {MAX_STEPS} steps")
        inputs = [known((), (step,), "int64"), known((), (True,), "bool"), *carried]
        condition, *values = graph.body(body, inputs)
        carried = values[: len(carried)]
        for seen, value in zip(scanned, values[len(carried) :], strict=True):
            seen.append(value)
        goes_on_tensor = as_known(condition)
        if goes_on_tensor is None:
            raise ConstantNeeded(
                f"{node}: whether a step follows depends on values that are known only when the "
                "model runs; such loops are not supported",
                body.output[0].name,
            )
        goes_on = bool(goes_on_tensor.elements[0])
        step += 1
    return [*carried, *(_stacked(node, seen, 0) for seen in scanned)]


def _stacked(node: Node, values: Sequence[Value], axis: int) -> Value:
    """What the steps gave, along a new axis."""
    if not values:
        raise node.unsupported("no step at all, which leaves the shapes of results unknown")
    tensors = [as_expression(value, node.builder) for value in values]
    return node.emit(op.stack(tensors, axis))


def scan(graph: Graph, node: Node) -> Sequence[Value]:
    """A loop over the slices of tensors, whose extents must be known."""
    if node.opset < 9:
        return _batched_scan(graph, node)
    return _scanned(graph, node, list(node.inputs))


def _scanned(graph: Graph, node: Node, inputs: list[Value]) -> list[Value]:
    body, count = node.attrs["body"], node.attrs["num_scan_inputs"]
    states, sources = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    outputs = len(body.output) - len(states)
    axes = node.attrs.get("scan_input_axes", [0] * count)
    backward = node.attrs.get("scan_input_directions", [0] * count)
    slices = [
        _slices(node, source, axis, bool(back))
        for source, axis, back in zip(sources, axes, backward, strict=True)
    ]
    scanned: list[list[Value]] = [[] for _ in range(outputs)]
    for each in zip(*slices, strict=True):
        values = graph.body(body, [*states, *each])
        states = values[: len(states)]
        for seen, value in zip(scanned, values[len(states) :], strict=True):
            seen.append(value)
    results = []
    axes = node.attrs.get("scan_output_axes", [0] * outputs)
    backward = node.attrs.get("scan_output_directions", [0] * outputs)
    for seen, axis, back in zip(scanned, axes, backward, strict=True):
        results.append(_stacked(node, seen[::-1] if back else seen, axis))
    return [*states, *results]


def _slices(node: Node, source: Value, axis: int, backward: bool) -> Sequence[Value]:
    """The slices of a tensor along an axis."""
    x = as_expression(source, node.builder)
    shape = node.shape_of(x)
    place = normalized(node, axis, len(shape))
    extent = shape[place]
    if isinstance(extent, PrimExpr) or extent > MAX_STEPS:
        raise node.unsupported(f"{extent} steps")
    if extent == 1:
        slices = [node.emit(op.squeeze(x, [place]))]
    else:
        parts = node.emit(op.split(x, extent, place))
        slices = [node.emit(op.squeeze(TupleGetItem(parts, i), [place])) for i in range(extent)]
    return slices[::-1] if backward else slices


def _batched_scan(graph: Graph, node: Node) -> Sequence[Value]:
    """As it was in opset 8: the first input is the length of sequences, and the first axis of all
    others the batch."""
    if node.has(0):
        raise node.unsupported("sequence_lens")
    inputs = node.inputs[1:]
    batches = [_slices(node, value, 0, False) for value in inputs]
    results = [_scanned(graph, node, list(each)) for each in zip(*batches, strict=True)]
    return [_stacked(node, list(values), 0) for values in zip(*results, strict=True)]
