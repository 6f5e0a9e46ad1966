"""`tvm.script.ir_builder.tir`: the `T` of TVMScript as calls that build at once.

A name that is not here is that of `T` in scripts: what a script's line would do, the call does to
the function that is being built. What a script opens by `with` or `for` is opened by `with`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.base import BuilderError, Frame, IRBuilder, innermost
from mlcweb.script.ir_builder.definitions import DEFINITIONS
from mlcweb.script.ir_builder.flat_access import element_indices
from mlcweb.script.ir_builder.frames import FunctionFrame
from mlcweb.script.ir_builder.functions import finish
from mlcweb.script.ir_builder.loops import loop_nest
from mlcweb.script.ir_builder.naming import describe, name_buffer, rename
from mlcweb.script.ir_builder.statements import Branches, PythonNames, StatementBuilder
from mlcweb.script.ir_builder.with_frames import FRAMES
from mlcweb.script.namespace.blocks import AxisNamespace
from mlcweb.script.namespace.statements import let_stmt
from mlcweb.script.namespace.types import BufferType, ScalarType
from mlcweb.script.tir import NAMES
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer as BufferNode


class FunctionBuilder(StatementBuilder):
    """A PrimFunc that is being built."""

    def __init__(self) -> None:
        super().__init__(FunctionFrame(""), PythonNames())
        self.returns: str | None = None


def _enter(builder: StatementBuilder, call: str, frame: Any) -> Any:
    """The context manager for what `T` gave."""
    if isinstance(frame, C.Loops):
        count = len(frame.domains)
        nest = loop_nest(builder, frame, ["v"] * count, [None] * count, None)
        return nest if call == "T.grid" else _only(nest)
    names = ["v"] * (len(frame.axes) if isinstance(frame, C.BlockFrame) else 1)
    if isinstance(frame, C.Declaration):
        names = ["buffer"]
    elif isinstance(frame, C.ThreadFrame):
        names = []
    return FRAMES[type(frame)](builder, frame, names, None)


@contextmanager
def _only(nest: Any) -> Iterator[E.Var]:
    with nest as (var,):
        yield var


def _function(call: str) -> FunctionBuilder:
    return innermost(FunctionBuilder, call, "T.prim_func()")


def _body(call: str) -> StatementBuilder:
    """What takes statements: the function that is built, or the script that Python builds for."""
    builder = IRBuilder.current()
    if not builder.functions and builder.module is None and call != "T.func_attr":
        builder.at_end.enter_context(_statements(builder))
    return innermost(StatementBuilder, call, "T.prim_func()")


@contextmanager
def _statements(builder: IRBuilder) -> Iterator[None]:
    """Statements that belong to no function, which are a result of their own."""
    function = FunctionBuilder()
    builder.functions.append(function)
    with function.indented() as inside:
        yield
    builder.functions.remove(function)
    if inside.statement is not None:
        builder.add(inside.statement)


def _carried_out(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
    """What a name of `T` is here: the call adds to the function that is being built."""

    def call(*args: Any, **options: Any) -> Any:
        return _add(f"T.{name}", build(*args, **options))

    call.__name__, call.__doc__ = name, build.__doc__
    return call


def _add(call: str, value: Any) -> Any:
    kind = type(value)
    known_memory = kind is BufferNode and call == "T.decl_buffer"
    opened = kind in FRAMES and kind is not BufferNode and not call.startswith("T.alloc_")
    if isinstance(value, C.Loops) or known_memory or opened:
        return Frame(call, lambda: _enter(_body(call), call, value))
    if isinstance(value, list) and value and all(type(item) in DEFINITIONS for item in value):
        return [_add(call, item) for item in value]
    if kind in DEFINITIONS and kind is not BufferNode:
        axis = isinstance(value, (C.Axis, C.ThreadVariable))
        return _body(call).define("v" if axis else "buffer", value, None)
    if not isinstance(value, (E.PrimExpr, BufferNode)) and value is not None:
        return None if _is_statement(value) and _body(call).apply(value, None) else value
    return value


def _is_statement(value: Any) -> bool:
    from mlcweb.script.ir_builder.actions import ACTIONS

    return isinstance(value, S.Stmt) or type(value) in ACTIONS


class _Axes:
    """`T.axis`."""

    def __getattr__(self, name: str) -> Any:
        return _carried_out(f"axis.{name}", getattr(AxisNamespace, name))


def prim_func(
    is_private: bool = False, s_tir: bool = False, persistent: bool = False, **options: Any
) -> Frame:
    """A function: what is called inside is its name, its parameters and its statements."""

    @contextmanager
    def build() -> Iterator[FunctionBuilder]:
        builder, function = IRBuilder.current(), FunctionBuilder()
        builder.functions.append(function)
        try:
            with function.indented() as inside:
                yield function
        finally:
            builder.functions.pop()
        body = inside.statement or S.Evaluate(arithmetic.const(0))
        name = function.function.name
        if not name and builder.module is not None:
            raise BuilderError('A function of a module has a name: T.func_name("main")')
        private = is_private or not name
        builder.add(finish(function, body, function.returns, private), name)

    return Frame("T.prim_func()", build)


def func_name(name: str) -> None:
    """The name of the function."""
    function = _function("T.func_name").function
    if function.name:
        raise BuilderError(f'The function has a name already, "{function.name}"')
    function.name = name


def func_ret(ret_type: Any) -> Any:
    """The type of what the function returns."""
    function = _function("T.func_ret")
    function.returns = None if ret_type is None else str(getattr(ret_type, "dtype", ret_type))
    return ret_type


def arg(name: str, obj: Any) -> Any:
    """A parameter: a buffer, or a variable such as `T.handle()`; it takes the name."""
    builder = _function("T.arg")
    if isinstance(obj, ScalarType):
        obj = obj()
    if not isinstance(obj, (BufferNode, E.Var)):
        raise BuilderError(
            f"A parameter is a buffer or a variable, T.Buffer(…) or T.int32(), not {describe(obj)}"
        )
    rename(obj, name)
    if isinstance(obj, E.Var):
        builder.function.params.append(obj)
        return obj
    handle = E.Var(f"{name}_handle", "handle")
    builder.function.params.append(handle)
    builder.function.buffer_map[handle] = obj
    builder.buffers[obj.data] = obj
    return obj


class buffer_proxy:
    """A buffer with elements that are read and written as `A[i]`; a single index of a buffer of
    several dimensions counts its elements in row-major order."""

    def __init__(self, buf: BufferNode) -> None:
        self._buffer = buf
        self.dtype, self.shape, self.name, self.data = buf.dtype, buf.shape, buf.name, buf.data

    def __getitem__(self, index: Any) -> E.BufferLoad:
        return E.BufferLoad(self._buffer, element_indices(self._buffer, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = element_indices(self._buffer, index)
        _add("T.buffer_store", NAMES["buffer_store"](self._buffer, value, indices))


class _BufferType(BufferType):
    """A buffer, to be a parameter, or over memory that there is."""

    def __call__(self, *args: Any, **options: Any) -> BufferNode:
        return name_buffer(super().__call__(*args, **options), "buffer")


def bind(value: Any, type_annotation: Any = None, *, var: E.Var | None = None) -> E.Var:
    """A name for a value, for the statements that follow."""
    builder, frame = _body("T.bind"), let_stmt(value, type_annotation, var=var)
    return builder.let("", frame.var or E.Var("v", frame.value.dtype), frame.value, None)


def evaluate(value: Any) -> None:
    """A statement that computes a value for its effect."""
    _body("T.evaluate").emit(NAMES["evaluate"](value))


def add_to_parent(stmt: S.Stmt) -> None:
    """Add a statement that was made otherwise."""
    _body("T.add_to_parent").emit(stmt)


def seq_scope() -> Frame:
    """Statements one after another, which are built inside."""

    @contextmanager
    def build() -> Iterator[None]:
        builder = _body("T.seq_scope")
        with builder.indented() as inside:
            yield
        builder.emit(builder.some(inside, "T.seq_scope()", None))

    return Frame("T.seq_scope", build)


def if_(condition: Any) -> Frame:
    """A branch: `with T.If(c):`, and inside `with T.Then():` and perhaps `with T.Else():`."""

    @contextmanager
    def build() -> Iterator[None]:
        builder, branches = _body("T.If"), Branches()
        builder.branches.append(branches)
        yield
        builder.branches.pop()
        if branches.then_case is None:
            raise BuilderError("T.If has no branch: write `with T.Then():` inside")
        test = arithmetic.cast("bool", arithmetic.convert(condition))
        builder.emit(S.IfThenElse(test, branches.then_case, branches.else_case))

    return Frame("T.If", build)


def _branch(case: str, call: str) -> Callable[[], Frame]:
    @contextmanager
    def build() -> Iterator[None]:
        builder = _body(call)
        if not builder.branches:
            raise BuilderError(f"{call} belongs inside `with T.If(…):`")
        branches = builder.branches[-1]
        if getattr(branches, case) is not None:
            raise BuilderError(f"T.If has two {call}")
        with builder.indented() as inside:
            yield
        setattr(branches, case, builder.some(inside, call, None))

    return lambda: Frame(call, build)


def while_(condition: Any) -> Frame:
    """A loop for as long as the condition holds."""

    @contextmanager
    def build() -> Iterator[None]:
        builder = _body("T.While")
        with builder.indented() as inside:
            yield
        builder.emit(S.While(arithmetic.convert(condition), builder.some(inside, "T.While", None)))

    return Frame("T.While", build)


then_ = _branch("then_case", "T.Then()")
else_ = _branch("else_case", "T.Else()")
If, Then, Else, While = if_, then_, else_, while_
Buffer = buffer_decl = buffer = _BufferType()
axis = _Axes()


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"T has no {name} for builders")
    value = NAMES[name]
    described = callable(value) and not isinstance(value, (ScalarType, type))
    return _carried_out(name, value) if described else value


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if not name.startswith("_")), *NAMES})
