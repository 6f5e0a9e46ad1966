"""ScheduleError: a transformation that was refused, with the program and the place marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlcweb.ir.errors import InternalError, TVMError
from mlcweb.ir.module import IRModule
from mlcweb.tir.stmt import Stmt

RENDER_LEVELS = DETAIL, FAST, NONE = "detail", "fast", "none"


REPLAY_ERRORS = (TVMError, ValueError, IndexError, TypeError)
"""What a step raises that does not fit the program on which it is replayed, or that is damaged."""


class ScheduleError(TVMError):
    """A schedule primitive cannot be applied without changing what the program means.

    `reason` says why, `advice` what would work, `marked` which statements are at fault; `short` is
    the reason at render level "fast", where TVM has one without names. The schedule adds the
    `primitive` and the program before it is raised to the user.
    """

    def __init__(
        self, reason: str, marked: Iterable[Stmt] = (), advice: str = "", short: str = ""
    ) -> None:
        self.reason = reason
        self.short = short
        self.advice = advice
        self.marked = tuple(marked)
        self.primitive = ""
        self.module: IRModule | None = None
        self.render_level = DETAIL
        super().__init__(reason)

    def explained(self, primitive: str, module: IRModule, render_level: str) -> ScheduleError:
        """This error, knowing in which primitive and program it arose."""
        self.primitive, self.module, self.render_level = primitive, module, render_level
        self.message = str(self)
        self.args = (self.message,)
        return self

    def __str__(self) -> str:
        if not self.primitive:
            return self.reason
        if self.render_level == NONE:
            return f"The schedule primitive '{self.primitive}' cannot be applied. (not rendered)"
        parts = [f"An error occurred in the schedule primitive '{self.primitive}'."]
        if self.render_level == DETAIL and self.module is not None:
            parts += ["", "The IR with diagnostic is:", _render(self.module, self.marked), ""]
        reason = self.reason if self.render_level == DETAIL else self.short or self.reason
        parts.append(f"Error message: {reason}")
        if self.advice:
            parts.append(f"What would work: {self.advice}")
        return "\n".join(parts)


def is_accepted(step: Callable[[], object]) -> bool:
    """Whether a step or a check raises no ScheduleError."""
    try:
        step()
    except ScheduleError:
        return False
    return True


class LoopError(ScheduleError):
    """The loops given do not have the shape or the place that the primitive needs."""


class ArgumentError(ScheduleError, InternalError, ValueError):
    """A map, an axis, an element type or a storage scope does not fit what it is given for. TVM
    has an InternalError for most of these, and a ValueError for the others."""


class FactorError(ArgumentError):
    """Factors that do not cover the loop, or cannot be inferred."""


class BindingError(ScheduleError):
    """A block's iterators are not bound to the loops one to one (not an affine binding)."""


class DataflowError(ScheduleError):
    """The dependences between blocks forbid the transformation."""


class BlockKindError(ScheduleError):
    """The block is not of the kind (complete, reduction, elementwise) that the primitive needs."""


class NotFoundError(ScheduleError):
    """There is no such block, function or buffer, or the name is ambiguous."""


class BufferNameError(NotFoundError, AssertionError):
    """A block accesses no such buffer; where a name says so, TVM's class is AssertionError."""


class StaleReferenceError(ScheduleError, ValueError):
    """A random variable stands for a loop or block that an earlier step replaced."""


class UnknownInstructionError(AttributeError, ValueError):
    """There is no instruction of a name: an AttributeError, as in TVM."""


class UnsupportedError(ScheduleError):
    """The request is for something that no target of this package can do."""


def _render(module: IRModule, marked: tuple[Stmt, ...]) -> str:
    """The program with each marked statement underlined, and numbered as TVM numbers them."""
    names = {
        statement: f"tir.{type(statement).__name__.removesuffix('Realize')}#{n}"
        for n, statement in enumerate(marked)
    }
    return module.script(underline=marked, obj_to_annotate=names, syntax_sugar=False)
