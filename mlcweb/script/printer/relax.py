"""Functions of the graph level as TVMScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.dialect import S_TIR
from mlcweb.ir.global_info import VDevice
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import find_nodes, walk
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.relax.analysis.variables import all_global_vars, free_vars, symbolic_vars_used
from mlcweb.relax.constant_data import scalar
from mlcweb.relax.op.infer import op_of
from mlcweb.script.printer.expressions import dictionary, expression, literal, string, tuple_text
from mlcweb.script.printer.functions import TIR_IMPORT, function_printers, node_printers
from mlcweb.script.printer.names import identifier
from mlcweb.script.printer.writer import Writer
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import IntImm, PrimExpr

RELAX_IMPORT = "# from tvm.script import relax as R"
_METADATA = "relax.expr.Constant"


def extent_text(writer: Writer, value: PrimExpr) -> str:
    """An extent; integers are int64 without saying so."""
    return dims.extent_text(expression(writer.names, value))


def _extents(writer: Writer, values: Sequence[PrimExpr]) -> list[str]:
    quoted = writer.quotes_extents
    texts = []
    for value in values:
        text = extent_text(writer, value)
        texts.append(string(text) if quoted and not isinstance(value, IntImm) else text)
    return texts


def struct_info(writer: Writer, info: S.StructInfo) -> str:
    """A struct info, as annotations write it."""
    return _INFO[type(info)](writer, info)


def _prim_info(writer: Writer, info: S.PrimStructInfo) -> str:
    if info.value is None:
        return f"R.Prim({string(info.dtype)})"
    return f"R.Prim(value={_extents(writer, (info.value,))[0]})"


def _shape_info(writer: Writer, info: S.ShapeStructInfo) -> str:
    if info.values is not None:
        return f"R.Shape([{', '.join(_extents(writer, info.values))}])"
    return "R.Shape" if info.ndim == -1 else f"R.Shape(ndim={info.ndim})"


def _tensor_info(writer: Writer, info: S.TensorStructInfo) -> str:
    parts = []
    if isinstance(info.shape, E.ShapeExpr):
        parts.append(tuple_text(_extents(writer, info.shape.values)) if info.shape.values else "()")
    elif info.shape is not None:
        parts.append(value_text(writer, info.shape))
    if info.dtype:
        parts.append(f"dtype={string(info.dtype)}")
    if info.shape is None and info.ndim != -1:
        parts.append(f"ndim={info.ndim}")
    if info.vdevice is not None:
        parts.append(f"vdevice={string(str(info.vdevice))}")
    return f"R.Tensor({', '.join(parts)})" if parts else "R.Tensor"


def _tuple_info(writer: Writer, info: S.TupleStructInfo) -> str:
    fields = ", ".join(struct_info(writer, field) for field in info.fields)
    return f"R.Tuple({fields})" if fields else "R.Tuple"


def _func_info(writer: Writer, info: S.FuncStructInfo) -> str:
    ret = struct_info(writer, info.ret)
    if info.params is None:
        return f"R.Callable(ret={ret}, purity={info.purity})"
    params = tuple_text([struct_info(writer, param) for param in info.params])
    return f"R.Callable({params if info.params else '()'}, {ret}, {info.purity})"


_INFO: dict[type, Callable[[Writer, Any], str]] = {
    S.ObjectStructInfo: lambda writer, info: writer.dialect.of("R.Object"),
    S.PrimStructInfo: _prim_info,
    S.ShapeStructInfo: _shape_info,
    S.TensorStructInfo: _tensor_info,
    S.TupleStructInfo: _tuple_info,
    S.FuncStructInfo: _func_info,
}


def value_text(writer: Writer, value: Any) -> str:
    """An expression that fits on a line."""
    handler = _VALUES.get(type(value))
    if handler is None:
        return expression(writer.names, value)
    return writer.names.with_marks(value, handler(writer, value))


def _arguments(writer: Writer, values: Sequence[Any]) -> list[str]:
    return [value_text(writer, value) for value in values]


def _tuple(writer: Writer, value: E.Tuple) -> str:
    return tuple_text(_arguments(writer, value.fields)) if value.fields else "R.tuple()"


def _constant(writer: Writer, value: E.Constant) -> str:
    number = scalar(value.data)
    dtype = str(value.data.dtype)
    if number is not None and value.struct_info == S.TensorStructInfo((), dtype):
        text = repr(number)
        if text in ("inf", "-inf", "nan"):
            text = f'float("{text}")'
        return f"R.const({text}, {string(dtype)})"
    return f'metadata["{_METADATA}"][{writer.metadata_index(_METADATA, value)}]'


def _prim_value(writer: Writer, value: E.PrimValue) -> str:
    text = extent_text(writer, value.value)
    if isinstance(value.value, IntImm) and value.value.dtype == "int32":
        text = f"T.int32({text})"  # a number without a type is read as int64
    if writer.dialect is S_TIR and value.value.dtype == "bool":
        number = constant_value(value.value)
        return text if number is None else str(bool(number))
    return text if writer.dialect is S_TIR else f"R.prim_value({text})"


def _shape(writer: Writer, value: E.ShapeExpr) -> str:
    return f"R.shape([{', '.join(extent_text(writer, item) for item in value.values)}])"


def _global_var(writer: Writer, var: GlobalVar) -> str:
    name = identifier(var.name_hint)
    return f"cls.{name}" if writer.in_module else name


def _extern_func(writer: Writer, func: E.ExternFunc) -> str:
    """The function by name, with its type, unless nothing is said of that."""
    is_typed = func.struct_info != S.FuncStructInfo.opaque_func()
    info = f", {struct_info(writer, func.struct_info)}" if is_typed else ""
    return f"R.ExternFunc({string(func.global_symbol)}{info})"


def _callee(writer: Writer, func: Any) -> str:
    if isinstance(func, E.ExternFunc):
        return string(func.global_symbol)
    return string(func.value) if isinstance(func, E.StringImm) else value_text(writer, func)


def _out_sinfo(writer: Writer, call: E.Call) -> str:
    info = call.sinfo_args[0]
    if isinstance(info, S.TupleStructInfo):
        return "[" + ", ".join(struct_info(writer, field) for field in info.fields) + "]"
    return struct_info(writer, info)


def _call_tir(writer: Writer, call: E.Call) -> str:
    parts = [_callee(writer, call.args[0]), *_arguments(writer, call.args[1:2])]
    parts.append(f"{writer.dialect.of('out_sinfo')}={_out_sinfo(writer, call)}")
    parts.extend(_attributes(writer, call))
    if len(call.args) > 2:
        parts.append(f"tir_vars={value_text(writer, call.args[2])}")
    return f"R.{op_of(call).name.removeprefix('relax.')}({', '.join(parts)})"


def _print_call(writer: Writer, call: E.Call) -> str:
    parts = [*_arguments(writer, call.args[1:]), f"format={value_text(writer, call.args[0])}"]
    return f"R.print({', '.join(parts)})"


def _assert_call(writer: Writer, call: E.Call) -> str:
    condition, form, *values = call.args
    texts = _arguments(writer, values)
    shown = texts if len(texts) == 1 else [f"({', '.join(texts)})"]
    parts = [*_arguments(writer, [condition]), *shown, f"format={value_text(writer, form)}"]
    return f"R.assert_op({', '.join(parts)})"


def _attributes(writer: Writer, call: E.Call) -> list[str]:
    items = (call.attrs or {}).items()
    return [f"{key}={attribute_text(writer, value)}" for key, value in items]


def attribute_text(writer: Writer, value: Any) -> str:
    """The value of an attribute of a call."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attribute_text(writer, item) for item in value) + "]"
    if isinstance(value, S.StructInfo):
        return struct_info(writer, value)
    if isinstance(value, (E.Expr, GlobalVar)):
        return value_text(writer, value)
    if isinstance(value, PrimExpr):
        return extent_text(writer, value)
    if isinstance(value, IndexMap):
        return _index_map(writer, value)
    if isinstance(value, VDevice):
        return string(str(value))
    return writer.dialect.of(literal(writer.names, value))


