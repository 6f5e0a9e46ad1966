"""Reads functions and modules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.global_info import known_vdevices
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.script import constructs as C
from mlcweb.script.ir_builder.base import no_builder
from mlcweb.script.ir_builder.frames import FunctionFrame
from mlcweb.script.ir_builder.functions import finish
from mlcweb.script.ir_builder.naming import describe, name_buffer
from mlcweb.script.namespace.types import ScalarType
from mlcweb.script.parser.environment import Scopes
from mlcweb.script.parser.expressions import Evaluator, ModuleNames, scalar_type
from mlcweb.script.parser.source import Source
from mlcweb.script.parser.statements import StatementParser
from mlcweb.script.parser.well_formed import check_well_formed
from mlcweb.tir import expr as E
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Evaluate

FunctionReader = Callable[[ast.FunctionDef, Evaluator, Mapping[str, Any]], BaseFunc]
"""Reads one function, with the options that its decorator and its module's were given."""


@no_builder()
def parse_function(
    tree: ast.FunctionDef,
    source: Source,
    names: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> BaseFunc:
    """The function that a definition describes. `options` are for what its decorator leaves
    open."""
    return _read(tree, Evaluator(Scopes(names), source), options or {})


@no_builder()
def parse_module(
    tree: ast.ClassDef,
    source: Source,
    names: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
) -> IRModule:
    """The module that a class describes. `options` are those that its decorator was given, where
    the source does not show it."""
    body = [item for item in tree.body if not _stays_python(item)]
    definitions = [item for item in body if isinstance(item, ast.FunctionDef)]
    external = [target for item in body for target in _external_name(item)]
    own_names = ModuleNames(tree.name, [*(item.name for item in definitions), *external])
    names = {**names, tree.name: own_names, "cls": own_names}
    functions: dict[GlobalVar | str, BaseFunc] = {}
    attrs: dict[str, Any] = {}
    global_infos: dict[str, Any] = {}
    evaluator = Evaluator(Scopes(names), source)
    options = {**(options or {}), **_module_options(tree, evaluator)}
    own_names.trees = {item.name: item for item in definitions}

    def read(item: ast.FunctionDef) -> BaseFunc:
        with known_vdevices(global_infos):
            return _read(item, Evaluator(Scopes(names), source), options)

    own_names.read = read
    for item in body:
        evaluator = Evaluator(Scopes(names), source)
        if isinstance(item, ast.FunctionDef):
            var = own_names.functions[item.name]
            if own_names.trees[item.name] is not item:
                raise evaluator.error(f'The module has two functions "{item.name}"', item)
            functions[var] = own_names.function(item.name)
        elif isinstance(item, ast.Expr):
            value = evaluator.value(item.value)
            if isinstance(value, C.ModuleAttributes):
                attrs.update(value.values)
                global_infos.update(value.global_infos)
        elif isinstance(item, ast.Assign) and _external_name(item):
            function = evaluator.value(item.value)
            if not isinstance(function, BaseFunc):
                raise evaluator.error("Only functions have names in a module", item)
            functions.update({own_names.functions[name]: function for name in _external_name(item)})
        elif not isinstance(item, ast.Pass):
            raise evaluator.error("A module contains functions and I.module_attrs(…) only", item)
    if own_names.builder is not None:
        functions.update(own_names.builder.get().functions)
    return IRModule(functions, attrs, global_infos)


def _stays_python(item: ast.stmt) -> bool:
    """Whether a function of a module is marked by `I.pyfunc`."""
    return isinstance(item, ast.FunctionDef) and any(
        ast.unparse(decorator).rpartition(".")[2] == "pyfunc" for decorator in item.decorator_list
    )


def _module_options(tree: ast.ClassDef, evaluator: Evaluator) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for decorator in tree.decorator_list:
        options.update(decorator_options(decorator, evaluator))
        if ast.unparse(decorator) == "tvm.script.tir":
            options["functions"] = "tir"  # before TVM 0.8, functions had no decorators
    return options


def _external_name(item: ast.stmt) -> list[str]:
    """The name that a module gives a function from elsewhere: `f = R.ExternFunc("…")`."""
    match item:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
            return [name]
    return []


def _read(
    tree: ast.FunctionDef, evaluator: Evaluator, module_options: Mapping[str, Any]
) -> BaseFunc:
    names = []
    for decorator in tree.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.append(ast.unparse(function))
        read = FUNCTION_READERS.get(names[-1].rpartition(".")[2])
        if read is not None:
            options = {**module_options, **decorator_options(decorator, evaluator)}
            return read(tree, evaluator, options)
    if not names and module_options.get("functions") == "tir":
        return read_prim_func(tree, evaluator, module_options)
    reason = f"@{', @'.join(names)} does not make" if names else "It has no decorator that makes"
    choices = " or ".join(f"`{name}`" for name in FUNCTION_READERS if name != "tir")
    raise evaluator.error(
        f'What is the function "{tree.name}"? {reason} a function of a module; {choices} does', tree
    )


def decorator_options(decorator: ast.expr, evaluator: Evaluator) -> dict[str, Any]:
    """The keyword arguments of a decorator."""
    if not isinstance(decorator, ast.Call):
        return {}
    return {key.arg: evaluator.value(key.value) for key in decorator.keywords if key.arg}


def read_prim_func(
    tree: ast.FunctionDef, evaluator: Evaluator, options: Mapping[str, Any]
) -> PrimFunc:
    """The PrimFunc that a definition describes.

    Options: `private` for a function that is not called by name from outside,
    `check_well_formed=False` to leave the checks out, and `s_tir` for one in the spelling of TVM
    since 2026.
    """
    checked = bool(options.get("check_well_formed", True))
    function = FunctionFrame(tree.name, checked)
    if options.get("s_tir"):
        # There a block allocates by T.sblock_alloc_buffer, and this is a statement.
        evaluator.renamed = {"alloc_buffer": "decl_buffer"}
    scopes = evaluator.scopes
    scopes.push()
    declared = _declared_types(tree)
    check_parameters(tree, evaluator)
    for argument in tree.args.args:
        _parameter(function, argument, declared, evaluator)
    parser = StatementParser(evaluator, function)
    with parser.indented() as inside:
        parser.statements(tree.body)
    body = inside.statement or Evaluate(const(0))
    private, returns = bool(options.get("private")), _return_type(tree, evaluator)
    if private and "global_symbol" in function.attrs:
        raise evaluator.error(
            f'"{tree.name}" is private, so it has no "global_symbol", the name by which a function '
            "is called from outside; leave out one of the two",
            tree,
        )
    result = finish(parser, body, returns, private, evaluator.span(tree))
    if checked:
        check_well_formed(result, {realize.block for realize in parser.inferred})
    return result


def _return_type(tree: ast.FunctionDef, evaluator: Evaluator) -> str | None:
    if tree.returns is None:
        return None
    value = evaluator.value(tree.returns)
    if value is None or isinstance(value, (ScalarType, str)):
        return None if value is None else str(value)
    raise evaluator.error("A PrimFunc returns nothing or a scalar type such as T.int32", tree)


def _declared_types(tree: ast.FunctionDef) -> dict[str, str]:
    """Types of the variables that scalar parameters and the body declare: the shapes of parameters
    may use them earlier."""
    types: dict[str, str] = {}
    for argument in tree.args.args:
        match argument.annotation:
            case ast.Attribute(attr=dtype) if dtype in ("int32", "int64"):
                types[argument.arg] = dtype
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(attr=dtype), args=[], keywords=[]),
            ) if dtype in ("int32", "int64"):
                types[name] = dtype
    return types


