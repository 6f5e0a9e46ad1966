"""Giving values to the symbolic sizes of a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import cast, const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.intrinsics import BUILDERS
from mlcweb.tir.operators import BINARY_NODES
from mlcweb.tir.substitute import SubstitutionEverywhere


def specialize(func: PrimFunc, values: Mapping[E.Var, int]) -> PrimFunc:
    """The function with variables (sizes, or scalar parameters) set to constants.

    Parameters stay in the signature, so that callers need not know.
    """
    return _specialized(func, {var: const(value, var.dtype) for var, value in values.items()})


def _specialized(func: PrimFunc, values: Mapping[E.Var, E.PrimExpr]) -> PrimFunc:
    rewriter = _Specializer(values)
    buffers = {param: rewriter.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return replace(func, buffer_map=buffers, body=rewriter.rewrite(func.body))


def specialize_params(func: PrimFunc, param_map: Mapping[E.Var, Any]) -> PrimFunc:
    """The function with parameters given: a scalar its value, which takes it from the signature, or
    a handle a buffer, whose extents give those of the parameter's buffer their values.

    Raises:
        ValueError: what is named is no such parameter, or does not fit it.
    """
    if not param_map:
        return func
    values: dict[E.Var, E.PrimExpr] = {}
    for param, argument in param_map.items():
        if param not in func.params:
            names = ", ".join(p.name for p in func.params)
            raise ValueError(f'"{param.name}" is not a parameter of the function; it has {names}')
        buffer = func.buffer_map.get(param)
        if (buffer is None) == isinstance(argument, Buffer):
            what = "a scalar" if buffer is None else "a buffer"
            raise ValueError(f'"{param.name}" is {what}; {argument!r} cannot be given for it')
        if buffer is None:
            values[param] = cast(param.dtype, argument)
        else:
            values.update(_matched(param, buffer, argument))
    params = tuple(param for param in func.params if param not in values)
    return replace(_specialized(func, values), params=params)


def _matched(param: E.Var, buffer: Buffer, argument: Buffer) -> dict[E.Var, E.PrimExpr]:
    """The variables of a parameter's buffer by what `argument` has in their place."""
    if argument.dtype != buffer.dtype or argument.ndim != buffer.ndim:
        raise ValueError(
            f'The buffer "{buffer.name}" has {buffer.ndim} dimensions of {buffer.dtype}; what is '
            f'given for "{param.name}" has {argument.ndim} of {argument.dtype}'
        )
    values: dict[E.Var, E.PrimExpr] = {}
    own = (*buffer.shape, *buffer.strides, buffer.elem_offset)
    others = (*argument.shape, *argument.strides, argument.elem_offset)
    if len(own) != len(others):
        raise ValueError(f'Of "{buffer.name}" and what is given for it, one only has strides')
    for expected, actual in zip(own, others, strict=True):
        if isinstance(expected, E.Var):
            values[expected] = actual
        elif not same_expression(expected, actual):
            raise ValueError(f'An extent of "{buffer.name}" is {expected}, not {actual}')
    return values


def size_symbols(func: PrimFunc) -> dict[E.Var, tuple[int, int]]:
    """Variables that stand for sizes: the argument that tells the value, and its axis."""
    symbols: dict[E.Var, tuple[int, int]] = {}
    for position, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        for axis, extent in enumerate(buffer.shape if buffer else ()):
            if isinstance(extent, E.Var):
                symbols.setdefault(extent, (position, axis))
    return symbols


class _Specializer(SubstitutionEverywhere):
    def __init__(self, values: Mapping[E.Var, E.PrimExpr]) -> None:
        super().__init__(values)
        self.simplify = Analyzer().simplify

    def changed(self, buffer: Buffer) -> Buffer:
        new = self.rewrite_children(buffer)
        if not isinstance(new.data, E.Var):
            new = replace(new, data=buffer.data)
        if new is buffer:
            return buffer
        shape, strides = (tuple(map(self.simplify, part)) for part in (new.shape, new.strides))
        return replace(new, shape=shape, strides=strides)

    @on(S.DeclBuffer)
    def declaration(self, declaration: S.DeclBuffer) -> S.Stmt:
        """A view; where its data has an address in its place, with a variable for that."""
        new = self.access(declaration)
        address = self.variables.get(declaration.buffer.data)
        if address is None or isinstance(address, E.Var):
            return new
        return S.LetStmt(declaration.buffer.data, address, new, span=declaration.span)

    @on(*BINARY_NODES)
    def binary(self, node: Any) -> E.PrimExpr:
        new = self.rewrite_children(node)
        return new if new is node else BUILDERS[type(node)](new.a, new.b)

    @on(S.For)
    def loop(self, loop: S.For) -> S.For:
        new = self.rewrite_children(loop)
        return new if new is loop else replace(new, extent=self.simplify(new.extent))
