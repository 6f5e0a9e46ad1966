"""What a step of a trace did, in a sentence: "splits j (128) into j_0 × j_1 = 16 × 8"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mlcweb.playground.trace_origins import TIMES, extent_text, listed
from mlcweb.playground.trace_replay import ReplayedStep
from mlcweb.schedule.instruction import plain
from mlcweb.schedule.state import BlockPlace, LoopPlace


def words(step: ReplayedStep) -> str:
    """What the step did. It begins with a verb, and has no full stop."""
    method = step.instruction.kind.method
    wording = _WORDS.get(method)
    if wording is not None:
        return wording(step)
    text = method.replace("_", " ")
    things = _named(step.inputs)
    on = f" on {things}" if things else ""
    rest = "" if step.changed else ", which leaves the program as it is"
    return f"does {text}{on}{rest}"


def part_names(loop: str, parts: int) -> list[str]:
    """What the factors of a loop's tiling are called in all views."""
    return [f"{loop}_{part}" for part in range(parts)] if parts > 1 else [loop]


_PLACES = LoopPlace | BlockPlace


def _split(step: ReplayedStep) -> str:
    loops = _loops(step.outputs)
    names = TIMES.join(place.loop.loop_var.name for place in loops)
    extents = TIMES.join(extent_text(place.loop.extent) for place in loops)
    return f"splits {_sized(step.inputs[0])} into {names} = {extents}"


def _fuse(step: ReplayedStep) -> str:
    loops = _loops(step.inputs)
    whole = _sized(step.outputs[0]) if step.outputs and step.outputs[0] else "one loop"
    return f"fuses {listed(map(_sized, loops))} into {whole}"


def _reorder(step: ReplayedStep) -> str:
    loops = _loops(step.inputs)
    order = ", ".join(_name(place) for place in loops)
    if not step.changed:
        return f"orders the loops {order}, as they were"
    depth = {place.loop.loop_var: len(place.parents) for place in loops}
    was = ", ".join(_name(p) for p in sorted(loops, key=lambda p: depth[p.loop.loop_var]))
    return f"orders the loops {order}; they were {was}"


def _about(text: str) -> Callable[[ReplayedStep], str]:
    return lambda step: text.format(_sized(step.inputs[0]))


def _bind(step: ReplayedStep) -> str:
    return f"binds {_sized(step.inputs[0])} to {step.instruction.attrs[0]}"


def _compute_at(step: ReplayedStep) -> str:
    block, loop = step.inputs[0], step.inputs[1]
    if isinstance(loop, LoopPlace):
        return f"computes {_name(block)} inside loop {_name(loop)}"
    if step.changed:
        return f"inlines {_name(block)}"
    return f"leaves {_name(block)} where it is"


def _cache(step: ReplayedStep) -> str:
    block = step.inputs[0]
    blocks = _named(step.outputs)
    index, scope = step.instruction.attrs[0], step.instruction.attrs[1]
    writes = "write" in step.instruction.kind.method
    regions = () if block is None else block.block.writes if writes else block.block.reads
    in_range = isinstance(index, int) and index < len(regions)
    buffer = regions[index].buffer.name if in_range else "a buffer"
    verb = "lets {} write {} through" if writes else "lets {} read {} through"
    return f"{verb.format(_name(block), buffer)} a copy in {scope} memory, made by {blocks}"


def _decompose(step: ReplayedStep) -> str:
    block, loop = step.inputs[0], step.inputs[1]
    new = listed(value.block.name_hint for value in step.outputs if isinstance(value, BlockPlace))
    start = f"moves the initialization of {_name(block)} into a new block, {new}"
    return f"{start}, before loop {_name(loop)}"


def _rfactor(step: ReplayedStep) -> str:
    blocks = _named(step.outputs)
    return f"computes partial results over {_sized(step.inputs[0])} in {blocks} (rfactor)"


