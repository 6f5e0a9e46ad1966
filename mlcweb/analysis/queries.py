"""Questions about programs, under TVM's names (`tvm.tir.analysis`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.analysis.threads import thread_tag
from mlcweb.analysis.verify import verify_well_formed as _verify_function
from mlcweb.arith.analyzer import Analyzer
from mlcweb.arith.equality import same_expression
from mlcweb.ir.errors import DiagnosticError, nesting_limit
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.transform import Pass, PassContext, PassInfo
from mlcweb.ir.visitor import Visitor, children, find_nodes, on, walk
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import logical_not
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc, prim_funcs
from mlcweb.tir.operators import operator_name
from mlcweb.tir.substitute import uses, variables_in

Sizes = dict[str, dict[str, int]]


@nesting_limit("compared")
def expr_deep_equal(lhs: E.PrimExpr, rhs: E.PrimExpr) -> bool:
    """Whether two expressions are the same, with the same variables."""
    return same_expression(lhs, rhs)


def _functions(obj: PrimFunc | IRModule) -> list[tuple[str, PrimFunc]]:
    """The functions of TensorIR of a module, or the function, by name."""
    return [("main", obj)] if isinstance(obj, PrimFunc) else list(prim_funcs(obj).items())


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether programs are well formed; with `assert_mode` a fault raises a DiagnosticError."""
    try:
        for name, func in _functions(obj):
            _verify_function(func)
            if not verify_ssa(func):
                raise DiagnosticError(f"{name} defines a variable more than once")
    except DiagnosticError:
        if assert_mode:
            raise
        return False
    return True


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is defined once."""
    defined = [var for part in walk(func.body) for var in S.defined_variables(part)]
    defined += func.params
    return len(set(defined)) == len(defined)


@nesting_limit("analyzed")
def undefined_vars(node: Node, defs: Iterable[E.Var] | None = None) -> list[E.Var]:
    """The variables that a program uses and does not define, in the order of their first uses."""
    defined = set(defs or ())
    if isinstance(node, PrimFunc):
        buffers = node.buffer_map.values()
        defined.update(node.params, *([b.data, *variables_in(*b.shape)] for b in buffers))
        node = node.body
    used: dict[Node, dict[E.Var, None]] = {}

    def variables(part: Node) -> dict[E.Var, None]:
        """Those that a part uses and does not define. Statements share expressions: each is looked
        at once."""
        result = used.get(part)
        if result is None:
            result = used[part] = {}
            if isinstance(part, E.Var):
                result[part] = None
            elif isinstance(part, (E.BufferLoad, S.BufferStore)):
                result[part.buffer.data] = None
            for child in children(part):
                result.update(variables(child))
            for var in S.defined_variables(part):
                result.pop(var, None)
        return result

    return [var for var in variables(node) if var not in defined]


def estimate_tir_flops(stmt_or_mod: PrimFunc | IRModule) -> float:
    """The arithmetic operations of a program; see `mlcweb.analysis.flop_count`."""
    return estimate_flops(stmt_or_mod)


def get_block_access_region(
    block: S.Block, buffer_var_map: Mapping[E.Var, Buffer]
) -> list[list[BufferRegion]]:
    """What a block reads, what it writes, and what it touches in unknown ways."""
    return [list(part) for part in block_access_regions(block, buffer_var_map)]


def get_block_read_write_region(
    block: S.Block, buffer_var_map: Mapping[E.Var, Buffer]
) -> list[list[BufferRegion]]:
    """What a block reads, and what it writes; what it touches in unknown ways is in both."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [reads + opaque, writes + opaque]


