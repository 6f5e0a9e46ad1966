"""The state of a schedule: an immutable module, and where its loops and blocks stand.

A loop is known by its variable and a block by its identity; both survive when the tree around them
is rebuilt, so that nothing has to be kept in step. Primitives take a state and return a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import takewhile
from operator import is_
from typing import Any, TypeVar

from mlcweb.arith import Analyzer
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.schedule.errors import NotFoundError, StaleReferenceError, UnsupportedError
from mlcweb.schedule.references import BlockScope, CachedFlags, StmtSRef
from mlcweb.tir.arithmetic import logical_not
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import Var
from mlcweb.tir.function import PrimFunc, prim_funcs
from mlcweb.tir.operators import operator_name
from mlcweb.tir.stmt import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Block,
    BlockIdentity,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    find_statements,
    sequence,
)  # fmt: skip

_BODIES: dict[type, tuple[str, ...]] = {
    AllocBuffer: ("body",),
    AssertStmt: ("body",),
    AttrStmt: ("body",),
    Block: ("init", "body"),
    BlockRealize: ("block",),
    DeclBuffer: ("body",),
    For: ("body",),
    IfThenElse: ("then_case", "else_case"),
    LetStmt: ("body",),
    While: ("body",),
}
"""The fields of each statement that hold statements; SeqStmt holds a tuple of them."""


def substatements(statement: Stmt) -> Sequence[Stmt]:
    """The statements directly below a statement, in order."""
    if isinstance(statement, SeqStmt):
        return statement.seq
    bodies = [getattr(statement, name) for name in _BODIES.get(type(statement), ())]
    return [below for below in bodies if below is not None]


def executed_substatements(statement: Stmt) -> Sequence[Stmt]:
    """The substatements but for the init of a block, which belongs to the block as its iterators
    do: its loops and blocks are nobody's to schedule until decompose_reduction brings them out."""
    return (statement.body,) if isinstance(statement, Block) else substatements(statement)


def with_substatements(statement: Stmt, changes: Mapping[Stmt, Stmt]) -> Stmt:
    """The statement with some of its `substatements` replaced; itself where none changes."""
    if all(old is new for old, new in changes.items()):
        return statement
    if isinstance(statement, SeqStmt):
        return sequence(*(changes.get(item, item) for item in statement.seq))
    fields = {name: getattr(statement, name) for name in _BODIES.get(type(statement), ())}
    return replace(
        statement, **{name: changes.get(old, old) for name, old in fields.items() if old}
    )


