"""`define_subroutine = True`: `forward` of a module becomes a function of its own, which is called
where the module is. Modules of which the same is traced share one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from mlcweb.relax import expr as E
from mlcweb.relax.frontend.nn.tensor import Object, Tensor, builder, unwrapped, wrap_nested
from mlcweb.relax.utils import copy_with_new_vars

if TYPE_CHECKING:
    from mlcweb.relax.frontend.nn.module import Module

Forward = Callable[..., Any]


class SubroutineMixin:
    """What lets `forward` of the classes below it be a function of its own."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "forward" in cls.__dict__:
            cls.forward = _dispatched(cls.__dict__["forward"])


def _dispatched(forward: Forward) -> Forward:
    @wraps(forward)
    def dispatched(self: Module, *args: Any, **options: Any) -> Any:
        if self.define_subroutine:
            return _called(self, forward, args, options)
        return forward(self, *args, **options)

    return dispatched


def _called(module: Module, forward: Forward, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """What the function of a module gives for arguments and the module's parameters."""
    bound, bb = inspect.signature(forward).bind(module, *args, **options), builder()
    _, *arguments = bound.arguments.items()
    for name, value in arguments:
        if not isinstance(value, (Tensor, Object, E.Expr)):
            raise TypeError(
                f"{type(module).__name__}.forward is a function of its own (define_subroutine), "
                f"whose arguments are tensors; {name} is {value!r}"
            )
    for name, _ in module.named_effects():
        raise TypeError(
            f"{type(module).__name__} has the state {name}, which a function of its own "
            "(define_subroutine) does not take; the state belongs to the module that calls it"
        )
    inputs = {name: _variable(name, value) for name, value in arguments}
    weights = {param: _variable(name, param) for name, param in module.named_parameters()}
    outside = {param: param._expr for param in weights}
    for name, value in arguments:
        bound.arguments[name] = _like(value, inputs[name])
    function, dataflow = _snake_case(type(module).__name__), bb.current_block_is_dataflow()
    with bb.function(function, [*inputs.values(), *weights.values()], private=True):
        with bb.dataflow() if dataflow else nullcontext():
            try:
                for param, weight in weights.items():
                    param._expr = weight
                result = unwrapped(forward(*bound.args, **bound.kwargs))
            finally:
                for param, value in outside.items():
                    param._expr = value
            output = bb.emit_output(result) if dataflow else result
        target = bb.emit_func_output(output)
    bb.update_func(target, copy_with_new_vars(cast(E.Function, bb.get()[target])))
    values = [*(unwrapped(value) for _, value in arguments), *outside.values()]
    return wrap_nested(E.Call(target, values), f"{function}_output")


def _variable(name: str, value: object) -> E.Var:
    """A parameter of the function for an argument."""
    return E.Var(name, cast(E.Expr, unwrapped(value)).struct_info)


def _like(value: object, var: E.Var) -> object:
    """What stands for an argument inside of the function."""
    if isinstance(value, Tensor):
        return Tensor(_expr=var)
    return type(value)(_expr=var, _name=var.name_hint) if isinstance(value, Object) else var


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=.)([A-Z][a-z]+)|(?<=[a-z0-9])([A-Z])", r"_\g<0>", name).lower()
