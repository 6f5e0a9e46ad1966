"""The random variables of a schedule, and the loops, blocks and integers that they stand for."""

from __future__ import annotations

from operator import index
from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.schedule.argument_types import checked
from mlcweb.schedule.instruction import BlockRV, ExprRV, Location, LoopRV, SpecialLocation
from mlcweb.schedule.references import StmtSRef
from mlcweb.schedule.state import Place, ScheduleState
from mlcweb.tir.arithmetic import const
from mlcweb.tir.dtype import is_integer
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockIdentity, For
from mlcweb.tir.substitute import substitute, variables_in


class Resolver:
    """A program, and what the random variables of its schedule stand for in it."""

    _state: ScheduleState
    _table: dict[Any, BlockIdentity | Location | int]
    _function: str | None
    """The function that `get_block` looks in by default."""

    @property
    def mod(self) -> IRModule:
        """The module as transformed so far."""
        return self._state.module

    @property
    def state(self) -> ScheduleState:
        """The immutable state behind `mod`."""
        return self._state

    @property
    def func_working_on(self) -> GlobalVar | None:
        return self.mod.get_global_var(self._function) if self._function else None

    @checked
    def work_on(self, func_name: str) -> None:
        """Make `func_name` the function that `get_block` looks in by default."""
        self._function = self.mod.get_global_var(func_name).name_hint

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
        """A block that may be given by its name."""
        raise NotImplementedError

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
        constants: dict[Var, PrimExpr] = {}
        for var in variables_in(value):
            number = self._table.get(var)
            if isinstance(number, int):
                constants[var] = const(number, var.dtype)
        return Analyzer({}).simplify(substitute(value, constants))

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
