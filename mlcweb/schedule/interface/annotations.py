"""Notes on blocks and loops, and marks in the trace."""

from __future__ import annotations

from typing import Any

from mlcweb.schedule.instruction import BlockRV, InstructionKind, LoopRV, register_kind
from mlcweb.schedule.interface.queries import QueryMethods
from mlcweb.schedule.primitives import (
    annotation,
)
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import PrimExpr

for _kind in (
    InstructionKind(
        "Annotate",
        "annotate",
        ("block_or_loop", "ann_val"),
        ("ann_key",),
        printed_order=("block_or_loop", "ann_key", "ann_val"),
    ),
    InstructionKind("Unannotate", "unannotate", ("block_or_loop",), ("ann_key",)),
    InstructionKind("EnterPostproc", "enter_postproc"),
):
    register_kind(_kind)


class AnnotationMethods(QueryMethods):
    """Notes on blocks and loops, and marks in the trace."""

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

    def _annotation_value(self, value: Any) -> Any:
        if isinstance(value, PrimExpr):
            resolved = self._resolved(value)
            number = constant_value(resolved)
            return resolved if number is None else number
        if isinstance(value, (list, tuple)):
            return [self._annotation_value(item) for item in value]
        return value
