"""Random graphs of operators, with what NumPy computes for them.

Extents are small, and one may be a symbol; values are floats, whole numbers and truths. A step
takes values that suit it, if there are any, and adds what an operator makes of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from mlcweb import relax, tir
from mlcweb.ir.module import IRModule

op = relax.op

Extent = int | str
"""A number, or "n", the symbol."""

MAX_ELEMENTS = 4096
SHAPES: list[tuple[int, ...]] = [
    (3,), (4,), (2, 3), (4, 4), (2, 3, 4), (1, 2, 4, 4), (2, 2, 3, 5),
]  # fmt: skip


@dataclass(frozen=True)
class Value:
    """What a variable holds, and its extents."""

    expr: Any
    array: np.ndarray
    shape: tuple[Extent, ...]

    @property
    def is_float(self) -> bool:
        return self.array.dtype == np.float32

    def axes(self, suits: Callable[[int], bool] = lambda extent: True) -> list[int]:
        """The axes of constant extents that suit."""
        return [n for n, extent in enumerate(self.shape) if extent != "n" and suits(int(extent))]

    def replaced(self, axis: int, *extents: Extent) -> tuple[Extent, ...]:
        """The extents with others in the place of one."""
        return (*self.shape[:axis], *extents, *self.shape[axis + 1 :])


class RandomGraph:
    """A function "main" in `module`; `inputs` are arguments, and `results` what it gives for them,
    a list of arrays."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.generator = np.random.default_rng(random.randrange(1 << 30))
        self.size = random.choice([None, None, 1, 3, 5])
        self.symbol = tir.Var("n", "int64")
        self.builder = relax.BlockBuilder()
        self.values: list[Value] = []
        for _ in range(random.choice([1, 2, 3])):
            shape: tuple[Extent, ...] = random.choice(SHAPES)
            self.add_parameter(("n", *shape[1:]) if self.size and random.random() < 0.5 else shape)
        params = [value.expr for value in self.values]
        self.inputs = [value.array for value in self.values]
        with self.builder.function("main", params):
            if random.random() < 0.85:
                with self.builder.dataflow():
                    results = self.chosen_results()
                    exprs = [self.builder.emit_output(value.expr) for value in results]
            else:
                results = self.chosen_results()
                exprs = [value.expr for value in results]
            self.builder.emit_func_output(exprs[0] if len(exprs) == 1 else relax.Tuple(exprs))
        self.module: IRModule = self.builder.get()
        self.results = [value.array for value in results]

    def chosen_results(self) -> list[Value]:
        for _ in range(self.random.randrange(3, 16)):
            self.random.choice(STEPS)(self)
        other = [self.random.choice(self.values)] if self.random.random() < 0.5 else []
        return [self.values[-1], *other]

    def add_parameter(self, shape: tuple[Extent, ...]) -> None:
        type_ = relax.TensorStructInfo(self.dims(shape), "float32")
        array = self.numbers(tuple(self.size if d == "n" else d for d in shape), "float32")
        self.values.append(Value(relax.Var(f"p{len(self.values)}", type_), array, shape))

    def dims(self, shape: Sequence[Extent]) -> tuple[Any, ...]:
        return tuple(self.symbol if extent == "n" else extent for extent in shape)

    def numbers(self, shape: Any, dtype: str) -> np.ndarray:
        if dtype == "float32":
            return self.generator.uniform(-1, 1, shape).astype(dtype)
        return self.generator.integers(0, 3, shape).astype(dtype)

    def constant(self, *shape: Extent, dtype: str = "float32") -> tuple[Any, np.ndarray]:
        array = self.numbers(shape, dtype)
        return relax.const(array, dtype), array

    def value(self, suits: Callable[[Value], Any] = lambda value: value.is_float) -> Value | None:
        """One of the values that suit; None where there is none."""
        suitable = [value for value in self.values if suits(value)]
        return self.random.choice(suitable) if suitable else None

    def add(self, expr: Any, array: np.ndarray, shape: Sequence[Extent]) -> None:
        if array.size <= MAX_ELEMENTS:
            self.values.append(Value(self.builder.emit(expr), array, tuple(shape)))


Step = Callable[[RandomGraph], None]
STEPS: list[Step] = []


def step(weight: int = 1) -> Callable[[Step], Step]:
    def register(function: Step) -> Step:
        STEPS.extend([function] * weight)
        return function

    return register


