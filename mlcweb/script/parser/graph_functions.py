"""Reads functions of the graph level."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar
from mlcweb.ir.node import replace
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.struct_info import BaseCheckResult, struct_info_base_check
from mlcweb.relax.analysis.variables import used_vars
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.deduction import Context, function_struct_info, with_known_result
from mlcweb.relax.normalize import merged
from mlcweb.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from mlcweb.script import relax as R
from mlcweb.script.constructs import MetaVar
from mlcweb.script.namespace import relax as N
from mlcweb.script.parser import compile_time
from mlcweb.script.parser.expressions import NAMESPACES, Evaluator, ModuleNames, items
from mlcweb.script.parser.functions import check_parameters, decorator_options
from mlcweb.script.parser.relax_types import annotation, declared_extents
from mlcweb.tir.expr import Var as PrimVar

NAMESPACES[R.__name__] = R.NAMES


_NAMES_A_FUNCTION = (
    R.NAMES["call_tir"], R.op.call_tir, R.NAMES["call_tir_inplace"], R.op.call_tir_inplace,
    R.NAMES["call_tir_with_grad"], R.op.call_tir_with_grad,
)  # fmt: skip
"""Calls whose first argument may be the name of a function of the module."""

_TYPES_OF_2022 = ("Tensor", "Shape", "Tuple", "Object", "Callable")
"""What the courses of 2022 write without `R.`; other things of these names come first."""


class RelaxEvaluator(Evaluator):
    """Evaluates the expressions of a function: functions of the module may be named without the
    module, and calls of functions make calls of the graph level."""

    def __init__(self, base: Evaluator) -> None:
        super().__init__(base.scopes, base.source)
        names = base.scopes.find("cls")
        self.module = names if isinstance(names, ModuleNames) else None

    def value(self, node: Any) -> Any:
        if isinstance(node, ast.Name):
            var = self._function(node.id)
            if var is not None and not self.scopes.is_script_name(node.id):
                return var
            if node.id in _TYPES_OF_2022 and self.scopes.find(node.id) is None:
                return R.NAMES[node.id]
        if isinstance(node, ast.Call):
            function = self.value(node.func)
            if isinstance(function, (GlobalVar, E.Expr)):
                return self._call(function, node)
            if function is R.NAMES["emit_te"]:
                return self._emit_te(node)
            if function in _NAMES_A_FUNCTION and node.args:
                node = self._with_function(node)
        result = super().value(node)
        if isinstance(result, E.Expr) and result.span is None:
            if not isinstance(result, E.Var) and isinstance(node, (ast.Call, ast.BinOp)):
                object.__setattr__(result, "span", self.span(node))
        return result

    def _function(self, name: str) -> GlobalVar | None:
        return None if self.module is None else self.module.functions.get(name)

    def _call(self, function: Any, node: ast.Call) -> E.Call:
        if node.keywords:
            raise self.error("A function of the graph level has positional arguments only", node)
        args = list(map(E.convert_to_expr, items(self, node.args)))
        return E.Call(function, args, span=self.span(node))

    def _emit_te(self, node: ast.Call) -> E.Call:
        """A call of the function that a tensor expression makes, which the module gets."""
        module = self.module
        if module is None:
            raise self.error(
                "R.emit_te adds a function: write the function in a class with @I.ir_module", node
            )
        if module.builder is None:
            module.builder = BlockBuilder()
            module.builder.reserve(module.functions)
        args = [self.value(item) for item in node.args]
        options = {item.arg: self.value(item.value) for item in node.keywords if item.arg}
        compile_time.check_call(self, args[0] if args else None, node)
        return module.builder.call_te(*args, **options)

    def _with_function(self, node: ast.Call) -> ast.Call:
        """The call of call_tir with the name of a function of the module as this function."""
        first = node.args[0]
        if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
            return node
        if self._function(first.value) is None:
            return node
        name = ast.copy_location(ast.Name(first.value, ast.Load()), first)
        call = ast.Call(node.func, [name, *node.args[1:]], node.keywords)
        return ast.copy_location(call, node)


class FunctionReader:
    """Reads the body of one function."""

    def __init__(self, evaluator: RelaxEvaluator, builder: BlockBuilder) -> None:
        self.evaluator = evaluator
        evaluator.reader = self
        self.scopes = evaluator.scopes
        self.builder = builder
        self.buffers = {}
        self.attrs: dict[str, Any] = {}
        self.blocks: list[E.BindingBlock] = []
        self.outputs: set[str] | None = None
        self.result: Any = None
        self.declared: list[str] = []
        """Names of empty tuples, which the next statements without a name give: so TVM prints what
        has effects only."""

    def error(self, message: str, node: Any) -> DiagnosticError:
        return self.evaluator.error(message, node)

    def read(
        self, tree: ast.FunctionDef, options: Mapping[str, Any], local: bool = False
    ) -> E.Function:
        """The function that a definition describes."""
        self.scopes.push()
        params, ret = self.signature(tree)
        for param in params:
            self.scopes.bind(param.name_hint, param, f'a parameter of "{tree.name}"')
        self.builder._begin_binding_block()
        self.statements(tree.body)
        self.close_block()
        self.builder._open.pop()
        self.scopes.pop()
        if self.result is None:
            raise self.error(f'The function "{tree.name}" returns nothing', tree)
        if options.get("private") and "global_symbol" in self.attrs:
            raise self.error(
                f'"{tree.name}" is private, and has a global symbol: leave out one of the two', tree
            )
        if not (options.get("private") or local):
            self.attrs.setdefault("global_symbol", tree.name)
        pure = bool(options.get("pure", True))
        body = E.SeqExpr(merged(self.blocks), self.result)
        func = E.Function(params, body, None, pure, self.attrs, span=self.evaluator.span(tree))
        if ret is None:
            return func
        if struct_info_base_check(ret, func.ret_struct_info) == BaseCheckResult.FAIL_L0:
            if not isinstance(tree.returns, ast.Call):
                # `-> R.Tensor` gives no details: TVM's programs write it over tuples, too.
                return func
            raise self.error(
                f'"{tree.name}" is said to return {ret}, and returns {func.ret_struct_info}', tree
            )
        return with_known_result(replace(func, ret_struct_info=ret))

    def signature(self, tree: ast.FunctionDef) -> tuple[list[E.Var], StructInfo | None]:
        """The parameters, and the result where it is annotated."""
        declared_extents(tree, self.evaluator)
        check_parameters(tree, self.evaluator)
        params = []
        for argument in tree.args.args:
            if argument.annotation is None:
                raise self.error(
                    f'The parameter "{argument.arg}" needs a type, such as '
                    'R.Tensor((3, 4), "float32")',
                    argument,
                )
            info = annotation(argument.annotation, self.evaluator)
            params.append(E.Var(argument.arg, info, span=self.evaluator.span(argument)))
        ret = None if tree.returns is None else annotation(tree.returns, self.evaluator)
        return params, ret

    def close_block(self) -> None:
        """End the block that is open, and begin a plain one."""
        block = self.builder._end_block()
        if block.bindings:
            self.blocks.append(block)
        self.builder._begin_binding_block()

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self.result is not None:
                raise self.error("Nothing follows the result of a function", statement)
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                kind = type(statement).__name__
                raise self.error(f"Python's {kind} cannot be used in a graph function", statement)
            try:
                handler(self, statement)
            except DiagnosticError as error:
                raise error.located(self.evaluator.span(statement)) from None

    def variable(self, name: str, info: StructInfo | None, node: Any) -> E.Var:
        """A new variable, of the kind that its block asks for."""
        span = self.evaluator.span(node)
        inside = self.builder.current_block_is_dataflow()
        if inside and name not in (self.outputs or ()):
            return E.DataflowVar(name, info, span=span)
        return E.Var(name, info, span=span)

    def bind(self, name: str, value: Any, info: StructInfo | None, node: Any) -> None:
        """`name = value`, for whatever the value is."""
        if isinstance(value, MetaVar):
            self.scopes.bind(name, value.value)
            return
        if isinstance(value, (tuple, list)) and all(_is_graph_value(item) for item in value):
            value = E.convert_to_expr(value)
        elif isinstance(value, (bool, int, float)):
            value = E.const(value)
        if isinstance(value, N.MatchCastPair):
            inside = self.builder.normalize_argument(value.value)
            self._new_extents(value.struct_info)
            var = self.variable(name, info or value.struct_info, node)
            span = self.evaluator.span(node)
            self.builder.emit_normalized(E.MatchCast(var, inside, value.struct_info, span=span))
        elif isinstance(value, E.Expr):
            value = self.builder.normalize(value)
            value_info = self.builder.context.struct_info(value)
            if (
                info is not None
                and struct_info_base_check(info, value_info) == BaseCheckResult.FAIL_L0
            ):
                raise self.error(f'"{name}" is said to be {info}, and is {value_info}', node)
            if info is not None and isinstance(value, (E.Call, E.If)):
                # An annotation says what a call gives; of other values it is known anyway.
                E.remember(value, info)
                value_info = info
            var = self.variable(name, value_info, node)
            self.builder.emit_normalized(E.VarBinding(var, value, span=self.evaluator.span(node)))
        elif isinstance(value, PrimVar) and not value.name:
            self.extent(name, value)
            return
        else:
            self.scopes.bind(name, value)
            return
        self.scopes.bind(name, var)

    def name_of_nothing(self, info: StructInfo) -> str:
        """The name of what a statement without one gives."""
        return self.declared.pop(0) if self.declared and _is_nothing(info) else "_"

    def extent(self, name: str, var: PrimVar) -> None:
        """`n = T.int64()`: the extent of that name, or a new one."""
        value = self.scopes.find(name) if self.scopes.is_script_name(name) else None
        if not isinstance(value, PrimVar):
            self.scopes.bind(name, replace(var, name=name), "a symbolic extent")

    def _new_extents(self, info: StructInfo) -> None:
        for var in dims.prim_vars(info):
            if not self.scopes.is_script_name(var.name):
                self.scopes.bind(var.name, var, "a symbolic extent")

    def branch(self, body: Sequence[ast.stmt], name: str) -> E.SeqExpr:
        """A branch of an `if`, whose last statement assigns the result to `name`."""
        outer, self.blocks = self.blocks, []
        self.scopes.push()
        self.builder._begin_binding_block()
        self.statements(body)
        self.close_block()
        self.builder._open.pop()
        self.scopes.pop()
        blocks, self.blocks = self.blocks, outer
        last: Any = blocks[-1].bindings[-1]
        if last.var.name_hint != name:
            raise self.error(f'Both branches must end with the assignment of "{name}"', body[-1])
        if isinstance(last, E.MatchCast) or not isinstance(last.value, (E.Var, E.Constant)):
            return E.SeqExpr(blocks, last.var)
        rest = blocks[-1].bindings[:-1]
        return E.SeqExpr([*blocks[:-1], *([E.BindingBlock(rest)] if rest else ())], last.value)


def _is_nothing(info: StructInfo | None) -> bool:
    return isinstance(info, TupleStructInfo) and not info.fields


def _is_graph_value(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_graph_value, value))
    return isinstance(value, (E.Expr, GlobalVar, int, float, str))


def _assign(self: FunctionReader, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        raise self.error("Assign to one variable at a time", node)
    target = node.targets[0]
    if isinstance(target, ast.Name):
        self.bind(target.id, self.evaluator.value(node.value), None, node)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise self.error("Assignments are to variables", target)
    values = self.evaluator.value(node.value)
    if isinstance(values, E.Expr) and not isinstance(values, (E.Tuple, E.Var)):
        values = self.builder.emit(values)
    parts = list(values)
    if len(parts) != len(target.elts):
        raise self.error(f"{len(target.elts)} variables for {len(parts)} values", node)
    for name, part in zip(target.elts, parts, strict=True):
        if not isinstance(name, ast.Name):
            raise self.error("Assignments are to variables", name)
        self.bind(name.id, part, None, node)


def _annotated(self: FunctionReader, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise self.error("An annotation belongs to an assignment to a variable", node)
    if node.value is None:
        if not _is_nothing(annotation(node.annotation, self.evaluator)):
            raise self.error("Only a variable of type R.Tuple is declared before its value", node)
        self.declared.append(node.target.id)
        return
    value = self.evaluator.value(node.value)
    if isinstance(value, N.MatchCastPair):
        self._new_extents(value.struct_info)
    info = annotation(node.annotation, self.evaluator)
    self.bind(node.target.id, value, info, node)


def _expression(self: FunctionReader, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return
    if _is_output(node):
        raise self.error("R.output belongs to the end of `with R.dataflow():`", node)
    value = self.evaluator.value(node.value)
    if isinstance(value, N.Attributes):
        self.attrs.update(value.values)
    elif isinstance(value, E.Expr):
        value = self.builder.normalize(value)
        info = self.builder.context.struct_info(value)
        if isinstance(info, (TensorStructInfo, ShapeStructInfo)):
            raise self.error(
                "Non-void relax expressions must be bound to a variable: give the value of this "
                "statement a name, or leave the statement out",
                node,
            )
        self.bind(self.name_of_nothing(info), value, None, node)
    elif isinstance(value, N.MatchCastPair):
        raise self.error("Give it a name: `y = R.match_cast(…)`", node)


def _is_output(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="output"))):
            return True
    return False


def _with(self: FunctionReader, node: ast.With) -> None:
    frame = self.evaluator.value(node.items[0].context_expr)
    if len(node.items) != 1 or not isinstance(frame, N.DataflowFrame):
        raise self.error("A graph function knows one kind of block: `with R.dataflow():`", node)
    if self.builder.current_block_is_dataflow():
        raise self.error("Dataflow blocks do not stand inside each other", node)
    final = node.body[-1]
    names: list[str] = []
    if _is_output(final):
        for argument in final.value.args:  # type: ignore[attr-defined]
            if not isinstance(argument, ast.Name):
                raise self.error("R.output takes variables of the block", argument)
            names.append(argument.id)
    self.close_block()
    self.builder._open.pop()
    self.builder._begin_dataflow_block()
    self.outputs = set(names)
    self.statements(node.body[:-1] if names or _is_output(final) else node.body)
    self.outputs = None
    bound = {b.var.name_hint for b in self.builder._block.bindings}
    for name in names:
        if name not in bound:
            raise self.error(f'"{name}" is not bound in this dataflow block', final)
    self.close_block()


def _if(self: FunctionReader, node: ast.If) -> None:
    if self.builder.current_block_is_dataflow():
        raise self.error("A dataflow block has no branches", node)
    cond = self.builder.normalize_argument(self.evaluator.value(node.test))
    if not node.orelse:
        raise self.error("An `if` of the graph level has an `else`", node)
    name = _assigned(node.body[-1])
    if name is None or name != _assigned(node.orelse[-1]):
        raise self.error("Both branches must end with an assignment to the same variable", node)
    branches = [self.branch(node.body, name), self.branch(node.orelse, name)]
    self.bind(name, E.If(cond, *branches, span=self.evaluator.span(node)), None, node)


def _assigned(node: ast.stmt) -> str | None:
    """The name of the variable that the last of some statements binds."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.If():
            return _assigned(node.body[-1])
        case ast.Expr(value=ast.Call()):  # for its effects
            return "_"
    return None


