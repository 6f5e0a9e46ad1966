"""What a schedule has besides its primitives: state, trace, random variables, errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.errors import nesting_limit
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import report_step
from mlcweb.schedule.argument_types import type_test, wrong_type
from mlcweb.schedule.errors import DETAIL, RENDER_LEVELS, ScheduleError
from mlcweb.schedule.instruction import BlockRV, Instruction, InstructionKind, kind_of
from mlcweb.schedule.resolver import Resolver
from mlcweb.schedule.sampling import RandomState
from mlcweb.schedule.state import ScheduleState
from mlcweb.schedule.trace import Trace
from mlcweb.tir.expr import Var
from mlcweb.tir.fresh_copy import each_once
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import BlockIdentity


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one instruction made of a schedule: the state after it, what was recorded, and what its
    random variables stand for."""

    state: ScheduleState
    inst: Instruction
    decision: Any
    values: tuple[BlockIdentity | Var | int | None, ...]


class ScheduleBase(Resolver, metaclass=NamedClass):
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
        self._table = {}
        self._function = _default_function(module)
        self.error_render_level = error_render_level

    @property
    def original(self) -> IRModule:
        """The module before the first step."""
        return self._original

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return self._trace

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
    def _perform(self, kind: InstructionKind, arguments: dict[str, Any]) -> Any:
        """Resolve the arguments of a primitive's method, carry it out and record it; what the
        method returns."""
        for name, annotation in kind.signature:
            if not type_test(annotation)(arguments[name]):
                raise wrong_type(kind.method, name, arguments[name], annotation)
        try:
            inputs, attrs, taken = self._take(kind, arguments)
            returned: Any
            if kind.starred is None:
                returned = kind.function(self._state, **taken)
            else:
                returned = kind.function(self._state, *taken.pop(kind.starred), **taken)
        except ScheduleError as error:
            if error.primitive:
                raise
            raise error.explained(kind.title, self.mod, self.error_render_level) from None
        decision = result = None
        outputs = ()
        if kind.result is None:
            self._state = returned
        else:
            if kind.sampling:
                returned, decision = returned
            elif not kind.pure:
                self._state, returned = returned
            if kind.returns_list:
                result = [self._new(kind.result, value) for value in returned]
                outputs = tuple(result)
            else:
                result = self._new(kind.result, returned)
                outputs = (result,)
        self._trace.append(Instruction(kind, inputs, attrs, outputs), decision)
        if not kind.is_pure:
            report_step(kind.title, self._state.module)
        return result

    def _take(
        self, kind: InstructionKind, arguments: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], dict[str, Any]]:
        """What is recorded of arguments, as inputs and as attributes, and what the primitive gets.
        A TypeError names the argument."""
        inputs: list[Any] = []
        attrs: list[Any] = []
        taken: dict[str, Any] = {}
        if (names := arguments.get("consumer_blocks")) is not None:
            # TVM looks these up before the block, and the trace has the steps in that order.
            arguments = {**arguments, "consumer_blocks": [self._as_block(name) for name in names]}
        for name, role, is_input in kind.parameters:
            try:
                recorded, taken[name] = role.take(self, arguments[name], taken)
            except TypeError as error:
                error.args = (f"Schedule.{kind.method}, {name}: {error}",)
                raise
            values = inputs if is_input else attrs
            if role.width == 1:
                values.append(recorded)
            else:
                values.extend(recorded)
        if kind.sampling:
            taken["decision"], taken["random"] = arguments["decision"], self._random
        return tuple(inputs), tuple(attrs), taken

    def _as_block(self, block: BlockRV | str) -> BlockRV:
        if isinstance(block, str):
            return self._perform(kind_of("GetBlock"), {"name": block, "func_name": None})
        return block


def _default_function(module: IRModule) -> str | None:
    names = [v.name_hint for v, f in module.functions.items() if isinstance(f, PrimFunc)]
    if "main" in names:
        return "main"
    return names[0] if len(names) == 1 else None
