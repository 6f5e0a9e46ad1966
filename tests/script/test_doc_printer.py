"""Docs: the syntax trees of `tvm.script.printer.doc` as text. The texts are those of TVM 0.27."""

import pytest

from mlcweb.ir.access_path import AccessPath
from mlcweb.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    AttrAccessDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    DocStringDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
    WhileDoc,
)  # fmt: skip
from mlcweb.script.printer.doc_printer import TOKENS, to_python_script

a, b, c = map(IdDoc, "abc")


def op(kind: str, *operands):
    return OperationDoc(OperationKind[kind], operands)


def lines(doc, **options) -> list[str]:
    return to_python_script(doc, **options).split("\n")


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (LiteralDoc(None), "None"),
        (LiteralDoc(True), "True"),
        (LiteralDoc('say "\\"\n'), r'"say \"\\\"\n"'),
        (LiteralDoc(-0.5), "-0.5"),
        (LiteralDoc(3.0), "3.0"),
        (a.attr("b").attr("c"), "a.b.c"),
        (a[()], "a[()]"),
        (a[b, SliceDoc(c)], "a[b, c:]"),
        (a[SliceDoc(None, b, c)], "a[:b:c]"),
        (a[SliceDoc(None, None, c)], "a[::c]"),
        (a.call(b, key=c), "a(b, key=c)"),
        (a.call(key=c, other=b), "a(key=c, other=b)"),
        (LambdaDoc([], a), "lambda : a"),
        (LambdaDoc([a, b], LambdaDoc([c], c)), "lambda a, b: lambda c: c"),
        (LambdaDoc([a], a).call(b), "(lambda a: a)(b)"),
        (TupleDoc([]), "()"),
        (TupleDoc([a]), "(a,)"),
        (ListDoc([a, b]), "[a, b]"),
        (DictDoc({LiteralDoc("x"): a, b: c}), '{"x": a, b: c}'),
        (op("Pow", op("Pow", a, b), c), "(a ** b) ** c"),
        (op("Pow", a, op("Pow", b, c)), "a ** b ** c"),
        (op("Pow", op("USub", a), op("USub", b)), "(-a) ** -b"),
        (op("USub", op("Add", a, b)), "-(a + b)"),
        (op("USub", a).attr("b"), "(-a).b"),
        (op("Sub", a, op("Sub", b, c)), "a - (b - c)"),
        (op("Mult", op("Add", a, b), c), "(a + b) * c"),
        (op("LShift", a, op("Mult", b, c)), "a << b * c"),
        (op("BitAnd", op("BitXor", a, op("BitOr", b, c)), c), "(a ^ (b | c)) & c"),
        (op("Lt", a, op("IfThenElse", a, b, c)), "a < (b if a else c)"),
        (op("Not", op("Eq", a, b)), "not a == b"),
        (op("And", op("Or", a, b), c), "(a or b) and c"),
        (op("IfThenElse", op("IfThenElse", a, b, c), b, c), "b if (b if a else c) else c"),
        (op("IfThenElse", a, b, op("IfThenElse", a, b, c)), "b if a else (b if a else c)"),
    ],
)
def test_expressions(doc, text) -> None:
    assert to_python_script(doc) == text


@pytest.mark.parametrize("kind", TOKENS)
def test_operators_are_written_by_their_tokens(kind) -> None:
    unary = kind < OperationKind._UnaryEnd
    text = to_python_script(OperationDoc(kind, [a] if unary else [a, b]))
    assert text == (f"{TOKENS[kind]}a" if unary else f"a {TOKENS[kind]} b")


def test_every_operator_has_a_token() -> None:
    kinds = {kind for kind in OperationKind if not kind.name.startswith("_")}
    assert kinds == {*TOKENS, OperationKind.IfThenElse}


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (AssignDoc(a, b), "a = b"),
        (AssignDoc(a, None, b), "a: b"),
        (AssignDoc(a, b, c), "a: c = b"),
        (AssignDoc(TupleDoc([a, TupleDoc([b, c])]), a), "a, (b, c) = a"),
        (AssertDoc(a), "assert a"),
        (AssertDoc(a, LiteralDoc("why")), 'assert a, "why"'),
        (ReturnDoc(a), "return a"),
        (IfDoc(a, [], [ExprStmtDoc(b)]), "if a:\n    pass\nelse:\n    b"),
        (WhileDoc(a, []), "while a:\n    pass"),
        (ForDoc(TupleDoc([a, b]), c, [ExprStmtDoc(a)]), "for a, b in c:\n    a"),
        (ScopeDoc(None, a, []), "with a:\n    pass"),
        (ScopeDoc(b, a, [ExprStmtDoc(b)]), "with a as b:\n    b"),
        (CommentDoc("one\ntwo"), "# one\n# two"),
        (CommentDoc(""), ""),
        (DocStringDoc("one\n\ntwo"), '"""\none\n\ntwo\n"""'),
        (FunctionDoc(a, [], [], None, []), "def a():\n    pass"),
        (
            FunctionDoc(a, [AssignDoc(b, LiteralDoc(1), c)], [b, c], LiteralDoc(None), []),
            "@b\n@c\ndef a(b: c = 1) -> None:\n    pass",
        ),
        (
            ClassDoc(a, [b], [FunctionDoc(b, [], [], None, []), FunctionDoc(c, [], [], None, [])]),
            "@b\nclass a:\n    def b():\n        pass\n\n    def c():\n        pass",
        ),
    ],
)
def test_statements(doc, text) -> None:
    assert to_python_script(doc) == text