def _return(self: FunctionReader, node: ast.Return) -> None:
    if not self.evaluator.scopes or len(self.builder._open) == 0 or node.value is None:
        raise self.error("A graph function returns a value", node)
    value = self.evaluator.value(node.value)
    if isinstance(value, (bool, int, float)):
        value = E.const(value)
    self.result = self.builder.normalize_argument(value)


def _local_function(self: FunctionReader, node: ast.FunctionDef) -> None:
    options: dict[str, Any] = {}
    for decorator in node.decorator_list:
        options.update(decorator_options(decorator, self.evaluator))
    reader = FunctionReader(self.evaluator, self.builder)
    self.scopes.push()
    params, ret = reader.signature(node)
    self.scopes.pop()
    infos: list[Any] = [param.struct_info for param in params]
    pure = bool(options.get("pure", True))
    info = FuncStructInfo(infos, ret or ObjectStructInfo(), pure)
    var = self.variable(node.name, info, node)
    self.scopes.bind(node.name, var)
    func = reader.read(node, options, local=True)
    if func.struct_info != info and var not in used_vars(func):
        var = self.variable(node.name, func.struct_info, node)
        self.scopes.bind(node.name, var)
    self.builder.emit_normalized(E.VarBinding(var, func, span=self.evaluator.span(node)))


