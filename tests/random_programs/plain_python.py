"""TVMScript run by Python itself: what a program computes, by no code of the package.

The text is Python already. A few constructs are rewritten: a predicate, a `T.init()` and a choice
become Python's `if`, the threads of a block meet between statements. The namespace `T` below gives
the rest: scalars are NumPy's, so that every operation has the width of its type, and loop variables
are Python's integers. Programs cast explicitly wherever two types meet.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

TYPES = {
    name: getattr(np, name)
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64",
    )
}  # fmt: skip


def evaluate(text: str, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The parameters after the function `text` has run on copies of `arrays`."""
    tree = ast.parse(text)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    handles = {argument.arg for argument in function.args.args}
    for argument in function.args.args:
        argument.annotation = None
    tree = ast.fix_missing_locations(_ToPython(handles).visit(tree))
    names: dict[str, Any] = {"T": Namespace}
    exec(compile(tree, "<program>", "exec"), names)
    results = [array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        names[function.name](*results)
    return results


def _call_of(node: ast.AST | None) -> str:
    """What a call of the namespace is called, as "T.axis.spatial"; empty for anything else."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


class _ToPython(ast.NodeTransformer):
    """Rewrites a function whose parameters are `handles`."""

    def __init__(self, handles: set[str]) -> None:
        self.handles = handles

    def visit_Assign(self, node: ast.Assign) -> Any:
        """A parameter is matched: its array gives the symbols their values."""
        self.generic_visit(node)
        call = node.value
        if not (isinstance(call, ast.Call) and _call_of(call) == "T.match_buffer"):
            return node
        array = ast.unparse(call.args[0])
        if array not in self.handles:
            return node
        parts = {"shape": call.args[1], **{option.arg: option.value for option in call.keywords}}
        lines = [f"{ast.unparse(node.targets[0])} = {array}"]
        for part, scale in (("shape", ""), ("strides", f" // {array}.itemsize")):
            for axis, symbol in enumerate(getattr(parts.get(part), "elts", ())):
                if isinstance(symbol, ast.Name):
                    lines.append(f"{symbol.id} = {array}.{part}[{axis}]{scale}")
        if "elem_offset" in parts:
            lines.append(f"{ast.unparse(parts['elem_offset'])} = 0")
        return ast.parse("\n".join(lines)).body

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_vector = "T.Broadcast(" in ast.unparse(node)
        self.generic_visit(node)
        if _call_of(node) in ("T.if_then_else", "T.Select"):
            condition, yes, no = node.args
            if is_vector:
                return ast.Call(ast.parse("T.where_lanes", mode="eval").body, node.args, [])
            return ast.IfExp(condition, yes, no)
        return node

    def visit_For(self, node: ast.For) -> Any:
        """The threads of a block wait for each other after every statement."""
        threads = "threadIdx" in ast.unparse(node.iter)
        self.generic_visit(node)
        if not threads or len(node.body) == 1:
            return node
        return [ast.For(node.target, node.iter, [part], []) for part in node.body]

    def visit_With(self, node: ast.With) -> Any:
        call = node.items[0].context_expr
        if _call_of(call) != "T.block":
            return self.generic_visit(node)
        predicate: ast.expr = ast.Constant(True)
        starts: list[ast.expr] = [ast.Constant(True)]
        body: list[ast.stmt] = []
        for part in node.body:
            if isinstance(part, ast.Expr) and _call_of(part.value) == "T.where":
                predicate = self.visit(part.value).args[0]
            elif isinstance(part, ast.With) and _call_of(part.items[0].context_expr) == "T.init":
                inside = [self.visit(statement) for statement in part.body]
                body.append(ast.If(ast.BoolOp(ast.And(), list(starts)), inside, []))
            else:
                if isinstance(part, ast.Assign) and _call_of(part.value) == "T.axis.reduce":
                    domain = part.value.args[0]
                    first = f"{ast.unparse(part.targets[0])} == T.first({ast.unparse(domain)})"
                    starts.append(ast.parse(first, mode="eval").body)
                made = self.visit(part)
                body += made if isinstance(made, list) else [made]
        return ast.If(predicate, body, [])


def _axis(domain: Any, value: Any) -> Any:
    first = Namespace.first(domain)
    last = domain[1] if isinstance(domain, tuple) else domain
    assert first <= value < last, f"{value} is not in [{first}, {last})"
    return value


def _buffer(
    shape: Any, dtype: str = "float32", data: Any = None, strides: Any = None,
    elem_offset: int = 0, scope: str = "global",
) -> np.ndarray[Any, Any]:  # fmt: skip
    """New memory, of content that stands out, or a view of the memory `data`."""
    kind = np.dtype(dtype)
    if data is None:
        return np.full(shape, 99, kind)
    steps = None if strides is None else [stride * kind.itemsize for stride in strides]
    return np.ndarray(shape, kind, data, elem_offset * kind.itemsize, steps)


def _cast(dtype: str, value: Any) -> Any:
    """Integers wrap; floats are cut off and kept in range, NaN becomes 0."""
    if isinstance(value, np.ndarray):
        lane = dtype.partition("x")[0]
        return np.array([_cast(lane, element) for element in value], lane)
    to = np.dtype(dtype)
    if to.kind not in "iu":
        return to.type(value)
    if isinstance(value, np.floating):
        low, high = int(np.iinfo(to).min), int(np.iinfo(to).max)
        if math.isnan(value):
            return to.type(0)
        value = (high if value > 0 else low) if math.isinf(value) else int(value)
        return to.type(min(max(value, low), high))
    size = 2 ** (8 * to.itemsize)
    wrapped = int(value) % size
    return to.type(wrapped - size if to.kind == "i" and wrapped >= size // 2 else wrapped)


def _iterations(*bounds: int, **options: Any) -> range:
    return range(*bounds)


def _extremum(pick: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def choose(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray):
            return np.array([choose(*pair) for pair in zip(a, b, strict=True)], a.dtype)
        return next((x for x in (a, b) if x != x), None) or pick(a, b)

    return choose


def _truncdiv(a: Any, b: Any) -> Any:
    quotient = abs(int(a)) // abs(int(b))
    return type(a)(quotient if (a < 0) == (b < 0) else -quotient)


class Namespace:
    """`T`, as far as random programs use it."""

    class axis:
        spatial = reduce = scan = opaque = staticmethod(_axis)

    serial = parallel = vectorized = unroll = staticmethod(_iterations)
    alloc_buffer = decl_buffer = staticmethod(_buffer)
    where_lanes = staticmethod(np.where)
    Cast = staticmethod(_cast)
    max, min = staticmethod(_extremum(max)), staticmethod(_extremum(min))
    truncdiv = staticmethod(_truncdiv)
    sqrt, abs = staticmethod(np.sqrt), staticmethod(np.abs)
    shift_left, shift_right = staticmethod(np.left_shift), staticmethod(np.right_shift)
    isnan = staticmethod(np.isnan)
    LetStmt = staticmethod(nullcontext)

    @staticmethod
    def grid(*extents: int) -> Any:
        return itertools.product(*map(range, extents))

    @staticmethod
    def allocate(shape: Any, dtype: str, scope: str) -> Any:
        return _buffer(shape, dtype)

    @staticmethod
    def Ramp(base: int, stride: int, lanes: int) -> Any:
        return base + stride * np.arange(lanes)

    @staticmethod
    def Broadcast(value: Any, lanes: int) -> Any:
        return np.full(lanes, value, np.asarray(value).dtype)

    @staticmethod
    def thread_binding(extent: int, thread: str) -> range:
        return range(extent)

    @staticmethod
    def first(domain: Any) -> int:
        return domain[0] if isinstance(domain, tuple) else 0

    @staticmethod
    def truncmod(a: Any, b: Any) -> Any:
        return a - _truncdiv(a, b) * b

    @staticmethod
    def match_buffer(region: Any, shape: Any, *args: Any, **options: Any) -> Any:
        return region[(0,) * (region.ndim - len(shape))]

    @staticmethod
    def nothing(*args: Any, **options: Any) -> None:
        """A declaration."""

    reads = writes = block_attr = func_attr = nothing


for _name, _type in TYPES.items():
    setattr(Namespace, _name, _type)
