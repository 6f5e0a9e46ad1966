"""Passes of TVM's that are for one construct: pipelined loops, memory of a kind of GPU, and so on.

A program without the construct is left as it is, as by TVM, so pipelines of such passes run. With
it, the program is refused: what is made of these constructs here, code generators make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from mlcweb.ir.errors import TVMError
from mlcweb.ir.node import Node
from mlcweb.ir.visitor import walk
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name


class Construct(NamedTuple):
    """What a pass is for, how to tell it, and what there is instead."""

    what: str
    is_one: Callable[[Node], bool]
    instead: str


def _annotated(key: str) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, (S.For, S.Block)) and key in node.annotations


def _memory(*scopes: str) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, Buffer) and node.scope().startswith(scopes)


def _thread_loop(*tags: str) -> Callable[[Node], bool]:
    def is_one(node: Node) -> bool:
        if not isinstance(node, S.For) or node.kind != S.ForKind.THREAD_BINDING:
            return False
        binding = node.thread_binding
        return binding is None or binding.thread_tag.startswith(tags)

    return is_one


_BUILD = 'build(mod, target="cuda") lowers for GPUs by a pipeline of its own'
_THREADS = _thread_loop("blockIdx", "threadIdx", "vthread")

CONSTRUCTS: dict[str, Construct] = {
    "LowerAutoCopy": Construct("automatic copies", _annotated("auto_copy"), _BUILD),
    "InferFragment": Construct("fragments of wmma", _memory("wmma."), _BUILD),
    "LowerWarpMemory": Construct("a warp's memory", _memory("warp"), _BUILD),
    "LowerAsyncDMA": Construct(
        "asynchronous copies", lambda node: getattr(node, "attr_key", "") == "async_scope", _BUILD
    ),
    "InjectPTXLDG32": Construct("loops over threads", _THREADS, _BUILD),
    "LowerVtcmAlloc": Construct("VTCM", _memory("global.vtcm"), "there is no Hexagon target here"),
    "VerifyVTCMLimit": Construct("VTCM", _memory("global.vtcm"), "there is no Hexagon target here"),
    "TextureFlatten": Construct("textures", _memory("global.texture"), _BUILD),
    "UseAssumeToReduceBranches": Construct(
        "T.assume", lambda node: operator_name(node) == "assume", "it is only kept"
    ),
}
"""Passes by their names."""


def checked(name: str, func: PrimFunc, of: str = "") -> PrimFunc:
    """The function, which has not the construct that a pass is for, or the pass `of`.

    Raises: TVMError: it has.
    """
    construct = CONSTRUCTS[of or name]
    if any(map(construct.is_one, _nodes(func))):
        raise TVMError(
            f"{name}: the function has {construct.what}, of which this pass makes nothing here: "
            f"{construct.instead}"
        )
    return func


def _nodes(func: PrimFunc) -> Iterable[Node]:
    """Everything in a function, the buffers that it uses as well."""
    for node in walk(func.body):
        yield node
        if isinstance(node, S.Block):
            yield from node.alloc_buffers
        for name in ("buffer", "node"):
            used: Any = getattr(node, name, None)
            if isinstance(used, Buffer):
                yield used