class _Located:
    """What is known of a loop or block by the statements around it."""

    __slots__ = ()
    parents: tuple[Stmt, ...]

    @property
    def node(self) -> For | Block:
        """The loop or block itself."""
        raise NotImplementedError

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around up to the next enclosing block, outermost first."""
        loops: list[For] = []
        for parent in reversed(self.parents):
            if isinstance(parent, Block):
                break
            if isinstance(parent, For):
                loops.append(parent)
        return tuple(reversed(loops))

    @property
    def domains_around(self) -> dict[Var, Range]:
        """The domains of all loops and block iterators around, outermost first."""
        domains: dict[Var, Range] = {}
        for parent in self.parents:
            domains.update(domains_of(parent))
        return domains

    def inner_loops(self, outer: For | None) -> dict[Var, Range]:
        """The domains of the loops around up to the scope, or to inside of the loop `outer`."""
        domains: dict[Var, Range] = {}
        for parent in reversed(self.parents):
            if parent is outer or isinstance(parent, Block):
                break
            domains.update(domains_of(parent))
        return dict(reversed(domains.items()))

    def analyzer_inside(self) -> Analyzer:
        """An analyzer that knows all variables that are visible in the body."""
        return Analyzer({**self.domains_around, **domains_of(self.node)})


# Not frozen, as nodes are not: each state has a place for each of its loops and blocks.
@dataclass(slots=True, unsafe_hash=True)
class LoopPlace(_Located):
    """A loop and the statements around it, outermost first."""

    function: str
    loop: For
    parents: tuple[Stmt, ...]

    @property
    def node(self) -> For:
        """What stands at the place."""
        return self.loop

    statement = node


@dataclass(slots=True, unsafe_hash=True)
class BlockPlace(_Located):
    """A block and the statements around it, outermost first."""

    function: str
    realize: BlockRealize
    parents: tuple[Stmt, ...]

    @property
    def block(self) -> Block:
        return self.realize.block

    @property
    def node(self) -> Block:
        return self.realize.block

    @property
    def statement(self) -> Stmt:
        """What stands at the place."""
        return self.realize

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'block "{self.block.name_hint}"'

    @property
    def own_loops(self) -> tuple[For, ...]:
        """The innermost of `loops`, as far as they hold nothing but each other and the block."""
        loops, inside = self.loops, self.statement
        for count, loop in enumerate(reversed(loops)):
            if loop.body is not inside:
                return loops[len(loops) - count :]
            inside = loop
        return loops


Place = LoopPlace | BlockPlace
Around = TypeVar("Around", bound=Stmt)


def domains_of(statement: Stmt) -> dict[Var, Range]:
    """The domains of the variables that a loop or block defines."""
    if isinstance(statement, For):
        return {statement.loop_var: statement.domain}
    return statement.domains if isinstance(statement, Block) else {}


def shared_prefix(chains: Iterable[Sequence[Around]]) -> tuple[Around, ...]:
    """The statements that several chains of statements have in common, from the outermost on."""
    levels = zip(*chains, strict=False)
    common = takewhile(lambda level: all(statement is level[0] for statement in level), levels)
    return tuple(level[0] for level in common)


def block_realizes_below(statement: Stmt) -> Iterator[BlockRealize]:
    """The realizes of the outermost blocks in (or at) a statement, in order."""
    if isinstance(statement, BlockRealize):
        yield statement
        return
    for below in substatements(statement):
        yield from block_realizes_below(below)


@dataclass(frozen=True, slots=True)
class _Index:
    loops: dict[Var, LoopPlace]
    blocks: dict[BlockIdentity, BlockPlace]
    exits: dict[str, Evaluate]
    """Functions that may leave a loop, or return, before its end, each with where it does."""
    views: set[str]
    """Functions that declare buffers in the memory of others."""


_EXITS = ("break_loop", "continue_loop", "thread_return", "ret")


def _index(module: IRModule) -> _Index:
    index = _Index({}, {}, {}, set())

    def visit(statement: Stmt, function: str, parents: tuple[Stmt, ...]) -> None:
        while True:
            if isinstance(statement, For):
                index.loops[statement.loop_var] = LoopPlace(function, statement, parents)
                parents = (*parents, statement)
                statement = statement.body
            elif isinstance(statement, BlockRealize):
                block = statement.block
                index.blocks[block.identity] = BlockPlace(function, statement, parents)
                if block.init is not None and any(find_statements(block.init, DeclBuffer)):
                    index.views.add(function)
                parents = (*parents, statement, block)
                statement = block.body
            else:
                break
        if isinstance(statement, BufferStore):
            return
        if isinstance(statement, Evaluate):
            is_last = not any(isinstance(parent, (For, While, IfThenElse)) for parent in parents)
            if operator_name(statement.value) in _EXITS and not is_last:
                index.exits[function] = statement
            return
        if isinstance(statement, DeclBuffer):
            index.views.add(function)
        inner = (*parents, statement)
        for part in executed_substatements(statement):
            visit(part, function, inner)

    for name, func in prim_funcs(module).items():
        visit(func.body, name, ())
    return index


class ScheduleDebugMask(IntEnum):
    """What TVM's `debug_mask` asks to be verified after each step. A schedule here keeps nothing
    that could be out of date, so that there is nothing to verify."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


_MASKS = {"none": 0, "all": sum(ScheduleDebugMask)}


@dataclass(frozen=True, eq=False, slots=True)
class _Owner:
    """What the states of one schedule have in common, or those that a program has made."""

    debug_mask: int
    enable_check: bool
    is_program: bool = False