def _annotate(step: ReplayedStep) -> str:
    target, *values = step.inputs
    shown = "".join(str(plain(value)) for value in values)
    return f"annotates {_name(target)} with {step.instruction.attrs[0]} = {shown}"


def _unannotate(step: ReplayedStep) -> str:
    return f"removes the annotation {step.instruction.attrs[0]} from {_name(step.inputs[0])}"


def _set_scope(step: ReplayedStep) -> str:
    return (
        f"keeps a buffer that {_name(step.inputs[0])} writes in {step.instruction.attrs[-1]} memory"
    )


def _get_block(step: ReplayedStep) -> str:
    return f"finds {_name(step.outputs[0]) if step.outputs else 'a block'}"


def _get_loops(step: ReplayedStep) -> str:
    loops = ", ".join(_name(place) for place in _loops(step.outputs))
    kind = "loop" if len(step.outputs) == 1 else "loops"
    return f"finds the {kind} {loops} of {_name(step.inputs[0])}" if loops else "finds no loops"


def _find(what: str) -> Callable[[ReplayedStep], str]:
    def words_of(step: ReplayedStep) -> str:
        names = _named(step.outputs)
        whose = _name(step.inputs[0]) if step.inputs and step.inputs[0] else "the program"
        return f"finds the {what} of {whose}: {names or 'none'}"

    return words_of


def _tile(step: ReplayedStep) -> str:
    factors = TIMES.join(map(str, step.decision))
    return f"decides the tiles of {_sized(step.inputs[0])}: {factors}"


def _categorical(step: ReplayedStep) -> str:
    candidates = step.instruction.attrs[0]
    return f"decides for {candidates[step.decision]} among {', '.join(map(str, candidates))}"


def _location(step: ReplayedStep) -> str:
    where = step.outputs[0]
    block = _name(step.inputs[0])
    if isinstance(where, LoopPlace):
        return f"decides to compute {block} in loop {_sized(where)}"
    if step.decision == -2:
        return f"decides to inline {block}"
    return f"decides to leave {block} where it is"


_WORDS: dict[str, Callable[[ReplayedStep], str]] = {
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "parallel": _about("runs {} in parallel"),
    "vectorize": _about("turns {} into vector lanes"),
    "unroll": _about("unrolls {}"),
    "bind": _bind,
    "compute_at": _compute_at,
    "reverse_compute_at": _compute_at,
    "compute_inline": _about("inlines {} into its consumers"),
    "reverse_compute_inline": _about("inlines {} into its producer"),
    "cache_read": _cache,
    "cache_write": _cache,
    "decompose_reduction": _decompose,
    "rfactor": _rfactor,
    "set_scope": _set_scope,
    "annotate": _annotate,
    "unannotate": _unannotate,
    "enter_postproc": lambda step: "starts post-processing",
    "get_block": _get_block,
    "get_loops": _get_loops,
    "get_child_blocks": _find("inner blocks"),
    "get_producers": _find("producers"),
    "get_consumers": _find("consumers"),
    "get_output_blocks": _find("output blocks"),
    "sample_perfect_tile": _tile,
    "sample_partitioned_tile": _tile,
    "sample_categorical": _categorical,
    "sample_compute_location": _location,
}


def loop_path(place: LoopPlace) -> str:
    """A loop with those around it: "i / j_0"."""
    return " / ".join(loop.loop_var.name for loop in (*place.loops, place.loop))


def _named(values: Iterable[Any]) -> str:
    return listed(_name(value) for value in values if isinstance(value, _PLACES))


def _loops(values: Iterable[Any]) -> list[LoopPlace]:
    return [value for value in values if isinstance(value, LoopPlace)]


def _name(value: Any) -> str:
    if isinstance(value, LoopPlace):
        return value.loop.loop_var.name
    if isinstance(value, BlockPlace):
        return f"block {value.block.name_hint}"
    return "it"


def _sized(value: Any) -> str:
    extent = f" ({extent_text(value.loop.extent)})" if isinstance(value, LoopPlace) else ""
    return _name(value) + extent