def _index_map(writer: Writer, value: IndexMap) -> str:
    inverse = value.inverse_index_map
    more = "" if inverse is None else f", inverse_index_map={_lambda(writer, inverse)}"
    dtypes = {var.dtype for var in value.initial_indices} - {"int64"}
    more += "".join(f", index_dtype={string(dtype)}" for dtype in dtypes)
    return f"T.index_map({_lambda(writer, value)}{more})"


def _lambda(writer: Writer, value: IndexMap) -> str:
    with writer.names.scope():
        names = [writer.names.define(var, var.name) for var in value.initial_indices]
        results = tuple_text([extent_text(writer, index) for index in value.final_indices])
    return f"lambda {', '.join(names)}: {results}"


def _sinfo_args(writer: Writer, call: E.Call) -> list[str]:
    if not call.sinfo_args:
        return []
    infos = tuple_text([struct_info(writer, info) for info in call.sinfo_args])
    return [f"{writer.dialect.of('sinfo_args')}={infos}"]


def _packed(writer: Writer, func: Any, args: Sequence[Any], call: E.Call, name: str) -> str:
    parts = [_callee(writer, func), *_arguments(writer, args)]
    parts += [*_attributes(writer, call), *_sinfo_args(writer, call)]
    return f"R.{name}({', '.join(parts)})"