class _CommonAncestors(Visitor):
    """Finds for each buffer the lowest loop or block around all of its accesses."""

    def __init__(self, func: PrimFunc) -> None:
        self.path: list[S.Stmt] = []
        self.paths: dict[Buffer, list[S.Stmt]] = {}
        self.by_data = func.buffers_by_data()
        self.visit(func.body)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.enter(loop)

    @on(S.BlockRealize)
    def realize(self, realize: S.BlockRealize) -> None:
        # What a block adds to has to stay while the loops run that it reduces over; and all that it
        # uses, while those run whose iterations may depend on each other in another way.
        block = realize.block
        for axis, value in realize.iterators:
            loops = [
                depth
                for depth, around in enumerate(self.path)
                if isinstance(around, S.For) and uses(value, around.loop_var)
            ]
            if axis.iter_type == S.IterType.DATA_PARALLEL or not loops:
                continue
            reduces = axis.iter_type == S.IterType.COMM_REDUCE
            for region in block.writes if reduces else (*block.reads, *block.writes):
                self.touch(region.buffer, self.path[: loops[0]])
        for value in (*realize.iter_values, realize.predicate):
            self.visit(value)
        for match in block.match_buffers:
            self.touch(match.source.buffer, [*self.path, block])
        self.enter(block)

    def enter(self, statement: S.Stmt) -> None:
        self.path.append(statement)
        self.visit_children(statement)
        self.path.pop()

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> None:
        self.visit_children(node)
        self.touch(node.buffer, self.path)

    @on(E.Var)
    def variable(self, var: E.Var) -> None:
        if var in self.by_data:
            self.touch(self.by_data[var], self.path)

    @on(BufferRegion)
    def region(self, region: BufferRegion) -> None:
        """What a block declares says nothing of where its accesses are."""

    def touch(self, buffer: Buffer, path: list[S.Stmt]) -> None:
        common = self.paths.get(buffer)
        if common is not None:
            pairs = zip(common, path, strict=False)
            same = next((n for n, (a, b) in enumerate(pairs) if a is not b), None)
            path = path[: min(len(common), len(path)) if same is None else same]
        self.paths[buffer] = list(path)


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, S.Stmt | None]:
    """The lowest loop or block around all accesses of each buffer; None for the function. Memory
    that all blocks of threads see is accessed by the loop over them."""
    lowest: dict[Buffer, S.Stmt | None] = {}
    for buffer, path in _CommonAncestors(func).paths.items():
        launches = (depth for depth, part in enumerate(path) if _over_blocks(part))
        depth = next(launches, None) if buffer.scope() == "global" else None
        path = path if depth is None else path[: depth + 1]
        lowest[buffer] = path[-1] if path else None
    return lowest


def _over_blocks(statement: S.Stmt) -> bool:
    binding = statement.thread_binding if isinstance(statement, S.For) else None
    return binding is not None and binding.thread_tag.startswith("blockIdx")


def find_anchor_block(mod: IRModule) -> S.Block | None:
    """The reduction block that computes most; None where there is none."""
    best: tuple[float, S.Block] | None = None
    for _, func in _functions(mod):
        for block, iterations in _reduction_blocks(func.body, 1):
            work = iterations * estimate_flops(PrimFunc((), block.body))
            if best is None or work > best[0]:
                best = work, block
    return None if best is None else best[1]


def _reduction_blocks(node: Node, iterations: float) -> Iterable[tuple[S.Block, float]]:
    if isinstance(node, S.For) and isinstance(node.extent, E.IntImm):
        iterations *= node.extent.value
    if isinstance(node, S.Block) and node.init is not None:
        yield node, iterations
    for child in children(node):
        yield from _reduction_blocks(child, iterations)


def is_pure_function(func: PrimFunc) -> bool:
    """Whether a function only computes: it stores nothing but in memory of its own, and calls
    nothing with an effect."""
    return _effect(func) is None


def assert_pure_function(func: PrimFunc) -> bool:
    """True of a function that only computes; an AssertionError that names the effect of others."""
    effect = _effect(func)
    if effect is not None:
        raise AssertionError(f"A pure function has no effects; this one has {effect}")
    return True


def _effect(func: PrimFunc) -> str | None:
    parts = S.statements_in(func.body)
    allocated = {
        buffer.data
        for part in parts
        if not isinstance(part, S.DeclBuffer)
        for buffer in S.declared_buffers(part)
    }
    for node in walk(func.body):
        if isinstance(node, S.BufferStore) and node.buffer.data not in allocated:
            return f'a store to "{node.buffer.name}"'
        if operator_name(node) in _EFFECTS:
            return f"a call of tir.{operator_name(node)}"
    return None


