"""Schedule: transforms a module step by step and records the steps in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mlcweb.ir.display import publish
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.tir.arithmetic import const, constant_value
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.schedule import sampling
from mlcweb.tir.schedule.errors import DETAIL, NotFoundError, ScheduleError
from mlcweb.tir.schedule.instruction import (
    BlockRV,
    ExprRV,
    Instruction,
    InstructionKind,
    LoopRV,
    kind_of,
    substitute_variables,
)  # fmt: skip
from mlcweb.tir.schedule.primitives import (
    annotation,
    cache,
    compute_location,
    inline,
    loops,
    reduction,
)
from mlcweb.tir.schedule.random_state import RandomState
from mlcweb.tir.schedule.scopes import is_output_block, scope_at
from mlcweb.tir.schedule.state import (
    BlockPlace,
    LoopPlace,
    Place,
    ScheduleState,
    loops_above,
)  # fmt: skip
from mlcweb.tir.schedule.trace import Trace
from mlcweb.tir.stmt import Block, BlockIdentity, For

Result = TypeVar("Result")


class Schedule:
    """A program being transformed, with TVM's interface.

    `mod` is a module or a single function. `seed` makes sampling repeatable. `error_render_level`
    says how much of the program a ScheduleError shows: "detail", "fast" or "none".
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = DETAIL,
        enable_check: bool = True,
    ) -> None:
        module = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod.copy()
        self._original = module
        self._state = ScheduleState(module)
        self._trace = Trace()
        self._random = RandomState(seed)
        self._table: dict[Any, BlockIdentity | Var | int] = {}
        self._function: str | None = _default_function(module)
        self.debug_mask = debug_mask
        self.error_render_level = error_render_level
        self.enable_check = enable_check

    @property
    def mod(self) -> IRModule:
        """The module as transformed so far."""
        return self._state.module

    @property
    def original(self) -> IRModule:
        """The module before the first step."""
        return self._original

    @property
    def state(self) -> ScheduleState:
        """The immutable state behind `mod`."""
        return self._state

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return self._trace

    @property
    def func_working_on(self) -> GlobalVar | None:
        return self.mod.get_global_var(self._function) if self._function else None

    def work_on(self, func_name: str) -> None:
        """Make `func_name` the function that `get_block` looks in by default."""
        self._function = self.mod.get_global_var(func_name).name_hint

    def copy(self) -> Schedule:
        """A schedule of its own in the same state; its random numbers are forked from this one's.

        Random variables of this schedule are known to the copy.
        """
        other = Schedule(
            self.mod,
            seed=self.fork_seed(),
            debug_mask=self.debug_mask,
            error_render_level=self.error_render_level,
            enable_check=self.enable_check,
        )
        other._original = self._original
        other._state = self._state
        other._trace = self._trace.copy()
        other._table = dict(self._table)
        other._function = self._function
        return other

    def seed(self, seed: int) -> None:
        """Restart the random numbers."""
        self._random.seed(seed)

    def fork_seed(self) -> int:
        """A seed for an independent schedule."""
        return self._random.fork()

    def show(self, *args: Any, **options: Any) -> None:
        """Show the program and the trace."""
        publish(self.mod)
        publish(self.trace)

    def get(self, rand_var_or_sref: BlockRV | LoopRV | ExprRV | int) -> Block | For | int:
        """What a random variable stands for: a block, a loop or an integer."""
        if isinstance(rand_var_or_sref, BlockRV):
            return self._block_place(rand_var_or_sref).block
        if isinstance(rand_var_or_sref, LoopRV):
            return self._loop_place(rand_var_or_sref).loop
        return self._integer(rand_var_or_sref)

    def remove_rv(self, rand_var: BlockRV | LoopRV | ExprRV) -> None:
        """Forget a random variable."""
        del self._table[rand_var]

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates, drawn with the given probabilities."""
        candidates = [int(constant_value(c) or 0) for c in candidates]
        probs = [float(constant_value(p) or 0.0) for p in probs]
        chosen = self._guard("sample-categorical", lambda: sampling.categorical(
            self._random, candidates, probs, decision
        ))  # fmt: skip
        rv = self._new_integer(candidates[chosen])
        self._record("SampleCategorical", (), (candidates, probs), (rv,), chosen)
        return rv

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` random factors whose product is the extent of the loop."""
        factors = self._guard("sample-perfect-tile", lambda: sampling.perfect_tile(
            self._random, self._loop_place(loop), n, max_innermost_factor, decision
        ))  # fmt: skip
        rvs = [self._new_integer(factor) for factor in factors]
        self._record("SamplePerfectTile", (loop,), (n, max_innermost_factor), rvs, factors)
        return list(rvs)

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name in a function ("root" is the function's root block)."""
        function = self._function_name(func_name)
        places = self._state.blocks_named(name, function)
        if len(places) != 1:
            self._guard("get-block", lambda: _block_not_found(self._state, name, function, places))
        rv = self._new_block(places[0].block.identity)
        self._record("GetBlock", (), (name, function), (rv,))
        return rv

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block up to the next block outside, outermost first."""
        block = self._as_block(block)
        found = loops_above(self._block_place(block))
        rvs = [self._new_loop(loop.loop_var) for loop in found]
        self._record("GetLoops", (block,), (), rvs)
        return rvs

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The outermost blocks below a block or loop."""
        target = self._as_block_or_loop(block_or_loop)
        return self._blocks("GetChildBlocks", target, self._state.child_blocks(self._place(target)))

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what a block reads."""
        block = self._as_block(block)
        place = self._block_place(block)
        scope = scope_at(self._state, self._state.scope_of(place))
        return self._blocks("GetProducers", block, scope.producers(place))

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what a block writes."""
        block = self._as_block(block)
        place = self._block_place(block)
        scope = scope_at(self._state, self._state.scope_of(place))
        return self._blocks("GetConsumers", block, scope.consumers(place))

    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks directly inside a block that write buffers living on outside of it."""
        block = self._as_block(scope_block)
        scope = scope_at(self._state, self._block_place(block))
        found = [child for child in scope.children if is_output_block(self._state, child)]
        return self._blocks("GetOutputBlocks", block, found)

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[ExprRV | int | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Split a loop into nested loops; one factor may be None. See `primitives.loops.split`."""
        given = [None if f is None else self._factor(f) for f in factors]
        variables = self._apply("split", lambda state: loops.split(
            state, self._loop(loop), given, preserve_unit_iters, disable_predication
        ))  # fmt: skip
        rvs = [self._new_loop(variable) for variable in variables]
        attrs = (bool(preserve_unit_iters), bool(disable_predication))
        self._record("Split", (loop, *(_recorded(f) for f in factors)), attrs, rvs)
        return rvs

    def fuse(self, *loops_: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Fuse nested loops into one. See `primitives.loops.fuse`."""
        variable = self._apply("fuse", lambda state: loops.fuse(
            state, [self._loop(loop) for loop in loops_], preserve_unit_iters
        ))  # fmt: skip
        rv = self._new_loop(variable)
        self._record("Fuse", loops_, (bool(preserve_unit_iters),), (rv,))
        return rv

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put nested loops into a new order. See `primitives.loops.reorder`."""
        self._change("reorder", lambda state: loops.reorder(
            state, [self._loop(loop) for loop in ordered_loops]
        ))  # fmt: skip
        self._record("Reorder", ordered_loops)

    def parallel(self, loop: LoopRV) -> None:
        """Run a loop's iterations in parallel. See `primitives.annotation.parallel`."""
        self._change("parallel", lambda state: annotation.parallel(state, self._loop(loop)))
        self._record("Parallel", (loop,))

    def vectorize(self, loop: LoopRV) -> None:
        """Run a loop's iterations as vector lanes. See `primitives.annotation.vectorize`."""
        self._change("vectorize", lambda state: annotation.vectorize(state, self._loop(loop)))
        self._record("Vectorize", (loop,))

    def unroll(self, loop: LoopRV) -> None:
        """Repeat a loop's body in the code. See `primitives.annotation.unroll`."""
        self._change("unroll", lambda state: annotation.unroll(state, self._loop(loop)))
        self._record("Unroll", (loop,))

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Run a loop on a thread axis. See `primitives.annotation.bind`."""
        self._change("bind", lambda state: annotation.bind(state, self._loop(loop), thread_axis))
        self._record("Bind", (loop,), (thread_axis,))

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Read a buffer through a copy in another storage scope. See `primitives.cache`."""
        return self._cache(
            "CacheRead", cache.cache_read, block, read_buffer_index, storage_scope, consumer_blocks
        )

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Write a buffer through a copy in another storage scope. See `primitives.cache`."""
        return self._cache(
            "CacheWrite", cache.cache_write, block, write_buffer_index, storage_scope,
            consumer_blocks,
        )  # fmt: skip

    def _cache(
        self,
        kind: str,
        primitive: Callable[..., tuple[ScheduleState, BlockIdentity]],
        block: BlockRV | str,
        buffer: int | str | Buffer,
        storage_scope: str,
        consumers: Sequence[BlockRV | str] | None,
    ) -> BlockRV:
        block = self._as_block(block)
        readers = [self._as_block(consumer) for consumer in consumers or ()]
        name = "cache-read" if kind == "CacheRead" else "cache-write"
        index = self._guard(name, lambda: _buffer_index(self._block_place(block), buffer, kind))
        made = self._apply(name, lambda state: primitive(
            state, self._block(block), index, storage_scope, [self._block(r) for r in readers]
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record(kind, (block, readers), (index, storage_scope), (rv,))
        return rv

    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a producer under a loop of its consumers. See `primitives.compute_location`."""
        block = self._as_block(block)
        self._change("compute-at", lambda state: compute_location.compute_at(
            state, self._block(block), self._loop(loop), bool(preserve_unit_loops), index
        ))  # fmt: skip
        self._record("ComputeAt", (block, loop), (bool(preserve_unit_loops), index))

    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Move a consumer under a loop of its producers. See `primitives.compute_location`."""
        block = self._as_block(block)
        self._change("reverse-compute-at", lambda state: compute_location.reverse_compute_at(
            state, self._block(block), self._loop(loop), bool(preserve_unit_loops), index
        ))  # fmt: skip
        self._record("ReverseComputeAt", (block, loop), (bool(preserve_unit_loops), index))

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's values where they are read. See `primitives.inline`."""
        block = self._as_block(block)
        self._change(
            "compute-inline", lambda state: inline.compute_inline(state, self._block(block))
        )
        self._record("ComputeInline", (block,))

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Move a block's computation into its only producer. See `primitives.inline`."""
        block = self._as_block(block)
        self._change(
            "reverse-compute-inline",
            lambda state: inline.reverse_compute_inline(state, self._block(block)),
        )
        self._record("ReverseComputeInline", (block,))

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Split the init off a reduction block. See `primitives.reduction`."""
        block = self._as_block(block)
        made = self._apply("decompose-reduction", lambda state: reduction.decompose_reduction(
            state, self._block(block), self._loop(loop)
        ))  # fmt: skip
        rv = self._new_block(made)
        self._record("DecomposeReduction", (block, loop), (), (rv,))
        return rv

    def annotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str, ann_val: Any) -> None:
        """Note a value on a block or loop; a key that is there already keeps its value."""
        target = self._as_block_or_loop(block_or_loop)
        value = self._annotation_value(ann_val)
        self._change("annotate", lambda state: annotation.annotate(
            state, self._place(target), ann_key, value
        ))  # fmt: skip
        self._record("Annotate", (target, ann_val), (ann_key,))

    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Remove a note from a block or loop; an IndexError where there is none."""
        target = self._as_block_or_loop(block_or_loop)
        self._change("unannotate", lambda state: annotation.unannotate(
            state, self._place(target), ann_key
        ))  # fmt: skip
        self._record("Unannotate", (target,), (ann_key,))

    def enter_postproc(self) -> None:
        """Mark in the trace that what follows is post-processing. The program stays the same."""
        self._record("EnterPostproc")

    def replay(
        self, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
    ) -> tuple[Any, ...]:
        """Carry out an instruction as the method that it records would; return its outputs."""
        inst = Instruction(kind, tuple(inputs), tuple(attrs), ())
        arguments = inst.arguments()
        starred = arguments.pop(kind.inputs[-1][1:]) if _takes_loops(kind) else ()
        if kind.sampling:
            arguments["decision"] = decision
        result = getattr(self, kind.method)(*starred, **arguments)
        if result is None:
            return ()
        return tuple(result) if isinstance(result, (list, tuple)) else (result,)

    def _guard(self, primitive: str, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except ScheduleError as error:
            if error.primitive:
                raise
            raise error.explained(primitive, self.mod, self.error_render_level) from None

    def _apply(
        self, primitive: str, action: Callable[[ScheduleState], tuple[ScheduleState, Result]]
    ) -> Result:
        self._state, result = self._guard(primitive, lambda: action(self._state))
        return result

    def _change(self, primitive: str, action: Callable[[ScheduleState], ScheduleState]) -> None:
        self._state = self._guard(primitive, lambda: action(self._state))

    def _record(
        self,
        kind: str,
        inputs: Sequence[Any] = (),
        attrs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        decision: Any = None,
    ) -> None:
        inst = Instruction(kind_of(kind), tuple(inputs), tuple(attrs), tuple(outputs))
        self._trace.append(inst, decision)

    def _blocks(
        self, kind: str, target: BlockRV | LoopRV, places: Sequence[BlockPlace]
    ) -> list[BlockRV]:
        rvs = [self._new_block(place.block.identity) for place in places]
        self._record(kind, (target,), (), rvs)
        return rvs

    def _new_block(self, identity: BlockIdentity) -> BlockRV:
        rv = BlockRV()
        self._table[rv] = identity
        return rv

    def _new_loop(self, variable: Var) -> LoopRV:
        rv = LoopRV()
        self._table[rv] = variable
        return rv

    def _new_integer(self, value: int) -> Var:
        rv = Var(f"v{len(self._table)}", "int32")
        self._table[rv] = value
        return rv

    def _lookup(self, rv: Any, expected: type, what: str) -> Any:
        value = self._table.get(rv)
        if not isinstance(value, expected):
            raise ValueError(
                f"{rv!r} is not a {what} of this schedule"
                + ("" if value is None else f"; it stands for a {type(value).__name__}")
            )
        return value

    def _block(self, rv: BlockRV) -> BlockIdentity:
        return self._lookup(rv, BlockIdentity, "block")

    def _loop(self, rv: LoopRV) -> Var:
        return self._lookup(rv, Var, "loop")

    def _block_place(self, rv: BlockRV) -> BlockPlace:
        return self._state.block(self._block(rv))

    def _loop_place(self, rv: LoopRV) -> LoopPlace:
        return self._state.loop(self._loop(rv))

    def _place(self, rv: BlockRV | LoopRV) -> Place:
        return self._block_place(rv) if isinstance(rv, BlockRV) else self._loop_place(rv)

    def _as_block(self, block: BlockRV | str) -> BlockRV:
        if isinstance(block, str):
            return self.get_block(block)
        if isinstance(block, BlockRV):
            return block
        raise TypeError(
            f"A block is needed: what sch.get_block returns, or a name; not {_describe(block)}"
        )

    def _as_block_or_loop(self, target: BlockRV | LoopRV | str) -> BlockRV | LoopRV:
        return target if isinstance(target, LoopRV) else self._as_block(target)

    def _integer(self, value: ExprRV | int) -> int:
        number = constant_value(value)
        if number is not None:
            return int(number)
        resolved = self._factor(value)
        if isinstance(resolved, IntImm):
            return resolved.value
        raise ValueError(f"{value!r} is not known to this schedule")

    def _factor(self, value: ExprRV | int) -> PrimExpr | int:
        """An integer, or an expression with the random variables in it replaced by their values."""
        if not isinstance(value, PrimExpr):
            return int(value)

        def resolve(var: Var) -> PrimExpr:
            known = self._table.get(var)
            return const(known, var.dtype) if isinstance(known, int) else var

        resolved = substitute_variables(value, resolve)
        from mlcweb.arith import Analyzer

        return Analyzer({}).simplify(resolved)

    def _annotation_value(self, value: Any) -> Any:
        if isinstance(value, PrimExpr):
            resolved = self._factor(value)
            number = constant_value(resolved)
            return resolved if number is None else number
        if isinstance(value, (list, tuple)):
            return [self._annotation_value(item) for item in value]
        return value

    def _function_name(self, func_name: str | None) -> str:
        if func_name is not None:
            if func_name not in self.mod:
                names = ", ".join(f'"{var.name_hint}"' for var in self.mod.functions)
                raise ValueError(f'The module has no function "{func_name}"; it has {names}')
            return func_name
        if self._function is None:
            names = ", ".join(f'"{var.name_hint}"' for var in self.mod.functions)
            raise ValueError(
                f"get_block does not know which of the functions {names} to work on: pass "
                "func_name, or call sch.work_on(func_name) first"
            )
        return self._function


def _default_function(module: IRModule) -> str | None:
    names = [v.name_hint for v, f in module.functions.items() if isinstance(f, PrimFunc)]
    if "main" in names:
        return "main"
    return names[0] if len(names) == 1 else None


def _takes_loops(kind: InstructionKind) -> bool:
    return kind.positional and bool(kind.inputs) and kind.inputs[-1].startswith("*")


def _recorded(factor: Any) -> Any:
    number = constant_value(factor) if factor is not None else None
    return factor if number is None else int(number)


def _describe(value: Any) -> str:
    return "a loop" if isinstance(value, LoopRV) else repr(value)


def _block_not_found(
    state: ScheduleState, name: str, function: str, places: Sequence[BlockPlace]
) -> None:
    if places:
        raise NotFoundError(
            f'There are {len(places)} blocks named "{name}" in function "{function}"',
            [place.realize for place in places],
            "give the blocks names of their own",
        )
    names = [p.block.name_hint for p in state.index.blocks.values() if p.function == function]
    raise NotFoundError(
        f'Cannot find a block with the name "{name}" in function "{function}"',
        advice="the blocks there: " + ", ".join(f'"{n}"' for n in names),
    )


def _buffer_index(place: BlockPlace, buffer: int | str | Buffer, kind: str) -> int:
    if isinstance(buffer, int):
        return buffer
    regions = place.block.reads if kind == "CacheRead" else place.block.writes
    for index, region in enumerate(regions):
        if region.buffer is buffer or region.buffer.name == buffer:
            return index
    verb = "reads" if kind == "CacheRead" else "writes"
    wanted = buffer if isinstance(buffer, str) else buffer.name
    names = ", ".join(f'"{region.buffer.name}"' for region in regions) or "nothing"
    raise NotFoundError(
        f'The block "{place.block.name_hint}" does not {verb[:-1]} a buffer "{wanted}"; '
        f"it {verb} {names}",
        [place.realize],
    )
