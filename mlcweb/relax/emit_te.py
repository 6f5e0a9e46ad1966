"""From graph expressions to a tensor expression, to a TensorIR function and the call of it."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mlcweb.ir.errors import DiagnosticError
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

if TYPE_CHECKING:
    from mlcweb import te

Formula: TypeAlias = "Callable[..., te.Tensor | Sequence[te.Tensor]]"
"""A tensor expression: a function of tensors and numbers."""


class UnknownShapeError(DiagnosticError, AssertionError):
    """A shape that is not written out; TVM's class is AssertionError."""


class _Arguments:
    """Turns the arguments of `emit_te` into those of the tensor expression.

    The function that comes out has symbolic extents of its own, one for each of the caller's.
    """

    def __init__(self) -> None:
        self.own: dict[PrimVar, PrimVar] = {}
        self.tensors: list[te.Tensor] = []
        self.inputs: list[te.Tensor | PrimVar] = []
        """The tensors, and the variables that are given at run time, in order."""
        self.call_args: list[E.Expr] = []
        self.scalars: list[PrimExpr] = []

    def number(self, value: PrimExpr) -> PrimExpr:
        self.scalars.append(self.renamed(value))
        return self.scalars[-1]

    def renamed(self, value: PrimExpr) -> PrimExpr:
        for var in dims.prim_vars(value):
            self.own.setdefault(var, PrimVar(var.name, var.dtype))
        return substitute(value, self.own)

    def convert(self, value: object) -> object:
        if isinstance(value, PrimExpr):
            return self.number(value)
        if isinstance(value, E.PrimValue):
            return self.number(value.value)
        if isinstance(value, E.Expr):
            return self.expression(value)
        if isinstance(value, (list, tuple)):
            return type(value)([self.convert(item) for item in value])
        if isinstance(value, dict):
            return {key: self.convert(item) for key, item in value.items()}
        if value is None or isinstance(value, (int, float, str, Attrs)):
            return value
        raise TypeError(f"emit_te takes no argument of {type(value).__name__}: {value!r}")

    def expression(self, value: E.Expr) -> object:
        info = value.struct_info
        if isinstance(value, E.Constant):  # its array knows more than what it was declared as
            info = TensorStructInfo(tuple(value.data.shape), str(value.data.dtype))
        if isinstance(info, TensorStructInfo):
            return self.tensor(value, info)
        if isinstance(value, E.ShapeExpr):
            return list(map(self.number, value.values))
        if isinstance(info, ShapeStructInfo):
            raise UnknownShapeError(
                f"The extents of the shape {value} are known at run time only: give emit_te the "
                "extents themselves, relax.ShapeExpr([...])"
            )
        if isinstance(value, E.Tuple):
            return [self.convert(field) for field in value.fields]
        if isinstance(info, PrimStructInfo):
            return self.scalar(value, info)
        raise DiagnosticError(f"emit_te takes tensors and shapes; {value} is {info}")

    def scalar(self, value: E.Expr, info: PrimStructInfo) -> PrimExpr:
        """A number that is known when the program runs, unless its type says which it is."""
        if info.value is not None:
            return self.number(info.value)
        var = PrimVar(value.name_hint if isinstance(value, E.Var) else "scalar", info.dtype)
        self.inputs.append(var)
        self.call_args.append(value)
        return var

    def tensor(self, value: E.Expr, info: TensorStructInfo) -> te.Tensor:
        from mlcweb import te

        if info.known_values is None or not info.dtype:
            raise DiagnosticError(
                f"emit_te needs the shape and element type of {value}; it is only known to be "
                f"{info}. A match_cast can say more"
            )
        number = len(self.tensors)
        if isinstance(value, E.Var):
            name = value.name_hint
        else:
            letters = string.ascii_uppercase
            name = letters[number] if number < len(letters) else f"tensor_input_{number}"
        shape = [self.renamed(extent) for extent in info.known_values]
        tensor = te.placeholder(shape, info.dtype, name)
        self.tensors.append(tensor)
        self.inputs.append(tensor)
        self.call_args.append(value)
        return tensor

    def unbound(self, outputs: Sequence[te.Tensor]) -> list[PrimVar]:
        """The symbolic extents that are no extent of an input by themselves."""
        used: dict[PrimVar, None] = {}
        for tensor in (*self.tensors, *outputs):
            for extent in tensor.shape:
                used.update(dict.fromkeys(dims.prim_vars(extent)))
        for scalar in self.scalars:
            used.update(dict.fromkeys(dims.prim_vars(scalar)))
        bound = {extent for tensor in self.tensors for extent in tensor.shape}
        return [var for var in used if var not in bound]


def gen_call_tir_inputs(
    func: Formula,
    *args: object,
    primfunc_attrs: Mapping[str, object] | None = None,
    sinfo_args: StructInfo | Sequence[StructInfo] | None = None,
    **kwargs: object,
) -> tuple[PrimFunc, list[E.Expr], list[StructInfo], E.ShapeExpr | None]:
    """The function that `func` makes of the arguments, and what a `call_tir` of it needs: the
    arguments, the struct infos of its results, and the extents to pass after them."""
    from mlcweb import te

    arguments = _Arguments()
    te_args = [arguments.convert(arg) for arg in args]
    te_kwargs = {key: arguments.convert(arg) for key, arg in kwargs.items()}
    result = func(*te_args, **te_kwargs)
    outputs = [result] if isinstance(result, te.Tensor) else list(result)
    if not all(isinstance(output, te.Tensor) for output in outputs):
        raise TypeError("emit_te needs a function that returns a te.Tensor or several")
    unbound = arguments.unbound(outputs)
    prim_func = te.create_prim_func(
        [*arguments.inputs, *outputs, *unbound], index_dtype_override="int64"
    )
    if primfunc_attrs:
        prim_func = prim_func.with_attr(primfunc_attrs)
    prim_func = prim_func.without_attr("global_symbol")
    back = {own: var for var, own in arguments.own.items()}
    infos = [sinfo_args] if isinstance(sinfo_args, StructInfo) else list(sinfo_args or ())
    if not infos:
        for output in outputs:
            shape = [substitute(extent, back) for extent in output.shape]
            infos.append(TensorStructInfo(shape, output.dtype))
    tir_vars = E.ShapeExpr([back.get(var, var) for var in unbound]) if unbound else None
    return prim_func, arguments.call_args, infos, tir_vars
