"""Software pipelines: a loop whose statements work on different iterations at the same time.

An annotated loop

    for i in range(n):  # software_pipeline_stage=[0, 1], software_pipeline_order=[0, 1]
        S[...] = A[i, ...]
        C[i, ...] = f(S[...])

becomes a prologue, a body and an epilogue:

    S[0, ...] = A[0, ...]
    for i in range(n - 1):
        S[(i + 1) % 2, ...] = A[i + 1, ...]
        C[i, ...] = f(S[i % 2, ...])
    C[n - 1, ...] = f(S[(n - 1) % 2, ...])

A statement of stage s runs s iterations later than one of stage 0, and the statements of one
iteration of the new loop run in the given order. A buffer that is allocated in the loop gets as
many versions as iterations have values in it at once. Stages in `software_pipeline_async_stages`
copy asynchronously (`mlcweb/lower/async_stages.py`). The annotations and their meaning are TVM's.

M. Lam, "Software pipelining: an effective scheduling technique for VLIW machines", PLDI 1988, has
the idea, and versions of what an iteration has for itself ("modulo variable expansion").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.arith import Analyzer, conjunction, conjuncts
from mlcweb.ir.node import Node, replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.async_stages import AsyncStages, Emitted
from mlcweb.lower.named_passes import ConvertBlocksToOpaque
from mlcweb.lower.pipeline_annotations import (
    ANNOTATIONS,
    ASYNC_STAGES,
    ORDER,
    STAGE,
    TWO_VERSIONS,
    PipelineError,
    doubled_buffers,
    is_pipelined,
)
from mlcweb.lower.pipeline_dependences import Dependences, Stage
from mlcweb.lower.statement_simplifier import NOTHING
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import (
    add,
    const,
    constant_value,
    floormod,
    is_const_int,
    logical_and,
    multiply,
    subtract,
)
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import substitute


def inject_software_pipeline(func: PrimFunc) -> PrimFunc:
    """Prologue, body and epilogue for each annotated loop, as blocks without iterators. In the loop
    are statements one after another, perhaps in allocations, or in a block without a predicate.

    Raises:
        PipelineError: the annotations do not fit the statements, or the order breaks a dependence.
    """
    parts = list(S.statements_in(func.body))
    if not any(map(is_pipelined, parts)):
        return func
    if any(isinstance(part, S.Block) and part.iter_vars for part in parts):
        func = func.with_body(ConvertBlocksToOpaque().rewrite(func.body))
    return func.with_body(_Injection(func).rewrite(func.body))


class _Injection(Mutator):
    def __init__(self, func: PrimFunc) -> None:
        self.loops: list[S.For] = []
        self.buffers = func.buffers_by_data()
        self.doubled: set[Buffer] = set()
        for part in S.statements_in(func.body):
            if isinstance(part, S.Block):
                self.doubled.update(doubled_buffers(part))
            elif isinstance(part, S.AttrStmt) and part.attr_key == TWO_VERSIONS:
                self.doubled.add(self.buffers[part.node])

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> S.Stmt:
        if statement.attr_key == TWO_VERSIONS:
            return self.rewrite(statement.body)
        return self.rewrite_children(statement)

    @on(S.For)
    def loop(self, loop: S.For) -> S.Stmt:
        self.loops.append(loop)
        body = self.rewrite(loop.body)
        self.loops.pop()
        new = loop if body is loop.body else replace(loop, body=body)
        return self.pipelined(new) if is_pipelined(loop) else new

    def pipelined(self, loop: S.For) -> S.Stmt:
        for name in (STAGE, ORDER):
            if name not in loop.annotations:
                raise PipelineError(
                    f'Loop "{loop.loop_var.name}" is a software pipeline without "{name}": a '
                    f'number for each of its statements. Annotate it with both "{STAGE}" and '
                    f'"{ORDER}"',
                    loop.span,
                )
        if loop.kind not in (S.ForKind.SERIAL, S.ForKind.UNROLLED):
            raise PipelineError(
                f'Loop "{loop.loop_var.name}" is a software pipeline, whose iterations overlap in '
                f"order, and {loop.kind.name.lower()}; pipeline a serial loop",
                loop.span,
            )
        allocated, statements = _parts(loop)
        buffers = {**self.buffers, **{buffer.data: buffer for buffer in allocated}}
        blocks = [as_block(statement, buffers) for statement in statements]
        stages = _annotated(loop, blocks)
        dependences = Dependences(loop, self.loops, stages)
        dependences.check_order(set(allocated))
        versions = {
            buffer: _with_versions(buffer, count)
            for buffer in allocated
            if (count := _versions(buffer, stages, dependences, buffer in self.doubled)) > 1
        }
        return _Pipeline(loop, self.loops, stages, allocated, versions, buffers).emit()


def _parts(loop: S.For) -> tuple[list[Buffer], list[S.Stmt]]:
    """What the body of a loop allocates, and the statements that it consists of. Those of a block
    in it, such as another pipeline, are among them."""
    allocated: list[Buffer] = []

    def opened(statement: S.Stmt) -> S.Stmt:
        while True:
            if isinstance(statement, S.AllocBuffer):
                allocated.append(statement.buffer)
                statement = statement.body
            elif isinstance(statement, S.BlockRealize) and _is_plain(statement):
                allocated.extend(statement.block.alloc_buffers)
                return statement.block.body
            else:
                return statement

    def flat(statement: S.Stmt) -> list[S.Stmt]:
        if isinstance(statement, S.AllocBuffer):
            allocated.append(statement.buffer)
            return flat(statement.body)
        if isinstance(statement, S.SeqStmt):
            return [part for each in statement.seq for part in flat(each)]
        if isinstance(statement, S.BlockRealize) and _is_plain(statement):
            inner = statement.block.body
            if isinstance(inner, S.SeqStmt):
                allocated.extend(statement.block.alloc_buffers)
                return list(inner.seq)
        return [statement]

    body = opened(loop.body)
    if not isinstance(body, S.SeqStmt):
        raise PipelineError(
            f'Loop "{loop.loop_var.name}" is a software pipeline of one statement; it is several, '
            "one after another, that work on different iterations: compute a producer at this loop",
            loop.span,
        )
    return allocated, flat(body)


def _is_plain(realize: S.BlockRealize) -> bool:
    block = realize.block
    return is_const_int(realize.predicate, 1) and not (block.iter_vars or block.match_buffers)


def as_block(statement: S.Stmt, buffers: Mapping[E.Var, Buffer]) -> S.Block:
    """A statement as a block without iterators that declares what it accesses."""
    if isinstance(statement, S.Block):
        return statement
    if isinstance(statement, S.BlockRealize) and is_const_int(statement.predicate, 1):
        return statement.block
    return _declaring(S.Block((), (), (), "", statement), buffers)


def _declaring(block: S.Block, buffers: Mapping[E.Var, Buffer]) -> S.Block:
    reads, writes = block_access_regions(block, buffers).possible
    return replace(block, reads=reads, writes=writes)


def _annotated(loop: S.For, blocks: Sequence[S.Block]) -> list[Stage]:
    """The statements of a loop, in program order, with what its annotations say of each."""
    name, count = loop.loop_var.name, len(blocks)
    numbers: dict[str, list[int]] = {}
    for key in (STAGE, ORDER, ASYNC_STAGES):
        annotation: Any = loop.annotations.get(key, ())
        listed = annotation if isinstance(annotation, (list, tuple)) else [annotation]
        values = [constant_value(value) for value in listed]
        if any(not isinstance(value, int) or value < 0 for value in values):
            raise PipelineError(
                f'"{key}" of loop "{name}" is {annotation}; it is a list of integers from 0 on',
                loop.span,
            )
        numbers[key] = [int(value) for value in values if value is not None]
        if key != ASYNC_STAGES and len(values) != count:
            written = (", ".join(f'"{r.buffer.name}"' for r in block.writes) for block in blocks)
            names = "; ".join(f"{n} writes {each or 'nothing'}" for n, each in enumerate(written))
            raise PipelineError(
                f'"{key}" of loop "{name}" has {len(values)} numbers, {numbers[key]}, and the body '
                f"has {count} statements: {names}. Give one number for each",
                loop.span,
            )
    if sorted(numbers[ORDER]) != list(range(count)):
        raise PipelineError(
            f'"{ORDER}" of loop "{name}" is {numbers[ORDER]}, where two statements have the same '
            f"position or one is left free; it is a permutation of {list(range(count))}",
            loop.span,
        )
    return [
        Stage(block, stage, order, stage in numbers[ASYNC_STAGES])
        for block, stage, order in zip(blocks, numbers[STAGE], numbers[ORDER], strict=True)
    ]


def _versions(
    buffer: Buffer, stages: Sequence[Stage], dependences: Dependences, doubled: bool
) -> int:
    """How many versions a buffer needs so that no iteration overwrites what another still uses."""
    blocks = [(stage.number, stage.block) for stage in stages]
    written = [n for n, block in blocks if any(r.buffer is buffer for r in block.writes)]
    read = [n for n, block in blocks if any(r.buffer is buffer for r in block.reads)]
    if not written:
        return 1
    count = max(written + read) - min(written) + 1
    if count == 2 and not dependences.overlap(buffer):
        count = 1
    return max(count, 2 if doubled else 1)


class _Pipeline:
    """Emits one pipeline."""

    def __init__(
        self,
        loop: S.For,
        around: Sequence[S.For],
        stages: Sequence[Stage],
        allocated: Sequence[Buffer],
        versions: Mapping[Buffer, Buffer],
        buffers: Mapping[E.Var, Buffer],
    ) -> None:
        self.loop = loop
        self.domains = {outer.loop_var: outer.domain for outer in around}
        self.analyzer = Analyzer(self.domains)
        self.in_order = sorted(stages, key=lambda stage: stage.order)
        self.last_stage = max(stage.number for stage in stages)
        self.versions = versions
        self.allocated = tuple(self.versions.get(buffer, buffer) for buffer in allocated)
        self.buffers = {**buffers, **{buffer.data: buffer for buffer in self.allocated}}
        self.asynchronous = AsyncStages(stages, set(allocated))

    def emit(self) -> S.Stmt:
        loop, last = self.loop, const(self.last_stage, self.loop.loop_var.dtype)
        start, end = loop.min, self.simplify(add(loop.min, loop.extent))
        full = self.simplify(add(start, last))
        prologue = self.part(start, full, unrolled=True)
        body = self.part(full, end)
        first, least = end, None
        if self.last_stage > 1 and not self.analyzer.can_prove(loop.extent >= last):
            # The prologue has done a part of the epilogue's iterations.
            if isinstance(end, E.IntImm) and isinstance(full, E.IntImm):
                first = full
            else:
                least = full
        epilogue = self.part(first, self.simplify(add(end, last)), unrolled=True, least=least)
        parts = [prologue, body, epilogue, *self.asynchronous.finish()]
        block = S.Block((), (), (), "", S.sequence(*parts), alloc_buffers=self.allocated)
        return S.BlockRealize((), const(True), _declaring(block, self.buffers))

    def part(
        self,
        start: E.PrimExpr,
        end: E.PrimExpr,
        unrolled: bool = False,
        least: E.PrimExpr | None = None,
    ) -> S.Stmt:
        """The new loop's iterations of a range, at least `least`."""
        loop, var = self.loop, self.loop.loop_var
        extent = self.simplify(subtract(end, start))
        if self.analyzer.can_prove(extent <= 0):
            return _block(NOTHING, self.buffers)
        once = is_const_int(extent, 1)
        counter = E.Var(var.name, var.dtype, span=var.span)
        inside = Analyzer(self.domains)
        position: E.PrimExpr = start
        if not once:
            inside.bind(counter, Range(loop.min, extent))
            position = add(counter, subtract(start, loop.min))
        stop = add(loop.min, loop.extent)
        emitted: list[Emitted] = []
        for stage in self.in_order:
            at = inside.simplify(subtract(position, const(stage.number, var.dtype)))
            runs = logical_and(loop.min <= at, at < stop)
            if least is not None:
                runs = logical_and(runs, position >= least)
            runs = conjunction(part for part in conjuncts(runs) if not inside.can_prove(part))
            runs = inside.simplify(runs)
            if inside.can_prove(E.Not(runs)):
                continue
            number = inside.simplify(subtract(at, loop.min))
            block = _Versioned(self.versions, number).rewrite(stage.block)
            block = fresh_statement(substitute(block, {var: at}))
            emitted.append(Emitted(stage, block, runs, number))
        statements = self.asynchronous.complete(emitted, inside, extent)
        if not statements:
            return _block(NOTHING, self.buffers)
        body = S.sequence(
            *(S.BlockRealize((), runs, as_block(part, self.buffers)) for part, runs in statements)
        )
        if once:
            return _block(body, self.buffers)
        kept = {k: v for k, v in loop.annotations.items() if k not in ANNOTATIONS}
        kind = S.ForKind.UNROLLED if unrolled else loop.kind
        if not self.analyzer.can_prove(extent >= 0):
            extent = E.Max(extent, const(0, extent.dtype))
        new = S.For(counter, loop.min, extent, kind, body, annotations=kept, span=loop.span)
        return _block(new, self.buffers)

    def simplify(self, value: E.PrimExpr) -> E.PrimExpr:
        return self.analyzer.simplify(value)


