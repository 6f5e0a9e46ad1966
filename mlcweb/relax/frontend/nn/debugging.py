"""What a model that is exported with `debug=True` does besides computing: it prints, and calls
registered functions. The effect that its methods take and give back keeps the order."""

from __future__ import annotations

import sys

from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.frontend.nn.effects import IOEffect
from mlcweb.relax.frontend.nn.tensor import Tensor, builder
from mlcweb.relax.struct_info import ObjectStructInfo
from mlcweb.tir.expr import FloatImm


def debug_func(name: str, *args: Tensor | E.Expr | str | float, _line_info: str = "") -> None:
    """Call a registered function with the place of this call, "file:line", and arguments.

    Raises: RuntimeError: the model is not exported for debugging.
    """
    io = IOEffect.current
    if io is None or io.effect is None:
        raise RuntimeError(
            f"Debugging is only supported when debug mode is on: {name} is called in a model that "
            "is exported without debug=True"
        )
    place = _line_info or _place()
    values = [E.StringImm(name), E.StringImm(place), *map(_argument, args)]
    call = R.call_pure_packed(
        "vm.builtin.invoke_debug_func", io.effect, *values, sinfo_args=[ObjectStructInfo()]
    )
    io.effect = builder().emit(call, io.effect.name_hint)


def print_(tensor: Tensor) -> None:
    """Print a tensor when the model runs."""
    debug_func("vm.builtin.debug_print", tensor, _line_info=_place())


def _place() -> str:
    """The line that called the function that asks."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _argument(value: Tensor | E.Expr | str | float) -> E.RelaxExpr:
    if isinstance(value, Tensor):
        return value._expr
    if isinstance(value, float):
        return E.PrimValue(FloatImm("float32", value))
    return E.StringImm(value) if isinstance(value, str) else E.convert_to_expr(value)
