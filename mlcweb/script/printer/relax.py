"""Functions of the graph level as TVMScript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.dialect import S_TIR
from mlcweb.ir.module import GlobalVar
from mlcweb.ir.node import Node
from mlcweb.ir.op import Op
from mlcweb.ir.visitor import walk
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.relax.analysis.variables import all_global_vars, free_vars, symbolic_vars_used
from mlcweb.relax.constant_data import scalar
from mlcweb.script.printer.expressions import dictionary, expression, literal, string, tuple_text
from mlcweb.script.printer.functions import TIR_IMPORT, function_printers, node_printers
from mlcweb.script.printer.names import identifier
from mlcweb.script.printer.page import Page
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.index_map import IndexMap

RELAX_IMPORT = "# from tvm.script import relax as R"
_METADATA = "relax.expr.Constant"


def extent_text(page: Page, value: PrimExpr) -> str:
    """An extent; integers are int64 without saying so."""
    return dims.extent_text(expression(page.names, value))


def _extents(page: Page, values: Sequence[PrimExpr]) -> list[str]:
    quoted = page.quotes_extents
    texts = []
    for value in values:
        text = extent_text(page, value)
        texts.append(string(text) if quoted and not isinstance(value, IntImm) else text)
    return texts


def struct_info(page: Page, info: S.StructInfo) -> str:
    """A struct info, as annotations write it."""
    return _INFO[type(info)](page, info)


def _prim_info(page: Page, info: S.PrimStructInfo) -> str:
    if info.value is None:
        return f"R.Prim({string(info.dtype)})"
    return f"R.Prim(value={_extents(page, (info.value,))[0]})"


def _shape_info(page: Page, info: S.ShapeStructInfo) -> str:
    if info.values is not None:
        return f"R.Shape([{', '.join(_extents(page, info.values))}])"
    return "R.Shape" if info.ndim == -1 else f"R.Shape(ndim={info.ndim})"


def _tensor_info(page: Page, info: S.TensorStructInfo) -> str:
    parts = []
    if isinstance(info.shape, E.ShapeExpr):
        parts.append(tuple_text(_extents(page, info.shape.values)) if info.shape.values else "()")
    elif info.shape is not None:
        parts.append(value_text(page, info.shape))
    if info.dtype:
        parts.append(f"dtype={string(info.dtype)}")
    if info.shape is None and info.ndim != -1:
        parts.append(f"ndim={info.ndim}")
    return f"R.Tensor({', '.join(parts)})" if parts else "R.Tensor"


def _tuple_info(page: Page, info: S.TupleStructInfo) -> str:
    fields = ", ".join(struct_info(page, field) for field in info.fields)
    return f"R.Tuple({fields})" if fields else "R.Tuple"


def _func_info(page: Page, info: S.FuncStructInfo) -> str:
    ret = struct_info(page, info.ret)
    if info.params is None:
        return f"R.Callable(ret={ret}, purity={info.purity})"
    params = tuple_text([struct_info(page, param) for param in info.params])
    return f"R.Callable({params if info.params else '()'}, {ret}, {info.purity})"


_INFO: dict[type, Callable[[Page, Any], str]] = {
    S.ObjectStructInfo: lambda page, info: page.dialect.of("R.Object"),
    S.PrimStructInfo: _prim_info,
    S.ShapeStructInfo: _shape_info,
    S.TensorStructInfo: _tensor_info,
    S.TupleStructInfo: _tuple_info,
    S.FuncStructInfo: _func_info,
}


def value_text(page: Page, value: Any) -> str:
    """An expression that fits on a line."""
    handler = _VALUES.get(type(value))
    return expression(page.names, value) if handler is None else handler(page, value)


def _arguments(page: Page, values: Sequence[Any]) -> list[str]:
    return [value_text(page, value) for value in values]


def _tuple(page: Page, value: E.Tuple) -> str:
    return tuple_text(_arguments(page, value.fields)) if value.fields else "R.tuple()"


def _constant(page: Page, value: E.Constant) -> str:
    number = scalar(value.data)
    dtype = str(value.data.dtype)
    if number is not None and value.struct_info == S.TensorStructInfo((), dtype):
        text = repr(number)
        if text in ("inf", "-inf", "nan"):
            text = f'float("{text}")'
        return f"R.const({text}, {string(dtype)})"
    return f'metadata["{_METADATA}"][{page.metadata_index(_METADATA, value)}]'


def _prim_value(page: Page, value: E.PrimValue) -> str:
    text = extent_text(page, value.value)
    if page.dialect is S_TIR and value.value.dtype == "bool":
        number = constant_value(value.value)
        return text if number is None else str(bool(number))
    return text if page.dialect is S_TIR else f"R.prim_value({text})"


def _shape(page: Page, value: E.ShapeExpr) -> str:
    return f"R.shape([{', '.join(extent_text(page, item) for item in value.values)}])"


def _global_var(page: Page, var: GlobalVar) -> str:
    name = identifier(var.name_hint)
    return f"cls.{name}" if page.in_module else name


def _callee(page: Page, func: Any) -> str:
    if isinstance(func, E.ExternFunc):
        return string(func.global_symbol)
    return value_text(page, func)


def _out_sinfo(page: Page, call: E.Call) -> str:
    info = call.sinfo_args[0]
    if isinstance(info, S.TupleStructInfo):
        return "[" + ", ".join(struct_info(page, field) for field in info.fields) + "]"
    return struct_info(page, info)


def _call_tir(page: Page, call: E.Call) -> str:
    parts = [_callee(page, call.args[0]), *_arguments(page, call.args[1:2])]
    parts.append(f"{page.dialect.of('out_sinfo')}={_out_sinfo(page, call)}")
    parts.extend(_attributes(page, call))
    if len(call.args) > 2:
        parts.append(f"tir_vars={value_text(page, call.args[2])}")
    return f"R.{call.op.name.removeprefix('relax.')}({', '.join(parts)})"


def _print_call(page: Page, call: E.Call) -> str:
    parts = [*_arguments(page, call.args[1:]), f"format={value_text(page, call.args[0])}"]
    return f"R.print({', '.join(parts)})"


def _assert_call(page: Page, call: E.Call) -> str:
    condition, form, *values = call.args
    given = _arguments(page, values)
    shown = given if len(given) == 1 else [f"({', '.join(given)})"]
    parts = [*_arguments(page, [condition]), *shown, f"format={value_text(page, form)}"]
    return f"R.assert_op({', '.join(parts)})"


def _attributes(page: Page, call: E.Call) -> list[str]:
    items = (call.attrs or {}).items()
    return [f"{key}={attribute_text(page, value)}" for key, value in items]


def attribute_text(page: Page, value: Any) -> str:
    """The value of an attribute of a call."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attribute_text(page, item) for item in value) + "]"
    if isinstance(value, S.StructInfo):
        return struct_info(page, value)
    if isinstance(value, (E.Expr, GlobalVar)):
        return value_text(page, value)
    if isinstance(value, PrimExpr):
        return extent_text(page, value)
    if isinstance(value, IndexMap):
        return _index_map(page, value)
    return page.dialect.of(literal(page.names, value))


