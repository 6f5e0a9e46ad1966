"""What methods of a model take and give back besides tensors: state, and the order of printing."""

from __future__ import annotations

from typing import ClassVar

from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.op.base import null_value
from mlcweb.relax.struct_info import ObjectStructInfo


class Effect:
    """State of a model besides its parameters, which its methods take and give back."""

    effect: E.Var | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[E.Var]:
        """The state at first."""
        raise NotImplementedError

    def create(self, name_hint: str) -> list[E.Var]:
        """Parameters for the state."""
        raise NotImplementedError

    def set_state(self, state_vars: list[E.Var]) -> None:
        """Take the state that a method begins with."""
        raise NotImplementedError

    def finalize(self) -> list[E.Var]:
        """The state that a method ends with."""
        raise NotImplementedError

    def to(self, dtype: str | None = None) -> None:
        """Change the element type."""


class IOEffect(Effect):
    """The order of what is printed."""

    current: ClassVar[IOEffect | None] = None
    """That of the method that is being traced."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[E.Var]:
        return [builder.emit(null_value(), f"{name_hint}.io")]

    def create(self, name_hint: str) -> list[E.Var]:
        self.effect = E.Var(f"{name_hint}.io", ObjectStructInfo())
        return [self.effect]

    def set_state(self, state_vars: list[E.Var]) -> None:
        (self.effect,) = state_vars
        IOEffect.current = self

    def finalize(self) -> list[E.Var]:
        result, self.effect = self.effect, None
        return [] if result is None else [result]
