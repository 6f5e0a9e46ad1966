"""What a function uses although nothing in it defines it: flat views, which lowering lays over the
memory of buffers, and free variables. The text has to say what they are."""

from __future__ import annotations

from functools import cache
from typing import Any

from mlcweb.ir.node import Node
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.script.printer.buffers import buffer_arguments, define_buffer
from mlcweb.script.printer.expressions import string, type_text
from mlcweb.script.printer.writer import Writer
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, MatchBufferRegion
from mlcweb.tir.function import PrimFunc


class _Definitions:
    def __init__(self, func: PrimFunc) -> None:
        self.defined: set[Node] = set(func.params)
        self.bound: set[Node] = set()
        """Variables to which a statement of the body gives a value."""
        self.used: dict[Node, None] = {}
        self.threads: dict[E.Var, str] = {}
        """The axes of variables that are used outside of their launch, too."""
        for buffer in func.buffer_map.values():
            self.define(buffer, with_shape=True)
        for node in walk(func.body):
            self.enter(node)

    def enter(self, node: Node) -> None:
        if isinstance(node, E.Var):
            self.used[node] = None
        elif isinstance(node, (E.BufferLoad, S.BufferStore, BufferRegion)):
            self.used[node.buffer] = None
        elif isinstance(node, S.AttrStmt) and isinstance(node.node, S.IterVar):
            if node.node.var in self.used:
                self.threads[node.node.var] = node.node.thread_tag
            self.define(node.node.var)
        elif isinstance(node, S.AttrStmt) and isinstance(node.node, (E.Var, Buffer)):
            self.used[node.node] = None
        elif isinstance(node, S.DeclBuffer):
            self.define(node.buffer, defines_memory=False)
        else:
            if isinstance(node, S.LetStmt):
                self.bound.add(node.var)
            for name in _defining_fields(type(node)):
                self.define(getattr(node, name), isinstance(node, MatchBufferRegion))

    def define(self, thing: Any, with_shape: bool = False, defines_memory: bool = True) -> None:
        if isinstance(thing, tuple):
            for item in thing:
                self.define(item, with_shape)
            return
        self.defined.add(thing)
        if isinstance(thing, Buffer):
            if defines_memory:
                self.defined.add(thing.data)
            else:
                self.used[thing.data] = None
            self.defined.update(_variables(thing.elem_offset, *thing.strides))
            if with_shape:
                self.defined.update(_variables(*thing.shape))
            else:
                self.used.update(dict.fromkeys(_variables(*thing.shape)))


@cache
def _defining_fields(cls: type[Node]) -> tuple[str, ...]:
    return tuple(name for name, role in cls.role_of_field.items() if role == "definition")


def _variables(*values: E.PrimExpr) -> list[E.Var]:
    return [node for value in values for node in find_nodes(value, E.Var)]


def declare_undeclared(writer: Writer, func: PrimFunc) -> None:
    """Write, at the start of a function, what it uses and does not define. A view of memory that
    it allocates has to wait for the allocation, a shape or an offset for the values in it."""
    definitions, names = _Definitions(func), writer.names
    free = [thing for thing in definitions.used if thing not in definitions.defined]
    buffers = [thing for thing in free if isinstance(thing, Buffer)]
    memory = {buffer.data for buffer in buffers}
    for var, tag in definitions.threads.items():
        writer.write(f"{names.define(var, var.name)} = T.env_thread({string(tag)})")
    for thing in free:
        if isinstance(thing, E.Var) and thing not in memory:
            _declare_variable(writer, thing)
    for buffer in buffers:
        layout = _variables(*buffer.shape, *buffer.strides, buffer.elem_offset)
        needed = {var for var in layout if var in definitions.bound}
        if buffer.data in definitions.defined:
            needed.add(buffer.data)
        missing = {var for var in needed if not names.knows(var)}
        if missing:
            writer.undeclared[buffer] = missing
        else:
            _declare(writer, buffer)


def declare_for_statement(writer: Writer, whole: PrimFunc) -> None:
    """Write, in the order of their use, what a statement that stands alone uses and does not
    define; `whole` has it as its body."""
    definitions = _Definitions(whole)
    free = [thing for thing in definitions.used if thing not in definitions.defined]
    memory = {thing.data for thing in free if isinstance(thing, Buffer)}
    for thing in free:
        if isinstance(thing, Buffer):
            for var in _variables(*thing.shape, *thing.strides, thing.elem_offset):
                _declare_variable(writer, var)
            _declare(writer, thing)
        elif isinstance(thing, E.Var) and thing not in memory:
            _declare_variable(writer, thing)


def _declare_variable(writer: Writer, var: E.Var) -> None:
    if not writer.names.knows(var):
        if var.type_annotation is None:
            writer.write(writer.names.declaration(var))
        else:
            writer.write(f"{writer.names.define(var, var.name)} = {type_text(var)}")


def _declare(writer: Writer, buffer: Buffer) -> None:
    names = writer.names
    text = buffer_arguments(names, buffer, is_view=names.knows(buffer.data))
    with writer.placing(buffer):
        writer.write(f"{define_buffer(names, buffer)} = T.Buffer({text})")


def declare_with(writer: Writer, var: E.Var) -> None:
    """Write the buffers that waited for a variable, which a line before defines, and for no other
    that is not known yet."""
    for buffer, missing in writer.undeclared.items():
        if var in missing and all(writer.names.knows(other) for other in missing):
            _declare(writer, buffer)