def check_parameters(tree: ast.FunctionDef, evaluator: Evaluator) -> None:
    """An error where a parameter is of a kind that functions of scripts do not have."""
    arguments = tree.args
    others = (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg, *arguments.defaults)
    unusual = next((other for other in others if other is not None), None)
    if unusual is not None:
        raise evaluator.error("Parameters are positional and have no defaults", unusual)


def _parameter(
    function: FunctionFrame, argument: ast.arg, declared: Mapping[str, str], evaluator: Evaluator
) -> None:
    name, annotation = argument.arg, argument.annotation
    if annotation is None:
        raise evaluator.error(
            f'The parameter "{name}" needs a type: T.Buffer((n, m), "float32"), T.handle or a '
            "scalar such as T.int32",
            argument,
        )
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = unquoted(annotation.value, annotation)
    value = evaluator.value(_named_shape(function, annotation, declared, evaluator))
    span = evaluator.span(argument)
    if isinstance(value, Buffer):
        handle = E.Var(f"{name}_handle", "handle", span=span)
        function.buffer_map[handle] = name_buffer(value, name)
        function.params.append(handle)
        evaluator.scopes.bind(name, function.buffer_map[handle], f'the buffer "{name}"')
        return
    pointer = value.type_annotation if isinstance(value, E.Var) else None
    dtype = value.dtype if isinstance(value, E.Var) else scalar_type(value)
    if dtype is None:
        raise evaluator.error(f"{describe(value)} is not a type of a parameter", annotation)
    var = function.extents.get(name)
    if var is None or var.dtype != dtype:
        var = E.Var(name, dtype, pointer, span=span)
    function.params.append(var)
    evaluator.scopes.bind(name, var, f'a parameter of "{function.name}"')


