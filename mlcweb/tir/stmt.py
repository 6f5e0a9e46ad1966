"""Statements of TensorIR: loops, blocks, stores."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from mlcweb.ir import printing
from mlcweb.ir.array import Array, ArrayOf
from mlcweb.ir.node import Node, attribute, child, definition, hint, node, reference
from mlcweb.ir.span import Span
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion, Range
from mlcweb.tir.expr import Arithmetic, BufferLoad, Call, Let, PrimExpr, StringImm, Var
from mlcweb.tir.operators import operator_name

StmtType = TypeVar("StmtType", bound="Stmt")


@node
class Stmt(Node):
    """Base of statements."""

    def __repr__(self) -> str:
        return printing.text(self)


class ForKind(IntEnum):
    """How the iterations of a loop run."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


class IterType(IntEnum):
    """What a block iterator means to the block, with TVM's numbers."""

    DATA_PARALLEL = 0
    THREAD_INDEX = 1
    COMM_REDUCE = 2
    ORDERED = 3
    OPAQUE = 4


@node
class IterVar(Arithmetic, Node):
    """An iterator: its domain, its variable and what it means. `thread_tag` binds it to a thread
    axis such as "threadIdx.x". In expressions it stands for its variable."""

    DataPar: ClassVar[IterType] = IterType.DATA_PARALLEL
    ThreadIndex: ClassVar[IterType] = IterType.THREAD_INDEX
    CommReduce: ClassVar[IterType] = IterType.COMM_REDUCE
    Ordered: ClassVar[IterType] = IterType.ORDERED
    Opaque: ClassVar[IterType] = IterType.OPAQUE

    dom: Range | None
    var: Var = definition()
    iter_type: IterType = attribute(default=IterType.DATA_PARALLEL)
    thread_tag: str = attribute(default="")

    @property
    def domain(self) -> Range:
        """The domain, which an iterator of a block has. (An axis of threads may be without one.)"""
        assert self.dom is not None
        return self.dom

    def asobject(self) -> Var:
        return self.var

    def __repr__(self) -> str:
        return printing.text(self)


@node
class BufferStore(Stmt):
    """Writes `value` at `indices` of a buffer."""

    buffer: Buffer = reference()
    value: PrimExpr
    indices: ArrayOf[PrimExpr]


@node
class Evaluate(Stmt):
    """Computes a value for its effect."""

    value: PrimExpr


@node
class SeqStmt(Stmt):
    """Statements one after another: at least two, none of them a SeqStmt; those of one that is
    given are taken over."""

    seq: ArrayOf[Stmt]

    def __post_init__(self) -> None:
        if any(isinstance(statement, SeqStmt) for statement in self.seq):
            object.__setattr__(self, "seq", Array(_flat(self.seq)))

    def __len__(self) -> int:
        return len(self.seq)

    def __getitem__(self, position: int) -> Stmt:
        return self.seq[position]


@node
class For(Stmt):
    """A loop of `loop_var` over [min, min + extent)."""

    loop_var: Var = definition()
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind = attribute()
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: Mapping[str, Any] = attribute(default_factory=dict)

    @property
    def step(self) -> None:
        """None: loops go in steps of 1. A script's other step is a factor of the variable."""
        return None

    @property
    def domain(self) -> Range:
        """The values of the loop variable."""
        return Range(self.min, self.extent)


@node
class While(Stmt):
    condition: PrimExpr
    body: Stmt


@node
class IfThenElse(Stmt):
    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class LetStmt(Stmt):
    """`body` with `var` standing for `value`."""

    var: Var = definition()
    value: PrimExpr
    body: Stmt


@node
class AttrStmt(Stmt):
    """An annotation of `body`: `attr_key` of `node` is `value`."""

    node: Any = attribute()
    attr_key: str = attribute()
    value: PrimExpr
    body: Stmt


LAUNCH_KEYS = ("thread_extent", "virtual_thread")
"""The attributes that launch the threads of an axis for what is below them."""


def launch_key(thread_tag: str) -> str:
    return LAUNCH_KEYS[thread_tag.startswith("vthread")]


def is_launch(statement: AttrStmt) -> bool:
    return statement.attr_key in LAUNCH_KEYS and isinstance(statement.node, IterVar)


@node
class AssertStmt(Stmt):
    """`body` where `condition` holds; else an error of the class that `error_kind` names."""

    condition: PrimExpr
    message: PrimExpr
    body: Stmt
    error_kind: str = attribute(default="RuntimeError")

    @property
    def kind(self) -> StringImm:
        """The class of the error, as TVM has it since 2026."""
        return StringImm(self.error_kind)

    @property
    def message_parts(self) -> tuple[PrimExpr, ...]:
        """The message, as TVM has it since 2026."""
        return (self.message,)


@node
class AllocBuffer(Stmt):
    """Memory for `buffer` while `body` runs. Lowering makes these from block allocations."""

    buffer: Buffer = definition()
    body: Stmt

    @property
    def buffer_var(self) -> Var:
        """The address of the memory, under TVM's name (`tir.Allocate`)."""
        return self.buffer.data

    @property
    def dtype(self) -> str:
        """The type of an element."""
        return self.buffer.dtype

    @property
    def extents(self) -> tuple[PrimExpr, ...]:
        """How many elements there are along each dimension."""
        return self.buffer.shape


