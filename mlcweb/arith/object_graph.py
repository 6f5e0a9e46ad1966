"""Programs and index maps as the graphs of nodes in which TVM 0.27 saves its objects as JSON.

    {"root_index": 8, "nodes": [{"type": "None"}, {"type": "ir.PrimType", "data": {…}}, …]}

A node has a type and its data; what it refers to is given by number, and comes before it. Number 0
is nothing at all. Of a type only what follows the last dot is looked at when reading, as what is
before it changes from one TVM to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.array import Array
from mlcweb.ir.dialect import S_TIR, without_prefix
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op, register_op
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import BINARY_NODES

IN_PRIM = frozenset({"tir.if_then_else", "tir.likely", "tir.clz", "tir.ceil", "tir.log2"})
"""Operators that TVM has under `prim.` instead."""


class Unwritable(ValueError):
    """A program holds something that this form has no place for."""


def graph_of(value: IRModule | IndexMap) -> dict[str, Any]:
    """The graph of a module or an index map. In that of a map, an expression that stands in several
    places is one node.

    Raises:
        Unwritable: it holds something else than TensorIR functions, or parts that have no form.
    """
    writer = _Writer(shares_expressions=isinstance(value, IndexMap))
    root = writer.put(value)
    return {"root_index": root, "nodes": writer.nodes}


def value_of(graph: dict[str, Any]) -> Any:
    """What a graph describes.

    Raises:
        ValueError: it describes something that is not known here.
    """
    try:
        reader = _Reader()
        for node in graph["nodes"]:
            reader.values.append(reader.read(node["type"], node.get("data")))
        return reader.value(graph["root_index"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no saved object: {type(error).__name__}: {error}") from None


class _Form(NamedTuple):
    """How a class of nodes is saved.

    Attributes:
        kind: what TVM calls the type.
        fields: of the class, and what TVM calls them; others are called the same.
        plain: fields that are no numbers of nodes, and what makes their values.
        rest: what TVM has beside them. "ty" is the type of an expression, or what is given here.
    """

    cls: type[Any]
    kind: str
    fields: Mapping[str, str]
    plain: Mapping[str, Callable[[Any], Any]]
    rest: Mapping[str, Any]


def _form(
    cls: type[Any],
    kind: str,
    fields: str,
    *,
    renamed: Mapping[str, str] | None = None,
    plain: Mapping[str, Callable[[Any], Any]] | None = None,
    **rest: Any,
) -> _Form:
    names = {name: (renamed or {}).get(name, name) for name in fields.split()}
    return _Form(cls, kind, names, plain or {}, {"span": 0, **rest})


_TYPE = object()
"""For the type of an expression."""

_FORMS = (
    *(_form(each, f"prim.{each.__name__}", "a b", ty=_TYPE) for each in BINARY_NODES),
    _form(E.Not, "prim.Not", "a", ty=_TYPE),
    _form(E.Cast, "prim.Cast", "dtype value", renamed={"dtype": "ty"}),
    _form(E.Select, "prim.Select", "condition true_value false_value", ty=_TYPE),
    _form(E.IntImm, "ir.IntImm", "dtype value", renamed={"dtype": "ty"}),
    _form(
        E.FloatImm, "ir.FloatImm", "dtype value", renamed={"dtype": "ty"}, plain={"value": float}
    ),
    _form(E.StringImm, "ir.StringImm", "value", ty=0),
    _form(E.BufferLoad, "ir.TensorLoad", "buffer indices", renamed={"buffer": "source"}, ty=_TYPE),
    _form(BufferRegion, "ir.TensorRegion", "buffer region", renamed={"buffer": "source"}, ty=None),
    _form(Range, "ir.Range", "min extent"),
    _form(
        S.IterVar, "tirx.IterVar", "dom var iter_type thread_tag", plain={"iter_type": S.IterType}
    ),
    _form(
        S.Block,
        "s_tir.SBlock",
        "iter_vars reads writes name_hint alloc_buffers match_buffers annotations init body",
    ),
    _form(S.BlockRealize, "s_tir.SBlockRealize", "iter_values predicate block"),
    _form(
        S.For,
        "tirx.For",
        "loop_var min extent kind body thread_binding annotations",
        plain={"kind": S.ForKind},
        step=0,
    ),
    _form(S.BufferStore, "tirx.BufferStore", "buffer value indices"),
    _form(S.SeqStmt, "tirx.SeqStmt", "seq"),
    _form(S.Evaluate, "tirx.Evaluate", "value"),
    _form(S.IfThenElse, "tirx.IfThenElse", "condition then_case else_case"),
    _Form(IndexMap, "tirx.IndexMap", {name: name for name in IndexMap.structural_fields}, {}, {}),
)

_BY_CLASS = {form.cls: form for form in _FORMS}
_BY_KIND = {form.kind.rpartition(".")[2]: form for form in _FORMS}


@dataclass(slots=True)
class _Writer:
    """A graph that grows by nodes and by what they refer to."""

    shares_expressions: bool
    nodes: list[dict[str, Any]] = field(default_factory=lambda: [{"type": "None"}])
    shared_nodes: dict[Any, int] = field(default_factory=dict)
    defined: dict[Node, int] = field(default_factory=dict)

    def node(self, kind: str, data: Any) -> int:
        self.nodes.append({"type": kind, "data": data})
        return len(self.nodes) - 1

    def shared(self, kind: str, data: Any) -> int:
        key = kind, str(data)
        if key not in self.shared_nodes:
            self.shared_nodes[key] = self.node(kind, data)
        return self.shared_nodes[key]

    def array(self, items: Iterable[Any]) -> int:
        return self.node("ffi.Array", [self.put(item) for item in items])

    def mapping(self, items: Mapping[Any, Any]) -> int:
        pairs = [number for k, v in items.items() for number in (self.put(k), self.put(v))]
        return self.node("ffi.Map", pairs)

    def dtype(self, name: str) -> int:
        return self.shared("ir.PrimType", {"span": 0, "dtype": name})

    def put(self, value: Any) -> int:
        """The number of a value; 0 for None."""
        form = _BY_CLASS.get(type(value))
        if form is not None:
            number = self.defined.get(value) or self.node(form.kind, self.data(form, value))
            if self.shares_expressions:
                self.defined[value] = number
            return number
        rule = _WRITERS.get(type(value))
        if rule is None:
            raise Unwritable(f"TVM's records have no form for a {type(value).__name__}")
        return rule(self, value)

    def data(self, form: _Form, value: Any) -> dict[str, Any]:
        data = dict(form.rest)
        if data.get("ty") is _TYPE:
            data["ty"] = self.dtype(value.dtype)
        elif form.cls is BufferRegion:
            data["ty"] = self.shared("tirx.BufferRegionType", {"span": 0})
        for name, theirs in form.fields.items():
            own = getattr(value, name)
            if name in form.plain:
                data[theirs] = float(own) if form.plain[name] is float else int(own)
            else:
                data[theirs] = self.dtype(own) if name == "dtype" else self.put(own)
        return data


def _put_module(writer: _Writer, module: IRModule) -> int:
    functions: list[int] = []
    by_name: list[int] = []
    for var, func in module.functions.items():
        if not isinstance(func, PrimFunc):
            raise Unwritable(f"TVM's records have no form for a {type(func).__name__}")
        if func.ret_type is not None:
            raise Unwritable("TVM's records have no form for a function that returns a value")
        signature = _signature(writer)
        name = writer.put(var.name_hint)
        variable = writer.node("ir.GlobalVar", {"span": 0, "ty": signature, "name_hint": name})
        functions += [variable, _put_function(writer, func, signature)]
        by_name += [name, variable]
    empty = writer.node("ffi.Map", [])
    return writer.node(
        "ir.IRModule",
        {
            "functions": writer.node("ffi.Map", functions),
            "global_var_map_": writer.node("ffi.Map", by_name),
            "source_map": writer.node("ir.SourceMap", {"source_map": empty}),
            "attrs": writer.node("ir.DictAttrs", {"__dict__": empty}),
            "global_infos": empty,
        },
    )


def _signature(writer: _Writer) -> int:
    """The type of a function, which TVM wants to be there and never reads: of no parameters."""
    data = {"params": writer.array(()), "ret": _nothing(writer), "derive_func": 0, "purity": False}
    return writer.node("relax.FuncType", {"span": 0, **data})


def _nothing(writer: _Writer) -> int:
    return writer.node("ir.TupleType", {"span": 0, "fields": writer.array(())})


def _put_function(writer: _Writer, func: PrimFunc, signature: int) -> int:
    attrs = {S_TIR.prefixed(key): value for key, value in func.attrs.items()} | {"s_tir": True}
    return writer.node(
        "tirx.PrimFunc",
        {
            "span": 0,
            "ty": signature,
            "attrs": writer.node("ir.DictAttrs", {"__dict__": writer.mapping(attrs)}),
            "params": writer.array(func.buffer_map.get(param, param) for param in func.params),
            "ret_type": _nothing(writer),
            "body": writer.put(func.body),
        },
    )


def _put_variable(writer: _Writer, of: Buffer | E.Var) -> int:
    if of not in writer.defined:
        kind = _buffer_type(writer, of) if isinstance(of, Buffer) else _variable_type(writer, of)
        data = {"span": 0, "ty": kind, "name": writer.put(of.name)}
        writer.defined[of] = writer.node("ir.Var", data)
    return writer.defined[of]


def _variable_type(writer: _Writer, var: E.Var) -> int:
    if var.type_annotation is not None:
        raise Unwritable(f'TVM\'s records have no form for the pointer "{var.name}"')
    return writer.dtype(var.dtype)


def _buffer_type(writer: _Writer, buffer: Buffer) -> int:
    if buffer.axis_separators:
        raise Unwritable("TVM's records have no form for axis separators")
    return writer.node(
        "tirx.BufferType",
        {
            "span": 0,
            "dtype": writer.dtype(buffer.dtype),
            "storage_scope": writer.put(buffer.scope()),
            "shape": writer.array(buffer.shape),
            "strides": writer.array(buffer.strides),
            "elem_offset": writer.put(buffer.elem_offset),
            "data_alignment": buffer.data_alignment,
            "offset_factor": buffer.offset_factor,
            "layout": 0,
            "allocated_addr": writer.array(()),
        },
    )


def _put_call(writer: _Writer, value: E.Call) -> int:
    if not isinstance(value.op, Op):
        raise Unwritable("TVM's records have no form for a call of another function")
    name = value.op.name
    in_prim = name in IN_PRIM
    op = writer.shared("ir.Op", name.replace("tir.", "prim.") if in_prim else S_TIR.prefixed(name))
    data = {"op": op, "args": writer.array(value.args), "attrs": 0, "ty_args": writer.array(())}
    return writer.node("ir.Call", {"span": 0, "ty": writer.dtype(value.dtype), **data})


_WRITERS: dict[type, Callable[[_Writer, Any], int]] = {
    type(None): lambda writer, value: 0,
    str: lambda writer, value: writer.shared("ffi.String", value),
    bool: lambda writer, value: writer.shared("bool", value),
    int: lambda writer, value: writer.shared("int", value),
    float: lambda writer, value: writer.node("float", value),
    list: _Writer.array,
    tuple: _Writer.array,
    Array: _Writer.array,
    dict: _Writer.mapping,
    IRModule: _put_module,
    Buffer: _put_variable,
    E.Var: _put_variable,
    E.Call: _put_call,
}


@dataclass(slots=True)
class _Reader:
    """The values of the nodes that were read."""

    values: list[Any] = field(default_factory=list)

    def value(self, number: Any) -> Any:
        if not isinstance(number, int) or not 0 <= number < len(self.values):
            raise ValueError(f"node {number!r} is used before it is defined")
        return self.values[number]

    def read(self, kind: str, data: Any) -> Any:
        """What a node describes; None where it need not be understood: types of functions,
        locations in sources."""
        if kind.startswith(_SKIPPED):
            return None
        last = kind.rpartition(".")[2]
        form, rule = _BY_KIND.get(last), _READERS.get(last)
        if rule is not None:
            return rule(self, data)
        if form is not None:
            return self.made(form, data)
        raise ValueError(f"it holds a {kind}, which is not known here")

    def made(self, form: _Form, data: dict[str, Any]) -> Any:
        step = self.value(data.get("step", 0))
        if step is not None and not (isinstance(step, E.IntImm) and step.value == 1):
            raise ValueError("a loop has a step, which is not known here")
        return form.cls(
            **{
                name: form.plain[name](data[theirs])
                if name in form.plain
                else self.value(data[theirs])
                for name, theirs in form.fields.items()
            }
        )


def _read_module(reader: _Reader, data: dict[str, Any]) -> IRModule:
    functions = reader.value(data["functions"])
    module = IRModule({var.name_hint: func for var, func in functions.items()})
    for name, func in module.functions.items():
        if not isinstance(func, PrimFunc):
            raise ValueError(f'"{name.name_hint}" is no TensorIR function')
    return module


def _read_function(reader: _Reader, data: dict[str, Any]) -> PrimFunc:
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


class _BufferType(NamedTuple):
    fields: dict[str, Any]


def _read_variable(reader: _Reader, data: dict[str, Any]) -> E.Var | Buffer:
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


def _read_call(reader: _Reader, data: dict[str, Any]) -> E.Call:
    return E.Call(reader.value(data["ty"]), reader.value(data["op"]), reader.value(data["args"]))


def _read_mapping(reader: _Reader, data: list[int]) -> dict[Any, Any]:
    pairs = zip(data[::2], data[1::2], strict=True)
    return {reader.value(key): reader.value(value) for key, value in pairs}


_SKIPPED = ("relax.", "ir.Source", "ir.Span", "ir.Tuple", "ir.FuncType", "ir.Type")

_READERS: dict[str, Callable[[_Reader, Any], Any]] = {
    "None": lambda reader, data: None,
    **dict.fromkeys(("int", "bool", "float", "String"), lambda reader, data: data),
    "Array": lambda reader, data: tuple(reader.value(number) for number in data),
    "Map": _read_mapping,
    "IRModule": _read_module,
    "DictAttrs": lambda reader, data: reader.value(data["__dict__"]),
    "GlobalVar": lambda reader, data: GlobalVar(reader.value(data["name_hint"])),
    "PrimType": lambda reader, data: data["dtype"],
    "Op": lambda reader, data: register_op(without_prefix(data.replace("prim.", "tir.", 1))),
    "Var": _read_variable,
    "Call": _read_call,
    "BufferType": lambda reader, data: _BufferType(data),
    "BufferRegionType": lambda reader, data: None,
    "PrimFunc": _read_function,
}
