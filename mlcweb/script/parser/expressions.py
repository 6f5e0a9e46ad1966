"""Evaluates the expressions of a script: Python values stay Python values, the rest becomes IR."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from inspect import Parameter, Signature
from numbers import Integral, Real
from types import ModuleType
from typing import Any, TypeVar

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node
from mlcweb.ir.span import Span
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.script.ir_builder.base import BuilderError, IRBuilder
from mlcweb.script.ir_builder.naming import describe
from mlcweb.script.namespace.blocks import AxisNamespace
from mlcweb.script.namespace.buffers import view
from mlcweb.script.namespace.building import described
from mlcweb.script.namespace.expressions import MachineNamespace
from mlcweb.script.namespace.loops import python_range
from mlcweb.script.namespace.macros import Macro
from mlcweb.script.namespace.older import METADATA_OMITTED, REPLACED
from mlcweb.script.namespace.types import BufferType, ScalarType
from mlcweb.script.parser import compile_time
from mlcweb.script.parser.accesses import access, vector_load
from mlcweb.script.parser.compile_time import PYTHON_FUNCTIONS
from mlcweb.script.parser.environment import Scopes, suggestion
from mlcweb.script.parser.macros import Reader, expand
from mlcweb.script.parser.source import Source
from mlcweb.tir import arithmetic, intrinsics
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer, BufferRegion

NAMESPACES: dict[str, Mapping[str, Any]] = {T.__name__: T.NAMES, I.__name__: I.NAMES}
"""Modules whose names the parser looks up in a table. Other dialects add theirs."""

BUILTINS: dict[str, Any] = {
    "range": python_range,
    "max": T.NAMES["max"],
    "min": T.NAMES["min"],
    "abs": T.NAMES["abs"],
}
"""What Python's names mean in a script, where they mean something else."""

BUFFER_NAMES = frozenset((
    "name", "data", "dtype", "shape", "ndim", "strides", "elem_offset", "scope", "access_ptr",
    "vload", "vstore", "view",
))  # fmt: skip
EXPRESSION_NAMES = frozenset(("dtype", "astype", "name", "value", "equal", "ty"))

Operations = tuple[Callable[..., Any], Callable[..., Any] | None]
"""What an operator does to Python's values, and to IR; None where IR has no such operation."""

BINARY_OPERATORS: dict[type, Operations] = {
    ast.Add: (operator.add, arithmetic.add),
    ast.Sub: (operator.sub, arithmetic.subtract),
    ast.Mult: (operator.mul, arithmetic.multiply),
    ast.Div: (operator.truediv, arithmetic.divide),
    ast.FloorDiv: (operator.floordiv, arithmetic.floordiv),
    ast.Mod: (operator.mod, arithmetic.floormod),
    ast.Pow: (operator.pow, intrinsics.power),
    ast.LShift: (operator.lshift, arithmetic.shift_left),
    ast.RShift: (operator.rshift, arithmetic.shift_right),
    ast.BitAnd: (operator.and_, arithmetic.bitwise_and),
    ast.BitOr: (operator.or_, arithmetic.bitwise_or),
    ast.BitXor: (operator.xor, arithmetic.bitwise_xor),
    ast.MatMult: (operator.matmul, None),
}

UNARY_OPERATORS: dict[type, Operations] = {
    ast.USub: (operator.neg, arithmetic.negate),
    ast.UAdd: (operator.pos, arithmetic.convert),
    ast.Not: (operator.not_, arithmetic.logical_not),
    ast.Invert: (operator.invert, arithmetic.bitwise_not),
}

