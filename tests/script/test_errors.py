"""What the parser says about programs that are wrong, and where it points."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

import mlcweb
from mlcweb.ir import DiagnosticError, assert_structural_equal
from mlcweb.script import parse

HEADER = """@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "int8"), n: T.int32):
"""


def complaint(body: str, header: str = HEADER) -> tuple[str, str]:
    """The message, and the source text that it points at (to the end of its first line)."""
    text = header + indent(body, "    ") + "\n"
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    span = caught.value.span
    assert span is not None
    line = text.splitlines()[span.line - 1]
    end = span.end_column if span.end_line == span.line else len(line)
    return caught.value.message, line[span.column : end]


LOOP = "for i in range(8):\n    "
BLOCK = LOOP + 'with T.block("X"):\n        '


@pytest.mark.parametrize(
    ("body", "message", "place"),
    [
        # names
        (LOOP + "A[i, j] = 0.0", '"j" is not defined', "j"),
        ("for i in rnage(8):\n    B[i] = 0", '"rnage" is not defined; did you mean range?',
         "rnage"),
        ("for i in T.serail(8):\n    B[i] = 0", "did you mean serial", "T.serail"),
        (BLOCK + "vi = T.axis.spatal(8, i)", "T.axis has no spatal; did you mean spatial?",
         "T.axis.spatal"),
        ("B[0] = A.shap[0]", 'the buffer "A" has no shap; did you mean shape?', "A.shap"),
        (LOOP + "B[i] = 0\nB[i] = 1", '"i" is the variable of the loop at line 3 and means nothing '
         "outside of it", "i"),
        (BLOCK + "vi = T.axis.spatial(8, i)\n        B[vi] = 0\n    B[vi] = 1",
         '"vi" is an axis of the block "X" at line 5 and means nothing outside of it', "vi"),
        ("k = T.int32()\nB[k] = 0", '"k" has no value: a variable declared by T.int32()',
         "B[k] = 0"),
        # buffers
        (LOOP + "A[i] = 0.0", 'Buffer "A" has 2 dimensions, of shape (8, 16); 1 index given',
         "A[i]"),
        (LOOP + "B[i] = B[i, 1]", 'Buffer "B" has 1 dimension, of shape (8); 2 indices given',
         "B[i, 1]"),
        (LOOP + "A[A[i, 0], 0] = 1.0", 'An index of buffer "A" is an integer, not float32',
         "A[i, 0]"),
        ("A[0.5, 0] = 1.0", 'An index of buffer "A" is an integer, not 0.5 (float)', "0.5"),
        ("A[0, 0] = A", 'Expected an expression, found the buffer "A"', "A"),
        ('B[0] = "text"', 'The buffer "B" takes values of type int8 here, not handle', '"text"'),
        ("B[0] = A[0, 0:n]", 'The slice of buffer "A" has no constant length', "B[0] = A[0, 0:n]"),
        ("B[0] = A[0:2, 0] + 1.0", 'Only the last index of buffer "A" may be a vector',
         "A[0:2, 0] + 1.0"),
        ('C = T.alloc_buffer("(8, 8)")', "names a variable, not '(8, 8)'",
         'T.alloc_buffer("(8, 8)")'),
        ("n[0] = 1", "Only buffers can be written, not the int32 expression n", "n[0]"),
        ("B[0] = n[0]", "the int32 expression n has no elements; only buffers are indexed", "n[0]"),
        ("X = T.alloc_buffer((4,), 'flaot32')", 'Unknown data type "flaot32"',
         "T.alloc_buffer((4,), 'flaot32')"),
        ("X = T.alloc_buffer((4.5,))", "A buffer's shape needs integers, not 4.5",
         "T.alloc_buffer((4.5,))"),
        ("T.alloc_buffer((4,))", "Give it a name: `name = T.alloc_buffer((4,))`",
         "T.alloc_buffer((4,))"),
        ("X = T.match_buffer(n, (4,))", 'takes a parameter of type T.handle, not "n"',
         "T.match_buffer(n, (4,))"),
        ("X = T.match_buffer(A[0:2, 0:3], (2, 3))", "T.match_buffer of a region belongs inside",
         "T.match_buffer(A[0:2, 0:3], (2, 3))"),
        ("X = T.Buffer((4,))\nX[0] = 1", "use T.alloc_buffer to allocate", "T.Buffer((4,))"),
        # loops
        ("for i in [1, 2]:\n    B[i] = 0", "not over [1, 2] (list)", "[1, 2]"),
        ("for i in range(0, 8, n):\n    B[i] = 0", "step of a loop is a constant: write `for i in "
         "range(n)` and use `i * step`", "range(0, 8, n)"),
        ("for i, j in T.grid(8):\n    B[i] = 0", "2 loop variable(s) for 1 extent(s)", "i, j"),
        ("for i, i in T.grid(8, 8):\n    B[i] = 0", 'Two loops have the variable "i"', "i"),
        ("for i in range(2.0):\n    B[i] = 0", "An integer is needed for the number of iterations "
         "of a loop, not float32", "range(2.0)"),
        ("for i in T.thread_binding(3):\n    B[i] = 0", "needs the axis", "T.thread_binding(3)"),
        (LOOP + "B[i] = 0\nelse:\n    B[0] = 1", "A loop of a script has no `else`", "B[0] = 1"),
        (LOOP + "def f(x):\n        pass", "are a macro, `@T.macro`", "def f(x):"),
        (LOOP + "f'{j}'", '"j" is not defined', "f'{j}'"),
        (LOOP + "B[i] = sum([1 / j for j in range(2)])", "ZeroDivisionError: division by zero",
         "[1 / j for j in range(2)]"),
        (LOOP + "B[i] = sum([k for k in range(n)])", "cannot be interpreted as an integer",
         "[k for k in range(n)]"),
        ("T.static_assert(1 == 2, 'too few')", "too few", "T.static_assert(1 == 2, 'too few')"),
        # blocks
        ("vi = T.axis.spatial(8, n)", "T.axis belongs inside `with T.block(…):`",
         "T.axis.spatial(8, n)"),
        (BLOCK + "vi = T.axis.spatial(8, i)\n        vi = T.axis.spatial(8, i)",
         'The block "X" has an axis "vi" already', "T.axis.spatial(8, i)"),
        (BLOCK + 'vi = T.axis.remap("SS", [i])', 'got 2 kinds ("SS") for 1 loops',
         'T.axis.remap("SS", [i])'),
        (BLOCK + 'vi = T.axis.remap("Q", [i])', "knows the kinds S (spatial) and R (reduce)",
         'T.axis.remap("Q", [i])'),
        (BLOCK + 'vi = T.axis.remap("S", [i + 1])', "takes loop variables, not the int32 "
         "expression i + 1", 'T.axis.remap("S", [i + 1])'),
        (LOOP + "'text'", "The loop has no statement", "for i in range(8):"),
        (BLOCK + "vi = T.axis.spatial(8, i)\n        B[i] = 0", 'The block "X" has axes, and yet '
         'uses the loop variable "i" from outside; bind it to an axis', "B[i] = 0"),
        ("T.reads(A[0, 0])", "T.reads belongs inside `with T.block(…):`", "T.reads(A[0, 0])"),
        ('with T.block("X"):\n    T.writes(n)', "Expected a buffer region such as A[0:16, j]",
         "T.writes(n)"),
        ('with T.block("X"):\n    T.reads()\n    T.reads()', "has a T.reads already", "T.reads()"),
        ('with T.block("X"):\n    T.block_attr({"k": 1})\n    T.block_attr({"k": 2})',
         'has an attribute "k" already, 1', 'T.block_attr({"k": 2})'),
        ('with T.block("X"):\n    T.where(n < 3)\n    T.where(n < 4)', "has a T.where already",
         "T.where(n < 4)"),
        ('with T.block("X"):\n    v = T.axis.spatial(1, 0)\n    T.call_extern("int8", "f", A.data)',
         'What the block "X" does to "A" cannot be seen', 'T.block("X")'),
        # expressions and statements
        ("B[0] = n / 2", "The division of integers is ambiguous: write `//`", "n / 2"),
        ("B[0] = n // 0", "Division by zero", "n // 0"),
        ("A[0, 0] = T.exp(n, 3)", "T.exp() takes 1 positional argument but 2 were given",
         "T.exp(n, 3)"),
        ("A[0, 0] = T.float32('x')", "T.float32: could not convert string to float",
         "T.float32('x')"),
        ("B[0] = [1, 2][5]", "list index out of range", "[1, 2][5]"),
        ("B[0] = 1 + 'a'", "unsupported operand", "1 + 'a'"),
        ("B[0] = n @ n", "MatMult (an operator) cannot be used in a script", "n @ n"),
        ("B[0] = n in [1]", "In (a comparison) cannot be used in a script", "n in [1]"),
        ("B[0] = (lambda: 1)()", "Lambda cannot be used in a script", "lambda: 1"),
        ("B[0] = n(3)", "n cannot be called", "n(3)"),
        ("n += 1", "A name keeps its value; give `n + 1` a name of its own", "n += 1"),
        ("x = y = 3", "Assign one name at a time", "x = y = 3"),
        ("x, y = 1, 2, 3", "2 names on the left, 3 values on the right", "1, 2, 3"),
        ("A.x = 3", "Only names and buffer elements can be assigned", "A.x"),
        ("x: 3 = 4", "Expected a type such as T.int32", "3"),
        ("import os", "A script cannot contain an import", "import os"),
        ("with A:\n    B[0] = 1", '`with` does not take the buffer "A"', "A"),
        ("T.func_attr(3)", "T.func_attr takes a dictionary", "T.func_attr(3)"),
        ("n = T.int32()", '"n" is a parameter already', "T.int32()"),
        ("A", 'the buffer "A" is not a statement', "A"),
        ("T.launch_thread(n, 4)", '"n" is not a variable of T.env_thread', "T.launch_thread(n, 4)"),
        ("return", "A script returns at its end only", "return"),
    ],
)  # fmt: skip
def test_complaints(body: str, message: str, place: str) -> None:
    found, source = complaint(body)
    assert message in found
    assert source == place


def test_the_wrong_size_of_chapter_2() -> None:
    """The course's program whose loop runs over 127 values of an axis of 128."""
    text = """@T.prim_func
def main(A: T.Buffer[128, "float32"],
         B: T.Buffer[128, "float32"],
         C: T.Buffer[128, "float32"]):
    for i in range(127):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi] + B[vi]
"""
    with pytest.raises(DiagnosticError) as caught:
        parse(text, filename="chapter2.py")
    assert caught.value.message == (
        'The axis "vi" of the block "C" has 128 values (0 to 127), but the loop "i" that it is '
        "bound to runs over 127 values (0 to 126); write `for i in range(128)`, or give the axis "
        "the range of the loop"
    )
    assert str(caught.value.span) == "chapter2.py:7:18"