def _index_map(page: Page, value: IndexMap) -> str:
    inverse = value.inverse_index_map
    more = "" if inverse is None else f", inverse_index_map={_lambda(page, inverse)}"
    return f"T.index_map({_lambda(page, value)}{more})"


def _lambda(page: Page, value: IndexMap) -> str:
    with page.names.scope():
        names = [page.names.define(var, var.name) for var in value.initial_indices]
        results = tuple_text([extent_text(page, index) for index in value.final_indices])
    return f"lambda {', '.join(names)}: {results}"


def _sinfo_args(page: Page, call: E.Call) -> list[str]:
    if not call.sinfo_args:
        return []
    infos = tuple_text([struct_info(page, info) for info in call.sinfo_args])
    return [f"{page.dialect.of('sinfo_args')}={infos}"]


def _packed(page: Page, func: Any, args: Sequence[Any], call: E.Call, name: str) -> str:
    parts = [_callee(page, func), *_arguments(page, args)]
    parts += [*_attributes(page, call), *_sinfo_args(page, call)]
    return f"R.{name}({', '.join(parts)})"


def _call_packed_by_op(page: Page, call: E.Call) -> str:
    name = call.op.name.removeprefix("relax.")
    return _packed(page, call.args[0], call.args[1:], call, name)


CALL_PRINTERS: dict[str, Callable[[Page, E.Call], str]] = {
    **dict.fromkeys(
        ("relax.call_tir", "relax.call_dps_packed", "relax.call_tir_inplace"), _call_tir
    ),
    "relax.call_pure_packed": _call_packed_by_op,
    "relax.call_inplace_packed": _call_packed_by_op,
    "relax.print": _print_call,
    "relax.assert_op": _assert_call,
}
"""Operators that are not written as their arguments followed by their attributes."""

SAYS_ITS_STRUCT_INFO = frozenset(
    ("relax.call_tir", "relax.call_dps_packed", "relax.call_tir_inplace")
)
"""Operators whose calls say what they give, so that their bindings need no annotation."""


