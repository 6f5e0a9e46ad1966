"""Scans: tensors whose elements along the first axis are computed from those before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.array import Array, ArrayOf
from mlcweb.ir.node import definition, node, reference
from mlcweb.te.errors import ExpressionError
from mlcweb.te.operation import Operation, distinct
from mlcweb.te.tag import current_tag
from mlcweb.te.tensor import Tensor
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import Var
from mlcweb.tir.stmt import IterType, IterVar


@node
class ScanOp(Operation):
    """Output `k` begins with `init[k]`; then `update[k]` computes its next elements from those
    before them, which it reads from `state_placeholder[k]`."""

    scan_axis: IterVar = definition()
    init: ArrayOf[Tensor] = reference()
    update: ArrayOf[Tensor] = reference()
    state_placeholder: ArrayOf[Tensor] = reference()
    inputs: ArrayOf[Tensor] = reference()

    @property
    def num_outputs(self) -> int:
        return len(self.update)

    @property
    def input_tensors(self) -> Array[Tensor]:
        return distinct((*self.init, *self.update))

    def output(self, index: int = 0) -> Tensor:
        state = self.state_placeholder[index]
        return Tensor(state.shape, dtypes.DataType(state.dtype), self, index)


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """A tensor by a recurrence along its first axis, or several by one.

    `create_prim_func` takes no scans, as in TVM: there, loops over elements are written with
    @T.prim_func, or with `te.extern`.

    Args:
        init: the first elements.
        update: the elements of the whole shape, by those of `state_placeholder` before them.
        state_placeholder: a placeholder for the result itself, of its shape.
        inputs: what `update` reads beside it.

    Returns: the Tensor, or a list of them where there are several.
    """
    first, later, state = map(_tensors, (init, update, state_placeholder))
    if not len(first) == len(later) == len(state):
        raise ExpressionError(
            f'te.scan "{name}": init, update and state_placeholder must have the same length, not '
            f"{len(first)}, {len(later)} and {len(state)}"
        )
    for one in zip(first, later, state, strict=True):
        _check(name, *one)
    low, high = first[0].shape[0], later[0].shape[0]
    axis = IterVar(Range(low, high), Var(f"{name}.idx", high.dtype), IterType.ORDERED)
    operation = ScanOp(
        name, axis, first, later, state, _tensors(() if inputs is None else inputs),
        tag=tag or current_tag(), attrs=dict(attrs or {}),
    )  # fmt: skip
    outputs = [operation.output(index) for index in range(len(later))]
    return outputs[0] if len(outputs) == 1 else outputs


def _tensors(value: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _check(name: str, init: Tensor, update: Tensor, state: Tensor) -> None:
    """Refuses tensors that are not of one type, and of one shape but for how many elements come
    first."""
    if not init.ndim == update.ndim == state.ndim != 0:
        raise ExpressionError(
            f'te.scan "{name}": init, update and state_placeholder have as many dimensions, not '
            f"{init.ndim}, {update.ndim} and {state.ndim}"
        )
    if not init.dtype == update.dtype == state.dtype:
        raise ExpressionError(
            f'te.scan "{name}": init, update and state_placeholder are of one type, not of '
            f"{init.dtype}, {update.dtype} and {state.dtype}"
        )
    analyzer = Analyzer()
    pairs = [*zip(update.shape, state.shape, strict=True)]
    pairs += zip(init.shape[1:], state.shape[1:], strict=True)
    if not all(analyzer.can_prove_equal(one, other) for one, other in pairs):
        raise ExpressionError(
            f'te.scan "{name}": update {list(update.shape)} has the shape of the state '
            f"{list(state.shape)}, init {list(init.shape)} the same but for its first extent"
        )