def test_a_block_may_say_that_it_writes_a_part() -> None:
    program = parse("""@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi] + T.float32(1)
""")
    assert_structural_equal(parse(program.script()), program)
    given, result = np.arange(8, dtype="float32"), np.full(16, -1, "float32")
    for target in ("interpreter", "numpy", "wasm"):
        c = mlcweb.nd.array(result)
        mlcweb.build(program, target=target)(mlcweb.nd.array(given), c)
        np.testing.assert_array_equal(c.numpy(), [*(given + 1), *[-1] * 8])


def test_a_condition_may_end_the_axis_of_a_longer_loop() -> None:
    parse("""@T.prim_func
def main(A: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    for i in range(128):
        if i < 100:
            with T.block("C"):
                vi = T.axis.spatial(100, i)
                C[vi] = A[vi]
""")


def test_blocks_may_write_a_parameter_in_parts() -> None:
    parse("""@T.prim_func
def main(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    for i in range(127):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi]
    with T.block("last"):
        C[127] = T.float32(0)
""")


def test_intermediate_results_may_be_partial() -> None:
    """compute_at leaves such programs; what is read must still be written, and no more."""
    text = """@T.prim_func
def main(A: T.Buffer((128,), "float32"), C: T.Buffer((100,), "float32")):
    B = T.alloc_buffer((128,))
    for i in range(LENGTH):
        with T.block("B"):
            vi = T.axis.spatial(128, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(100):
        with T.block("C"):
            vi = T.axis.spatial(100, i)
            C[vi] = B[vi]
"""
    parse(text.replace("LENGTH", "100"))
    with pytest.raises(DiagnosticError, match="runs over 129 values"):
        parse(text.replace("LENGTH", "129"))
    with pytest.raises(DiagnosticError, match="runs over 99 values"):
        parse(text.replace("LENGTH", "99"))


