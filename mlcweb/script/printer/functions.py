"""Functions and modules as TVMScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.visitor import walk
from mlcweb.script.printer.buffers import buffer_arguments, define_buffer, is_plain
from mlcweb.script.printer.expressions import dictionary
from mlcweb.script.printer.names import identifier
from mlcweb.script.printer.page import Page
from mlcweb.script.printer.statements import allocation, statement, type_text
from mlcweb.script.root_block import implicit_root
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

IR_IMPORT = "# from tvm.script import ir as I"
TIR_IMPORT = "# from tvm.script import tir as T"

FunctionPrinter = Callable[[Page, str, Any], None]

Imports = str | Callable[[Any], Sequence[str]]
"""The import line that functions of a dialect need, or the lines that a function needs."""

function_printers: dict[type, tuple[FunctionPrinter, Imports, int]] = {}
"""How to write the functions of a dialect: printer, imports, and rank in a module."""

node_printers: dict[type, Callable[[Page, Any], None]] = {}
"""How to write what stands alone and is no function, of other dialects than TensorIR."""


def module(page: Page, mod: IRModule) -> None:
    """Write a module: its functions by dialect, then by name."""
    functions = sorted(mod.functions.items(), key=lambda item: (_rank(item[1]), item[0].name_hint))
    page.in_module = True
    page.write(IR_IMPORT)
    for line in _imports([func for _, func in functions]):
        page.write(page.dialect.of(line))
    page.write("")
    page.write("@I.ir_module")
    page.write("class Module:")
    with page.indented():
        if mod.attrs:
            page.write(f"I.module_attrs({dictionary(page.names, mod.attrs)})")
        elif not functions:
            page.write("pass")
        for index, (var, func) in enumerate(functions):
            if index:
                page.write("")
            _function(page, var.name_hint, func)


def standalone(page: Page, func: BaseFunc) -> None:
    """Write a function outside a module, under its global symbol ("main" where it has none)."""
    for line in _imports([func]):
        page.write(page.dialect.of(line))
    page.write("")
    _function(page, str(func.attrs.get("global_symbol", "main")), func)


def _imports(functions: Sequence[BaseFunc]) -> list[str]:
    """The import lines of functions, TensorIR's first."""
    lines: dict[str, None] = {}
    for func in functions:
        imports = function_printers[type(func)][1]
        lines.update(dict.fromkeys([imports] if isinstance(imports, str) else imports(func)))
    return sorted(lines, key=lambda line: line != TIR_IMPORT)


def _rank(func: BaseFunc) -> int:
    return function_printers[type(func)][2]


def _function(page: Page, name: str, func: BaseFunc) -> None:
    with page.names.scope():
        function_printers[type(func)][0](page, identifier(name), func)


def prim_func(page: Page, name: str, func: PrimFunc) -> None:
    """Write a PrimFunc."""
    options = ["private=True"] if func.attrs.get("global_symbol") is None else []
    if page.dialect.marks_functions:
        options.append("s_tir=True")
    page.write(f"@T.prim_func({', '.join(options)})" if options else "@T.prim_func")
    with page.placing(func):
        matches: list[tuple[str, Any]] = []
        parameters = ", ".join(_parameter(page, func, p, matches) for p in func.params)
        returns = f" -> T.{func.ret_type}" if func.ret_type else ""
        page.write(f"def {name}({parameters}){returns}:")
        attrs = {
            page.dialect.prefixed(key): value
            for key, value in func.attrs.items()
            if key != "global_symbol" or value != name
        }
        with page.indented():
            if attrs:
                page.write(f"T.func_attr({dictionary(page.names, attrs)})")
            _match_parameters(page, matches)
            _function_body(page, func)


def _parameter(page: Page, func: PrimFunc, param: E.Var, matches: list[tuple[str, Any]]) -> str:
    buffer = func.buffer_map.get(param)
    if buffer is not None and is_plain(buffer) and not page.names.knows(buffer.data):
        text = buffer_arguments(page.names, buffer, with_dtype=True)
        page.names.alias(param, f"{buffer.name}_handle")
        return f"{define_buffer(page.names, buffer)}: T.Buffer({text})"
    hint = param.name
    if buffer is not None and hint in (buffer.name, f"{buffer.name}_handle"):
        hint = f"var_{buffer.name}"
    name = page.names.define(param, hint)
    if buffer is not None:
        matches.append((name, buffer))
    return f"{name}: {type_text(param)}"


def _match_parameters(page: Page, matches: list[tuple[str, Any]]) -> None:
    """Write the symbolic variables of buffers, then the buffers, in the order of parameters."""
    for _, buffer in matches:
        for value in (*buffer.shape, *buffer.strides):
            for var in walk(value):
                if isinstance(var, E.Var) and not page.names.knows(var):
                    page.write(f"{page.names.define(var, var.name)} = T.{var.dtype}()")
    for handle, buffer in matches:
        text = buffer_arguments(page.names, buffer)
        with page.placing(buffer):
            page.write(f"{define_buffer(page.names, buffer)} = T.match_buffer({handle}, {text})")


def _function_body(page: Page, func: PrimFunc) -> None:
    root = implicit_root(func.body)
    if root is None:
        statement(page, func.body)
        return
    with page.placing(func.body, root):
        page.write(f'# with {page.dialect.of("T.block")}("root"):')
        for buffer in root.alloc_buffers:
            allocation(page, buffer)
        statement(page, root.body)


function_printers[PrimFunc] = (prim_func, TIR_IMPORT, 1)
