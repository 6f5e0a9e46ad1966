"""What a function uses and nothing in it defines is declared where it is printed."""

from mlcweb.ir import assert_structural_equal
from mlcweb.ir.node import replace
from mlcweb.lower import lower
from mlcweb.script import from_source
from mlcweb.script.printer import script
from mlcweb.tir import (
    BufferRegion,
    CommReducer,
    Evaluate,
    For,
    ForKind,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimFunc,
    Var,
    const,
    decl_buffer,
)  # fmt: skip
from mlcweb.tir.buffer import Range
from tests.programs import matmul

ALLOCATED = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((64,), "float32")):
    C = T.decl_buffer((8, 8))
    D = T.decl_buffer((4, 16), data=C.data)
    for i, j in T.grid(8, 8):
        C[i, j] = A[i, j]
    for i, j in T.grid(4, 16):
        B[i * 16 + j] = D[i, j]
"""


def test_flat_views_are_declared_after_their_memory() -> None:
    flat = lower(from_source(ALLOCATED))
    lines = [line.strip() for line in flat.script().splitlines() if "T.Buffer(" in line][1:]
    assert lines == ["A_1 = T.Buffer((64,), data=A.data)", "D = T.Buffer((64,), data=C.data)"]
    assert_structural_equal(from_source(flat.script()), flat)


def test_views_that_callers_know_are_no_statements() -> None:
    source = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((64,), "float32")):
    A_1 = T.Buffer((64,), data=A.data)
    for i in range(64):
        B[i] = A_1[i]
"""
    func = from_source(source)
    assert isinstance(func.body, For)
    assert func.script().split("\n\n")[1] == source.strip()


def test_free_variables_are_declared() -> None:
    func = matmul()["main"]
    n = Var("n", "int64")
    zero = const(0, "int64")
    free = replace(func, body=For(Var("q", "int64"), zero, n, ForKind.SERIAL, func.body))
    lines = [line.strip() for line in free.script().splitlines()]
    assert lines[lines.index("for q in range(n):") - 1] == "n = T.int64()"
    assert "T.int64()" not in func.script()


def test_declared_memory_without_an_owner() -> None:
    """Nothing says whose memory it is: the buffer has its own."""
    func = from_source(ALLOCATED)
    lines = replace(func, body=func.body.body.body).script().splitlines()
    assert lines[4:6] == ["    C = T.Buffer((8, 8))", "    D = T.Buffer((4, 16), data=C.data)"]


def test_views_of_memory_that_a_call_gives_are_declared_after_it() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    work: T.handle("float32") = T.TVMBackendAllocWorkspace(1, 0, T.uint64(64), 2, 32)
    view = T.Buffer((16,), data=work)
    for i in range(16):
        view[i] = A[i]
""")
    assert "view = T.Buffer((16,), data=work)" in func.script()
    assert_structural_equal(from_source(func.script()), func)


def test_thread_axes_that_are_used_outside_of_their_launch() -> None:
    """TVM prints such an axis as a variable whose name alone says which it is."""
    source = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32")):
    blockIdx_y = T.int32()
    with T.attr(blockIdx_y, "pragma_unroll_explicit", 1):
        T.launch_thread(blockIdx_y, 8)
        threadIdx_x = T.launch_thread("threadIdx.x", 4)
        A[blockIdx_y, threadIdx_x] = T.float32(1)
"""
    func = from_source(source)
    launch = func.body.body
    assert (launch.node.thread_tag, launch.value.value) == ("blockIdx.y", 8)
    assert launch.node.var is func.body.node
    assert 'blockIdx_y = T.env_thread("blockIdx.y")' in func.script()
    assert "with T.launch_thread(blockIdx_y, 8):" in func.script()
    assert_structural_equal(from_source(func.script()), func, map_free_vars=True)


def test_memory_that_is_viewed_before_it_is_allocated() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    memory = T.handle("float32", "local")
    view = T.decl_buffer((4,), data=memory, scope="local")
    for i in range(4):
        whole = T.decl_buffer((16,), data=memory, scope="local")
        A[i] = whole[i] + view[i]
""")
    assert 'memory = T.handle("float32", "local")' in func.script()
    assert_structural_equal(from_source(func.script()), func, map_free_vars=True)


def test_handles_that_are_used_have_names() -> None:
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8,))
    B = T.match_buffer(b, (4,), data=A.data)
    B[0] = A[0]
""")
    assert "def main(a: T.handle, b: T.handle):" in func.script()
    assert "B = T.match_buffer(b, (4,), data=A.data)" in func.script()
    used = PrimFunc(func.params[:1], Evaluate(func.params[0]), None, {
        func.params[0]: func.buffer_map[func.params[0]]
    })  # fmt: skip
    assert used.script().splitlines()[3:] == [
        "def main(a: T.handle):", "    A = T.match_buffer(a, (8,))", "    T.evaluate(a)",
    ]  # fmt: skip
    for whole in (func, used):
        assert_structural_equal(from_source(whole.script()), whole)


def test_parts_of_programs_follow_what_they_use_where_that_is_asked_for() -> None:
    A, B = decl_buffer((8, 8), "float16", name="A"), decl_buffer((4,), "float16", name="B")
    region, x = BufferRegion(A, (Range(const(2), const(4)), Range(const(3), const(1)))), Var("x")
    add = CommReducer((x,), (Var("y"),), (x,), (const(0.0),))
    texts = {
        A: 'A = T.Buffer((8, 8), "float16")\nA',
        region: 'A = T.Buffer((8, 8), "float16")\nA[2:6, 3]',
        MatchBufferRegion(B, region): (
            'A = T.Buffer((8, 8), "float16")\nB = T.match_buffer(A[2:6, 3], (4,), "float16")'
        ),
        IterVar((0, 8), "i", 0): 'i = T.int32()\nT.iter_var(i, T.Range(0, 8), "DataPar", "")',
        Let(x, const(1), x): "x = T.int32()\nT.Let(x, where={x: 1})",
        add: "T.comm_reducer(lambda x, y: x, [T.float32(0)])",
    }
    for part, text in texts.items():
        assert script(part, verbose_expr=True) == text
        assert "\nB = " not in script(part) and "Buffer(" not in script(part)
