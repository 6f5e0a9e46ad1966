"""Functions and modules as TVMScript."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from mlcweb.ir.global_info import known_vdevices
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.script.printer.buffers import buffer_arguments, define_buffer, is_plain
from mlcweb.script.printer.expressions import dictionary, type_text
from mlcweb.script.printer.names import identifier
from mlcweb.script.printer.statements import allocation, statement
from mlcweb.script.printer.undeclared import declare_undeclared
from mlcweb.script.printer.writer import Writer
from mlcweb.script.root_block import implicit_root
from mlcweb.tir import expr as E
from mlcweb.tir.function import PrimFunc

IR_IMPORT = "# from tvm.script import ir as I"
TIR_IMPORT = "# from tvm.script import tir as T"

FunctionPrinter = Callable[[Writer, str, Any], None]

Imports = str | Callable[[Any], Sequence[str]]
"""The import line that functions of a dialect need, or the lines that a function needs."""

function_printers: dict[type, tuple[FunctionPrinter, Imports, int]] = {}
"""How to write the functions of a dialect: printer, imports, and rank in a module."""

node_printers: dict[type, Callable[[Writer, Any], None]] = {}
"""How to write what stands alone and is no function, of other dialects than TensorIR."""


def module(writer: Writer, mod: IRModule) -> None:
    """Write a module: its functions by dialect, then by name."""
    functions = sorted(mod.functions.items(), key=lambda item: (_rank(item[1]), item[0].name_hint))
    writer.in_module = True
    writer.write(IR_IMPORT)
    for line in _imports([func for _, func in functions]):
        writer.write(writer.dialect.of(line))
    writer.write("")
    writer.write("@I.ir_module")
    with writer.placing(mod):
        writer.write("class Module:")
        _module_body(writer, mod, functions)


def _module_body(
    writer: Writer, mod: IRModule, functions: Sequence[tuple[GlobalVar, BaseFunc]]
) -> None:
    with writer.indented():
        if mod.attrs:
            writer.write(f"I.module_attrs({dictionary(writer.names, mod.attrs)})")
        if mod.global_infos:
            infos = {name: list(items) for name, items in mod.global_infos.items()}
            writer.write(f"I.module_global_infos({dictionary(writer.names, infos)})")
        if not (mod.attrs or mod.global_infos or functions):
            writer.write("pass")
        with known_vdevices(mod.global_infos):
            for index, (var, func) in enumerate(functions):
                if index:
                    writer.write("")
                _function(writer, var.name_hint, func)


def standalone(writer: Writer, func: BaseFunc) -> None:
    """Write a function outside a module, under the name that is asked for, or its global symbol
    ("main" where it has none)."""
    for line in _imports([func]):
        writer.write(writer.dialect.of(line))
    writer.write("")
    name = writer.function_name or str(func.attrs.get("global_symbol", "main"))
    _function(writer, name, func)


def _imports(functions: Sequence[BaseFunc]) -> list[str]:
    """The import lines of functions, TensorIR's first."""
    lines: dict[str, None] = {}
    for func in functions:
        imports = function_printers[type(func)][1]
        lines.update(dict.fromkeys([imports] if isinstance(imports, str) else imports(func)))
    return sorted(lines, key=lambda line: line != TIR_IMPORT)


def _rank(func: BaseFunc) -> int:
    return function_printers[type(func)][2]


def _function(writer: Writer, name: str, func: BaseFunc) -> None:
    with writer.names.scope():
        function_printers[type(func)][0](writer, identifier(name), func)


def prim_func(writer: Writer, name: str, func: PrimFunc) -> None:
    """Write a PrimFunc."""
    options = ["private=True"] if func.attrs.get("global_symbol") is None else []
    if writer.dialect.marks_functions:
        options.append("s_tir=True")
    writer.write(f"@T.prim_func({', '.join(options)})" if options else "@T.prim_func")
    with writer.placing(func):
        matches: list[tuple[str, Any]] = []
        named = _named_handles(func)
        parameters = ", ".join(_parameter(writer, func, p, matches, named) for p in func.params)
        returns = f" -> T.{func.ret_type}" if func.ret_type else ""
        writer.write(f"def {name}({parameters}){returns}:")
        attrs = {
            writer.dialect.prefixed(key): value
            for key, value in func.attrs.items()
            if key != "global_symbol" or value != name
        }
        with writer.indented():
            if attrs:
                writer.write(f"T.func_attr({dictionary(writer.names, attrs)})")
            _match_parameters(writer, matches)
            start, writer.names.has_undefined = len(writer.lines), False
            with writer.names.scope():
                _function_body(writer, func)
            if writer.names.has_undefined:  # as a rule, all is defined
                writer.rewind(start)
                declare_undeclared(writer, func)
                _function_body(writer, func)


def _named_handles(func: PrimFunc) -> set[E.Var]:
    """The parameters of buffers that need a name: the body uses them, or their memory is that of
    several."""
    memory = Counter(buffer.data for buffer in func.buffer_map.values())
    named = {param for param, buffer in func.buffer_map.items() if memory[buffer.data] > 1}
    if func.buffer_map:
        used = set(walk(func.body))
        named.update(param for param in func.buffer_map if param in used)
    return named


def _parameter(
    writer: Writer,
    func: PrimFunc,
    param: E.Var,
    matches: list[tuple[str, Any]],
    named: Collection[E.Var],
) -> str:
    buffer = func.buffer_map.get(param)
    if buffer is not None and is_plain(buffer) and param not in named:
        text = buffer_arguments(writer.names, buffer, with_dtype=True)
        writer.names.alias(param, f"{buffer.name}_handle")
        return f"{define_buffer(writer.names, buffer)}: T.Buffer({text})"
    hint = param.name
    if buffer is not None and hint in (buffer.name, f"{buffer.name}_handle"):
        hint = f"var_{buffer.name}"
    name = writer.names.define(param, hint)
    if buffer is not None:
        matches.append((name, buffer))
    return f"{name}: {type_text(param)}"


def _match_parameters(writer: Writer, matches: list[tuple[str, Any]]) -> None:
    """Write the symbolic variables of buffers, then the buffers, in the order of parameters."""
    for _, buffer in matches:
        for value in (*buffer.shape, *buffer.strides):
            for var in find_nodes(value, E.Var):
                if not writer.names.knows(var):
                    writer.write(writer.names.declaration(var))
    for handle, buffer in matches:
        text = buffer_arguments(writer.names, buffer, is_view=writer.names.knows(buffer.data))
        with writer.placing(buffer):
            writer.write(
                f"{define_buffer(writer.names, buffer)} = T.match_buffer({handle}, {text})"
            )


def _function_body(writer: Writer, func: PrimFunc) -> None:
    root = implicit_root(func.body) if writer.sugar else None
    if root is None:
        statement(writer, func.body)
        return
    with writer.placing(func.body, root):
        writer.write(f'# with {writer.dialect.of("T.block")}("root"):')
        for buffer in root.alloc_buffers:
            allocation(writer, buffer)
        statement(writer, root.body)


function_printers[PrimFunc] = (prim_func, TIR_IMPORT, 1)