def _block(body: S.Stmt, buffers: Mapping[E.Var, Buffer]) -> S.Stmt:
    return S.BlockRealize((), const(True), as_block(body, buffers))


def _with_versions(buffer: Buffer, count: int) -> Buffer:
    dtype = buffer.shape[0].dtype if buffer.shape else "int32"
    strides = buffer.strides
    if strides:
        strides = (multiply(strides[0], buffer.shape[0]), *strides)
    return replace(buffer, shape=(const(count, dtype), *buffer.shape), strides=strides)


class _Versioned(Mutator):
    """Has accesses of some buffers be of the version of an iteration, which is a number from 0."""

    def __init__(self, versions: Mapping[Buffer, Buffer], number: E.PrimExpr) -> None:
        self.versions = versions
        self.number = number
        self.data = {buffer.data: buffer for buffer in versions}
        self.analyzer = Analyzer()

    def version(self, buffer: Buffer) -> E.PrimExpr:
        count = const(constant_value(buffer.shape[0]), self.number.dtype)
        return floormod(self.number, count)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> Node:
        new = self.rewrite_children(node)
        buffer = self.versions.get(node.buffer)
        if buffer is None:
            self.check_known(node.buffer.data, node)
            return new
        return replace(new, buffer=buffer, indices=(self.version(buffer), *new.indices))

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> BufferRegion:
        new = self.rewrite_children(region)
        buffer = self.versions.get(region.buffer)
        if buffer is None:
            return new
        version = self.version(buffer)
        own = Range(version, const(1, version.dtype))
        return replace(new, buffer=buffer, region=(own, *new.region))

    @on(E.Call)
    def call(self, call: E.Call) -> E.PrimExpr:
        data = call.args[1] if operator_name(call) == "tvm_access_ptr" else None
        if not (isinstance(data, E.Var) and data in self.data):
            return self.rewrite_children(call)
        old = self.data[data]
        size: E.PrimExpr = const(1)
        if old.strides:
            size = multiply(old.strides[0], old.shape[0])
        else:
            for extent in old.shape:
                size = multiply(size, extent)
        kind, _, offset, *rest = call.args
        offset = add(self.rewrite(offset), multiply(self.version(self.versions[old]), size))
        return replace(call, args=(kind, data, offset, *map(self.rewrite, rest)))

    @on(E.Var)
    def variable(self, var: E.Var) -> E.Var:
        self.check_known(var, var)
        return var

    def check_known(self, data: E.Var, node: Node) -> None:
        if data in self.data:
            raise PipelineError(
                f'"{self.data[data].name}" is used by its address or through a view in a software '
                "pipeline, where it has a version for each iteration; access its elements",
                node.span,
            )