@dataclass(frozen=True, eq=False, init=False)
class ScheduleState:
    """A module and the places of its loops and blocks. A function is one whose name is `main`.

    As of a `Schedule`, `debug_mask` ("none", "all", or bits of a `ScheduleDebugMask`) and
    `enable_check` change nothing: all that is asked of a state is derived from its module. A
    ValueError says that there is no such mask.
    """

    module: IRModule
    _cache: dict[Any, Any] = field(repr=False)
    _schedule: _Owner = field(repr=False)
    """Tells the states of one schedule from those of others."""
    _references: dict[Var | BlockIdentity, StmtSRef] = field(repr=False)
    """What a program that made the state refers to in it."""

    def __init__(
        self, mod: IRModule | PrimFunc, *, debug_mask: str | int = "none", enable_check: bool = True
    ) -> None:
        mask = _MASKS.get(debug_mask, debug_mask) if isinstance(debug_mask, str) else debug_mask
        if not isinstance(mask, int):
            raise ValueError(f'debug_mask is {debug_mask!r}, and not "none", "all" or bits')
        owner = _Owner(mask, enable_check, is_program=True)
        self._set(IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod, {}, owner)
        object.__setattr__(self, "_references", {})

    def _set(self, module: IRModule, cache: dict[Any, Any], schedule: _Owner) -> None:
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "_cache", cache)
        object.__setattr__(self, "_schedule", schedule)

    def copy(self) -> ScheduleState:
        """The same state, of a schedule of its own."""
        owner = _Owner(self.debug_mask, self.enable_check)
        return _state_of(owner, self.module, self._cache)

    @property
    def debug_mask(self) -> int:
        """The bits of what it was asked to verify."""
        return self._schedule.debug_mask

    @property
    def enable_check(self) -> bool:
        return self._schedule.enable_check

    def __reduce__(self) -> Any:
        return ScheduleState, (self.module,)

    def reference(self, place: Place) -> StmtSRef:
        """The reference to what stands at a place."""
        parent: StmtSRef | None = None
        for statement in place.parents:
            if isinstance(statement, (Block, For)):
                parent = self._reference(statement, parent)
        return self._reference(place.node, parent)

    def _reference(self, statement: Block | For, parent: StmtSRef | None) -> StmtSRef:
        sref = StmtSRef(statement, parent, self._schedule)
        key = statement.loop_var if isinstance(statement, For) else statement.identity
        return self._references.setdefault(key, sref) if self._is_of_program else sref

    @property
    def _is_of_program(self) -> bool:
        return self._schedule.is_program

    def replace(
        self,
        src_sref: StmtSRef,
        tgt_stmt: Block | BlockRealize | For,
        block_sref_reuse: Mapping[Block, Block] | None = None,
    ) -> None:
        """Put a statement in the place of a block (a block) or of a loop (a loop, or the realize of
        a block). This changes the state itself, which a program has made; that of a schedule
        changes by the primitives alone.

        References to statements that are gone refer to None then, others to what their statements
        have become. `block_sref_reuse` gives for blocks that are gone those that references to them
        refer to. Raises TypeError for other statements, ValueError for the state of a schedule and
        for a reference to a statement that is gone.
        """
        if not self._is_of_program:
            raise ValueError(
                "The program of a schedule changes by its primitives alone. "
                "ScheduleState(sch.mod) is a state whose statements can be replaced"
            )
        old = src_sref.stmt
        if old is None:
            raise ValueError("The reference is to a statement that is no longer in the program")
        if not isinstance(tgt_stmt, Block if isinstance(old, Block) else (BlockRealize, For)):
            kinds = type(old).__name__, type(tgt_stmt).__name__
            raise TypeError(f"A {kinds[1]} cannot stand in the place of a {kinds[0]}")
        place = self.place_of(old)
        for gone, block in (block_sref_reuse or {}).items():
            if gone.identity in self._references:
                self._references[block.identity] = self._references.pop(gone.identity)
        state = self.replaced(place.function, {place.node: tgt_stmt})
        self._set(state.module, {}, self._schedule)
        places = {**self.index.loops, **self.index.blocks}
        for key, reference in list(self._references.items()):
            current = places.get(key)
            if current is None:
                reference._refer(None, None)
                del self._references[key]
                continue
            parents = [p for p in current.parents if isinstance(p, (Block, For))]
            parent = self.get_sref(parents[-1]) if parents else None
            reference._refer(current.node, parent)

    def get_sref(self, stmt: Block | For) -> StmtSRef:
        """The reference to a block or loop, which may have been rewritten since."""
        return self.reference(self.place_of(stmt))

    @property
    def mod(self) -> IRModule:
        """The module, under TVM's name."""
        return self.module

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences between the blocks inside of a block."""
        return provided(__name__, "block_scope")(self, self._block_at(block_sref))

    get_sblock_scope = get_block_scope

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """What holds of a block, under the name that TVM's tools ask by."""
        return provided(__name__, "cached_flags")(self, self._block_at(block_sref))

    def _block_at(self, block_sref: StmtSRef) -> BlockPlace:
        if not isinstance(block_sref.stmt, Block):
            raise TypeError(f"{block_sref!r} is no reference to a block, but to a loop")
        return self.block(block_sref.stmt.identity)

    @property
    def index(self) -> _Index:
        if "index" not in self._cache:
            self._cache["index"] = _index(self.module)
        return self._cache["index"]

    def cached(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The result of an analysis of this state, computed at most once."""
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    def loop(self, variable: Var) -> LoopPlace:
        """Where the loop over `variable` stands; a StaleReferenceError where there is none."""
        place = self.index.loops.get(variable)
        if place is None:
            raise StaleReferenceError(
                f'The loop "{variable.name}" is no longer in the program: an earlier step replaced '
                "it",
                advice="take the loops anew with sch.get_loops(block)",
            )
        return place

    def block(self, identity: BlockIdentity) -> BlockPlace:
        """Where a block stands; a StaleReferenceError where there is none."""
        place = self.index.blocks.get(identity)
        if place is None:
            raise StaleReferenceError(
                "The block is no longer in the program: an earlier step replaced or inlined it",
                advice="take the block anew with sch.get_block(name)",
            )
        return place

    def place_of(self, node: For | Block) -> Place:
        """Where a loop or block stands, which may have been rewritten since."""
        return self.loop(node.loop_var) if isinstance(node, For) else self.block(node.identity)

    def scope_of(self, place: Place) -> BlockPlace:
        """The block that encloses a place."""
        for parent in reversed(place.parents):
            if isinstance(parent, Block):
                return self.index.blocks[parent.identity]
        raise NotFoundError(
            "There is no block around the root block",
            [place.statement],
            "a block inside of the root block",
        )

    def blocks_named(self, name: str, function: str) -> list[BlockPlace]:
        """The blocks of a function with a name, in program order."""
        return [
            place
            for place in self.index.blocks.values()
            if place.function == function and place.block.name_hint == name
        ]

    def child_blocks(self, place: Place) -> list[BlockPlace]:
        """The outermost blocks below a block or loop, in program order."""
        inside = executed_substatements(place.node)
        realizes = [realize for below in inside for realize in block_realizes_below(below)]
        return [self.index.blocks[realize.block.identity] for realize in realizes]

    def function(self, name: str) -> PrimFunc:
        return self.module[name]

    def with_function(self, name: str, func: PrimFunc) -> ScheduleState:
        """The state with one function replaced."""
        if name in self.index.exits:
            raise UnsupportedError(
                f'The function "{name}" may leave a loop before its end, so that none of its '
                "iterations runs for sure",
                [self.index.exits[name]],
                "guard what follows by a condition in place of T.break_loop, T.continue_loop or a "
                "return",
            )
        functions = {**self.module.functions, GlobalVar(name): func}
        return _state_of(self._schedule, self.module.with_functions(functions), {})

    def replaced(self, function: str, changes: Mapping[Stmt, Stmt | None]) -> ScheduleState:
        """The state with statements replaced, found by identity.

        None removes a statement, and with it the loops that would be left without a body.
        """
        func = self.function(function)
        body = _replace(func.body, changes, self._around(changes))
        if body is None:
            raise NotFoundError(
                f'Nothing would be left of the function "{function}": this is its only block',
                advice="a block beside which there are others",
            )
        return self.with_function(function, replace(func, body=body))

    def _around(self, statements: Iterable[Stmt]) -> Container[Stmt] | None:
        """What is around statements; None where that is not known of one of them."""
        around: set[Stmt] = set()
        for statement in statements:
            place = self._known(statement)
            if place is None:
                return None
            around.update(place.parents)
            around.add(place.statement)  # which is around its block
        return around

    def _known(self, statement: Stmt) -> Place | None:
        """The place of a statement that is a loop, a block or its realize in this very program."""
        if isinstance(statement, For):
            place = self.index.loops.get(statement.loop_var)
            return place if place is not None and place.loop is statement else None
        block = statement.block if isinstance(statement, BlockRealize) else statement
        entry = self.index.blocks.get(block.identity) if isinstance(block, Block) else None
        return entry if entry is not None and statement in (entry.block, entry.realize) else None

    def with_fields(self, place: Place, **fields: Any) -> ScheduleState:
        """The state with some fields of a loop or block changed."""
        return self.replaced(place.function, {place.node: replace(place.node, **fields)})


def _state_of(schedule: _Owner, module: IRModule, cache: dict[Any, Any]) -> ScheduleState:
    state = object.__new__(ScheduleState)
    object.__setattr__(state, "_references", {})
    state._set(module, cache, schedule)
    return state


def _replace(
    statement: Stmt, changes: Mapping[Stmt, Stmt | None], around: Container[Stmt] | None
) -> Stmt | None:
    """A statement after changes, all of them in statements `around` them, if these are known."""
    if statement in changes:
        return changes[statement]
    if around is not None and statement not in around:
        return statement
    if isinstance(statement, For):
        body = _replace(statement.body, changes, around)
        if body is statement.body:
            return statement
        return None if body is None else replace(statement, body=body)
    if isinstance(statement, SeqStmt):
        new = [_replace(item, changes, around) for item in statement.seq]
        if all(map(is_, new, statement.seq)):
            return statement
        kept = [item for item in new if item is not None]
        return sequence(*kept) if kept else None
    updates: dict[str, Stmt | None] = {}
    for name in _BODIES.get(type(statement), ()):
        old = getattr(statement, name)
        new_body = None if old is None else _replace(old, changes, around)
        if new_body is not old:
            updates[name] = new_body
    if not updates:
        return statement
    # A block without init and an if without else remain.
    if any(new is None for name, new in updates.items() if name not in ("init", "else_case")):
        return _without_body(statement, updates)
    return replace(statement, **updates)


def _without_body(statement: Stmt, updates: Mapping[str, Stmt | None]) -> Stmt | None:
    """What is left of a statement that loses its body: the other branch of an `if`, or nothing."""
    if not isinstance(statement, IfThenElse):
        return None
    other = updates.get("else_case", statement.else_case)
    return other and IfThenElse(logical_not(statement.condition), other, span=statement.span)
