"""What the statement-like calls of `T` stand for: `T.grid(…)`, `T.block(…)`, `T.reads(…)`, …

The calls only describe. The parser turns the descriptions into loops, blocks and the rest, so that
evaluating them outside a script does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.span import Span
from mlcweb.tir.arithmetic import convert
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.builtins import OPS
from mlcweb.tir.expr import Call, IntImm, PrimExpr, Var
from mlcweb.tir.stmt import (
    AllocBuffer,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    ForKind,
    IterType,
    LetStmt,
    Stmt,
    sequence,
)  # fmt: skip


def as_value(value: Any) -> PrimExpr:
    """The value of an attribute as an expression; a list becomes a tuple of them."""
    if isinstance(value, (list, tuple)):
        return Call("handle", OPS["tvm_tuple"], tuple(as_value(item) for item in value))
    return convert(value)


@dataclass(slots=True)
class Loops:
    """One loop, or a nest of plain loops, over `domains`."""

    domains: tuple[Range, ...]
    kind: ForKind = ForKind.SERIAL
    thread: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    step: int = 1
    """How far apart the values of the loop are, for a loop that counts them from 0 on; its domain
    has the first value, and how many there are."""

    def __iter__(self) -> Iterator[int]:
        """The values of a constant `range`, for what Python goes through."""
        (domain,) = self.domains
        start, extent = domain.min, domain.extent
        if not isinstance(start, IntImm) or not isinstance(extent, IntImm):
            raise DiagnosticError("Python goes through constant ranges only")
        return iter(range(start.value, start.value + self.step * extent.value, self.step))


@dataclass(slots=True)
class MetaVar:
    """A value for the time while the script is read, which a name may be assigned as it is."""

    value: Any

    def __iter__(self) -> Iterator[MetaVar]:
        return map(MetaVar, self.value)


@dataclass(slots=True)
class Axis:
    """An axis of a block. Without `domain`, the axis has the range of the loop it is bound to."""

    domain: Range | None
    value: PrimExpr
    iter_type: IterType


@dataclass(slots=True)
class BlockFrame:
    """A block. TVM before 0.9 lists its axes there: `with T.block([8, 8], "C") as [vi, vj]:`, and
    binds them by `AxisBinding` inside."""

    name: str
    axes: tuple[Axis, ...] = ()


@dataclass(slots=True)
class AxisBinding:
    """`T.bind(vi, i)`, for an axis that the block lists."""

    axis: Var
    value: PrimExpr


@dataclass(slots=True)
class InitFrame:
    pass


@dataclass(slots=True)
class BlockPart:
    """What a block says once: its predicate by `T.where`, its regions by `T.reads`, `T.writes`."""

    name: str
    value: Any


@dataclass(slots=True)
class BlockAttributes:
    values: Mapping[str, Any]


@dataclass(slots=True)
class FunctionAttributes:
    values: Mapping[str, Any]


@dataclass(slots=True)
class ModuleAttributes:
    values: Mapping[str, Any]
    global_infos: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Allocation:
    """A buffer that the enclosing block (or the function's root block) allocates."""

    buffer: Buffer


@dataclass(slots=True)
class Declaration:
    """A buffer that lives from here to the end of the enclosing indented block: one that is
    allocated, or a view."""

    buffer: Buffer
    statement: type[AllocBuffer | DeclBuffer]
    annotations: Mapping[str, Any] = field(default_factory=dict)
    memory: PrimExpr | None = None
    """The address that a view is of, where that is no variable."""
    values: Mapping[tuple[PrimExpr, ...], PrimExpr] = field(default_factory=dict)
    """What elements are from the start, by their indices."""

    def around(self, buffer: Buffer, body: Stmt, span: Span | None) -> Stmt:
        """`body` with the declared buffer, once it has its name."""
        stores = [BufferStore(buffer, v, at, span=span) for at, v in self.values.items()]
        body = sequence(*stores, body)
        for key, value in reversed(list(self.annotations.items())):
            body = AttrStmt(buffer, without_prefix(key), as_value(value), body, span=span)
        declared = self.statement(buffer, body, span=span)
        if self.memory is None:
            return declared
        return LetStmt(buffer.data, self.memory, declared, span=span)


@dataclass(slots=True)
class Preflattened:
    """A parameter's buffer, of which the body sees another, flat one."""

    flat: Buffer
    whole: Buffer


@dataclass(slots=True)
class Match:
    """A buffer that stands for a parameter, or for a region of another buffer in a block."""

    source: Var | BufferRegion
    buffer: Buffer


@dataclass(slots=True)
class LetFrame:
    value: PrimExpr
    var: Var | None = None


@dataclass(slots=True)
class WrapperFrame:
    """What stands around the statements below, such as an annotation: `wrap(body, span)`."""

    wrap: Callable[[Stmt, Span | None], Stmt]


@dataclass(slots=True)
class ThreadFrame:
    """A launch of `extent` threads along an axis such as "threadIdx.x", or along the axis that a
    variable of `T.env_thread` stands for."""

    axis: str | Var
    extent: PrimExpr


@dataclass(slots=True)
class ThreadVariable:
    """A variable for a thread axis, whose extent `T.launch_thread` gives later."""

    tag: str
