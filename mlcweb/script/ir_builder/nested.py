"""`tvm.tir.ir_builder`: statements built by nested `with`, and elements as `A[i]`.

    ib = tvm.tir.ir_builder.create()
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(i < 12):
            A[i] = A[i] + 1
    stmt = ib.get()

TVM had it until 2025; `IRBuilder` of `tvm.script` took its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.names import unique_name
from mlcweb.script.ir_builder.flat_access import element_indices
from mlcweb.script.ir_builder.frames import FunctionFrame, Wrapper
from mlcweb.script.ir_builder.statements import Indented, PythonNames, StatementBuilder
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.intrinsics import likely

__all__ = ["BufferVar", "IRBuilder", "create"]


class BufferVar:
    """A buffer whose elements are read and written by `A[i]`. A single index of a buffer of several
    dimensions counts its elements in row-major order. As an expression it is the buffer's memory.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: str) -> None:
        self._builder = builder
        self._buffer = buffer
        self._content_type = content_type

    def asobject(self) -> E.Var:
        return self._buffer.data

    @property
    def dtype(self) -> str:
        """The type of the elements."""
        return self._content_type

    def __getitem__(self, index: Any) -> E.BufferLoad:
        return E.BufferLoad(self._buffer, element_indices(self._buffer, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        element = dtypes.element_of(self._content_type)
        value = arithmetic.convert(value)
        if isinstance(value, (E.IntImm, E.FloatImm)):
            value = arithmetic.cast(element, value)
        if dtypes.element_of(value.dtype) != element:
            raise DiagnosticError(
                f"data type does not match content type: a {value.dtype} is stored to elements of "
                f'"{self._buffer.name}", which are {self._content_type}'
            )
        indices = element_indices(self._buffer, index)
        self._builder.emit(S.BufferStore(self._buffer, value, indices))


class IRBuilder:
    """Collects statements; `get()` gives them."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._start()

    def _start(self) -> None:
        self._body = StatementBuilder(FunctionFrame("", checked=False), PythonNames())
        self._whole = self._body.indented()
        self._inside: Indented = self._whole.__enter__()
        self._branch: S.IfThenElse | None = None

    def emit(self, stmt: S.Stmt | E.PrimExpr | Wrapper) -> None:
        """Add a statement, an expression for its effect, or a function that puts a statement around
        all that follows."""
        self._branch = None
        if isinstance(stmt, E.PrimExpr):
            stmt = S.Evaluate(stmt)
        if isinstance(stmt, S.Stmt):
            self._body.emit(stmt)
        else:
            self._body.wrap_rest(stmt)

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """An attribute of all that follows."""
        about = E.StringImm(node) if isinstance(node, str) else _object(node)
        of = arithmetic.convert(value)
        self.emit(lambda body: S.AttrStmt(about, attr_key, of, body))

    @contextmanager
    def _nested(self, value: Any, wrap: Wrapper) -> Iterator[Any]:
        with self._body.indented() as inside:
            yield value
        self.emit(wrap(inside.statement or S.Evaluate(arithmetic.const(0))))

    def for_range(
        self,
        begin: Any,
        end: Any,
        name: str = "i",
        dtype: str | None = None,
        kind: str = "serial",
    ) -> Any:
        """`with` gives the variable of a loop from `begin` to before `end`."""
        low, high = arithmetic.convert(begin), arithmetic.convert(end)
        extent = high if arithmetic.is_const_int(low, 0) else arithmetic.subtract(high, low)
        if dtype is None:
            dtype = extent.dtype if isinstance(low, E.IntImm) else low.dtype
        var = E.Var(unique_name(name, self._names), dtype)
        low, extent = (arithmetic.cast(dtype, end) for end in (low, extent))
        loop_kind = _KINDS[kind]
        return self._nested(var, lambda body: S.For(var, low, extent, loop_kind, body))

    def while_loop(self, condition: Any) -> Any:
        """`with` opens a loop for as long as the condition holds."""
        test = arithmetic.convert(condition)
        return self._nested(None, lambda body: S.While(test, body))

    def if_scope(self, cond: Any) -> Any:
        """`with` opens what is done where the condition holds."""
        test = arithmetic.convert(cond)

        @contextmanager
        def branch() -> Iterator[None]:
            with self._body.indented() as inside:
                yield
            then = inside.statement or S.Evaluate(arithmetic.const(0))
            stmt = S.IfThenElse(test, then)
            self.emit(stmt)
            self._branch = stmt

        return branch()

    def else_scope(self) -> Any:
        """`with` opens what is done where the condition of the `if_scope` before does not hold.

        Raises:
            DiagnosticError: the statement before is no `if_scope`.
        """
        before = self._branch
        if before is None:
            raise DiagnosticError("else_scope can only follow an if_scope")

        @contextmanager
        def branch() -> Iterator[None]:
            with self._body.indented() as inside:
                yield
            self._body.replace_last(
                S.IfThenElse(before.condition, before.then_case, inside.statement)
            )

        return branch()

    def new_scope(self) -> Any:
        """`with` ends what reaches over all that follows: attributes, allocations, bindings."""
        return self._nested(None, lambda body: body)

    def let(self, var_name: str, value: Any) -> E.Var:
        """A name for a value in all that follows."""
        bound = arithmetic.convert(value)
        var = E.Var(var_name, bound.dtype)
        self.emit(lambda body: S.LetStmt(var, bound, body))
        return var

    def allocate(
        self,
        dtype: str,
        shape: Any,
        name: str = "buf",
        axis_separators: Sequence[int] | None = None,
        scope: str = "",
    ) -> BufferVar:
        """Memory for all that follows."""
        extents = shape if isinstance(shape, (list, tuple)) else (shape,)
        buffer = decl_buffer(
            extents, dtype, name, scope=scope or "global", axis_separators=axis_separators
        )
        self.emit(lambda body: S.AllocBuffer(buffer, body))
        return BufferVar(self, buffer, dtype)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Memory of unknown size that a parameter points to: give it to `tir.PrimFunc` as one."""
        buffer = decl_buffer((1,), content_type, name, scope=scope or "global")
        return BufferVar(self, buffer, content_type)

    def buffer_ptr(self, buffer: Buffer, shape: Sequence[Any] | None = None) -> BufferVar:
        """The elements of a buffer that there is, or of a view of it in another shape."""
        if shape is not None:
            buffer = decl_buffer(shape, buffer.dtype, buffer.name, buffer.data)
        return BufferVar(self, buffer, buffer.dtype)

    def likely(self, expr: Any) -> E.PrimExpr:
        """A condition that is true nearly always."""
        return likely(expr)

    def get(self) -> S.Stmt:
        """All that was built; the builder starts anew."""
        self._whole.__exit__(None, None, None)
        stmt = self._inside.statement
        self._start()
        return stmt or S.Evaluate(arithmetic.const(0))


_KINDS = {
    "serial": S.ForKind.SERIAL,
    "parallel": S.ForKind.PARALLEL,
    "vectorize": S.ForKind.VECTORIZED,
    "unroll": S.ForKind.UNROLLED,
}


def _object(node: Any) -> Any:
    """The node that an attribute is about: a pointer's memory; others are nodes themselves."""
    return node.asobject() if isinstance(node, BufferVar) else node


create: Callable[[], IRBuilder] = IRBuilder