_EFFECTS = frozenset({"call_extern", "call_packed", "tvm_storage_sync"})


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> Sizes:
    """Bytes that lowered functions allocate, by function and by storage scope."""
    return {name: _allocated(func, 1) for name, func in _functions(func_or_mod)}


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """Bytes that a lowered function allocates, each buffer rounded up to the alignment."""
    return sum(_allocated(func, workspace_byte_alignment).values())


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """Bytes of the constants in a function: there are none, constants are parameters here."""
    return 0


def _allocated(func: PrimFunc, alignment: int) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for node in find_nodes(func.body, S.AllocBuffer):
        shape = [side.value for side in node.buffer.shape if isinstance(side, E.IntImm)]
        size = prod(shape) * dtypes.size_in_bytes(node.buffer.dtype)
        scope = node.buffer.scope()
        sizes[scope] = sizes.get(scope, 0) + -(-size // alignment) * alignment
    return sizes


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function for a GPU touches memory in its threads only; others always pass."""
    target = func.attrs.get("target")
    kind = getattr(getattr(target, "kind", None), "name", "")
    if kind not in ("cuda", "opencl", "vulkan", "metal", "rocm", "webgpu"):
        return True
    return not _outside_of_threads(func.body, {buffer.data for buffer in func.parameter_buffers})


def _outside_of_threads(node: Node, data: set[E.Var]) -> bool:
    """Whether a part of a function touches buffers but in what blocks or threads run."""
    is_launch = isinstance(node, S.AttrStmt) and node.attr_key == S.launch_key("threadIdx.x")
    if is_launch or thread_tag(node):
        return False
    if isinstance(node, (E.BufferLoad, S.BufferStore)) and node.buffer.data in data:
        return True
    return any(_outside_of_threads(child, data) for child in children(node))


class _OutOfBounds(Visitor):
    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.bounded: set[E.Var] = set()

    def bind(self, var: E.Var, domain: Range) -> None:
        self.analyzer.bind(var, domain)
        self.bounded.add(var)

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        self.bind(loop.loop_var, loop.domain)
        self.visit_children(loop)

    @on(S.Block)
    def block(self, block: S.Block) -> None:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.bind(axis.var, axis.dom)
        self.visit_children(block)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        self.visit(branch.condition)
        self.cases(branch.condition, branch.then_case, branch.else_case)

    @on(E.Call)
    def call(self, call: E.Call) -> None:
        if operator_name(call) == "if_then_else":
            self.visit(call.args[0])
            self.cases(*call.args)
        else:
            self.visit_children(call)

    def cases(self, condition: E.PrimExpr, yes: Node, no: Node | None) -> None:
        with self.analyzer.constraint(condition):
            self.visit(yes)
        if no is not None:
            with self.analyzer.constraint(logical_not(condition)):
                self.visit(no)

    @on(E.BufferLoad, S.BufferStore)
    def access(self, node: E.BufferLoad | S.BufferStore) -> None:
        self.visit_children(node)
        for index, extent in zip(node.indices, node.buffer.shape, strict=False):
            if self.leaves(index, extent):
                low, high = self.analyzer.const_int_bound(index)
                raise DiagnosticError(
                    f'The index {index} of "{node.buffer.name}" reaches from {low} to {high}, its '
                    f"dimension from 0 to {extent - 1}",
                    node.span,
                )

    def leaves(self, index: E.PrimExpr, extent: E.PrimExpr) -> bool:
        """Whether an index is outside of a dimension in some iteration; of one that depends on
        other values than those of loops, in all."""
        if variables_in(index) <= self.bounded:
            low, high = self.analyzer.const_int_bound(index)
            return low < 0 or high >= self.analyzer.const_int_bound(extent).max_value
        return self.analyzer.can_prove(index < 0) or self.analyzer.can_prove(index >= extent)


class OOBChecker(Pass):
    """The pass that raises a DiagnosticError where an index is outside of its buffer."""

    info = PassInfo(0, "tir.analysis.OOBChecker")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for _, func in _functions(mod):
            _OutOfBounds().visit(func.body)
        return mod


get_sblock_access_region = get_block_access_region
get_sblock_read_write_region = get_block_read_write_region
find_anchor_sblock = find_anchor_block
