"""A module as one line of a file of workloads.

TVM writes its graph of nodes as JSON, with eight bytes before it that tell its length, in base64.
So do we; only a program that has no such form is written as its script, for us alone to read.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.op import Op, register_op
from mlcweb.meta_schedule.database.tvm_graph_writer import ARITHMETIC, Unwritable, graph_of
from mlcweb.script import from_source
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc

_SCRIPT = "# from tvm.script import"


def save(module: IRModule) -> str:
    """A module as text, which TVM reads where it can be."""
    try:
        data = json.dumps(graph_of(module), separators=(",", ":")).encode()
    except Unwritable:
        return module.script()
    return base64.b64encode(len(data).to_bytes(8, "little") + data).decode()


def load(text: str) -> IRModule:
    """Read what `save` or TVM made.

    Raises:
        ValueError: it is something else, or holds what is not known here.
    """
    if text.startswith(_SCRIPT):
        module = from_source(text, runs=False)
        if isinstance(module, IRModule):
            return module
        raise ValueError("the script of a workload is no module")
    try:
        data = base64.b64decode(text, validate=True)
        graph = json.loads(data[8:])
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"a module is damaged: {error}") from None
    return module_of(graph)


class _BufferType:
    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields


class _Reader:
    def __init__(self, graph: dict[str, Any]) -> None:
        self.nodes = graph["nodes"]
        self.values: list[Any] = []

    def value(self, number: Any) -> Any:
        if not isinstance(number, int) or not 0 <= number < len(self.values):
            raise ValueError(f"node {number!r} is used before it is defined")
        return self.values[number]

    def read(self) -> None:
        for node in self.nodes:
            self.values.append(self.make(node["type"], node.get("data")))

    def make(self, kind: str, data: Any) -> Any:
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(self, data)
        # What is not looked at need not be understood: types of functions, places in sources.
        if kind.startswith(
            ("relax.", "ir.Source", "ir.Span", "ir.Tuple", "ir.FuncType", "ir.Type")
        ):
            return None
        raise ValueError(f"a module holds a {kind}, which is not known here")


def module_of(graph: dict[str, Any]) -> IRModule:
    """The module that a graph describes.

    Raises:
        ValueError: it describes something else, or something that is not known here.
    """
    try:
        reader = _Reader(graph)
        reader.read()
        module = reader.value(graph["root_index"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no saved module: {type(error).__name__}: {error}") from None
    if not isinstance(module, IRModule):
        raise ValueError(f"this is a saved {type(module).__name__}, no module")
    return module


def _module(reader: _Reader, data: dict[str, Any]) -> IRModule:
    functions = reader.value(data["functions"])
    module = IRModule({var.name_hint: func for var, func in functions.items()})
    for name, func in module.functions.items():
        if not isinstance(func, PrimFunc):
            raise ValueError(f'"{name.name_hint}" is no TensorIR function')
    return module


def _prim_func(reader: _Reader, data: dict[str, Any]) -> PrimFunc:
    attrs = {
        without_prefix(key): value
        for key, value in (reader.value(data["attrs"]) or {}).items()
        if key != "s_tir"
    }
    params, buffers = [], {}
    for param in reader.value(data["params"]):
        if isinstance(param, Buffer):
            handle = E.Var(param.name + "_handle", "handle")
            buffers[handle] = param
            param = handle
        params.append(param)
    body = reader.value(data["body"])
    return PrimFunc(tuple(params), body, buffer_map=buffers, attrs=attrs)


def _var(reader: _Reader, data: dict[str, Any]) -> E.Var | Buffer:
    kind, name = reader.value(data["ty"]), reader.value(data["name"])
    if not isinstance(kind, _BufferType):
        return E.Var(name, kind)
    of = kind.fields
    dtype = reader.value(of["dtype"])
    pointer = E.PointerType(dtype, reader.value(of["storage_scope"]))
    return Buffer(
        E.Var(name, "handle", pointer),
        dtype,
        reader.value(of["shape"]),
        reader.value(of["strides"]),
        reader.value(of["elem_offset"]),
        name,
        of["data_alignment"],
        of["offset_factor"],
    )


def _call(reader: _Reader, data: dict[str, Any]) -> E.Call:
    return E.Call(reader.value(data["ty"]), reader.value(data["op"]), reader.value(data["args"]))


def _op(reader: _Reader, data: str) -> Op:
    return register_op(without_prefix(data.replace("prim.", "tir.", 1)))


def _for(reader: _Reader, data: dict[str, Any]) -> S.For:
    step = reader.value(data["step"])
    if step is not None and not (isinstance(step, E.IntImm) and step.value == 1):
        raise ValueError("a loop has a step, which is not known here")
    names = ("loop_var", "min", "extent", "body", "thread_binding", "annotations")
    fields = {name: reader.value(data[name]) for name in names}
    return S.For(kind=S.ForKind(data["kind"]), **fields)


def _iter_var(reader: _Reader, data: dict[str, Any]) -> S.IterVar:
    dom, var = reader.value(data["dom"]), reader.value(data["var"])
    return S.IterVar(dom, var, S.IterType(data["iter_type"]), reader.value(data["thread_tag"]))


def _mapping(reader: _Reader, data: list[int]) -> dict[Any, Any]:
    pairs = zip(data[::2], data[1::2], strict=True)
    return {reader.value(key): reader.value(value) for key, value in pairs}


def _fields(cls: type, *names: str, **renamed: str) -> Callable[[_Reader, Any], Any]:
    def read(reader: _Reader, data: dict[str, Any]) -> Any:
        arguments = {name: reader.value(data[renamed.get(name, name)]) for name in names}
        return cls(**arguments)

    return read


def _as_it_is(reader: _Reader, data: Any) -> Any:
    return data


_BLOCK_FIELDS = (
    "iter_vars", "reads", "writes", "name_hint", "body", "init", "alloc_buffers", "match_buffers",
    "annotations",
)  # fmt: skip

_RULES: dict[str, Callable[[_Reader, Any], Any]] = {
    "None": lambda reader, data: None,
    "int": _as_it_is,
    "bool": _as_it_is,
    "float": _as_it_is,
    "ffi.String": _as_it_is,
    "ffi.Array": lambda reader, data: tuple(reader.value(number) for number in data),
    "ffi.Map": _mapping,
    "ir.IRModule": _module,
    "ir.DictAttrs": lambda reader, data: reader.value(data["__dict__"]),
    "ir.GlobalVar": lambda reader, data: GlobalVar(reader.value(data["name_hint"])),
    "ir.PrimType": lambda reader, data: data["dtype"],
    "ir.IntImm": _fields(E.IntImm, "dtype", "value", dtype="ty"),
    "ir.FloatImm": lambda reader, data: E.FloatImm(reader.value(data["ty"]), data["value"]),
    "ir.StringImm": _fields(E.StringImm, "value"),
    "ir.Var": _var,
    "ir.Op": _op,
    "ir.Call": _call,
    "ir.Range": _fields(Range, "min", "extent"),
    "ir.TensorLoad": _fields(E.BufferLoad, "buffer", "indices", buffer="source"),
    "ir.TensorRegion": _fields(BufferRegion, "buffer", "region", buffer="source"),
    "prim.Not": _fields(E.Not, "a"),
    "prim.Cast": _fields(E.Cast, "dtype", "value", dtype="ty"),
    "prim.Select": _fields(E.Select, "condition", "true_value", "false_value"),
    "tirx.BufferType": lambda reader, data: _BufferType(data),
    "tirx.BufferRegionType": lambda reader, data: None,
    "tirx.PrimFunc": _prim_func,
    "tirx.IterVar": _iter_var,
    "tirx.For": _for,
    "tirx.BufferStore": _fields(S.BufferStore, "buffer", "value", "indices"),
    "tirx.SeqStmt": _fields(S.SeqStmt, "seq"),
    "tirx.Evaluate": _fields(S.Evaluate, "value"),
    "tirx.IfThenElse": _fields(S.IfThenElse, "condition", "then_case", "else_case"),
    "s_tir.SBlock": _fields(S.Block, *_BLOCK_FIELDS),
    "s_tir.SBlockRealize": _fields(S.BlockRealize, "iter_values", "predicate", "block"),
    **{name: _fields(cls, "a", "b") for cls, name in ARITHMETIC.items()},
}
