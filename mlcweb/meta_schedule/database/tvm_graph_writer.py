"""TensorIR modules as the graph of nodes in which TVM 0.27 saves its objects.

The graph is a list of nodes, each with a type and its data; what a node refers to is given by
number, and comes before it. Number 0 is nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.ir.dialect import S_TIR
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer, BufferRegion, Range
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.operators import BINARY_NODES

TVM_VERSION = "0.27.0.post1"

IN_PRIM = frozenset({"tir.if_then_else", "tir.likely", "tir.clz", "tir.ceil", "tir.log2"})
"""Operators that TVM has under `prim.` instead."""

ARITHMETIC: dict[type[Any], str] = {cls: f"prim.{cls.__name__}" for cls in BINARY_NODES}


class Unwritable(ValueError):
    """A program holds something that this form has no place for."""


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type": "None"}]
        self.interned: dict[Any, int] = {}
        self.defined: dict[Node, int] = {}

    def node(self, kind: str, data: Any) -> int:
        self.nodes.append({"type": kind, "data": data})
        return len(self.nodes) - 1

    def shared(self, kind: str, data: Any) -> int:
        key = kind, str(data)
        if key not in self.interned:
            self.interned[key] = self.node(kind, data)
        return self.interned[key]

    def text(self, value: str) -> int:
        return self.shared("ffi.String", value)

    def array(self, items: Any) -> int:
        return self.node("ffi.Array", [self.put(item) for item in items])

    def mapping(self, items: Mapping[Any, Any]) -> int:
        pairs = [number for k, v in items.items() for number in (self.put(k), self.put(v))]
        return self.node("ffi.Map", pairs)

    def dtype(self, name: str) -> int:
        return self.shared("ir.PrimType", {"span": 0, "dtype": name})

    def put(self, value: Any) -> int:
        """The number of a value; 0 for None."""
        rule = _RULES.get(type(value))
        if rule is None:
            raise Unwritable(f"TVM's records have no form for a {type(value).__name__}")
        return rule(self, value)


def graph_of(module: IRModule) -> dict[str, Any]:
    """The graph of a module.

    Raises:
        Unwritable: it holds something else than TensorIR functions, or parts that have no form.
    """
    graph = _Graph()
    functions: list[int] = []
    by_name: list[int] = []
    for var, func in module.functions.items():
        if not isinstance(func, PrimFunc):
            raise Unwritable(f"TVM's records have no form for a {type(func).__name__}")
        signature = _signature(graph, func)
        name = graph.text(var.name_hint)
        variable = graph.node("ir.GlobalVar", {"span": 0, "ty": signature, "name_hint": name})
        functions += [variable, _prim_func(graph, func, signature)]
        by_name += [name, variable]
    empty = graph.node("ffi.Map", [])
    root = graph.node(
        "ir.IRModule",
        {
            "functions": graph.node("ffi.Map", functions),
            "global_var_map_": graph.node("ffi.Map", by_name),
            "source_map": graph.node("ir.SourceMap", {"source_map": empty}),
            "attrs": graph.node("ir.DictAttrs", {"__dict__": empty}),
            "global_infos": empty,
        },
    )
    return {"root_index": root, "nodes": graph.nodes, "metadata": {"tvm_version": TVM_VERSION}}


def _signature(graph: _Graph, func: PrimFunc) -> int:
    """The type that TVM gives a function: buffers are tensors of a shape."""
    if func.ret_type is not None:
        raise Unwritable("TVM's records have no form for a function that returns a value")
    params = [
        _tensor_type(graph, func.buffer_map[param])
        if param in func.buffer_map
        else graph.dtype(param.dtype)
        for param in func.params
    ]
    types = graph.node("ffi.Array", params)
    nothing = graph.node("ir.TupleType", {"span": 0, "fields": graph.array(())})
    data = {"params": types, "ret": nothing, "derive_func": 0, "purity": False}
    return graph.node("relax.FuncType", {"span": 0, **data})


def _tensor_type(graph: _Graph, buffer: Buffer) -> int:
    extents = [E.IntImm("int64", e.value) for e in buffer.shape if isinstance(e, E.IntImm)]
    if len(extents) != len(buffer.shape):
        raise Unwritable(f'The buffer "{buffer.name}" has no constant shape')
    values, ndim = graph.array(extents), len(extents)
    kind = graph.node("relax.ShapeType", {"span": 0, "values": values, "ndim": ndim})
    shape = graph.node("relax.expr.ShapeExpr", {"span": 0, "ty": kind, "values": values})
    data = {"shape": shape, "dtype": graph.dtype(buffer.dtype), "vdevice": 0, "ndim": ndim}
    return graph.node("relax.TensorType", {"span": 0, **data})


def _prim_func(graph: _Graph, func: PrimFunc, signature: int) -> int:
    attrs = {S_TIR.prefixed(key): value for key, value in func.attrs.items()} | {"s_tir": True}
    return graph.node(
        "tirx.PrimFunc",
        {
            "span": 0,
            "ty": signature,
            "attrs": graph.node("ir.DictAttrs", {"__dict__": graph.mapping(attrs)}),
            "params": graph.array(func.buffer_map.get(param, param) for param in func.params),
            "ret_type": graph.node("ir.TupleType", {"span": 0, "fields": graph.array(())}),
            "body": graph.put(func.body),
        },
    )


def _buffer(graph: _Graph, buffer: Buffer) -> int:
    cached = graph.defined.get(buffer)
    if cached is not None:
        return cached
    if buffer.axis_separators:
        raise Unwritable("TVM's records have no form for axis separators")
    kind = graph.node(
        "tirx.BufferType",
        {
            "span": 0,
            "dtype": graph.dtype(buffer.dtype),
            "storage_scope": graph.text(buffer.scope()),
            "shape": graph.array(buffer.shape),
            "strides": graph.array(buffer.strides),
            "elem_offset": graph.put(buffer.elem_offset),
            "data_alignment": buffer.data_alignment,
            "offset_factor": buffer.offset_factor,
            "layout": 0,
            "allocated_addr": graph.array(()),
        },
    )
    number = graph.node("ir.Var", {"span": 0, "ty": kind, "name": graph.text(buffer.name)})
    return graph.defined.setdefault(buffer, number)


def _var(graph: _Graph, var: E.Var) -> int:
    cached = graph.defined.get(var)
    if cached is not None:
        return cached
    if var.type_annotation is not None:
        raise Unwritable(f'TVM\'s records have no form for the pointer "{var.name}"')
    kind, name = graph.dtype(var.dtype), graph.text(var.name)
    number = graph.node("ir.Var", {"span": 0, "ty": kind, "name": name})
    return graph.defined.setdefault(var, number)


def _integer(graph: _Graph, value: E.IntImm) -> int:
    number = graph.shared("int", value.value)
    return graph.node("ir.IntImm", {"span": 0, "ty": graph.dtype(value.dtype), "value": number})


def _float(graph: _Graph, value: E.FloatImm) -> int:
    data = {"span": 0, "ty": graph.dtype(value.dtype), "value": float(value.value)}
    return graph.node("ir.FloatImm", data)


def _binary(graph: _Graph, value: Any) -> int:
    data = {"a": graph.put(value.a), "b": graph.put(value.b)}
    return graph.node(ARITHMETIC[type(value)], {"span": 0, "ty": graph.dtype(value.dtype), **data})


def _load(graph: _Graph, value: E.BufferLoad) -> int:
    data = {"source": graph.put(value.buffer), "indices": graph.array(value.indices)}
    return graph.node("ir.TensorLoad", {"span": 0, "ty": graph.dtype(value.dtype), **data})


def _call(graph: _Graph, value: E.Call) -> int:
    if not isinstance(value.op, Op):
        raise Unwritable("TVM's records have no form for a call of another function")
    name = value.op.name
    in_prim = name in IN_PRIM
    op = graph.shared("ir.Op", name.replace("tir.", "prim.") if in_prim else S_TIR.prefixed(name))
    data = {"op": op, "args": graph.array(value.args), "attrs": 0, "ty_args": graph.array(())}
    return graph.node("ir.Call", {"span": 0, "ty": graph.dtype(value.dtype), **data})


def _block(graph: _Graph, block: S.Block) -> int:
    if block.match_buffers:
        raise Unwritable("TVM's records have no form for matched buffers")
    return graph.node(
        "s_tir.SBlock",
        {
            "span": 0,
            "iter_vars": graph.array(block.iter_vars),
            "reads": graph.array(block.reads),
            "writes": graph.array(block.writes),
            "name_hint": graph.text(block.name_hint),
            "alloc_buffers": graph.array(block.alloc_buffers),
            "match_buffers": graph.array(()),
            "annotations": graph.mapping(block.annotations),
            "init": graph.put(block.init),
            "body": graph.put(block.body),
        },
    )


def _for(graph: _Graph, loop: S.For) -> int:
    return graph.node(
        "tirx.For",
        {
            "span": 0,
            "loop_var": graph.put(loop.loop_var),
            "min": graph.put(loop.min),
            "extent": graph.put(loop.extent),
            "kind": int(loop.kind),
            "body": graph.put(loop.body),
            "thread_binding": graph.put(loop.thread_binding),
            "annotations": graph.mapping(loop.annotations),
            "step": 0,
        },
    )


def _region(graph: _Graph, region: BufferRegion) -> int:
    kind = graph.shared("tirx.BufferRegionType", {"span": 0})
    data = {"source": graph.put(region.buffer), "region": graph.array(region.region)}
    return graph.node("ir.TensorRegion", {"span": 0, "ty": kind, **data})


def _iter_var(graph: _Graph, iterator: S.IterVar) -> int:
    data = {
        "dom": graph.put(iterator.dom),
        "var": graph.put(iterator.var),
        "iter_type": int(iterator.iter_type),
        "thread_tag": graph.text(iterator.thread_tag),
    }
    return graph.node("tirx.IterVar", {"span": 0, **data})


def _fields(kind: str, *names: str, typed: bool = False) -> Any:
    """The rule of a node whose fields have the same names on both sides."""

    def write(graph: _Graph, value: Any) -> int:
        data: dict[str, Any] = {"span": 0}
        if typed:
            data["ty"] = graph.dtype(value.dtype)
        data.update((name, _field(graph, getattr(value, name))) for name in names)
        return graph.node(kind, data)

    return write


def _field(graph: _Graph, value: Any) -> int:
    return graph.array(value) if isinstance(value, (tuple, list)) else graph.put(value)


_RULES: dict[type, Callable[[_Graph, Any], int]] = {
    type(None): lambda graph, value: 0,
    str: _Graph.text,
    bool: lambda graph, value: graph.shared("bool", value),
    int: lambda graph, value: graph.shared("int", value),
    float: lambda graph, value: graph.node("float", value),
    list: _Graph.array,
    tuple: _Graph.array,
    dict: _Graph.mapping,
    Buffer: _buffer,
    E.Var: _var,
    E.IntImm: _integer,
    E.FloatImm: _float,
    E.BufferLoad: _load,
    E.Call: _call,
    E.Not: _fields("prim.Not", "a", typed=True),
    E.Cast: _fields("prim.Cast", "value", typed=True),
    E.Select: _fields("prim.Select", "condition", "true_value", "false_value", typed=True),
    E.StringImm: lambda graph, value: graph.node(
        "ir.StringImm", {"span": 0, "ty": 0, "value": graph.text(value.value)}
    ),
    Range: _fields("ir.Range", "min", "extent"),
    BufferRegion: _region,
    S.IterVar: _iter_var,
    S.Block: _block,
    S.BlockRealize: _fields("s_tir.SBlockRealize", "iter_values", "predicate", "block"),
    S.For: _for,
    S.BufferStore: _fields("tirx.BufferStore", "buffer", "value", "indices"),
    S.SeqStmt: _fields("tirx.SeqStmt", "seq"),
    S.Evaluate: _fields("tirx.Evaluate", "value"),
    S.IfThenElse: _fields("tirx.IfThenElse", "condition", "then_case", "else_case"),
    **dict.fromkeys(ARITHMETIC, _binary),
}