def softmax(array: np.ndarray, axis: int) -> np.ndarray:
    exponentials = np.exp(array - array.max(axis, keepdims=True))
    return exponentials / exponentials.sum(axis, keepdims=True)


UNARY: list[tuple[Any, Callable[[np.ndarray], np.ndarray]]] = [
    (op.nn.relu, lambda a: np.maximum(a, 0)),
    (op.negative, np.negative),
    (op.tanh, np.tanh),
    (op.sigmoid, lambda a: 1 / (1 + np.exp(-a))),
    (op.abs, np.abs),
    (op.square, np.square),
    (op.floor, np.floor),
    (op.sign, np.sign),
    (op.nn.silu, lambda a: a / (1 + np.exp(-a))),
    (op.nn.gelu, lambda a: 0.5 * a * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))),
    (lambda x: op.clip(x, -0.5, 0.5), lambda a: np.clip(a, -0.5, 0.5)),
]
BINARY: list[tuple[Any, Callable[..., np.ndarray]]] = [
    (op.add, np.add), (op.subtract, np.subtract), (op.multiply, np.multiply),
    (op.maximum, np.maximum), (op.minimum, np.minimum),
]  # fmt: skip
REDUCTIONS: list[tuple[Any, Callable[..., np.ndarray]]] = [
    (op.sum, np.sum), (op.mean, np.mean), (op.max, np.max),
]  # fmt: skip