@node
class DeclBuffer(Stmt):
    """`body` with a view: a `buffer` in memory that another buffer, with the same `data`, has."""

    buffer: Buffer = definition()
    body: Stmt


class BlockIdentity:
    """What stays the same when a block is rebuilt, so that a schedule can find it again."""

    __slots__ = ()


@node
class Block(Stmt):
    """A unit of computation with iterators of its own, isolated from the loops around it.

    `init` runs where all reduction iterators are at the start of their domains. `replace` keeps
    the `identity`; a block that stands for another computation must be built anew.
    """

    iter_vars: ArrayOf[IterVar]
    reads: ArrayOf[BufferRegion]
    writes: ArrayOf[BufferRegion]
    name_hint: str = hint()
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: ArrayOf[Buffer] = definition(default=())
    match_buffers: ArrayOf[MatchBufferRegion] = child(default=())
    annotations: Mapping[str, Any] = attribute(default_factory=dict)
    identity: BlockIdentity = hint(default_factory=lambda: BlockIdentity())

    structural_order: ClassVar[tuple[str, ...]] = (
        "iter_vars",
        "alloc_buffers",
        "match_buffers",
        "reads",
        "writes",
        "init",
        "body",
        "annotations",
        "name_hint",
        "identity",
    )

    @property
    def domains(self) -> dict[Var, Range]:
        """The domains of the iterators."""
        return {i.var: i.dom for i in self.iter_vars if i.dom is not None}


@node
class BlockRealize(Stmt):
    """Runs `block` with its iterators bound to `iter_values`, where `predicate` holds."""

    iter_values: ArrayOf[PrimExpr]
    predicate: PrimExpr
    block: Block

    @property
    def iterators(self) -> list[tuple[IterVar, PrimExpr]]:
        """The iterators of the block, each with the value that it has."""
        return list(zip(self.block.iter_vars, self.iter_values, strict=True))

    @property
    def bindings(self) -> dict[Var, PrimExpr]:
        """The value that each iterator's variable has."""
        return {iter_var.var: value for iter_var, value in self.iterators}


def called_by(statement: Node, names: Container[str]) -> Call | None:
    """The call that a statement is, if it is of an operator with one of some names."""
    call = statement.value if isinstance(statement, Evaluate) else None
    return call if isinstance(call, Call) and operator_name(call) in names else None


def store_to(element: BufferLoad, value: PrimExpr, span: Span | None = None) -> BufferStore:
    """The store of a value to an element, which is named as it is loaded."""
    return BufferStore(element.buffer, value, element.indices, span=span)


def sequence(*statements: Stmt) -> Stmt:
    """Statements one after another, flattened; a single one as it is."""
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def in_order(statement: Stmt) -> tuple[Stmt, ...]:
    """The statements of a sequence, or the one that another statement is."""
    return statement.seq if isinstance(statement, SeqStmt) else (statement,)


def nest_at(statement: Stmt) -> tuple[list[For], Stmt]:
    """The loops that a statement begins with, each all that is in the one around it, outermost
    first, and what is in the innermost."""
    loops: list[For] = []
    while isinstance(statement, For):
        loops.append(statement)
        statement = statement.body
    return loops, statement


def _flat(statements: Iterable[Stmt]) -> Iterator[Stmt]:
    for statement in statements:
        yield from in_order(statement)


def allocated_buffers(node: Node) -> tuple[Buffer, ...]:
    """The buffers whose memory a node itself allocates."""
    if isinstance(node, Block):
        return node.alloc_buffers
    return (node.buffer,) if isinstance(node, AllocBuffer) else ()


def declared_buffers(statement: Stmt) -> tuple[Buffer, ...]:
    """The buffers that a statement itself declares: memory of its own, and views."""
    if isinstance(statement, Block):
        return (*statement.alloc_buffers, *(match.buffer for match in statement.match_buffers))
    return (statement.buffer,) if isinstance(statement, (AllocBuffer, DeclBuffer)) else ()


def defined_variables(node: Node) -> list[Var]:
    """The variables that a node itself defines, those of the memory that it allocates included."""
    of_this_type = _DEFINED_VARIABLES.get(type(node))
    return of_this_type(node) if of_this_type is not None else []


_DEFINED_VARIABLES: dict[type[Node], Callable[[Any], list[Var]]] = {
    For: lambda loop: [loop.loop_var],
    LetStmt: lambda let: [let.var],
    Let: lambda let: [let.var],
    Block: lambda block: (
        [axis.var for axis in block.iter_vars] + [b.data for b in block.alloc_buffers]
    ),
    AllocBuffer: lambda allocation: [allocation.buffer.data],
}


_WITHOUT_STATEMENTS = frozenset((BufferStore, Evaluate))


def statements_in(statement: Stmt) -> Iterator[Stmt]:
    """A statement and those inside it, outer ones first, in order."""
    pending = [statement]
    while pending:
        part = pending.pop()
        yield part
        if type(part) not in _WITHOUT_STATEMENTS:
            pending += [child for child in part.children()[::-1] if isinstance(child, Stmt)]


def find_statements(statement: Stmt, *types: type[StmtType]) -> Iterator[StmtType]:
    """Those of `statements_in` that are of some classes."""
    return (part for part in statements_in(statement) if isinstance(part, types))


def find_attributes(statement: Stmt, *keys: str) -> Iterator[AttrStmt]:
    """The attributes in a statement, or around it, with one of some keys."""
    return (part for part in find_statements(statement, AttrStmt) if part.attr_key in keys)