def _call(page: Page, call: E.Call) -> str:
    if isinstance(call.op, E.ExternFunc):
        return _packed(page, call.op, call.args, call, "call_packed")
    parts = _arguments(page, call.args)
    if not isinstance(call.op, Op):
        return f"{value_text(page, call.op)}({', '.join(parts)})"
    special = CALL_PRINTERS.get(call.op.name)
    if special is not None:
        return special(page, call)
    parts += [*_attributes(page, call), *_sinfo_args(page, call)]
    return f"R.{call.op.name.removeprefix('relax.')}({', '.join(parts)})"


_VALUES: dict[type, Callable[[Page, Any], str]] = {
    E.Var: lambda page, value: page.names.of(value, value.name_hint),
    E.DataflowVar: lambda page, value: page.names.of(value, value.name_hint),
    E.Constant: _constant,
    E.Call: _call,
    E.Tuple: _tuple,
    E.TupleGetItem: lambda page, value: f"{value_text(page, value.tuple_value)}[{value.index}]",
    E.ShapeExpr: _shape,
    E.PrimValue: _prim_value,
    E.StringImm: lambda page, value: f"R.str({string(value.value)})",
    E.DataTypeImm: lambda page, value: f"R.dtype({string(value.value)})",
    E.ExternFunc: lambda page, value: f"R.ExternFunc({string(value.global_symbol)})",
    GlobalVar: _global_var,
    Op: lambda page, value: f"R.{value.name.removeprefix('relax.')}",
}


def _bind(page: Page, binding: Any, used: set[Any]) -> None:
    """Write a binding; `used` are the variables that something uses."""
    var, value = binding.var, binding.value
    if isinstance(binding, E.MatchCast):
        _define_extents(page, binding.struct_info)
        info = struct_info(page, binding.struct_info)
        text = f"R.match_cast({value_text(page, value)}, {info})"
        page.write(f"{_annotated(page, var)} = {text}")
    elif isinstance(value, E.If):
        _branches(page, value, var)
    elif isinstance(value, E.Function):
        name = page.names.define(var, var.name_hint)
        _definition(page, name, value, "@R.function")
        page.write("")
    elif isinstance(value, E.SeqExpr):
        _blocks(page, value.blocks, used)
        page.write(f"{_annotated(page, var)} = {_unparenthesized(page, value.body)}")
    elif isinstance(value, E.Call) and _is_nothing(var) and var not in used:
        page.write(value_text(page, value))
    elif isinstance(value, E.Call) and _says_enough(value, var):
        text = value_text(page, value)
        page.write(f"{page.names.define(var, var.name_hint)} = {text}")
    else:
        text = _unparenthesized(page, value)
        page.write(f"{_annotated(page, var)} = {text}")


def _is_nothing(var: E.Var) -> bool:
    return var.struct_info == S.TupleStructInfo(())


def _says_enough(call: E.Call, var: E.Var) -> bool:
    if not (isinstance(call.op, Op) and call.op.name in SAYS_ITS_STRUCT_INFO):
        return False
    return var.struct_info is None or call.struct_info == var.struct_info


def _unparenthesized(page: Page, value: Any) -> str:
    if isinstance(value, E.Tuple) and len(value) > 1:
        return ", ".join(_arguments(page, value.fields))
    return value_text(page, value)


def _annotated(page: Page, var: E.Var) -> str:
    info = "" if var.struct_info is None else f": {struct_info(page, var.struct_info)}"
    return page.names.define(var, var.name_hint) + info


def _branches(page: Page, value: E.If, var: E.Var | None) -> None:
    page.write(f"if {value_text(page, value.cond)}:")
    with page.indented():
        _branch(page, value.true_branch, var)
    page.write("else:")
    with page.indented():
        _branch(page, value.false_branch, var)
    if var is not None:
        page.names.define(var, var.name_hint)


def _branch(page: Page, seq: E.SeqExpr, var: E.Var | None) -> None:
    _blocks(page, seq.blocks, _used(seq))
    text = _unparenthesized(page, seq.body)
    if var is None:
        page.write(text)
        return
    info = getattr(seq.body, "struct_info", None)
    name = page.names.define(var, var.name_hint)
    page.write(f"{name}: {struct_info(page, info)} = {text}" if info else f"{name} = {text}")


def _used(node: Node) -> set[Any]:
    return {found for found in walk(node) if isinstance(found, E.Var)}


def _blocks(page: Page, blocks: Sequence[E.BindingBlock], used: set[Any]) -> None:
    for block in blocks:
        _block(page, block, used)


def _block(page: Page, block: E.BindingBlock, used: set[Any]) -> None:
    with page.placing(block):
        if not isinstance(block, E.DataflowBlock):
            _bindings(page, block, used)
            return
        page.write("with R.dataflow():")
        outputs = [
            binding.var for binding in block.bindings if not isinstance(binding.var, E.DataflowVar)
        ]
        # Names stay taken after the block: Python's `with` opens no scope.
        page.open_indent()
        _bindings(page, block, used)
        page.write(f"R.output({', '.join(_arguments(page, outputs))})")
        page.close_indent()


