"""`script` and `show` of every node, with TVM's options."""

from __future__ import annotations

import pytest

from mlcweb import relax
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
        (LOOP.body.body.seq[1], "A[1] = x"),
        (LOOP.body.value, "A[0]"),
        (relax.TensorStructInfo((4,), "float32"), 'R.Tensor((4,), dtype="float32")'),
        (relax.ShapeExpr([4, 2]), "R.shape([4, 2])"),
    ],
)
def test_every_node_has_a_text(node, text, capsys):
    assert node.script() == text
    node.show()
    assert capsys.readouterr().out == text + "\n"


def test_options_that_change_the_text():
    text = FUNC.script(tir_prefix="TT", indent_spaces=2, name="other")
    assert text == (
        TEXT.replace("T.", "TT.").replace('"TT.x"', '"T.x"').replace("as T", "as TT")
        .replace("def main", "def other").replace("        ", "\t").replace("    ", "  ")
        .replace("\t", "    ")
    )  # fmt: skip


def test_a_node_is_underlined():
    lines = FUNC.script(obj_to_underline=[LOOP]).splitlines()
    assert lines[5] == "    " + "^" * len("for i in range(8):")


def test_options_of_tvm_without_effect_here():
    assert FUNC.script(syntax_sugar=False, verbose_expr=True, int_dtype="int64") == TEXT
    with pytest.raises(TypeError, match="script\\(\\) has no option 'colour'"):
        FUNC.script(colour=True)


def test_names_of_values_are_marked_as_tvm_does_since_2026():
    text = FUNC.script(dialect="s_tir")
    assert "        x: T.let[T.int32] = A[0]\n" in text
    assert structural_equal(parse(text), FUNC)