def test_comments_stand_behind_simple_statements_and_at_the_head_of_others() -> None:
    def commented(doc, comment):
        doc.comment = comment
        return to_python_script(doc)

    assert commented(AssignDoc(a, b), "why") == "a = b  # why"
    assert commented(WhileDoc(a, []), "one\ntwo") == "# one\n# two\nwhile a:\n    pass"
    assert commented(ClassDoc(a, [], []), "why") == 'class a:\n    """\n    why\n    """\n    pass'
    with pytest.raises(ValueError, match="cannot have newline"):
        commented(ExprStmtDoc(a), "one\ntwo")


def test_what_makes_no_statement_is_refused() -> None:
    with pytest.raises(ValueError, match="a value or an annotation"):
        AssignDoc(a, None)
    with pytest.raises(ValueError, match="annotates a name alone"):
        AssignDoc(TupleDoc([a, b]), a, c)
    with pytest.raises(ValueError, match="one of its branches"):
        IfDoc(a, [], [])


def test_fields_are_kept() -> None:
    call = a.call(b, key=c)
    assert (call.callee, call.args, call.kwargs_keys, call.kwargs_values) == (
        a, (b,), ("key",), (c,),
    )  # fmt: skip
    attribute = a.attr("x")
    assert isinstance(attribute, AttrAccessDoc) and attribute.value is a
    stmt = ExprStmtDoc(a)
    assert stmt.comment is None and stmt.source_paths == ()


def placed(name: str, *path: str) -> IdDoc:
    doc = IdDoc(name)
    at = AccessPath.root()
    for part in path or (name,):
        at = at.attr(part)
    doc.source_paths = [at]
    return doc


def path(*names: str) -> AccessPath:
    at = AccessPath.root()
    for name in names:
        at = at.attr(name)
    return at


def test_all_of_the_longest_prefix_is_underlined() -> None:
    x, y = placed("x"), placed("yy")
    block = StmtBlockDoc([ExprStmtDoc(op("Add", x, y)), ExprStmtDoc(placed("x"))])
    assert lines(block, path_to_underline=[path("x", "deeper")]) == ["x + yy", "^", "x", "^"]
    assert lines(block, path_to_underline=[path("yy")]) == ["x + yy", "    ^^", "x"]
    longer = StmtBlockDoc([*block.stmts, ExprStmtDoc(placed("z", "x", "deeper"))])
    assert lines(longer, path_to_underline=[path("x", "deeper")])[-2:] == ["z", "^"]
    assert lines(block, path_to_underline=[path("nowhere")]) == ["x + yy", "x"]


def test_every_line_of_a_compound_statement_is_underlined() -> None:
    loop = WhileDoc(a, [ExprStmtDoc(b)])
    loop.source_paths = [path("loop")]
    assert lines(loop, path_to_underline=[path("loop")]) == [
        "while a:", "^^^^^^^^", "    b", "    ^",
    ]  # fmt: skip


def test_lines_are_numbered_and_skipped() -> None:
    block = StmtBlockDoc([ExprStmtDoc(placed(f"x{i}")) for i in range(10)])
    assert lines(block, path_to_underline=[path("x4")], num_context_lines=2) == [
        "(... 2 lines skipped ...)", "x2", "x3", "x4", "^^", "x5", "x6",
        "(... 3 lines skipped ...)",
    ]  # fmt: skip
    # A line that would be skipped alone is written.
    shown = lines(block, path_to_underline=[path("x3")], num_context_lines=2)
    assert shown[:5] == ["x0", "x1", "x2", "x3", "^^"]
    numbered = lines(
        block, path_to_underline=[path("x8")], num_context_lines=1, print_line_numbers=True
    )
    assert numbered == ["(... 7 lines skipped ...)", " 8 x7", " 9 x8", "   ^^", "10 x9"]


def test_paths_are_values() -> None:
    here = AccessPath.root().attr("body").array_item(1).map_item("k")
    assert here == AccessPath.root().attr("body").array_item(1).map_item("k")
    assert str(here) == "<root>.body[1]['k']"
    assert here.parent == AccessPath.root().attr("body").array_item(1)
    assert here.parent.is_prefix_of(here) and not here.is_prefix_of(here.parent)
    assert AccessPath.root().parent is None and len(here.to_steps()) == 3
    with pytest.raises(ValueError, match="root"):
        AccessPath()


def test_a_path_leads_to_values() -> None:
    here = AccessPath.root().attr("stmts").array_item(1).attr("expr").attr("missing").attr("name")
    block = StmtBlockDoc([ExprStmtDoc(a), ExprStmtDoc(b)])
    assert list(here.values(block)) == [block, block.stmts, block.stmts[1], b]
