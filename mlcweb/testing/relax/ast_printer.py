"""`tvm.relax.testing.dump_ast`: the nodes of a graph function, with the names of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mlcweb.ir.module import GlobalVar
from mlcweb.ir.op import Op
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.tir.expr import PrimExpr

Fields = Mapping[str, str]


def _quoted(text: str) -> str:
    return f'"{text}"'


class ASTPrinter:
    """Prints expressions as calls of their classes.

    Args:
        indent_str: what a line of a field begins with.
        include_type_annotations: taken for TVM's sake; types are struct infos here.
        include_struct_info_annotations: print the struct info of expressions.
        include_call_attrs: print the attributes of calls.
        include_ty_annotations: `include_struct_info_annotations`, under its name since 2026.
    """

    def __init__(
        self,
        indent_str: str = "    ",
        include_type_annotations: bool = False,
        include_struct_info_annotations: bool = True,
        include_call_attrs: bool = True,
        include_ty_annotations: bool | None = None,
    ) -> None:
        self.indent_str = indent_str
        annotated = include_struct_info_annotations
        self.annotated = annotated if include_ty_annotations is None else include_ty_annotations
        self.include_call_attrs = include_call_attrs

    def visit_expr(self, expr: Any) -> str:
        """An expression, or a binding, as text."""
        if isinstance(expr, S.StructInfo):
            return self.visit_struct_info_(expr)
        if isinstance(expr, PrimExpr):
            return f"PrimExpr(value=`{expr}`)"
        name = type(expr).__name__
        fields = _FIELDS.get(name)
        if fields is None:
            raise TypeError(f"dump_ast prints expressions of the graph level, not a {name}")
        parts = dict(fields(self, expr))
        info = expr.ty if self.annotated and isinstance(expr, E.Expr) else None
        if info is not None and not isinstance(expr, (E.Function, E.ExternFunc)):
            parts["struct_info"] = self.visit_struct_info_(info)
        return self.node(name, parts)

    def visit_struct_info_(self, struct_info_node: S.StructInfo) -> str:
        """A struct info as text."""
        info = struct_info_node
        fields: Fields = {}
        if isinstance(info, S.TensorStructInfo):
            fields = {"dtype": info.dtype or "void"}
            shaped = info.shape is not None
            fields |= {"shape": self.visit_expr(info.shape)} if shaped else {"ndim": str(info.ndim)}
            if info.vdevice is not None:
                fields |= {"vdevice": str(info.vdevice)}
        elif isinstance(info, S.ShapeStructInfo):
            fields = {"ndim": str(info.ndim)}
            if info.values is not None:
                fields |= {"values": self.items(info.values)}
        elif isinstance(info, S.PrimStructInfo):
            fields = {"dtype": info.dtype}
        elif isinstance(info, S.TupleStructInfo):
            fields = {"fields": self.items(info.fields)}
        elif isinstance(info, S.FuncStructInfo):
            params = {"params": self.items(info.params)} if info.params is not None else {}
            fields = {**params, "ret": self.visit_expr(info.ret), "purity": str(info.purity)}
        return self.node(type(info).__name__, fields)

    visit_type_ = visit_struct_info_

    def items(self, values: Iterable[Any]) -> str:
        """A list of expressions."""
        texts = [self.visit_expr(value) for value in values]
        return self.lines("[", texts, "]")

    def attributes(self, attrs: Mapping[str, Any] | None) -> str:
        """Attributes by name."""
        shown = (
            f'"{name}": {_quoted(value) if isinstance(value, str) else value}'
            for name, value in (attrs or {}).items()
        )
        return f"{{{', '.join(shown)}}}"

    def node(self, name: str, fields: Fields) -> str:
        """The call of a class."""
        return self.lines(f"{name}(", [f"{key}={text}" for key, text in fields.items()], ")")

    def lines(self, start: str, parts: list[str], end: str) -> str:
        """Parts in one line where there is one, else each in its own."""
        if len(parts) <= 1 and not any("\n" in part for part in parts):
            return f"{start}{''.join(parts)}{end}"
        inside = ",\n".join(parts).replace("\n", f"\n{self.indent_str}")
        return f"{start}\n{self.indent_str}{inside}\n{end}"


def _call(printer: ASTPrinter, call: E.Call) -> Fields:
    fields = {"op": printer.visit_expr(call.op), "args": printer.items(call.args)}
    if call.sinfo_args:
        fields["sinfo_args"] = printer.items(call.sinfo_args)
    if printer.include_call_attrs and call.attrs:
        fields["attrs"] = printer.attributes(call.attrs)
    return fields


def _function(printer: ASTPrinter, func: E.Function) -> Fields:
    fields = {"params": printer.items(func.params), "body": printer.visit_expr(func.body)}
    if func.ret_struct_info is not None:
        fields["ret_struct_info"] = printer.visit_expr(func.ret_struct_info)
    return {**fields, "is_pure": str(func.is_pure), "attrs": printer.attributes(func.attrs)}


def _parts(*names: str) -> Callable[[ASTPrinter, Any], Fields]:
    """Fields that are expressions, bindings or lists of them."""

    def fields(printer: ASTPrinter, node: Any) -> Fields:
        values = {name: getattr(node, name) for name in names}
        return {
            name: printer.items(value) if isinstance(value, tuple) else printer.visit_expr(value)
            for name, value in values.items()
        }

    return fields


def _named(field: str) -> Callable[[ASTPrinter, Any], Fields]:
    return lambda printer, node: {field: _quoted(getattr(node, field))}


_FIELDS: dict[str, Callable[[ASTPrinter, Any], Fields]] = {
    **{cls.__name__: _named("name_hint") for cls in (E.Var, E.DataflowVar, GlobalVar)},
    Op.__name__: _named("name"),
    "ExternFunc": _named("global_symbol"),
    "StringImm": _named("value"),
    "DataTypeImm": lambda printer, node: {"value": str(node.value)},
    "Constant": lambda printer, node: {"data": str(node.data.numpy())},
    "PrimValue": _parts("value"),
    "ShapeExpr": _parts("values"),
    "Tuple": _parts("fields"),
    "TupleGetItem": lambda printer, node: {
        "tuple_value": printer.visit_expr(node.tuple_value),
        "index": str(node.index),
    },
    "If": _parts("cond", "true_branch", "false_branch"),
    "SeqExpr": _parts("blocks", "body"),
    "BindingBlock": _parts("bindings"),
    "DataflowBlock": _parts("bindings"),
    "VarBinding": _parts("var", "value"),
    "MatchCast": _parts("var", "value", "struct_info"),
    "Call": _call,
    "Function": _function,
}


def dump_ast(exp: Any, *args: Any, **options: Any) -> str:
    """An expression as text; the options are those of `ASTPrinter`."""
    return ASTPrinter(*args, **options).visit_expr(exp)
