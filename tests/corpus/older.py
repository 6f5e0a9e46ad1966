"""Turns programs as TVM 0.27 prints them into the spellings of 2021 and 2022.

Blocks list their axes, which `T.bind` binds; regions are lists; loops are `T.serial(0, n)`; memory
is a pointer, over which a buffer is declared; the type of a call is its last argument.
"""

from __future__ import annotations

import ast
import re

from mlcweb.tir.builtins import BUILTINS

RENAMED = {
    "sblock": "block", "sblock_attr": "block_attr", "sblock_alloc_buffer": "alloc_buffer",
    "Any": "Object",
}  # fmt: skip

KEYWORDS = {"out_ty": "out_sinfo", "ty_args": "sinfo_args"}

AXES = {"S": "spatial", "R": "reduce"}


def older(text: str) -> str:
    """The program in the older spelling."""
    return ast.unparse(ast.fix_missing_locations(_Older().visit(ast.parse(text))))


def _is_call(node: ast.AST | None, *names: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in names


def _call(function: str, *args: ast.expr, **options: ast.expr) -> ast.Call:
    keywords = [ast.keyword(name, value) for name, value in options.items()]
    return ast.Call(ast.parse(function, mode="eval").body, list(args), keywords)


class _Older(ast.NodeTransformer):
    def __init__(self) -> None:
        self.domains: dict[str, ast.expr] = {}
        """What each loop runs over: its extent, or its start and end."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """The name of a node or an attribute; the metadata of a program, in JSON, has many."""
        if isinstance(node.value, str) and node.value.startswith(("tirx.", "{")):
            return ast.Constant(re.sub(r'(^|")tirx\.', r"\1tir.", node.value))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = self.visit(node.value)
        renamed = isinstance(value, ast.Name) and value.id in "TR"
        return ast.Attribute(value, RENAMED.get(node.attr, node.attr) if renamed else node.attr)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        return ast.keyword(KEYWORDS.get(node.arg or "", node.arg), self.visit(node.value))

    def visit_arg(self, node: ast.arg) -> ast.arg:
        match node.annotation:
            case ast.Call(func=ast.Attribute(attr="Buffer") as kind, args=[_, _] as both):
                if not node.annotation.keywords:
                    inside = ast.Tuple([self.visit(part) for part in both])
                    return ast.arg(node.arg, ast.Subscript(kind, inside))
        return ast.arg(node.arg, self.visit(node.annotation) if node.annotation else None)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _is_call(node, "T.prim_func"):
            node.keywords = [item for item in node.keywords if item.arg != "s_tir"]
            return node if node.keywords else node.func
        if _is_call(node, "T.call_extern", "T.call_pure_extern"):
            dtype, *args = map(self.visit, node.args)
            return ast.Call(node.func, args, [ast.keyword("dtype", dtype)])
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        value = self.visit(node.value)
        if _is_call(value, "T.reads", "T.writes"):
            value.args = [ast.List(value.args)]
        elif isinstance(value, ast.Call) and ast.unparse(value.func).removeprefix("T.") in BUILTINS:
            value = _call("T.evaluate", value)
        return ast.Expr(value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        match node.annotation:
            case ast.Subscript(value=ast.Attribute(attr="let"), slice=inside):
                node.annotation = inside
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt] | ast.stmt:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(attr="alloc_buffer"), args=args, keywords=options
                ),
            ) if {item.arg for item in options} <= {"scope", "annotations"}:
                shape, dtype = map(self.visit, args if len(args) == 2 else [*args, F32])
                given = {str(item.arg): self.visit(item.value) for item in options}
                scope = given.pop("scope", ast.Constant("global"))
                memory = _call("T.allocate", shape, dtype, scope, **given)
                view = _call("T.buffer_decl", shape, dtype, data=ast.Name(f"{name}_data"))
                return [_assigned(f"{name}_data", memory), _assigned(name, view)]
            case ast.Assign(value=ast.Call(func=ast.Attribute(attr="alloc_buffer") as called)):
                called.attr = "decl_buffer"
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_For(self, node: ast.For) -> ast.stmt:
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        calls = node.iter.args if isinstance(node.iter, ast.Call) else []
        for target, extent in zip(targets, calls, strict=False):
            whole = len(calls) == 1 or _is_call(node.iter, "T.grid")
            self.domains[ast.unparse(target)] = extent if whole else ast.Tuple(calls[:2])
        if _is_call(node.iter, "range") and len(calls) == 1:
            node.iter = _call("T.serial", _zero(calls[0]), *calls)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_With(self, node: ast.With) -> ast.stmt:
        item = node.items[0]
        if not _is_call(item.context_expr, "T.sblock"):
            return self.generic_visit(node)  # type: ignore[return-value]
        names: list[ast.expr] = []
        domains: list[ast.expr] = []
        binds: list[ast.stmt] = []
        body = list(node.body)
        while body and (axes := self._axes(body[0])):
            for name, kind, domain, value in axes:
                names.append(ast.Name(name))
                binds.append(ast.Expr(_call("T.bind", ast.Name(name), value)))
                bounds = domain.elts if isinstance(domain, ast.Tuple) else [_zero(domain), domain]
                domains.append(domain if kind == "spatial" else _call(f"T.{kind}_axis", *bounds))
            body.pop(0)
        block = _call("T.block", ast.List(domains), *getattr(item.context_expr, "args", ()))
        items = [ast.withitem(block, ast.List(names) if names else None)]
        with_body = [*binds, *body] or [ast.Pass()]
        return self.generic_visit(ast.With(items, with_body))  # type: ignore[return-value]

    def _axes(self, node: ast.stmt) -> list[tuple[str, str, ast.expr, ast.expr]]:
        """The axes that a statement defines: name, kind, domain, value."""
        match node:
            case ast.Assign(
                targets=[target], value=ast.Call(func=ast.Attribute(attr=kind) as called, args=args)
            ) if ast.unparse(called.value) == "T.axis":
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                if kind != "remap":
                    return [(ast.unparse(target), kind, args[0], args[1])]
                letters, loops = ast.literal_eval(args[0]), getattr(args[1], "elts", [])
                return [
                    (ast.unparse(name), AXES[letter], self.domains[ast.unparse(loop)], loop)
                    for name, letter, loop in zip(names, letters, loops, strict=True)
                ]
        return []


F32 = ast.Constant("float32")


def _zero(extent: ast.expr) -> ast.expr:
    """0 in the type of an extent, where that is written: `T.int64(0)`."""
    match extent:
        case ast.Call(func=dtype, args=[ast.Constant()]):
            return ast.Call(dtype, [ast.Constant(0)], [])
    return ast.Constant(0)


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name)], value)