def _call_packed_by_op(writer: Writer, call: E.Call) -> str:
    name = op_of(call).name.removeprefix("relax.")
    return _packed(writer, call.args[0], call.args[1:], call, name)


SAYS_ITS_STRUCT_INFO = (
    "relax.call_tir", "relax.call_dps_packed", "relax.call_tir_inplace", "relax.call_tir_with_grad",
    "relax.call_py_func",
)  # fmt: skip
"""Operators whose calls say what they give, so that their bindings need no annotation."""

CALL_PRINTERS: dict[str, Callable[[Writer, E.Call], str]] = {
    **dict.fromkeys(SAYS_ITS_STRUCT_INFO, _call_tir),
    "relax.call_pure_packed": _call_packed_by_op,
    "relax.call_inplace_packed": _call_packed_by_op,
    "relax.print": _print_call,
    "relax.assert_op": _assert_call,
}
"""Operators that are not written as their arguments followed by their attributes."""


def _call(writer: Writer, call: E.Call) -> str:
    if isinstance(call.op, E.ExternFunc):
        return _packed(writer, call.op, call.args, call, "call_packed")
    parts = _arguments(writer, call.args)
    if not isinstance(call.op, Op):
        return f"{value_text(writer, call.op)}({', '.join(parts)})"
    special = CALL_PRINTERS.get(call.op.name)
    if special is not None:
        return special(writer, call)
    parts += [*_attributes(writer, call), *_sinfo_args(writer, call)]
    return f"R.{op_of(call).name.removeprefix('relax.')}({', '.join(parts)})"


_VALUES: dict[type, Callable[[Writer, Any], str]] = {
    E.Var: lambda writer, value: writer.names.of(value, value.name_hint),
    E.DataflowVar: lambda writer, value: writer.names.of(value, value.name_hint),
    E.Constant: _constant,
    E.Call: _call,
    E.Tuple: _tuple,
    E.TupleGetItem: lambda writer, value: f"{value_text(writer, value.tuple_value)}[{value.index}]",
    E.ShapeExpr: _shape,
    E.PrimValue: _prim_value,
    E.StringImm: lambda writer, value: f"R.str({string(value.value)})",
    E.DataTypeImm: lambda writer, value: f"R.dtype({string(value.value)})",
    E.ExternFunc: _extern_func,
    GlobalVar: _global_var,
    Op: lambda writer, value: f"R.{value.name.removeprefix('relax.')}",
}


