"""`tvm.relax.testing.nn`: layers that emit into the `BlockBuilder` whose scope is open.

    with bb.function("main"):
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        data = nn.Placeholder((1, 784), name="data")
        bb.emit_func_output(model(data), params=[data, *model.parameters()])

Models to be run or deployed are written with `tvm.relax.frontend.nn`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from mlcweb import relax, topi
from mlcweb.relax.block_builder import BlockBuilder, BuilderError
from mlcweb.relax.op.grad import end_checkpoint, start_checkpoint
from mlcweb.runtime.ndarray import NDArray, array
from mlcweb.tir.expr import IntImm


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise BuilderError("Layers emit into a function: use `with bb.function(name):`")
    return builder


def emit(expr: relax.Expr, name_hint: str = "") -> relax.Var:
    """Bind an expression to a new variable."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> relax.Var:
    """Bind what a tensor expression gives to a new variable."""
    return _builder().emit_te(func, *args, **kwargs)


def _marked(value: Any, mark: Callable[[Any], Any]) -> Any:
    return mark(value) if isinstance(value, relax.Expr) else value


def _of_each(value: Any, mark: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_marked(each, mark) for each in value]
    return _marked(value, mark)


def checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives, to be computed again where its gradient needs values inside of it."""
    positional = [_marked(arg, start_checkpoint) for arg in args]
    named = {name: _marked(arg, start_checkpoint) for name, arg in kwargs.items()}
    return _of_each(func(*positional, **named), end_checkpoint)


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As `checkpoint`, with variables for what goes in (`x_scp`) and what comes out (`y_ecp`)."""

    def begin(value: Any) -> Any:
        return emit(start_checkpoint(value), f"{value.name_hint}_scp")

    def end(value: Any) -> Any:
        var = value if isinstance(value, relax.Var) else emit(value)
        return emit(end_checkpoint(var), f"{var.name_hint}_ecp")

    positional = [begin(arg) if isinstance(arg, relax.Var) else arg for arg in args]
    named = {n: begin(arg) if isinstance(arg, relax.Var) else arg for n, arg in kwargs.items()}
    return _of_each(func(*positional, **named), end)


def emit_checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int | list[int],
    input: relax.Var,
    checkpoint_last: bool = False,
) -> Any:
    """Functions one after the other in segments, each of which is a checkpoint, but the last one
    only with `checkpoint_last`. `segments` is their number, or where each begins."""
    count = len(functions)
    starts = segments if isinstance(segments, list) else list(range(0, count, count // segments))
    bounds = starts if starts[-1] == count else [*starts, count]

    def segment(begin: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in functions[begin:end]:
                value = function(value)
            return value

        return run

    value: Any = input
    for place, (begin, end) in enumerate(pairwise(bounds)):
        part, last = segment(begin, end), place == len(bounds) - 2
        value = part(value) if last and not checkpoint_last else emit_checkpoint(part, value)
    return value if isinstance(value, relax.Var) else emit(value)


def Placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> relax.Var:
    """An input of a model."""
    return _variable("Placeholder", shape, dtype, name)


def Parameter(shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> relax.Var:
    """A weight of a model."""
    return _variable("Parameter", shape, dtype, name)


def _variable(kind: str, shape: Any, dtype: str, name: str) -> relax.Var:
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"The shape of a {kind} is a list or a tuple, not {shape!r}")
    builder = BlockBuilder.current()
    unique = name if builder is None else builder.get_unique_name(name)
    return relax.Var(unique, relax.TensorStructInfo(list(shape), dtype))


class Module:
    """A layer, or a model of them. Subclasses define `forward`."""

    def parameters(self) -> list[relax.Var]:
        """The weights: the variables among the attributes, in order."""
        return _parameters(self.__dict__)

    def forward(self, input: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define `forward`")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


def _parameters(value: Any) -> list[relax.Var]:
    if isinstance(value, relax.Var):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [param for each in value for param in _parameters(each)]
    return []


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, input: Any) -> Any:
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    def forward(self, input: Any) -> Any:
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    def forward(self, input: Any) -> Any:
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """x · weight + bias; the weight is (in_features, out_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Any) -> Any:
        result = emit_te(topi.matmul, input, self.weight)
        return result if self.bias is None else emit_te(topi.add, result, self.bias)


def init_params(mod: Any) -> list[NDArray]:
    """Zeros for the parameters of "main" whose names do not begin with "data"."""
    import numpy as np

    zeros = []
    for param in mod["main"].params:
        if param.name_hint.startswith("data"):
            continue
        extents = param.struct_info.values
        shape = [n.value for n in extents or () if isinstance(n, IntImm)]
        if extents is None or len(shape) < len(extents):
            raise TypeError(f"Cannot initialize {param.name_hint}, whose shape is not known")
        zeros.append(array(np.zeros(shape, "float32")))
    return zeros