def broadcast(one: Sequence[Extent], other: Sequence[Extent]) -> tuple[Extent, ...] | None:
    """The extents of both together; None where they do not fit."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    pairs = zip(longer, (1,) * (len(longer) - len(shorter)) + (*shorter,), strict=True)
    extents = [a if b in (a, 1) else b if a == 1 else None for a, b in pairs]
    return None if None in extents else tuple(extents)  # type: ignore[arg-type]


@step(4)
def unary(graph: RandomGraph) -> None:
    if value := graph.value():
        operator, function = graph.random.choice(UNARY)
        graph.add(operator(value.expr), function(value.array).astype("float32"), value.shape)


@step(4)
def binary(graph: RandomGraph) -> None:
    one = graph.value()
    if one and (other := graph.value(lambda v: v.is_float and broadcast(one.shape, v.shape))):
        operator, function = graph.random.choice(BINARY)
        shape = broadcast(one.shape, other.shape)
        graph.add(operator(one.expr, other.expr), function(one.array, other.array), shape or ())


@step(2)
def with_constant(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.shape and v.shape[-1] != "n"):
        constant, array = graph.constant(
            *value.shape[len(value.shape) - graph.random.choice([0, 1]) :]
        )
        operator, function = graph.random.choice(BINARY)
        result = function(value.array, array).astype("float32")
        graph.add(operator(value.expr, constant), result, value.shape)


@step(4)
def product(graph: RandomGraph) -> None:
    value = graph.value(lambda v: v.is_float and len(v.shape) >= 2 and v.shape[-1] != "n")
    if value is None:
        return
    inner = value.shape[-1]
    other = graph.value(lambda v: v.is_float and len(v.shape) == 2 and v.shape[0] == inner)
    if other and graph.random.random() < 0.5:
        weight, array, columns = other.expr, other.array, other.shape[1]
    elif graph.random.random() < 0.5:
        columns = graph.random.choice([2, 3, 4])
        weight, array = graph.constant(inner, columns)
    else:
        columns = graph.random.choice([2, 3, 4])
        weight, array = graph.constant(columns, inner)
        weight, array = graph.builder.emit(op.permute_dims(weight)), array.T
    shape = (*value.shape[:-1], columns)
    graph.add(op.matmul(value.expr, weight), np.matmul(value.array, array), shape)


@step(2)
def reduce(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.shape):
        axis, keep = graph.random.randrange(len(value.shape)), graph.random.random() < 0.5
        operator, function = graph.random.choice(REDUCTIONS)
        result = function(value.array, axis=axis, keepdims=keep)
        written = axis - len(value.shape) if graph.random.random() < 0.3 else axis
        shape = value.replaced(axis, 1) if keep else value.replaced(axis)
        graph.add(operator(value.expr, axis=written, keepdims=keep), result, shape)


@step()
def normalized_exponentials(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.shape):
        axis = graph.random.randrange(len(value.shape))
        result = softmax(value.array, axis)
        if graph.random.random() < 0.3:
            graph.add(op.nn.log_softmax(value.expr, axis), np.log(result), value.shape)
        else:
            graph.add(op.nn.softmax(value.expr, axis), result, value.shape)


@step(2)
def permute(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: len(v.shape) >= 2):
        order = graph.random.sample(range(len(value.shape)), len(value.shape))
        shape = [value.shape[axis] for axis in order]
        graph.add(op.permute_dims(value.expr, order), value.array.transpose(order), shape)


@step(2)
def join_axes(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: len(v.shape) >= 2):
        axis = graph.random.randrange(len(value.shape) - 1)
        one, other = value.shape[axis : axis + 2]
        if isinstance(one, int) and isinstance(other, int):
            shape = (*value.shape[:axis], one * other, *value.shape[axis + 2 :])
            sizes = [graph.size if extent == "n" else extent for extent in shape]
            graph.add(op.reshape(value.expr, graph.dims(shape)), value.array.reshape(sizes), shape)


@step()
def insert_axis(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: len(v.shape) <= 3):
        axis = graph.random.randrange(len(value.shape) + 1)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        graph.add(op.expand_dims(value.expr, axis), np.expand_dims(value.array, axis), shape)


@step()
def remove_or_stretch_axis(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: 1 in v.shape):
        axis = value.shape.index(1)
        if graph.random.random() < 0.5:
            shape = value.replaced(axis)
            graph.add(op.squeeze(value.expr, [axis]), value.array.squeeze(axis), shape)
        else:
            shape = value.replaced(axis, 3)
            result = np.repeat(value.array, 3, axis)
            graph.add(op.broadcast_to(value.expr, graph.dims(shape)), result, shape)


@step(2)
def concatenate(graph: RandomGraph) -> None:
    value = graph.value(lambda v: v.axes())
    if value is None:
        return
    axis = graph.random.choice(value.axes())

    def fits(other: Value) -> bool:
        alike = len(other.shape) == len(value.shape) and other.array.dtype == value.array.dtype
        return alike and axis in other.axes() and other.replaced(axis) == value.replaced(axis)

    others = list(filter(fits, graph.values))
    parts = [value, *graph.random.sample(others, min(len(others), graph.random.choice([1, 2])))]
    result = np.concatenate([part.array for part in parts], axis)
    shape = value.replaced(axis, result.shape[axis])
    graph.add(op.concat([part.expr for part in parts], axis), result, shape)


@step()
def split(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.axes(lambda extent: extent % 2 == 0)):
        axis = graph.random.choice(value.axes(lambda extent: extent % 2 == 0))
        halves = graph.builder.emit(op.split(value.expr, 2, axis))
        arrays = np.split(value.array, 2, axis)
        shape = value.replaced(axis, arrays[0].shape[axis])
        for number in graph.random.sample([0, 1], graph.random.choice([1, 2])):
            graph.add(relax.TupleGetItem(halves, number), arrays[number], shape)


@step()
def cut(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.axes(lambda extent: extent > 1)):
        axis = graph.random.choice(value.axes(lambda extent: extent > 1))
        extent = value.array.shape[axis]
        if graph.random.random() < 0.3:
            graph.add(op.flip(value.expr, axis), np.flip(value.array, axis), value.shape)
            return
        begin, end, stride = graph.random.choice(
            [(0, extent - 1, 1), (1, extent, 1), (0, extent, 2)]
        )
        result = value.array.take(range(begin, end, stride), axis)
        shape = value.replaced(axis, result.shape[axis])
        graph.add(op.strided_slice(value.expr, [axis], [begin], [end], [stride]), result, shape)


@step()
def cast(graph: RandomGraph) -> None:
    dtype = graph.random.choice(["int32", "int64", "float32", "bool"])
    if value := graph.value(lambda v: v.array.dtype != dtype):
        graph.add(op.astype(value.expr, dtype), value.array.astype(dtype), value.shape)


@step()
def choose(graph: RandomGraph) -> None:
    one = graph.value()
    if one and (other := graph.value(lambda v: v.is_float and broadcast(one.shape, v.shape))):
        condition = graph.builder.emit(op.greater(one.expr, other.expr))
        shape = broadcast(one.shape, other.shape) or ()
        result = np.where(one.array > other.array, one.array, np.float32(0.25))
        graph.add(op.where(condition, one.expr, relax.const(0.25, "float32")), result, shape)


@step()
def take(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.axes(lambda extent: extent >= 3)):
        axis = graph.random.choice(value.axes(lambda extent: extent >= 3))
        indices, array = graph.constant(2, dtype="int32")
        shape = value.replaced(axis, 2)
        graph.add(op.take(value.expr, indices, axis), value.array.take(array, axis), shape)


@step(2)
def convolve(graph: RandomGraph) -> None:
    value = graph.value(lambda v: v.is_float and len(v.shape) == 4 and {1, 2, 3} <= {*v.axes()})
    if value is None:
        return
    images, channels, *extents = value.array.shape
    height, width = (min(extent, graph.random.choice([1, 2, 3])) for extent in extents)
    stride, padding = graph.random.choice([1, 2]), graph.random.choice([0, 1])
    filters = graph.random.choice([1, 2, 4])
    weight, array = graph.constant(filters, channels, height, width)
    padded = np.pad(value.array, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(2, 3))
    result = np.einsum("ncyxhw,fchw->nfyx", windows[:, :, ::stride, ::stride], array)
    expr = op.nn.conv2d(value.expr, weight, strides=stride, padding=padding)
    graph.add(expr, result, (value.shape[0], *result.shape[1:]))


@step()
def pool(graph: RandomGraph) -> None:
    value = graph.value(
        lambda v: v.is_float and len(v.shape) == 4 and {2, 3} <= {*v.axes(lambda d: d >= 2)}
    )
    if value:
        height, width = (extent // 2 for extent in value.array.shape[2:])
        even = value.array[:, :, : height * 2, : width * 2]
        windows = even.reshape(*even.shape[:2], height, 2, width, 2)
        operator, result = graph.random.choice(
            [(op.nn.max_pool2d, windows.max((3, 5))), (op.nn.avg_pool2d, windows.mean((3, 5)))]
        )
        shape = (*value.shape[:2], height, width)
        graph.add(operator(value.expr, (2, 2), (2, 2)), result, shape)


@step(2)
def normalize(graph: RandomGraph) -> None:
    value = graph.value(lambda v: v.is_float and len(v.shape) >= 2 and v.shape[-1] not in ("n", 1))
    if value is None:
        return
    array = value.array
    scale, scale_array = graph.constant(value.shape[-1])
    if graph.random.random() < 0.5:
        offset, offset_array = graph.constant(value.shape[-1])
        centred = array - array.mean(-1, keepdims=True)
        result = centred / np.sqrt(array.var(-1, keepdims=True) + 1e-2)
        expr = op.nn.layer_norm(value.expr, scale, offset, axes=[-1], epsilon=1e-2)
        graph.add(expr, result * scale_array + offset_array, value.shape)
    else:
        result = array / np.sqrt(np.square(array).mean(-1, keepdims=True) + 1e-2)
        expr = op.nn.rms_norm(value.expr, scale, axes=[-1], epsilon=1e-2)
        graph.add(expr, result * scale_array, value.shape)


@step()
def accumulate(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.shape):
        axis = graph.random.randrange(len(value.shape))
        graph.add(op.cumsum(value.expr, axis), value.array.cumsum(axis), value.shape)


@step()
def largest(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.is_float and v.shape):
        axis = graph.random.randrange(len(value.shape))
        graph.add(op.argmax(value.expr, axis), value.array.argmax(axis), value.replaced(axis))


@step()
def repeat(graph: RandomGraph) -> None:
    if value := graph.value(lambda v: v.axes()):
        axis = graph.random.choice(value.axes())
        shape = value.replaced(axis, value.array.shape[axis] * 2)
        times = [2 if n == axis else 1 for n in range(len(value.shape))]
        if graph.random.random() < 0.5:
            graph.add(op.repeat(value.expr, 2, axis), value.array.repeat(2, axis), shape)
        else:
            graph.add(op.tile(value.expr, times), np.tile(value.array, times), shape)


@step()
def pack(graph: RandomGraph) -> None:
    one, other = graph.random.choice(graph.values), graph.random.choice(graph.values)
    both = graph.builder.emit(relax.Tuple([one.expr, other.expr]))
    graph.add(relax.TupleGetItem(both, 1), other.array, other.shape)


@step()
def match(graph: RandomGraph) -> None:
    value = graph.random.choice(graph.values)
    type_ = relax.TensorStructInfo(graph.dims(value.shape), str(value.array.dtype))
    graph.values.append(
        Value(graph.builder.match_cast(value.expr, type_), value.array, value.shape)
    )