def _bind(writer: Writer, binding: Any, used: set[Any]) -> None:
    """Write a binding; `used` are the variables that something uses."""
    var, value = binding.var, binding.value
    if isinstance(binding, E.MatchCast):
        _define_extents(writer, binding.struct_info)
        info = struct_info(writer, binding.struct_info)
        text = f"R.match_cast({value_text(writer, value)}, {info})"
        writer.write(f"{_annotated(writer, var)} = {text}")
    elif isinstance(value, E.If):
        _branches(writer, value, var)
    elif isinstance(value, E.Function):
        name = writer.names.define(var, var.name_hint)
        _definition(writer, name, value, "@R.function")
        writer.write("")
    elif isinstance(value, E.SeqExpr):
        _blocks(writer, value.blocks, used)
        writer.write(f"{_annotated(writer, var)} = {_unparenthesized(writer, value.body)}")
    elif isinstance(value, E.Call) and _is_nothing(var) and var not in used:
        writer.write(value_text(writer, value))
    else:
        text = _unparenthesized(writer, value)
        name = writer.names.define(var, var.name_hint)
        writer.write(f"{name if _says_enough(value, var) else _annotated(writer, var)} = {text}")


def _is_nothing(var: E.Var) -> bool:
    return var.struct_info == S.TupleStructInfo(())


def _says_enough(value: Any, var: E.Var) -> bool:
    op = value.op if isinstance(value, E.Call) else None
    if not (isinstance(op, Op) and op.name in SAYS_ITS_STRUCT_INFO):
        return False
    return var.struct_info is None or value.struct_info == var.struct_info


def _unparenthesized(writer: Writer, value: Any) -> str:
    if isinstance(value, E.Tuple) and len(value) > 1:
        return ", ".join(_arguments(writer, value.fields))
    return value_text(writer, value)


def _annotated(writer: Writer, var: E.Var) -> str:
    info = "" if var.struct_info is None else f": {struct_info(writer, var.struct_info)}"
    return writer.names.define(var, var.name_hint) + info


def _branches(writer: Writer, value: E.If, var: E.Var | None) -> None:
    if var is not None:
        # Both branches end with an assignment to it, so that nothing inside may have its name.
        writer.names.define(var, var.name_hint)
    header = f"if {value_text(writer, value.cond)}:"
    for line, branch in ((header, value.true_branch), ("else:", value.false_branch)):
        writer.write(line)
        with writer.indented():
            _branch(writer, branch, var)


def _branch(writer: Writer, seq: E.SeqExpr, var: E.Var | None) -> None:
    _blocks(writer, seq.blocks, _used(seq))
    text = _unparenthesized(writer, seq.body)
    if var is None:
        writer.write(text)
        return
    info = getattr(seq.body, "struct_info", None)
    name = writer.names.define(var, var.name_hint)
    writer.write(f"{name}: {struct_info(writer, info)} = {text}" if info else f"{name} = {text}")


def _used(node: Node) -> set[Any]:
    return set(find_nodes(node, E.Var))


def _blocks(writer: Writer, blocks: Sequence[E.BindingBlock], used: set[Any]) -> None:
    for block in blocks:
        _block(writer, block, used)


def _block(writer: Writer, block: E.BindingBlock, used: set[Any]) -> None:
    with writer.placing(block):
        if not isinstance(block, E.DataflowBlock):
            _bindings(writer, block, used)
            return
        writer.write("with R.dataflow():")
        outputs = [
            binding.var for binding in block.bindings if not isinstance(binding.var, E.DataflowVar)
        ]
        # Names stay taken after the block: Python's `with` opens no scope.
        writer.open_indent()
        _bindings(writer, block, used)
        writer.write(f"R.output({', '.join(_arguments(writer, outputs))})")
        writer.close_indent()


def _bindings(writer: Writer, block: E.BindingBlock, used: set[Any]) -> None:
    for binding in block.bindings:
        with writer.placing(binding):
            _bind(writer, binding, used)


def _define_extents(writer: Writer, *infos: Any) -> None:
    """Write `n = T.int64()` for the symbolic extents that have no name yet."""
    for info in infos:
        if info is None:
            continue
        for var in dims.prim_vars(info):
            if not writer.names.knows(var):
                writer.write(writer.names.declaration(var))