COMPARISONS: dict[type, Operations] = {
    ast.Eq: (operator.eq, arithmetic.equal),
    ast.NotEq: (operator.ne, arithmetic.not_equal),
    ast.Lt: (operator.lt, arithmetic.less),
    ast.LtE: (operator.le, arithmetic.less_equal),
    ast.Gt: (operator.gt, arithmetic.greater),
    ast.GtE: (operator.ge, arithmetic.greater_equal),
    ast.Is: (operator.is_, operator.is_),
    ast.IsNot: (operator.is_not, operator.is_not),
    ast.In: (lambda a, b: a in b, None),
    ast.NotIn: (lambda a, b: a not in b, None),
}


class ModuleNames:
    """The class of a module, seen from its functions: attributes are the functions' names."""

    def __init__(self, name: str, functions: Sequence[str]) -> None:
        self.name = name
        self.functions = {function: GlobalVar(function) for function in functions}
        self.trees: dict[str, ast.FunctionDef] = {}
        self.read: Callable[[ast.FunctionDef], Any] = lambda tree: None
        self.builder: Any = None
        """Has the functions that `R.emit_te` adds."""
        self._finished: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """A function of the module, read when it is first asked for; None while it is read."""
        if name not in self._finished:
            self._finished[name] = None
            self._finished[name] = self.read(self.trees[name])
        return self._finished[name]


class Evaluator:
    """Evaluates syntax trees in the scopes of a script."""

    def __init__(self, scopes: Scopes, source: Source) -> None:
        self.scopes = scopes
        self.source = source
        self.renamed: Mapping[str, str] = {}
        """Names of `T` that mean something else in the spelling of the function being read."""
        self.reader: Reader | None = None
        """What reads the statements around the expressions."""

    def span(self, node: Any) -> Span:
        return self.source.span(node)

    def error(self, message: str, node: Any) -> DiagnosticError:
        return DiagnosticError(message, self.source.span(node))

    def value(self, node: Any) -> Any:
        """The value of an expression. Every error says where."""
        try:
            return _EVALUATORS.get(type(node), compile_time.run)(self, node)
        except DiagnosticError as error:
            raise error.located(self.span(node)) from None

    def operand(self, node: ast.expr) -> Any:
        """The value of an operand; a slice of a buffer is the vector that it reads."""
        value = self.value(node)
        return vector_load(value) if isinstance(value, BufferRegion) else value

    def expression(self, node: ast.expr) -> E.PrimExpr:
        """The value of an expression as IR."""
        value = self.operand(node)
        try:
            return arithmetic.convert(value)
        except DiagnosticError:
            raise self.error(f"Expected an expression, found {describe(value)}", node) from None

    def indices(self, buffer: Buffer, node: ast.expr, at: ast.expr) -> list[Any]:
        """The indices of a buffer access: expressions and slices, as many as dimensions."""
        values = self._indices(buffer, node)
        if len(values) != len(buffer.shape):
            shape = ", ".join(map(str, buffer.shape))
            raise self.error(
                f'Buffer "{buffer.name}" has {_count(len(buffer.shape), "dimension")}, of shape '
                f"({shape}); {_count(len(values), 'index', 'indices')} given",
                at,
            )
        return values

    def _indices(self, buffer: Buffer, node: ast.expr) -> list[Any]:
        """The indices that an expression stands for, which may be a tuple of them."""
        if isinstance(node, ast.Tuple):
            return [index for part in node.elts for index in self._indices(buffer, part)]
        value = self.value(node.value if isinstance(node, ast.Starred) else node)
        values = value if isinstance(value, (tuple, list)) else [value]
        return [self._index(buffer, item, node) for item in values]

    def _index(self, buffer: Buffer, value: Any, node: ast.expr) -> Any:
        if isinstance(value, slice):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return E.IntImm("int32", value)
        if not isinstance(value, E.PrimExpr) or not dtypes.is_integer(value.dtype):
            kind = value.dtype if isinstance(value, E.PrimExpr) else describe(value)
            raise self.error(f'An index of buffer "{buffer.name}" is an integer, not {kind}', node)
        return value