def _pass(self: FunctionReader, node: ast.Pass) -> None:
    return


_STATEMENTS: dict[type, Any] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.Expr: _expression,
    ast.With: _with,
    ast.If: _if,
    ast.Return: _return,
    ast.FunctionDef: _local_function,
    ast.Pass: _pass,
}


def read_function(
    tree: ast.FunctionDef, evaluator: Evaluator, options: Mapping[str, Any]
) -> E.Function:
    """The function of the graph level that a definition describes.

    Options: `private`, `pure=False` for one with side effects, and `check_well_formed=False`.
    """
    relax_evaluator = RelaxEvaluator(evaluator)
    builder = BlockBuilder()
    builder.normalizes_operators = False
    builder.context = Context(_lookup(relax_evaluator), builder.lookup_binding)
    func = FunctionReader(relax_evaluator, builder).read(tree, options)
    if options.get("check_well_formed", True):
        try:
            refuse_ill_formed(func)
        except DiagnosticError as error:
            raise error.located(evaluator.span(tree)) from None
    return func


def _lookup(evaluator: RelaxEvaluator) -> Any:
    """What is known of the functions of the module, which are read first where they are called."""
    module = evaluator.module

    def struct_info(var: GlobalVar) -> StructInfo | None:
        if module is None or var.name_hint not in module.trees:
            return None
        func: BaseFunc | None = module.function(var.name_hint)
        if func is not None:
            return function_struct_info(func)
        tree = module.trees[var.name_hint]  # calls itself, or one that calls it
        inner = RelaxEvaluator(evaluator)
        inner.scopes.push()
        params, ret = FunctionReader(inner, BlockBuilder()).signature(tree)
        inner.scopes.pop()
        infos: list[Any] = [param.struct_info for param in params]
        return FuncStructInfo(infos, ret or ObjectStructInfo())

    return struct_info