def function(writer: Writer, name: str, func: E.Function) -> None:
    """Write a function of a module, or one that stands alone."""
    options = [] if func.attrs.get("global_symbol") is not None else ["private=True"]
    if not func.is_pure:
        options.append("pure=False")
    decorator = f"@R.function({', '.join(options)})" if options else "@R.function"
    _definition(writer, name, func, decorator)


def _definition(writer: Writer, name: str, func: E.Function, decorator: str) -> None:
    infos = [func.ret_struct_info, *(param.struct_info for param in func.params)]
    if decorator == "@R.function" and not func.is_pure:
        decorator = "@R.function(pure=False)"
    writer.write(decorator)
    with writer.placing(func), writer.names.scope():
        params = [writer.names.define(param, param.name_hint) for param in func.params]
        extents = [
            var
            for info in infos
            if info is not None
            for var in dims.prim_vars(info)
            if not writer.names.knows(var)
        ]
        for var in extents:
            writer.names.define(var, var.name)
        with writer.quoting_extents():
            annotated = [
                text if param.struct_info is None else
                f"{text}: {struct_info(writer, param.struct_info)}"
                for text, param in zip(params, func.params, strict=True)
            ]  # fmt: skip
            ret = struct_info(writer, func.ret_struct_info)
        writer.write(f"def {name}({', '.join(annotated)}) -> {ret}:")
        with writer.indented():
            for var in dict.fromkeys(extents):
                writer.write(writer.names.declaration(var))
            _function_body(writer, name, func)


def _function_body(writer: Writer, name: str, func: E.Function) -> None:
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol" or v != name}
    if attrs:
        writer.write(f"R.func_attr({dictionary(writer.names, attrs)})")
    if writer.in_module and all_global_vars(func.body) and not writer.names.knows(_CLS):
        writer.write(f"cls = {writer.module_name}")
        writer.names.alias(_CLS, "cls")
    used = _used(func.body)
    _blocks(writer, func.body.blocks, used)
    writer.write(f"return {value_text(writer, func.body.body)}")


_CLS = GlobalVar("cls")


def _imports(func: E.Function) -> list[str]:
    uses_tir = symbolic_vars_used(func) or any(map(_has_index_map, walk(func.body)))
    return [TIR_IMPORT, RELAX_IMPORT] if uses_tir else [RELAX_IMPORT]


def _has_index_map(node: Node) -> bool:
    attrs = node.attrs if isinstance(node, E.Call) else None
    return any(isinstance(value, IndexMap) for value in (attrs or {}).values())


def _standing_alone(write: Callable[[Writer, Any], None]) -> Callable[[Writer, Any], None]:
    """Write a part of a program after declarations of the variables that it uses."""

    def printer(writer: Writer, node: Any) -> None:
        for var in free_vars(node):
            _define_extents(writer, var.struct_info)
            writer.write(_annotated(writer, var))
        write(writer, node)

    return printer


def _sequence(writer: Writer, seq: E.SeqExpr) -> None:
    _blocks(writer, seq.blocks, _used(seq))
    writer.write(value_text(writer, seq.body))


def _one_line(writer: Writer, value: Any) -> None:
    writer.write(value_text(writer, value))


def _external(writer: Writer, name: str, func: E.ExternFunc) -> None:
    writer.write(f"{name} = {_extern_func(writer, func)}")


function_printers[E.ExternFunc] = (_external, RELAX_IMPORT, 0)
function_printers[E.Function] = (function, _imports, 2)
node_printers.update({
    **dict.fromkeys(_INFO, lambda writer, info: writer.write(struct_info(writer, info))),
    **dict.fromkeys((cls for cls in _VALUES if cls not in (GlobalVar, Op)), _one_line),
    E.SeqExpr: _standing_alone(_sequence),
    E.If: _standing_alone(lambda writer, value: _branches(writer, value, None)),
    E.BindingBlock: _standing_alone(lambda writer, block: _block(writer, block, set())),
    E.DataflowBlock: _standing_alone(lambda writer, block: _block(writer, block, set())),
    E.VarBinding: _standing_alone(lambda writer, binding: _bind(writer, binding, set())),
    E.MatchCast: _standing_alone(lambda writer, binding: _bind(writer, binding, set())),
})  # fmt: skip
