"""Schedule: transforms a module step by step and records the steps in a trace.

Its methods are made of the functions in `primitives`. What editors and type checkers are told of
them is in `schedule.pyi`, which `python -m tests.schedule.stub` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any

import mlcweb.schedule.primitives  # noqa: F401, which registers them
from mlcweb.ir.dialect import dialect_of
from mlcweb.schedule.argument_types import checked
from mlcweb.schedule.arguments import ROLES
from mlcweb.schedule.base import ScheduleBase
from mlcweb.schedule.errors import ScheduleError
from mlcweb.schedule.instruction import KINDS, BlockRV, LoopRV, kind_of
from mlcweb.schedule.primitives.decompose_padding import can_decompose_padding
from mlcweb.schedule.registry import method_of

REPLACED = {
    "tile": "split both loops, and reorder the four",
    "pragma": 'annotate the loop, sch.annotate(loop, "pragma_…", value)',
    "prefetch": "copy what is needed soon by sch.cache_read, and sch.compute_at",
    "create_group": "sch.compute_at moves blocks one by one",
    "normalize": "loops begin at 0 already",
    "stages": 'sch.get_child_blocks(sch.get_block("root")) gives the blocks',
    "stage_map": 'sch.get_block("B") finds a block',
}
"""Methods of schedules of tensor expressions, and what takes their place."""

REPLACED_ARGUMENTS = {"factor": "factors=[None, {}]", "nparts": "factors=[{}, None]"}
"""Arguments of `split` of schedules of tensor expressions, and what takes their place."""


class Schedule(ScheduleBase):
    """A program being transformed, with TVM's interface.

    `mod` is a module or a single function. `seed` makes sampling repeatable. `error_render_level`
    says how much of the program a ScheduleError shows: "detail", "fast" or "none".
    """

    def __getattr__(self, name: str) -> Any:
        close = get_close_matches(name, dir(type(self)), n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        if name in REPLACED:
            meant = f": {REPLACED[name]}"
        raise AttributeError(f"tir.Schedule has no {name}{meant}", name=name, obj=self)

    def __getitem__(self, stage: Any) -> Any:
        raise TypeError(
            'tir.Schedule has no stages: sch.get_block("B") finds a block, and '
            "sch.get_loops(block) its loops"
        )

    @checked
    def get_output_blocks(
        self, scope_block: BlockRV | str | None = None, *, block: BlockRV | str | None = None
    ) -> list[BlockRV]:
        """The blocks inside a block, however deep, that write buffers which live on outside of the
        block around them.

        `block` is the same argument under the name that printed traces give it.
        """
        scope = block if scope_block is None else scope_block
        return self._perform(kind_of("GetOutputBlocks"), {"block": scope})

    @checked
    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether `decompose_padding` would accept this."""
        identity = self._block(self._as_block(block))
        return can_decompose_padding(self._state, identity, self._loop(loop))


def _add_methods() -> None:
    for kind in KINDS.values():
        name = dialect_of(kind.dialect).of(kind.method)
        if name not in vars(Schedule):
            method = method_of(kind)
            if any(role is ROLES["AccessedBuffer"] for _, role, _ in kind.parameters):
                method = _by_index_and_type(method)
            setattr(Schedule, name, _by_factors(method) if name == "split" else method)


def _by_factors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lets `split` say what takes the place of an argument that it had once."""

    @wraps(method)
    def call(self: Schedule, *args: Any, **options: Any) -> Any:
        for name in options.keys() & REPLACED_ARGUMENTS.keys():
            instead = REPLACED_ARGUMENTS[name].format(options[name])
            raise TypeError(f"Schedule.split takes no {name}, which TE had: write {instead}")
        return method(self, *args, **options)

    return call


def _by_index_and_type(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a method take a buffer as TVM before 0.10 does: `sch.reindex(block, 0, "read")`, which
    is `sch.reindex(block, ("read", 0))`."""

    @wraps(method)
    def call(self: Schedule, *args: Any, **options: Any) -> Any:
        parameters = ("block", "buffer_index", "buffer_index_type")
        named: dict[str, Any] = {**dict(zip(parameters, args, strict=False)), **options}
        index, access = named.get("buffer_index"), named.get("buffer_index_type")
        if isinstance(index, int) and isinstance(access, str):
            del named["buffer_index"], named["buffer_index_type"]
            return method(self, named.pop("block", None), (access, index), *args[3:], **named)
        return method(self, *args, **options)

    return call


_add_methods()

__all__ = ["Schedule", "ScheduleError"]
