"""`script` and `show` of every node, with TVM's options."""

from __future__ import annotations

import re

import pytest

from mlcweb import relax, te
from mlcweb.ir.access_path import AccessPath
from mlcweb.ir.module import IRModule
from mlcweb.ir.structural import structural_equal
from mlcweb.script import parse

TEXT = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = A[0]
        T.call_extern("int32", "T.x", T.exp(T.float32(1)))
        A[1] = x"""

FUNC = parse(TEXT)
LOOP = FUNC.body


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (LOOP.loop_var + 1, "i + 1"),
        (FUNC.buffer_map[FUNC.params[0]], "A"),
        (LOOP.body.body.seq[1], 'A = T.Buffer((8,), "int32")\nx = T.int32()\nA[1] = x'),
        (LOOP.body.value, "A[0]"),
        (relax.TensorStructInfo((4,), "float32"), 'R.Tensor((4,), dtype="float32")'),
        (relax.ShapeExpr([4, 2]), "R.shape([4, 2])"),
    ],
)
def test_every_node_has_a_text(node, text, capsys):
    assert node.script() == text
    node.show()
    assert capsys.readouterr().out == text + "\n"


SYMBOL = '    T.func_attr({"global_symbol": "main"})\n'


def test_options_that_change_the_text():
    text = FUNC.script(tir_prefix="TT", indent_spaces=2, name="other")
    assert text == (
        TEXT.replace("    for", SYMBOL + "    for", 1).replace("T.", "TT.")
        .replace('"TT.x"', '"T.x"').replace("as T", "as TT").replace("def main", "def other")
        .replace("        ", "\t").replace("    ", "  ")
        .replace("\t", "    ")
    )  # fmt: skip


def test_a_node_is_underlined():
    lines = FUNC.script(obj_to_underline=[LOOP]).splitlines()
    assert lines[5] == "    " + "^" * len("for i in range(8):")


def test_expressions_and_buffers_are_underlined_wherever_they_are_used():
    func = parse("""@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * (A[v] + T.float32(1))""")
    store = func.body.block.body.body.block.body
    product = store.value
    text = func.script(obj_to_underline=[product])
    assert text.splitlines()[-2:] == [
        "            B[v] = A[v] * (A[v] + T.float32(1))",
        "                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]
    text = func.script(obj_to_underline=[product.b, store.buffer, store.indices[0]])
    assert text.splitlines()[-6:] == [
        "            T.reads(A[v])",
        "                      ^",
        "            T.writes(B[v])",
        "                     ^ ^",
        "            B[v] = A[v] * (A[v] + T.float32(1))",
        "            ^ ^      ^     ^^^^^^^^^^^^^^^^^^^",
    ]
    assert parse(func.script()).script() == func.script()  # no mark is left behind


def test_parts_of_models_are_underlined():
    func = parse("""@R.function
