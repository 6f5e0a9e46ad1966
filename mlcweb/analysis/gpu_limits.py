"""Whether the kernels of a program are within the limits of a GPU: `verify_gpu_code`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod

from mlcweb.analysis.threads import is_own, is_shared
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import children
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.function import PrimFunc

_OF_AXES = {
    "max_thread_x": "threadIdx.x",
    "max_thread_y": "threadIdx.y",
    "max_thread_z": "threadIdx.z",
    "max_vthread": "vthread",
}
_LIMITS = {
    *_OF_AXES, "max_threads_per_block", "max_shared_memory_per_block", "max_local_memory_per_block",
    "max_vector_bytes", "max_kernels",
}  # fmt: skip


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Whether each kernel of a function, a nest of loops over blocks and threads, is within limits.

    Args:
        constraints: the most of "max_kernels", and of each kernel: "max_threads_per_block",
            "max_thread_x", "max_thread_y", "max_thread_z", "max_vthread" (threads),
            "max_shared_memory_per_block" (bytes), "max_local_memory_per_block" (bytes of a thread),
            "max_vector_bytes".

    Raises: DiagnosticError: there is no such limit.
    """
    unknown = sorted(set(constraints) - _LIMITS)
    if unknown:
        raise DiagnosticError(
            f"verify_gpu_code: there is no limit {unknown[0]}; there are "
            f"{', '.join(sorted(_LIMITS))}"
        )
    kernels = [_used(kernel) for kernel in _kernels(func.body)]
    return all(
        used.get(limit, 0) <= int(most)
        for limit, most in constraints.items()
        for used in ([{"max_kernels": len(kernels)}] if limit == "max_kernels" else kernels)
    )


def _axis(statement: Node) -> tuple[str, E.PrimExpr] | None:
    """The axis of threads or blocks that a statement launches, and its extent."""
    if isinstance(statement, S.For) and statement.thread_binding is not None:
        return statement.thread_binding.thread_tag, statement.extent
    if isinstance(statement, S.AttrStmt) and S.is_launch(statement):
        return statement.node.thread_tag or "vthread", statement.value
    return None


def _kernels(node: Node) -> Iterator[Node]:
    if _axis(node) is not None:
        yield node
    else:
        for child in children(node):
            yield from _kernels(child)


def _used(kernel: Node) -> dict[str, int]:
    """What a kernel takes, by limits."""
    extents: dict[str, int] = defaultdict(lambda: 1)
    used: dict[str, int] = defaultdict(int)
    pending: list[tuple[Node, int]] = [(kernel, 1)]
    while pending:
        node, lanes = pending.pop()
        axis = _axis(node)
        if axis is not None:
            tag, extent = axis
            name = "vthread" if tag.startswith("vthread") else tag
            extents[name] = max(extents[name], int(constant_value(extent) or 1))
        if isinstance(node, S.For) and node.kind == S.ForKind.VECTORIZED:
            lanes *= int(constant_value(node.extent) or 1)
        if isinstance(node, (S.BufferStore, E.BufferLoad)):
            width = lanes * dtypes.size_in_bytes(_accessed(node))
            used["max_vector_bytes"] = max(used["max_vector_bytes"], width)
        for buffer in S.allocated_buffers(node):
            size = prod(constant_shape(buffer) or ()) * dtypes.size_in_bytes(buffer.dtype)
            if is_shared(buffer):
                used["max_shared_memory_per_block"] += size
            elif is_own(buffer):
                used["max_local_memory_per_block"] += size
        pending.extend((child, lanes) for child in children(node))
    threads = prod(extent for tag, extent in extents.items() if tag.startswith("threadIdx"))
    return {**used, "max_threads_per_block": threads} | {
        limit: extents[axis] for limit, axis in _OF_AXES.items()
    }


def _accessed(node: S.BufferStore | E.BufferLoad) -> str:
    """The type of what is loaded or stored at once."""
    return node.value.dtype if isinstance(node, S.BufferStore) else node.dtype