def _kind(node: ast.AST) -> str:
    return f"Python's {type(node).__name__}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _is_ir(value: Any) -> bool:
    return isinstance(value, E.PrimExpr)


def _constant(self: Evaluator, node: ast.Constant) -> Any:
    return node.value


def _name(self: Evaluator, node: ast.Name) -> Any:
    value = self.scopes.find(node.id, _MISSING)
    if value is _MISSING:
        value = BUILTINS.get(node.id, PYTHON_FUNCTIONS.get(node.id, _MISSING))
    if value is _MISSING and node.id == "meta":  # of TVM before 0.9
        raise self.error(METADATA_OMITTED, node)
    if value is _MISSING:
        raise self.error(self.scopes.complaint(node.id, PYTHON_FUNCTIONS), node)
    if isinstance(value, TypeVar):
        return _type_variable(self, node)
    return _python_number(value)


def _type_variable(self: Evaluator, node: ast.Name) -> E.Var:
    """The extent that a type variable of Python names, as TVM writes them since 2026."""
    var = E.Var(node.id, "int64", span=self.span(node))
    self.scopes.bind_in_function(node.id, var, "a shape variable")
    return var


def _lambda(self: Evaluator, node: ast.Lambda) -> Callable[..., Any]:
    """A Python function, such as an index map or a reducer is made of."""
    arguments = node.args
    if arguments.kwonlyargs or arguments.kwarg or arguments.defaults:
        raise self.error("A lambda in a script takes indices only", node)
    parameters = [Parameter(a.arg, Parameter.POSITIONAL_OR_KEYWORD) for a in arguments.args]
    if arguments.vararg:
        parameters.append(Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    if not parameters:
        raise self.error(f"{_kind(node)} cannot be used in a script", node)
    signature = Signature(parameters)

    def apply(*values: Any) -> Any:
        self.scopes.push()
        for name, value in signature.bind(*values).arguments.items():
            self.scopes.bind(name, value, "an index of a lambda")
        try:
            return self.value(node.body)
        finally:
            self.scopes.pop()

    apply.__signature__ = signature
    return apply


_MISSING = object()


def _python_number(value: Any) -> Any:
    """NumPy's numbers as Python's: a constant of a script has no type of its own."""
    if isinstance(value, (int, float, Node)) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _tuple(self: Evaluator, node: ast.Tuple) -> Any:
    return tuple(items(self, node.elts))


def _list(self: Evaluator, node: ast.List) -> Any:
    return items(self, node.elts)


def items(self: Evaluator, nodes: Sequence[ast.expr]) -> list[Any]:
    """The values of expressions, of which those after a star give several."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values.extend(self.value(node.value))
        else:
            values.append(self.value(node))
    return values


def _dict(self: Evaluator, node: ast.Dict) -> Any:
    entries: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        evaluated = self.value(value)
        entries.update(evaluated if key is None else {self.value(key): evaluated})
    return entries


def _slice(self: Evaluator, node: ast.Slice) -> slice:
    start, stop, step = (
        None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)
    )
    return slice(start, stop, step)


def _binary(self: Evaluator, node: ast.BinOp) -> Any:
    left, right = self.operand(node.left), self.operand(node.right)
    return _apply(self, BINARY_OPERATORS, node.op, node, left, right)


def _apply(
    self: Evaluator, table: Mapping[type, Operations], op: ast.AST, node: Any, *operands: Any
) -> Any:
    functions = table[type(op)]
    if any(_is_ir(operand) for operand in operands):
        if functions[1] is None:
            what = "a comparison" if isinstance(node, ast.Compare) else "an operator"
            raise self.error(f"{_kind(op)} ({what}) cannot be used in a script", node)
        return functions[1](*operands)
    try:
        return functions[0](*operands)
    except (TypeError, ValueError, ArithmeticError) as error:
        described = " and ".join(describe(operand) for operand in operands)
        raise self.error(f"{error} ({described})", node) from None


def _unary(self: Evaluator, node: ast.UnaryOp) -> Any:
    return _apply(self, UNARY_OPERATORS, node.op, node, self.operand(node.operand))


def _boolean(self: Evaluator, node: ast.BoolOp) -> Any:
    conjunction = isinstance(node.op, ast.And)
    build = arithmetic.logical_and if conjunction else arithmetic.logical_or
    result = self.operand(node.values[0])
    for part in node.values[1:]:
        if not _is_ir(result) and bool(result) is not conjunction:
            return result  # Python's own short circuit
        value = self.operand(part)
        result = build(result, value) if _is_ir(result) or _is_ir(value) else value
    return result


def _compare(self: Evaluator, node: ast.Compare) -> Any:
    result: Any = None
    left = self.operand(node.left)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = self.operand(right_node)
        part = _apply(self, COMPARISONS, op, node, left, right)
        if result is None:
            result = part
        elif _is_ir(result) or _is_ir(part):
            result = arithmetic.logical_and(result, part)
        else:
            result = result and part
        left = right
    return result


def _conditional(self: Evaluator, node: ast.IfExp) -> Any:
    condition = self.operand(node.test)
    if not _is_ir(condition):
        return self.value(node.body if condition else node.orelse)
    return intrinsics.if_then_else(condition, self.operand(node.body), self.operand(node.orelse))


def _attribute(self: Evaluator, node: ast.Attribute) -> Any:
    base = self.value(node.value)
    name = node.attr
    if isinstance(base, ModuleType) and base.__name__ in NAMESPACES:
        table = NAMESPACES[base.__name__]
        name = self.renamed.get(name, name)
        if name not in table and base is T and _is_type(name):
            return ScalarType(name)
        if name not in table:
            letter = ast.unparse(node.value)
            raise self.error(f"{letter} has no {name}{_instead(name, table)}", node)
        return table[name]
    if isinstance(base, MachineNamespace):
        return base.member(name)
    names = _known_names(base)
    if names is not None:
        if name not in names:
            what = "T.axis" if isinstance(base, AxisNamespace) else describe(base)
            raise self.error(f"{what} has no {name}{_instead(name, names)}", node)
        if isinstance(base, ModuleNames):
            return base.functions[name]
        if isinstance(base, Buffer) and name == "view":
            return partial(view, base)
        if isinstance(base, E.PrimExpr) and name == "ty":
            return base.dtype
        return getattr(base, name)
    if name.startswith("_") or not hasattr(base, name):
        raise self.error(f"{describe(base)} has no {name}", node)
    return _python_number(getattr(base, name))


def _instead(name: str, names: Iterable[str]) -> str:
    """What to write where a name is not known: what took its place, or one like it."""
    return f": {REPLACED[name]}" if name in REPLACED else suggestion(name, names)


def _is_type(name: str) -> bool:
    """Whether `T` has a type of that name: `T.int8x128`, `T.float8_e4m3fn`."""
    try:
        return bool(dtypes.parse(name))
    except DiagnosticError:
        return False


def _known_names(base: Any) -> Any:
    if isinstance(base, Buffer):
        return BUFFER_NAMES
    if isinstance(base, E.PrimExpr):
        return EXPRESSION_NAMES
    if isinstance(base, AxisNamespace):
        return AxisNamespace.names
    return base.functions if isinstance(base, ModuleNames) else None


def _subscript(self: Evaluator, node: ast.Subscript) -> Any:
    base = self.value(node.value)
    if isinstance(base, Buffer):
        return access(base, self.indices(base, node.slice, node), self.span(node))
    index = self.value(node.slice)
    if isinstance(base, (BufferType, tuple, list, dict)) or not isinstance(base, E.PrimExpr):
        try:
            return base[index]
        except (TypeError, KeyError, IndexError) as error:
            message = f"{describe(base)} has no element {ast.unparse(node.slice)}: {error}"
            raise self.error(message, node) from None
    raise self.error(f"{describe(base)} has no elements; only buffers are indexed", node)


def _builder_for(self: Evaluator, function: Any, node: ast.Call) -> AbstractContextManager[Any]:
    """Put the statements that a function of the program makes where it is called."""
    home = getattr(function, "__module__", None) or ""
    if home.startswith(("mlcweb.", "tvm.")):
        return nullcontext()
    building = getattr(self.reader, "building", None)  # a graph function has no statements
    return IRBuilder(self.reader) if building is None else building(node)


def _call(self: Evaluator, node: ast.Call) -> Any:
    function = self.value(node.func)
    arguments = items(self, node.args)
    if _wants_values(function):
        arguments = list(map(_loaded, arguments))
    options: dict[str, Any] = {}
    for keyword in node.keywords:
        value = self.value(keyword.value)
        options.update(value if keyword.arg is None else {keyword.arg: value})
    if described(function) in (T.NAMES["load"], T.NAMES["store"]) and self.reader is not None:
        arguments = [
            self.reader.buffers.get(a, a) if isinstance(a, E.Var) else a for a in arguments
        ]
    if isinstance(function, Macro):
        return expand(self, function, arguments, options, node)
    if isinstance(function, GlobalVar):
        args = tuple(arithmetic.convert(argument) for argument in arguments)
        return E.Call(_returned(self, node.func), function, args, span=self.span(node))
    if not callable(function):
        raise self.error(f"{ast.unparse(node.func)} cannot be called", node)
    compile_time.check_call(self, function, node.func)
    try:
        with _builder_for(self, function, node):
            result = function(*arguments, **options)
    except DiagnosticError:
        raise
    except BuilderError as error:
        raise self.error(str(error), node) from None
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise self.error(_call_fault(ast.unparse(node.func), str(error)), node) from None
    if isinstance(result, E.Call) and result.span is None:
        return E.Call(result.dtype, result.op, result.args, span=self.span(node))
    return result


def _returned(self: Evaluator, function: ast.expr) -> str:
    """The type of what a function of the module returns, as its definition says."""
    if not isinstance(function, ast.Attribute):
        return "void"
    owner = self.value(function.value)
    tree = owner.trees.get(function.attr) if isinstance(owner, ModuleNames) else None
    kind = None if tree is None or tree.returns is None else self.value(tree.returns)
    return kind.dtype if isinstance(kind, ScalarType) else "void"


def _call_fault(name: str, message: str) -> str:
    """Python's message about a call, with the name that the script wrote."""
    if "'Buffer' object does not support item assignment" in message:
        message += "; write T.buffer_store(A, value, [i]), or make it a macro by @T.macro"
    if name.startswith(("np.", "numpy.")):
        instead = name.rpartition(".")[2]
        if instead in T.NAMES:
            return f"{name} computes with arrays, not in a script; write T.{instead}"
    own = re.sub(r"^[\w.<>]+\(\)", f"{name}()", message)
    return own if own != message else f"{name}: {message}"


def _loaded(argument: Any) -> Any:
    """The argument, with the elements of regions in their place."""
    if isinstance(argument, list) and any(isinstance(item, BufferRegion) for item in argument):
        return list(map(_loaded, argument))
    return vector_load(argument) if isinstance(argument, BufferRegion) else argument


def _wants_values(function: Any) -> bool:
    if isinstance(function, Macro):
        return False
    return described(function) not in (T.NAMES["reads"], T.NAMES["writes"], T.NAMES["match_buffer"])


_EVALUATORS: dict[type, Callable[[Evaluator, Any], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Dict: _dict,
    ast.Slice: _slice,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.Lambda: _lambda,
}


def scalar_type(value: Any) -> str | None:
    """The data type that an annotation names, if it names one."""
    if isinstance(value, ScalarType):
        return value.dtype
    return value if isinstance(value, str) else None