def main(x: R.Tensor((8,), "float32")):
    y = R.add(x, R.multiply(x, x))
    return y""")
    product = func.body.blocks[0].bindings[0].value
    lines = func.script(obj_to_underline=[product]).splitlines()
    call = "R.multiply(x, x)"
    (line,) = (number for number, line in enumerate(lines) if line.endswith(call))
    assert lines[line + 1] == " " * (len(lines[line]) - len(call)) + "^" * len(call)


def test_parts_are_underlined_and_annotated_by_their_paths():
    func = parse("""@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(1)""")
    root = AccessPath.root()
    loop = root.attr("body")
    value = loop.attr("body").attr("value")  # has no lines of its own; its store has
    text = func.script(path_to_underline=[loop], path_to_annotate={value: "here"})
    assert text.splitlines()[-4:] == [
        "    for i in range(8):",
        "    ^^^^^^^^^^^^^^^^^^",
        "        A[i] = T.float32(1)  # here",
        "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]
    assert func.script(obj_to_underline=[func.body]).count("^") == 18 + 19
    assert func.script(path_to_underline=[root.attr("nowhere")]).splitlines()[3:6:2] == [
        "^" * len("@T.prim_func"),
        "^" * 39,
    ]


def test_parts_of_lines_are_underlined():
    func = parse("""@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(n):
        A[i] = T.Cast("float32", n * 2 + i)""")
    n = func.params[1]
    lines = func.script(obj_to_underline=[n]).splitlines()
    assert lines[4:] == [
        "    for i in range(n):",
        "                   ^",
        '        A[i] = T.Cast("float32", n * 2 + i)',
        "                                 ^",
    ]
    product = AccessPath.root().attr("body").attr("body").attr("value").attr("value").attr("a")
    lines = func.script(path_to_underline=[product]).splitlines()
    assert lines[-1] == " " * lines[-2].index("n * 2") + "^^^^^"
    shown = func.script(path_to_underline=[product.attr("b").attr("value")]).splitlines()
    assert shown[-1] == " " * shown[-2].index("2 + i") + "^"


def test_modules_are_underlined_with_their_decorators():
    module = IRModule({"main": FUNC})
    shown = module.script(path_to_underline=[AccessPath.root()]).splitlines()
    assert shown[3:7] == ["@I.ir_module", "^" * 12, "class Module:", "^" * 13]
    function = AccessPath.root().attr("functions").map_item(module.get_global_var("main"))
    shown = module.script(path_to_underline=[function]).splitlines()
    assert shown[3:7] == ["@I.ir_module", "class Module:", "    @T.prim_func", "    " + "^" * 12]


def test_names_with_addresses():
    text = FUNC.script(show_object_address=True)
    assert set(re.findall(r"\b(\w+)_0x[0-9a-f]+\b", text)) == {"A", "i", "x"}
    assert len(set(re.findall(r"\bi_0x[0-9a-f]+\b", text))) == 1
    assert re.sub("_0x[0-9a-f]+", "", text) == TEXT
    assert FUNC.script(show_object_address=False) == TEXT


def test_options_of_tvm_without_effect_here():
    assert FUNC.script(num_context_lines=1) == TEXT
    with pytest.raises(TypeError, match="script\\(\\) has no option 'colour'"):
        FUNC.script(colour=True)


@pytest.mark.parametrize("prefix", ["2T", "", "T.x", "for"])
def test_a_prefix_is_a_name(prefix: str):
    with pytest.raises(RuntimeError, match="a prefix is a name of Python"):
        FUNC.script(tir_prefix=prefix)


GRID = """@T.prim_func
def main(A: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[vi, vj])
            A[vi, vj] = T.float32(1)"""

NESTED = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 4), "float32")):
    with T.block("root"):
        T.reads()
        T.writes()
        for i in range(8):
            for j in range(4):
                with T.block("b"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(4, j)
                    T.reads()
                    T.writes(A[vi, vj])
                    A[vi, vj] = T.float32(1)"""


def test_without_sugar_loops_and_blocks_are_written_out():
    func = parse(GRID)
    assert func.script(syntax_sugar=False) == NESTED
    assert structural_equal(parse(NESTED), func)


def test_constants_of_the_types_that_are_named_stand_alone():
    text = parse(GRID).script(int_dtype="int64", float_dtype="float32")
    assert "T.grid(T.int32(8), T.int32(4))" in text
    assert "A[vi, vj] = 1.0" in text


def test_lines_are_numbered():
    lines = FUNC.script(print_line_numbers=True).split("\n")
    assert lines[2] == "3 @T.prim_func"
    assert len(lines) == len(TEXT.split("\n"))


def test_comments_stand_above_loops_and_beside_single_lines():
    func = parse(GRID)
    loop = func.body.block.body
    store = loop.body.body.block.body
    text = func.script(obj_to_annotate={loop: "the loop", store: "the store"})
    assert "    # the loop\n    for i, j in T.grid(8, 4):\n" in text
    assert text.endswith("A[vi, vj] = T.float32(1)  # the store")


def test_variables_of_an_expression_are_declared_where_that_is_asked_for():
    value = LOOP.loop_var + 1
    assert value.script(verbose_expr=True) == "i = T.int32()\ni + 1"


def test_a_block_alone_says_that_its_axes_have_no_values():
    block = parse(GRID).body.block.body.body.body.block
    first, *lines = block.script().split("\n")
    assert first == "A = T.Buffer((8, 4))"
    assert lines[:2] == ['with T.block("b", no_realize=True):', "    vi = T.axis.spatial(8)"]


def test_a_reduction_says_what_it_combines():
    k = te.reduce_axis((0, 8), "k")
    largest = te.comm_reducer(lambda p, q: p + q, lambda dtype: te.const(0, dtype))
    value = largest(te.var("f", "float32"), k)
    assert value.script() == (
        "T.reduce(T.comm_reducer(lambda p, q: p + q, [T.float32(0)]), source=[f], init=[], "
        'axis=[T.iter_var(k, T.Range(0, 8), "CommReduce", "")], condition=T.bool(True), '
        "value_index=0)"
    )


def test_names_of_values_are_marked_as_tvm_does_since_2026():
    text = FUNC.script(dialect="s_tir")
    assert "        x: T.let[T.int32] = A[0]\n" in text
    assert structural_equal(parse(text), FUNC)
