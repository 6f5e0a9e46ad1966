"""What a schedule has besides its primitives: state, trace, random variables, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self

from mlcweb.arith import Analyzer
from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.transform import report_step
from mlcweb.schedule.argument_types import checked, type_test, wrong_type
from mlcweb.schedule.errors import DETAIL, RENDER_LEVELS, ScheduleError
from mlcweb.schedule.instruction import (
    BlockRV,
    ExprRV,
    Instruction,
    InstructionKind,
    LoopRV,
    kind_of,
)  # fmt: skip
from mlcweb.schedule.primitives.compute_location import Location, SpecialLocation
from mlcweb.schedule.sampling import RandomState
from mlcweb.schedule.state import Place, ScheduleState, StmtSRef
from mlcweb.schedule.trace import Trace
from mlcweb.tir.arithmetic import const
from mlcweb.tir.dtype import is_integer
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.fresh_copy import each_once
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockIdentity, For
from mlcweb.tir.substitute import substitute, variables_in


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one instruction made of a schedule: the state after it, what was recorded, and what its
    random variables stand for."""

    state: ScheduleState
    inst: Instruction
    decision: Any
    values: tuple[BlockIdentity | Var | int | None, ...]


class ScheduleBase(metaclass=NamedClass):
    """The state of a schedule, and how a primitive is carried out on it."""

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = DETAIL,
        enable_check: bool = True,
    ) -> None:
        if error_render_level not in RENDER_LEVELS:
            raise ValueError(
                f"error_render_level is {error_render_level!r}, and not one of "
                + ", ".join(map(repr, RENDER_LEVELS))
            )
        module = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else each_once(mod)
        self._original = module
        state = ScheduleState(module, debug_mask=debug_mask, enable_check=enable_check)
        self._state = state.copy()  # It is the schedule's alone.
        self._trace = Trace()
        self._random = RandomState(seed)
        self._table: dict[Any, BlockIdentity | Var | int] = {}
        self._function: str | None = _default_function(module)
        self.error_render_level = error_render_level

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

    @checked
    def work_on(self, func_name: str) -> None:
        """Make `func_name` the function that `get_block` looks in by default."""
        self._function = self.mod.get_global_var(func_name).name_hint

    def copy(self) -> Self:
        """A schedule of its own in the same state; its random numbers are forked from this one's.

        Random variables of this schedule are known to the copy.
        """
        other = type(self)(
            self.mod,
            seed=self.fork_seed(),
            debug_mask=self._state.debug_mask,
            error_render_level=self.error_render_level,
            enable_check=self._state.enable_check,
        )
        other._original = self._original
        other._state = self._state.copy()
        other._trace = self._trace.copy()
        other._table = dict(self._table)
        other._function = self._function
        return other

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def seed(self, seed: int) -> None:
        """Restart the random numbers."""
        self._random.seed(seed)

    def fork_seed(self) -> int:
        """A seed for an independent schedule."""
        return self._random.fork()

    def show(self, *args: Any, dialect: str | None = None, **options: Any) -> None:
        """Show the program and the trace."""
        self.mod.show(dialect=dialect or "tir")
        self.trace.show(dialect=dialect)

    def get(
        self, rand_var_or_sref: BlockRV | LoopRV | ExprRV | StmtSRef | int
    ) -> Block | For | int:
        """What a random variable or reference stands for: a block, a loop or an integer."""
        if isinstance(rand_var_or_sref, StmtSRef):
            if rand_var_or_sref.stmt is None:
                raise ValueError("The reference is to a statement that is no longer in the program")
            return rand_var_or_sref.stmt
        if isinstance(rand_var_or_sref, (BlockRV, LoopRV)):
            return self._place(rand_var_or_sref).node
        return self._integer(rand_var_or_sref)

    def get_sref(self, rand_var_or_stmt: BlockRV | LoopRV | Block | For) -> StmtSRef:
        """Where a block or loop stands in the present program: it, and what is around it. A sampled
        location that is no loop has a mark."""
        match self._table.get(rand_var_or_stmt):
            case SpecialLocation.INLINE:
                return StmtSRef.inline_mark()
            case SpecialLocation.ROOT:
                return StmtSRef.root_mark()
        if isinstance(rand_var_or_stmt, (BlockRV, LoopRV)):
            return self._state.reference(self._place(rand_var_or_stmt))
        return self._state.get_sref(rand_var_or_stmt)

    @checked
    def remove_rv(self, rand_var: BlockRV | LoopRV | ExprRV) -> None:
        """Forget a random variable."""
        if rand_var not in self._table:
            raise IndexError(
                f"{rand_var!r} is no random variable of this schedule; these are the loops, blocks "
                "and integers that its methods return"
            )
        del self._table[rand_var]

    def replay(
        self, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
    ) -> tuple[Any, ...]:
        """Carry out an instruction as the method that it records would; return its outputs."""
        arguments = kind.arguments(inputs, attrs)
        if kind.sampling:
            arguments["decision"] = decision
        result = self._perform(kind, arguments)
        if result is None:
            return ()
        return tuple(result) if isinstance(result, list) else (result,)

    def replay_step(
        self, kind: InstructionKind, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any
    ) -> tuple[tuple[Any, ...], Step | None]:
        """`replay`, and what it did; None where that is more, or less, than one instruction."""
        before = len(self._trace.insts)
        outputs = self.replay(kind, inputs, attrs, decision)
        if len(self._trace.insts) != before + 1:
            return outputs, None
        inst = self._trace.insts[-1]
        values = tuple([self._table.get(output) for output in inst.outputs])
        return outputs, Step(self._state, inst, self._trace.get_decision(inst), values)

    def take_over(self, step: Step) -> tuple[Any, ...]:
        """Carry out an instruction by what it did to a schedule in the same state with the same
        trace; return its outputs, which are the same random variables."""
        self._state = step.state
        self._trace.append(step.inst, step.decision)
        for output, value in zip(step.inst.outputs, step.values, strict=True):
            if value is not None:
                self._table[output] = value
        return step.inst.outputs

    def take_back(self, step: Step) -> None:
        """Undo the last step, if it has changed nothing of the program."""
        self._trace.pop()
        for output in step.inst.outputs:
            if output is not None:
                del self._table[output]

    @nesting_limit("scheduled")
    def _perform(self, kind: InstructionKind, given: dict[str, Any]) -> Any:
        """Resolve the arguments of a primitive's method, carry it out and record it; what the
        method returns."""
        for name, annotation in kind.signature:
            if not type_test(annotation)(given[name]):
                raise wrong_type(kind.method, name, given[name], annotation)
        try:
            inputs, attrs, taken = self._take(kind, given)
            made: Any
            if kind.starred is None:
                made = kind.function(self._state, **taken)
            else:
                made = kind.function(self._state, *taken.pop(kind.starred), **taken)
        except ScheduleError as error:
            if error.primitive:
                raise
            raise error.explained(kind.title, self.mod, self.error_render_level) from None
        decision = result = None
        outputs = ()
        if kind.result is None:
            self._state = made
        else:
            if kind.sampling:
                made, decision = made
            elif not kind.pure:
                self._state, made = made
            if kind.returns_list:
                result = [self._new(kind.result, value) for value in made]
                outputs = tuple(result)
            else:
                result = self._new(kind.result, made)
                outputs = (result,)
        self._trace.append(Instruction(kind, inputs, attrs, outputs), decision)
        if not kind.is_pure:
            report_step(kind.title, self._state.module)
        return result

    def _take(
        self, kind: InstructionKind, given: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]]:
        """What is recorded of arguments, as inputs and as attributes, and what the primitive gets.
        A TypeError names the argument."""
        inputs: list[Any] = []
        attrs: list[Any] = []
        taken: dict[str, Any] = {}
        if (names := given.get("consumer_blocks")) is not None:
            # TVM looks these up before the block, and the trace has the steps in that order.
            given = {**given, "consumer_blocks": [self._as_block(name) for name in names]}
        for name, role, is_input in kind.parameters:
            try:
                recorded, taken[name] = role.take(self, given[name], taken)
            except TypeError as error:
                error.args = (f"Schedule.{kind.method}, {name}: {error}",)
                raise
            values = inputs if is_input else attrs
            if role.width == 1:
                values.append(recorded)
            else:
                values.extend(recorded)
        if kind.sampling:
            taken["decision"], taken["random"] = given["decision"], self._random
        return tuple(inputs), tuple(attrs), taken

    def _new(self, result: type, value: Any) -> Any:
        """A new random variable that stands for a value; None for a factor to be inferred."""
        if value is None:
            return None
        rv = Var(f"v{len(self._table)}", "int32") if result is Var else result()
        self._table[rv] = value
        return rv

    def _block(self, rv: BlockRV) -> BlockIdentity:
        value = self._table.get(rv)
        if isinstance(value, BlockIdentity):
            return value
        raise self._unknown(rv, value, "block")

    def _loop(self, rv: LoopRV) -> Var:
        value = self._table.get(rv)
        if isinstance(value, Var):
            return value
        raise self._unknown(rv, value, "loop")

    def _unknown(self, rv: Any, value: Any, what: str) -> IndexError:
        return IndexError(
            f"{rv!r} is not a {what} of this schedule"
            + ("" if value is None else f"; it stands for a {type(value).__name__}")
        )

    def _location(self, rv: LoopRV) -> Location:
        value = self._table.get(rv) if isinstance(rv, LoopRV) else None
        return value if isinstance(value, SpecialLocation) else self._loop(rv)

    def _place(self, rv: BlockRV | LoopRV) -> Place:
        if isinstance(rv, BlockRV):
            return self._state.block(self._block(rv))
        return self._state.loop(self._loop(rv))

    def _as_block(self, block: BlockRV | str) -> BlockRV:
        if isinstance(block, str):
            return self._perform(kind_of("GetBlock"), {"name": block, "func_name": None})
        return block

    def _integer(self, value: ExprRV | int) -> int:
        resolved = self._factor(value)
        if isinstance(resolved, int):
            if resolved.bit_length() > 63:
                raise ValueError(f"{resolved} does not fit int64")
            return resolved
        if isinstance(resolved, IntImm):
            return resolved.value
        raise ValueError(f"{value!r} is not known to this schedule")

    def _factor(self, value: ExprRV | int) -> PrimExpr | int:
        """An integer, or an expression with the random variables in it replaced by their values."""
        if isinstance(value, PrimExpr) and is_integer(value.dtype):
            return self._resolved(value)
        number: Any = value
        try:
            return index(number)
        except TypeError:
            raise TypeError(f"{value!r} is not an integer") from None

    def _resolved(self, value: PrimExpr) -> PrimExpr:
        known: dict[Var, PrimExpr] = {}
        for var in variables_in(value):
            number = self._table.get(var)
            if isinstance(number, int):
                known[var] = const(number, var.dtype)
        return Analyzer({}).simplify(substitute(value, known))

    def _function_name(self, func_name: str | None) -> str:
        if func_name is not None:
            return self.mod.get_global_var(func_name).name_hint
        if self._function is None:
            names = ", ".join(f'"{var.name_hint}"' for var in self.mod.functions)
            raise ValueError(
                f"get_block does not know which function to be working on of {names}: pass "
                "func_name, or call sch.work_on(func_name) first"
            )
        return self._function


def _default_function(module: IRModule) -> str | None:
    names = [v.name_hint for v, f in module.functions.items() if isinstance(f, PrimFunc)]
    if "main" in names:
        return "main"
    return names[0] if len(names) == 1 else None