def _named_shape(
    function: FunctionFrame, annotation: Any, declared: Mapping[str, str], evaluator: Evaluator
) -> Any:
    """The annotation with the strings of its shape read as expressions; names that are new become
    variables, as in `T.Buffer(("n", 16), "float32")`."""
    match annotation:
        case ast.Call(func=kind, args=[ast.Tuple(elts=extents) as shape, *rest]):
            options = annotation.keywords
        case ast.Subscript(
            value=kind, slice=ast.Tuple(elts=[ast.Tuple(elts=extents) as shape, *rest])
        ):
            options = []
        case _:
            return annotation
    if not any(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in extents):
        return annotation
    read = [_read_extent(function, extent, declared, evaluator) for extent in extents]
    named = ast.copy_location(ast.Tuple(read, ast.Load()), shape)
    call = ast.Call(kind, [named, *rest], options)
    return ast.copy_location(call, annotation)


def _read_extent(
    function: FunctionFrame, extent: ast.expr, declared: Mapping[str, str], evaluator: Evaluator
) -> ast.expr:
    if not (isinstance(extent, ast.Constant) and isinstance(extent.value, str)):
        return extent
    read = unquoted(extent.value, extent)
    for part in ast.walk(read):
        if isinstance(part, ast.Name) and _is_new_extent(part.id, evaluator):
            var = E.Var(part.id, declared.get(part.id, "int32"), span=evaluator.span(extent))
            function.extents[part.id] = var
            evaluator.scopes.bind(part.id, var, "a shape variable")
    return read


def _is_new_extent(name: str, evaluator: Evaluator) -> bool:
    """Whether a name in a quoted extent is a variable that it introduces."""
    value = evaluator.scopes.find(name)
    return not (evaluator.scopes.is_script_name(name) or isinstance(value, (ModuleType, TypeVar)))


def unquoted(text: str, at: ast.expr) -> ast.expr:
    """An expression that stands in a string; its parts have the place of the string."""
    expression = ast.parse(text, mode="eval").body
    for part in ast.walk(expression):
        ast.copy_location(part, at)
    return expression


def _read_graph_function(*arguments: Any, **options: Any) -> BaseFunc:
    # The graph level is loaded with its first function: it is as much as all else.
    from mlcweb.script.parser.graph_functions import read_function

    return read_function(*arguments, **options)


FUNCTION_READERS: dict[str, FunctionReader] = {
    "prim_func": read_prim_func,
    "tir": read_prim_func,
    "function": _read_graph_function,
}
"""How to read a function, by the last name of its decorator. Other dialects add theirs."""


def no_definition(what: str) -> DiagnosticError:
    return DiagnosticError(f"{what} has no definition decorated with @I.ir_module or @T.prim_func")