def _bindings(page: Page, block: E.BindingBlock, used: set[Any]) -> None:
    for binding in block.bindings:
        with page.placing(binding):
            _bind(page, binding, used)


def _define_extents(page: Page, *infos: Any) -> None:
    """Write `n = T.int64()` for the symbolic extents that have no name yet."""
    for info in infos:
        if info is None:
            continue
        for var in dims.prim_vars(info):
            if not page.names.knows(var):
                page.write(f"{page.names.define(var, var.name)} = T.{var.dtype}()")


def function(page: Page, name: str, func: E.Function) -> None:
    """Write a function of a module, or one that stands alone."""
    options = [] if func.attrs.get("global_symbol") is not None else ["private=True"]
    if not func.is_pure:
        options.append("pure=False")
    decorator = f"@R.function({', '.join(options)})" if options else "@R.function"
    _definition(page, name, func, decorator)


def _definition(page: Page, name: str, func: E.Function, decorator: str) -> None:
    infos = [func.ret_struct_info, *(param.struct_info for param in func.params)]
    if decorator == "@R.function" and not func.is_pure:
        decorator = "@R.function(pure=False)"
    page.write(decorator)
    with page.placing(func), page.names.scope():
        params = [page.names.define(param, param.name_hint) for param in func.params]
        extents = [
            var
            for info in infos
            if info is not None
            for var in dims.prim_vars(info)
            if not page.names.knows(var)
        ]
        for var in extents:
            page.names.define(var, var.name)
        with page.quoting_extents():
            annotated = [
                text if param.struct_info is None else
                f"{text}: {struct_info(page, param.struct_info)}"
                for text, param in zip(params, func.params, strict=True)
            ]  # fmt: skip
            ret = struct_info(page, func.ret_struct_info)
        page.write(f"def {name}({', '.join(annotated)}) -> {ret}:")
        with page.indented():
            for var in dict.fromkeys(extents):
                page.write(f"{page.names.of(var, var.name)} = T.{var.dtype}()")
            _function_body(page, name, func)


def _function_body(page: Page, name: str, func: E.Function) -> None:
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol" or v != name}
    if attrs:
        page.write(f"R.func_attr({dictionary(page.names, attrs)})")
    if page.in_module and all_global_vars(func.body) and not page.names.knows(_CLS):
        page.write(f"cls = {page.module_name}")
        page.names.alias(_CLS, "cls")
    used = _used(func.body)
    _blocks(page, func.body.blocks, used)
    page.write(f"return {value_text(page, func.body.body)}")


_CLS = GlobalVar("cls")


def _imports(func: E.Function) -> list[str]:
    uses_tir = symbolic_vars_used(func) or any(map(_has_index_map, walk(func.body)))
    return [TIR_IMPORT, RELAX_IMPORT] if uses_tir else [RELAX_IMPORT]


def _has_index_map(node: Node) -> bool:
    attrs = node.attrs if isinstance(node, E.Call) else None
    return any(isinstance(value, IndexMap) for value in (attrs or {}).values())


def _standing_alone(write: Callable[[Page, Any], None]) -> Callable[[Page, Any], None]:
    """Write a part of a program after declarations of the variables that it uses."""

    def printer(page: Page, node: Any) -> None:
        for var in free_vars(node):
            _define_extents(page, var.struct_info)
            page.write(_annotated(page, var))
        write(page, node)

    return printer


def _sequence(page: Page, seq: E.SeqExpr) -> None:
    _blocks(page, seq.blocks, _used(seq))
    page.write(value_text(page, seq.body))


def _one_line(page: Page, value: Any) -> None:
    page.write(value_text(page, value))


function_printers[E.Function] = (function, _imports, 2)
node_printers.update({
    **dict.fromkeys(_INFO, lambda page, info: page.write(struct_info(page, info))),
    **dict.fromkeys((cls for cls in _VALUES if cls not in (GlobalVar, Op)), _one_line),
    E.SeqExpr: _standing_alone(_sequence),
    E.If: _standing_alone(lambda page, value: _branches(page, value, None)),
    E.BindingBlock: _standing_alone(lambda page, block: _block(page, block, set())),
    E.DataflowBlock: _standing_alone(lambda page, block: _block(page, block, set())),
    E.VarBinding: _standing_alone(lambda page, binding: _bind(page, binding, set())),
    E.MatchCast: _standing_alone(lambda page, binding: _bind(page, binding, set())),
})  # fmt: skip
