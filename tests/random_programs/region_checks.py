"""Programs whose blocks stop where they access what their regions do not cover.

Every store, and every load that one always makes, gets assertions of the regions that the blocks
around it declare. A user's program may declare less than it accesses; a step that makes a program
do so is wrong.
"""

from mlcweb.codegen.processor.domain_checks import is_inside
from mlcweb.ir import IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, children, on
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import const, logical_and, logical_or
from mlcweb.tir.dtype import lanes
from mlcweb.tir.substitute import reads_memory


def with_region_checks(mod):
    """The module, whose functions fail an assertion where a region does not cover an access."""
    return IRModule(
        {
            var: func.with_body(_RegionChecks().rewrite(func.body))
            for var, func in mod.functions.items()
        }
    )


class _RegionChecks(Mutator):
    def __init__(self):
        self.blocks = []  # those around, from the outside
        self.inner = []  # the buffers that came with each of them and inside of it

    @on(S.BlockRealize)
    def realize(self, realize):
        block = realize.block
        self.blocks.append(block)
        self.inner.append(set())
        for buffer in block.alloc_buffers:
            self.declare(buffer)
        for match in block.match_buffers:
            self.declare(match.buffer)
        init = block.init and self.rewrite(block.init)
        body = self.rewrite(block.body)
        self.blocks.pop()
        self.inner.pop()
        return replace(realize, block=replace(block, init=init, body=body))

    @on(S.AllocBuffer, S.DeclBuffer)
    def declaration(self, statement):
        self.declare(statement.buffer)
        return self.rewrite_children(statement)

    def declare(self, buffer):
        for inner in self.inner:
            inner.add(buffer)

    @on(S.BufferStore)
    def store(self, store):
        statement = store
        for access in (store, *_sure_loads(store.value)):
            if any(lanes(i.dtype) > 1 or reads_memory(i) for i in access.indices):
                continue
            for block, inner in zip(self.blocks, self.inner, strict=True):
                if access.buffer not in inner:
                    statement = _checked(access, block, statement)
        return statement


def _sure_loads(value):
    """The loads that evaluating an expression always makes."""
    if isinstance(value, E.BufferLoad):
        yield value
    for child in children(value):
        if not isinstance(value, (E.And, E.Or, E.Select, E.Call, E.Let)):
            yield from _sure_loads(child)


def _checked(access, block, statement):
    """A statement that follows an assertion of an access being inside, where its block, other than
    those around a whole function, declares anything and no region depends on data."""
    regions = [r for r in (*block.reads, *block.writes) if r.buffer is access.buffer]
    if not (block.iter_vars or block.reads or block.writes):
        return statement
    covered = const(False, "bool")
    for region in regions:
        inside = const(True, "bool")
        for index, part in zip(access.indices, region.region, strict=True):
            if reads_memory(part.min) or reads_memory(part.extent):
                return statement
            inside = logical_and(inside, is_inside(index, part))
        covered = logical_or(covered, inside)
    message = f'Block "{block.name_hint}" does not declare that it accesses {access!r}'
    return S.AssertStmt(covered, E.StringImm(message), statement)
