"""Blocks of TVMScript: `T.block`, `T.axis`, `T.reads`, `T.init`, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.analysis.access_regions import element_region
from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs
from mlcweb.script.namespace.loops import loop_range, mapping
from mlcweb.tir import arithmetic
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range, full_region


def block(name: Any = "", name_hint: str = "", no_realize: bool = False) -> constructs.BlockFrame:
    """A unit of computation with axes of its own; `no_realize` marks the text of one without the
    values of its axes, which is no part of a program. Before TVM 0.9 their domains came first:
    `T.block([8, T.reduce_axis(0, 8)], "C")`."""
    if isinstance(name, str):
        return constructs.BlockFrame(name)
    axes = [
        item if isinstance(item, constructs.Axis) else _axis(item, 0, S.IterType.DATA_PARALLEL)
        for item in name
    ]
    return constructs.BlockFrame(name_hint, tuple(axes))


def reduce_axis(begin: Any, end: Any) -> constructs.Axis:
    """An axis of the list of `T.block` over which the block accumulates."""
    return _axis((begin, end), 0, S.IterType.COMM_REDUCE)


def scan_axis(begin: Any, end: Any) -> constructs.Axis:
    """An axis of the list of `T.block` whose values must be computed in order."""
    return _axis((begin, end), 0, S.IterType.ORDERED)


def opaque_axis(begin: Any, end: Any) -> constructs.Axis:
    """An axis of the list of `T.block` about which nothing is known."""
    return _axis((begin, end), 0, S.IterType.OPAQUE)


def init() -> constructs.InitFrame:
    """The part of a reduction block that runs where the reduction axes start."""
    return constructs.InitFrame()


def where(predicate: Any) -> constructs.BlockPart:
    """The condition under which the block runs."""
    return constructs.BlockPart("where", arithmetic.cast("bool", arithmetic.convert(predicate)))


def reads(*regions: Any) -> constructs.BlockPart:
    """The regions that the block reads."""
    return constructs.BlockPart("reads", _regions(regions))


def writes(*regions: Any) -> constructs.BlockPart:
    """The regions that the block writes."""
    return constructs.BlockPart("writes", _regions(regions))


def _regions(items: Sequence[Any]) -> tuple[BufferRegion, ...]:
    flat: list[Any] = []
    for item in items:
        flat.extend(item if isinstance(item, (list, tuple)) else (item,))
    return tuple(map(as_region, flat))


def as_region(value: Any) -> BufferRegion:
    """A region from a buffer, an element of one, or a region."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return full_region(value)
    if isinstance(value, E.BufferLoad):
        return element_region(value.buffer, value.indices)
    raise DiagnosticError(f"Expected a buffer region such as A[0:16, j], not {value!r}")


def block_attr(attrs: Mapping[str, Any]) -> constructs.BlockAttributes:
    """Annotations of the block."""
    return constructs.BlockAttributes(mapping(attrs, "T.block_attr"))


def func_attr(attrs: Mapping[str, Any]) -> constructs.FunctionAttributes:
    """Attributes of the function."""
    attributes = mapping(attrs, "T.func_attr")
    return constructs.FunctionAttributes({without_prefix(k): v for k, v in attributes.items()})


class AxisNamespace:
    """`T.axis`: how the axes of a block relate to the loops around it. `dtype` is accepted as in
    TVM: an axis has the type of what it is bound to."""

    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = "int32") -> constructs.Axis:
        """An axis whose values can be computed in any order."""
        return _axis(dom, binding, S.IterType.DATA_PARALLEL)

    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = "int32") -> constructs.Axis:
        """An axis over which the block accumulates."""
        return _axis(dom, binding, S.IterType.COMM_REDUCE)

    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = "int32") -> constructs.Axis:
        """An axis whose values must be computed in order."""
        return _axis(dom, binding, S.IterType.ORDERED)

    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = "int32") -> constructs.Axis:
        """An axis about which nothing is known."""
        return _axis(dom, binding, S.IterType.OPAQUE)

    @staticmethod
    def remap(
        kinds: str, bindings: Sequence[Any], dtype: str = "int32"
    ) -> list[constructs.Axis] | constructs.Axis:
        """Axes with the ranges of the loops that they are bound to."""
        if len(kinds) != len(bindings):
            raise DiagnosticError(
                f'T.axis.remap got {len(kinds)} kinds ("{kinds}") for {len(bindings)} loops'
            )
        axes = []
        for letter, value in zip(kinds, bindings, strict=True):
            if letter not in _AXIS_KINDS:
                raise DiagnosticError(
                    f'T.axis.remap knows the kinds S (spatial) and R (reduce), not "{letter}"'
                )
            axes.append(constructs.Axis(None, arithmetic.convert(value), _AXIS_KINDS[letter]))
        return axes if len(axes) > 1 else axes[0]

    S = spatial
    R = reduce

    names = ("spatial", "reduce", "scan", "opaque", "remap", "S", "R")


_AXIS_KINDS = {"S": S.IterType.DATA_PARALLEL, "R": S.IterType.COMM_REDUCE}


def _axis(domain: Any, value: Any, iter_type: S.IterType) -> constructs.Axis:
    if isinstance(domain, Range):
        dom = domain
    elif isinstance(domain, (tuple, list)):
        dom = loop_range(*domain)
    elif isinstance(domain, slice):
        dom = loop_range(domain.start, domain.stop)
    else:
        dom = loop_range(domain, None)
    return constructs.Axis(dom, arithmetic.convert(value), iter_type)


axis = AxisNamespace()