def test_the_error_shows_the_line_with_a_caret() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(HEADER + "    B[0] = q\n")
    *_, source, carets = str(caught.value).splitlines()
    assert source.endswith("    B[0] = q")
    assert source.index("q") == carets.index("^")
    assert carets.count("^") == 1


def test_columns_count_characters() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(HEADER + '    B[0] = T.call_extern("int32", "größe", q)\n')
    assert caught.value.span is not None
    assert caught.value.span.column == len('    B[0] = T.call_extern("int32", "größe", ')


def test_a_loop_may_be_larger_than_its_axis_under_a_predicate() -> None:
    parse(HEADER + indent(
        'for i in range(10):\n    with T.block("X"):\n        vi = T.axis.spatial(8, i)\n'
        "        T.where(i < 8)\n        B[vi] = 0",
        "    ",
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("region", "shape", "fault"),
    [
        ("A[0:4, v]", "(4,)", r"the shape \(4\), but is .* \"A\" of the shape \(4, 1\)"),
        ("A[v, 0:4]", "(8,)", r"the shape \(8\), but is .* \"A\" of the shape \(1, 4\)"),
        ("A[v, 0:8]", "(1, 1, 8)", r"the shape \(1, 1, 8\), but is .* the shape \(1, 8\)"),
        ("A[v, 0:8]", "(8,)", ""),
        ("A[v, v]", "()", ""),
    ],
)
def test_a_view_has_the_shape_of_its_region(region: str, shape: str, fault: str) -> None:
    """All targets read and wrote other elements than those of the region."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32")):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            V = T.match_buffer({region}, {shape}, "int32", offset_factor=1)
            T.evaluate(0)
"""
    if not fault:
        parse(text)
        return
    with pytest.raises(DiagnosticError, match=fault) as caught:
        parse(text)
    assert ":7:17\n    7 |             V = T.match_buffer(" in str(caught.value)


def test_a_name_is_that_of_one_allocated_buffer_of_a_scope() -> None:
    allocation = 'X = T.alloc_buffer((4,), "int32")\n'
    with pytest.raises(DiagnosticError, match='"X" is a buffer of this scope already') as caught:
        parse(HEADER + f"    {allocation}    X[0] = 1\n    {allocation}    X[0] = 2\n")
    assert ":5:9\n    5 |     X = T.alloc_buffer(" in str(caught.value)
    again = f"    for i in range(4):\n        {allocation}        X[i] = 2\n"
    parse(HEADER + f"    {allocation}    X[0] = 1\n{again}")
    parse(HEADER + again.replace("range(4)", "T.meta_var([1, 2])"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 3", "has no definition decorated with"),
        ("def f():\n    pass", 'What is the function "f"? It has no decorator that makes a '
         "function of a module; `prim_func`"),
        ("@njit\ndef f():\n    pass", "@njit does not make a function of a module"),
        ("@T.prim_func\ndef f(x):\n    pass", 'The parameter "x" needs a type'),
        ("@T.prim_func\ndef f(*x: T.int32):\n    pass", "are positional and have no defaults"),
        ("@T.prim_func\ndef f(x: T.int32 = 3):\n    pass", "are positional and have no defaults"),
        ("@T.prim_func\ndef f(x: 3):\n    pass", "3 (int) is not a type of a parameter"),
        ("@T.prim_func\ndef f() -> 3:\n    pass", "returns nothing or a scalar type"),
        ("@I.ir_module\nclass M:\n    x = 3", "A module contains functions"),
        ("@I.ir_module\nclass M:\n    @T.prim_func\n    def f(): pass\n    @T.prim_func\n"
         "    def f(): pass", 'The module has two functions "f"'),
        ("@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        M.g()",
         "has no g"),
    ],
)  # fmt: skip
def test_faults_of_definitions(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    assert message in caught.value.message


def test_a_view_with_a_layout_is_refused() -> None:
    message, place = complaint("C = A.view(128, layout=3)\nC[0] = T.float32(0)")
    assert "A view with a layout is not supported" in message
    assert place == "A.view(128, layout=3)"


def test_syntax_errors_are_python_errors() -> None:
    with pytest.raises(SyntaxError):
        parse("@T.prim_func\ndef f(:\n    pass")


def test_an_operator_that_a_namespace_of_graphs_lacks_is_told_by_its_name_in_scripts() -> None:
    text = "@R.function\ndef main(x: R.Tensor((4,), 'float32')):\n    return R.nn.nothing(x)\n"
    with pytest.raises(DiagnosticError, match=r"^R\.nn has no nothing"):
        parse(text)


def test_the_part_that_is_wrong_is_marked_on_its_own_lines() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(HEADER + "    B[0] = (n\n        + n\n        + A.shap[0]\n        + n)\n")
    assert str(caught.value).endswith(
        ":5:11\n    5 |         + A.shap[0]\n      |           ^^^^^^"
    )
    with pytest.raises(DiagnosticError) as caught:
        parse(HEADER + '    B[0] = T.max(n,\n        n\n        + "x"\n        )\n')
    assert str(caught.value).endswith(
        ':4:9\n    4 |         n\n      |         ^\n    5 |         + "x"\n      |         ^^^^^'
    )


def test_of_nested_operators_the_one_that_is_wrong_is_marked() -> None:
    program = """@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((3, 4), "float32")):
    z = R.add(
        x,
        R.matmul(x, y))
    return z
"""
    with pytest.raises(ValueError, match="the extents of the sum are 4 and 3") as caught:
        parse(program)
    assert str(caught.value).endswith(
        "    5 |         R.matmul(x, y))\n      |         ^^^^^^^^^^^^^^"
    )


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (
            '#[version = "0.0.5"]\ndef @main(%x: int32) { %x }',
            "This is Relay, which was replaced by",
            1,
        ),
        ("\nprimfn(A: handle) -> () {\n}", "how TVM before 0.9 showed programs", 2),
        ("__global__ void f(float* a) {\n}", "the source of a kernel", 1),
    ],
)
def test_texts_that_are_no_scripts_say_what_they_are(text, reason, line):
    with pytest.raises(DiagnosticError, match=reason) as caught:
        parse(text)
    assert caught.value.span.line == line


def test_functions_of_numpy_name_those_of_scripts():
    with pytest.raises(DiagnosticError, match=r"^np.exp computes with arrays, .*; write T.exp\n"):
        parse(
            """@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    A[0] = np.exp(A[0])""",
            {"np": np},
        )


def test_memory_without_a_buffer_says_how_one_is_declared():
    with pytest.raises(DiagnosticError, match=r"A = T.decl_buffer\(\(n,\), \"float32\", data=a\)"):
        parse(
            """@T.prim_func
def main(a: T.handle("float32"), A: T.Buffer((4,), "float32")):
    A[0] = T.load("float32", a, 0)"""
        )
