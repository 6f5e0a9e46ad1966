"""`nn.KVCache`: the keys (or values) of attention to all tokens so far, as state of a model."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax import expr as E
from mlcweb.relax import op as R
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.nn.effects import Effect
from mlcweb.relax.frontend.nn.tensor import Tensor, builder, get_default_dtype
from mlcweb.relax.op.inplace import call_inplace_packed
from mlcweb.relax.struct_info import ObjectStructInfo, TensorStructInfo
from mlcweb.tir.expr import PrimExpr

_PREFIX = "vm.builtin.attention_kv_cache_"


class KVCache(Effect):
    """Rows of one shape, as (heads, size of a head), which are appended as tokens come.

    `init_seq_len` is how many rows there is memory for at first.
    """

    def __init__(
        self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None
    ) -> None:
        self.init_seq_len = init_seq_len
        self.unit_shape = [int(n) for n in unit_shape]
        self.dtype = dtype or get_default_dtype()

    def emit_init(  # type: ignore[override]
        self, name_hint: str, bb: BlockBuilder
    ) -> list[E.Var]:
        shape = E.ShapeExpr([self.init_seq_len, *self.unit_shape])
        return [
            bb.emit(
                R.call_pure_packed(
                    f"{_PREFIX}create", R.zeros(shape, self.dtype), shape, E.PrimValue(0),
                    sinfo_args=[ObjectStructInfo()],
                ),
                name_hint,
            )
        ]  # fmt: skip

    def create(self, name_hint: str) -> list[E.Var]:
        return [E.Var(name_hint, ObjectStructInfo())]

    def set_state(self, state_vars: list[E.Var]) -> None:
        (self.effect,) = state_vars

    def finalize(self) -> list[E.Var]:
        state, self.effect = self._state(), None
        return [state]

    def to(self, dtype: str | None = None) -> None:
        self.dtype = dtype or self.dtype

    def _state(self) -> E.Var:
        if self.effect is None:
            raise RuntimeError(
                "A KVCache is state of methods that are traced with effects, not of those with "
                'effect_mode="none"'
            )
        return self.effect

    def append(self, new_element: Tensor) -> None:
        """Append rows: a tensor whose first dimension counts them."""
        if new_element.dtype != self.dtype:
            raise TypeError(
                f'KVCache has been set to use dtype "{self.dtype}", but got "{new_element.dtype}"'
            )
        call = call_inplace_packed(
            f"{_PREFIX}append", self._state(), new_element._expr,
            inplace_indices=[0], sinfo_args=[ObjectStructInfo()],
        )  # fmt: skip
        self.effect = builder().emit(call)

    def view(self, seq_len: int | PrimExpr) -> Tensor:
        """All rows; `seq_len` is how many there are then."""
        shape = E.ShapeExpr([seq_len, *self.unit_shape])
        call = R.call_pure_packed(
            f"{_PREFIX}view", self._state(), shape,
            sinfo_args=[TensorStructInfo(shape, self.dtype)],
        )  # fmt: skip
        return Tensor(_expr=builder().emit(call))
