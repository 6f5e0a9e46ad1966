"""What kind of computation a function of TensorIR is, by how it indexes what it reads and writes.

The kinds, and what fusing does with each, are those of graph partitioning in TVM (T. Chen et al.,
"TVM: An Automated End-to-End Optimizing Compiler for Deep Learning", OSDI 2018, section 3).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import IntEnum

from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import walk
from mlcweb.relax.transform.registration import pass_of
from mlcweb.tir.expr import Add, BufferLoad, IntImm, Mul, PrimExpr, Var
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BufferStore, IterType, Stmt


class OpPatternKind(IntEnum):
    """Kinds of computations, from the one that fuses most easily to the one that never does."""

    ELEMWISE = 0
    """Each output element from the elements at the same place."""
    BROADCAST = 1
    """Each output element from those at a place with some coordinates left out."""
    INJECTIVE = 2
    """Each output element from elements at places that its own place determines."""
    COMM_REDUCE = 3
    """Reduces whole axes of its input."""
    OUT_ELEMWISE_FUSABLE = 4
    """A larger reduction, such as a matrix product: only what follows may be fused to it."""
    TUPLE = 7
    """Several values in one."""
    OPAQUE = 8
    """Anything else."""


Kind = OpPatternKind


def op_pattern_kind(func: PrimFunc) -> OpPatternKind:
    """The kind of a function of TensorIR."""
    results = set(func.parameter_buffers)
    kind = Kind.ELEMWISE
    for block in _blocks(func.body):
        own = _index_kind(block)
        writes_result = any(region.buffer in results for region in block.writes)
        if own is Kind.OPAQUE:
            own = _reduction_kind(block)
        elif writes_result and kind is Kind.COMM_REDUCE:
            own = Kind.OUT_ELEMWISE_FUSABLE  # a reduction that is read again, such as a softmax
        kind = max(kind, own)
    return kind


def _blocks(body: Stmt) -> list[Block]:
    """The outermost blocks that compute something."""
    blocks: list[Block] = []
    stack: list[Stmt] = [body]
    while stack:
        node = stack.pop()
        if isinstance(node, Block) and (node.iter_vars or not _has_blocks(node)):
            blocks.append(node)
        else:
            stack.extend(reversed(_inside(node)))
    return blocks


def _inside(node: Stmt) -> list[Stmt]:
    parts = [getattr(node, name) for name in type(node).child_fields if name != "init"]
    flat = [item for part in parts for item in (part if isinstance(part, tuple) else (part,))]
    return [item for item in flat if isinstance(item, Stmt)]


def _has_blocks(block: Block) -> bool:
    return any(isinstance(node, Block) for node in walk(block.body))


def _accesses(block: Block) -> tuple[BufferStore | None, list[BufferLoad]]:
    """The one store of a block (None where it is not one) and its loads."""
    stores, loads = [], []
    for node in walk(block.body):
        if isinstance(node, BufferStore):
            stores.append(node)
        elif isinstance(node, BufferLoad):
            loads.append(node)
    return stores[0] if len(stores) == 1 else None, loads


def _index_kind(block: Block) -> OpPatternKind:
    store, loads = _accesses(block)
    if store is None:
        return Kind.OPAQUE
    kinds = [_pair_kind(store, load) for load in loads] or [Kind.ELEMWISE]
    kind = max(kinds)
    if kind is Kind.BROADCAST and Kind.ELEMWISE in kinds:
        return Kind.ELEMWISE  # the larger operand decides, as of a bias that is added
    return kind


def _pair_kind(store: BufferStore, load: BufferLoad) -> OpPatternKind:
    if _same(store.indices, load.indices):
        return Kind.ELEMWISE
    if _is_subsequence(store, load):
        return Kind.BROADCAST
    iterators = set(store.indices)
    if not all(isinstance(index, Var) for index in iterators):
        return Kind.OPAQUE
    for index in load.indices:
        for node in walk(index):
            if isinstance(node, BufferLoad) or (isinstance(node, Var) and node not in iterators):
                return Kind.OPAQUE
    return Kind.INJECTIVE


def _same(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(map(structural_equal, a, b))


def _is_subsequence(store: BufferStore, load: BufferLoad) -> bool:
    """Whether a load is at the store's coordinates in order, with some left out."""
    rest = iter(store.indices)
    for extent, index in zip(load.buffer.shape, load.indices, strict=True):
        if _is(extent, 1) and _is(index, 0):
            continue
        if not any(own is index for own in rest):
            return False
    return True


def _is(value: PrimExpr, number: int) -> bool:
    return isinstance(value, IntImm) and value.value == number


def _reduction_kind(block: Block) -> OpPatternKind:
    reduced = {it.var for it in block.iter_vars if it.iter_type is IterType.COMM_REDUCE}
    if not reduced:
        return Kind.OPAQUE
    _, loads = _accesses(block)
    if _is_multiply_add(block.body):
        return Kind.OUT_ELEMWISE_FUSABLE
    whole_axes = all(
        index in reduced or not any(node in reduced for node in walk(index))
        for load in loads
        for index in load.indices
    )
    return Kind.COMM_REDUCE if whole_axes else Kind.OUT_ELEMWISE_FUSABLE


def _is_multiply_add(body: Stmt) -> bool:
    """Whether a body adds a product to what it writes, and uses the factors more than once."""
    if not (isinstance(body, BufferStore) and isinstance(body.value, Add)):
        return False
    own, product = body.value.a, body.value.b
    if not (isinstance(own, BufferLoad) and isinstance(product, Mul)):
        return False
    if own.buffer is not body.buffer or not _same(own.indices, body.indices):
        return False
    factors = (product.a, product.b)
    return all(isinstance(factor, BufferLoad) and _is_reused(body, factor) for factor in factors)


def _is_reused(store: BufferStore, load: BufferLoad) -> bool:
    """Whether some coordinate of the result does not matter to what is read."""
    if not all(isinstance(index, Var) for index in store.indices):
        return False
    used = {node for index in load.indices for node in walk(index)}
    return any(index not in used for index in store.indices)


def AnnotateTIROpPattern() -> Pass:
    """Note of each function of TensorIR what kind of computation it is, as its attribute
    "op_pattern"; those that have it keep it."""
    return pass_of("AnnotateTIROpPattern", lambda mod: annotate(mod))


def annotate(mod: IRModule, skip: Container[GlobalVar] = ()) -> IRModule:
    """Do what `AnnotateTIROpPattern` does, to all functions but those to be skip."""
    changed: dict[GlobalVar, BaseFunc] = {
        var: func.with_attr("op_pattern", int(op_pattern_kind(func)))
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc) and "op_pattern" not in func.attrs and var not in skip
    }
    return mod.with_functions({**mod.functions, **changed}) if changed else mod
