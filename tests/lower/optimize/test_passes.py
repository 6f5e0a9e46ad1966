"""What each loop optimisation makes of small programs, and what it has to leave alone."""

import dataclasses

import pytest

from mlcweb.codegen.wasm.machine import MACHINE
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import walk
from mlcweb.lower.optimize import optimizations
from mlcweb.lower.optimize.accesses import REGISTER_SCOPE
from mlcweb.script import from_source
from mlcweb.tir import For, ForKind, IntImm
from mlcweb.tir.stmt import AllocBuffer, BufferStore, LetStmt, sequence

(
    normalize, peel_init, loop_partition, vectorize, unroll_and_jam, unroll, place_in_registers,
    promote_accumulators, hoist, common_subexpr_elim,
) = optimizations(dataclasses.replace(MACHINE, jammed_vectors=8, scalar_sums=2))  # fmt: skip

HEADER = """
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32"),
         C: T.Buffer((256,), "float32"), N: T.Buffer((256,), "int32"), M: T.Buffer((4,), "int32")):
    T.func_attr({"tir.noalias": NOALIAS})
"""


def program(body, noalias=True):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return from_source(HEADER.replace("NOALIAS", str(noalias)) + lines)


def becomes(run, before, after):
    """The pass makes the one program of the other, up to the form of indices."""
    assert_structural_equal(normalize(run(normalize(program(before)))), normalize(program(after)))


def loops(func):
    return [node for node in walk(func.body) if isinstance(node, For)]


def is_vectorized(func):
    return any("x4" in getattr(node, "dtype", "") for node in walk(vectorize(func).body))


def test_conditions_that_are_decided_vanish():
    becomes(
        normalize,
        """
for i in range(10):
    for j in range(1):
        if i * 2 + j < 20 and i >= 0:
            C[i + j] = T.if_then_else(i < 10, A[i], B[i])
""",
        """
for i in range(10):
    C[i] = A[i]
""",
    )


def test_division_of_digits():
    becomes(
        normalize,
        """
for i, j in T.grid(16, 8):
    C[(i * 8 + j) // 8 * 8 + (i * 8 + j) % 8] = A[(i * 8 + j) // 4 % 2]
""",
        """
for i, j in T.grid(16, 8):
    C[i * 8 + j] = A[j // 4]
""",
    )


def test_the_start_of_a_reduction_leaves_its_loop():
    becomes(
        peel_init,
        """
for i, k in T.grid(16, 16):
    if k == 0:
        C[i] = T.float32(0)
    C[i] = C[i] + A[i * 16 + k]
""",
        """
for i in range(16):
    C[i] = T.float32(0)
    for k in range(16):
        C[i] = C[i] + A[i * 16 + k]
""",
    )


def test_loops_split_where_conditions_change():
    becomes(
        loop_partition,
        """
for i in range(10):
    C[i] = T.if_then_else(1 <= i and i < 9, A[i - 1], T.float32(0))
""",
        """
C[0] = T.float32(0)
for i in range(8):
    C[i + 1] = A[i]
C[9] = T.float32(0)
""".replace(
            "for i in range(8):\n    C[i + 1] = A[i]", "for i in range(1, 9):\n    C[i] = A[i - 1]"
        ),
    )


def test_a_split_that_leaves_a_rest():
    becomes(
        loop_partition,
        """
for i, j in T.grid(7, 16):
    if i * 16 + j < 100:
        C[i * 16 + j] = A[i * 16 + j]
""",
        """
for i, j in T.grid(6, 16):
    C[i * 16 + j] = A[i * 16 + j]
for j in range(4):
    C[j + 96] = A[j + 96]
""",
    )


ROW = """
for i in range(56):
    for k in range(64):
        for r in range(3):
            C[i] = C[i] + T.if_then_else(1 <= i + r and i + r < 57, A[i + r - 1], T.float32(0))
"""


def statements(func):
    return sum(isinstance(node, BufferStore) for node in walk(func.body))


def with_room(**operations):
    """Splitting and unrolling for a machine whose compiler has time for so many operations."""
    passes = optimizations(dataclasses.replace(MACHINE, **operations))
    return passes[2], passes[5]


def test_of_a_row_and_a_window_the_row_is_split_where_there_is_room_for_one():
    split, _ = with_room(split_operations=30)
    becomes(
        split,
        ROW,
        """
for k in range(64):
    for r in range(3):
        C[0] = C[0] + T.if_then_else(1 <= r, A[r - 1], T.float32(0))
for i in range(1, 55):
    for k in range(64):
        for r in range(3):
            C[i] = C[i] + A[i + r - 1]
for k in range(64):
    for r in range(3):
        C[55] = C[55] + T.if_then_else(r + 55 < 57, A[r + 54], T.float32(0))
""",
    )


@pytest.mark.parametrize(("room", "copies"), [(0, 1), (30, 3), (100, 3), (1000, 3)])
def test_splits_stay_within_their_room(room, copies):
    func = normalize(program(ROW))
    split, _ = with_room(split_operations=room)
    assert statements(split(func)) == copies


@pytest.mark.parametrize(("room", "extents"), [(0, [64, 10, 49, 10]), (12, [64, 9, 49, 10])])
def test_loops_that_are_to_become_vectors_are_split_before_others(room, extents):
    split, _ = with_room(split_operations=room)
    func = program("""
for i in range(64):
    for k in range(50):
        for j in T.vectorized(10):
            C[k * 2 + j] = C[k * 2 + j] + T.if_then_else(
                1 <= i and 1 <= k + j, A[k + j + i], T.float32(0))
""")
    assert [loop.extent.value for loop in loops(split(normalize(func)))] == extents


PRAGMA = """
for n in T.serial(2, annotations={"pragma_auto_unroll_max_step": 128}):
"""
SUMS = """
    for k in range(64):
        C[n] = C[n] + A[k + {0}] * B[k * 2 + {0}]
"""


@pytest.mark.parametrize(("nests", "stores"), [(1, 128), (3, 192), (5, 20)])
def test_pragmas_unroll_all_loops_alike_as_far_as_there_is_room(nests, stores):
    _, unroll = with_room(unrolled_operations=1200)
    body = PRAGMA + "".join(SUMS.format(n) for n in range(nests))
    assert statements(unroll(normalize(program(body)))) == stores


def test_loops_are_not_written_out_for_a_buffer_that_stays_in_memory():
    """The loop over i around the sums is too large to be written out, so that the elements of D
    have no constant indices; it needs no copies of the loops before and after the sums, either."""
    func = unroll(
        normalize(
            program("""
with T.decl_buffer((64,), "float32") as D:
    for i, j in T.grid(16, 4):
        D[i * 4 + j] = A[i] * B[j] + A[i + 1] * B[j + 1] + A[i + 2]
    for k in range(64):
        for i in range(16):
            for l in range(40):
                for j in range(4):
                    D[i * 4 + j] = D[i * 4 + j] + A[k + l] * B[l + j + i]
    for i, j in T.grid(16, 4):
        C[i * 4 + j] = D[i * 4 + j] * D[i * 4 + j] * D[i * 4 + j] * A[i] * A[j]
""")
        )
    )
    assert statements(func) == 32


def test_conditions_on_data_do_not_split():
    func = normalize(program("for i in range(10):\n    if N[i] < 5:\n        C[i] = A[i]"))
    assert loop_partition(func) is func


def test_unit_stride_loops_are_vectorized():
    becomes(
        vectorize,
        """
for i in range(16):
    for j in range(16):
        C[i * 16 + j] = A[i] * B[i * 16 + j]
""",
        """
for i in range(16):
    for j in range(4):
        C[i * 16 + j * 4 : i * 16 + j * 4 + 4] = (
            T.Broadcast(A[i], 4) * B[i * 16 + j * 4 : i * 16 + j * 4 + 4])
""",
    )


def test_what_no_vector_divides_is_done_by_shorter_ones():
    becomes(
        vectorize,
        """
for i in range(7):
    C[i] = A[i]
""",
        """
C[0:4] = A[0:4]
C[4:6] = A[4:6]
C[6] = A[6]
""",
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("C[i] = A[i] + T.float32(1)", True),
        ("C[i] = A[i * 2]", True),
        ("C[i] = A[i * 3]", False),
        ("C[i * 2] = A[i]", False),
        ("C[i + 1] = C[i]", False),
        ("C[i] = C[i + 1]", False),
        ("C[i + 32] = C[i]", True),
        ("C[0] = C[0] + A[i]", False),
        ("C[0] = T.max(C[0], A[i])", True),
        ("N[0] = N[0] + N[i + 8]", False),
        ("M[0] = M[0] + N[i]", True),
        ("N[i] = N[i] // 3", False),
        ("C[i] = T.Select(A[i] < B[i], A[i], B[i])", True),
        ("C[i] = A[N[i]]", False),
        ("C[N[i]] = A[i]", False),
    ],
)
def test_which_loops_are_vectorized(body, expected):
    assert is_vectorized(normalize(program(f"for i in range(16):\n    {body}"))) == expected


@pytest.mark.parametrize(("size", "expected"), [(80, False), (81, True)])
def test_what_may_come_to_live_in_registers_has_no_vectors_of_elements_apart(size, expected):
    func = program(f"""
with T.decl_buffer(({size},), "float32", scope="local") as local:
    for i in range(16):
        C[i] = local[i * 2]
""")
    assert is_vectorized(normalize(func)) == expected


def test_loops_around_small_windows_are_vectorized():
    body = "for i in range(16):\n    for j in range({}):\n        C[i] = C[i] + A[i + j] * B[j]"
    assert is_vectorized(program(body.format(3)))
    assert not is_vectorized(program(body.format(100)))  # its sums stay scalar


def test_parameters_that_may_alias_are_not_vectorized():
    func = program("for i in range(16):\n    C[i] = A[i]", noalias=False)
    assert not is_vectorized(normalize(func))


def test_sums_of_floats_keep_their_order_unless_told():
    func = normalize(program("for i in range(16):\n    C[0] = C[0] + A[i]"))
    assert not is_vectorized(func)
    assert is_vectorized(func.with_attr("mlcweb.reassociate", True))


def test_long_accumulations_go_on_in_several_vectors():
    func = vectorize(normalize(program("for i in range(53):\n    C[0] = T.max(C[0], A[i])")))
    becomes(
        lambda _: func,
        "C[0] = A[0]",
        """
with T.decl_buffer((16,), "float32", scope="register") as P:
    P[0:4] = T.Broadcast(T.float32("-inf"), 4)
    P[4:8] = T.Broadcast(T.float32("-inf"), 4)
    P[8:12] = T.Broadcast(T.float32("-inf"), 4)
    P[12:16] = T.Broadcast(T.float32("-inf"), 4)
    for i in range(3):
        P[0:4] = T.max(P[0:4], A[i * 16 : i * 16 + 4])
        P[4:8] = T.max(P[4:8], A[i * 16 + 4 : i * 16 + 8])
        P[8:12] = T.max(P[8:12], A[i * 16 + 8 : i * 16 + 12])
        P[12:16] = T.max(P[12:16], A[i * 16 + 12 : i * 16 + 16])
    P[0:4] = T.max(P[0:4], A[48:52])
    P[0:4] = T.max(P[0:4], P[4:8])
    P[0:4] = T.max(P[0:4], P[8:12])
    P[0:4] = T.max(P[0:4], P[12:16])
    C[0] = T.max(T.max(T.max(T.max(C[0], P[0]), P[1]), P[2]), P[3])
    C[0] = T.max(C[0], A[52])
""",
    )


def test_neighbouring_sums_go_on_side_by_side():
    becomes(
        unroll_and_jam,
        """
for j in range(5):
    C[j] = T.float32(0)
    for p, q in T.grid(3, 4):
        C[j] = C[j] + A[p * 4 + q] * B[q * 5 + j]
    C[j] = C[j] * T.float32(2)
""",
        """
for j in range(2):
    C[j * 2] = T.float32(0)
    C[j * 2 + 1] = T.float32(0)
    for p, q in T.grid(3, 4):
        C[j * 2] = C[j * 2] + A[p * 4 + q] * B[q * 5 + j * 2]
        C[j * 2 + 1] = C[j * 2 + 1] + A[p * 4 + q] * B[q * 5 + j * 2 + 1]
    C[j * 2] = C[j * 2] * T.float32(2)
    C[j * 2 + 1] = C[j * 2 + 1] * T.float32(2)
C[4] = T.float32(0)
for p, q in T.grid(3, 4):
    C[4] = C[4] + A[p * 4 + q] * B[q * 5 + 4]
C[4] = C[4] * T.float32(2)
""",
    )


def test_neighbouring_sums_of_vectors_go_on_side_by_side():
    """Up to eight vectors, two for each iteration here; six iterations make two groups of three."""
    becomes(
        unroll_and_jam,
        """
for j in range(6):
    for k in range(9):
        for l in T.unroll(2):
            C[j * 8 + l * 4:j * 8 + l * 4 + 4] = C[j * 8 + l * 4:j * 8 + l * 4 + 4] + A[k:k + 4]
""",
        """
for j in range(2):
    for k in range(9):
        for l in T.unroll(2):
            C[j * 24 + l * 4:j * 24 + l * 4 + 4] = C[j * 24 + l * 4:j * 24 + l * 4 + 4] + A[k:k + 4]
            C[j * 24 + l * 4 + 8:j * 24 + l * 4 + 12] = (
                C[j * 24 + l * 4 + 8:j * 24 + l * 4 + 12] + A[k:k + 4])
            C[j * 24 + l * 4 + 16:j * 24 + l * 4 + 20] = (
                C[j * 24 + l * 4 + 16:j * 24 + l * 4 + 20] + A[k:k + 4])
""",
    )


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(9):\n        C[j + 1] = C[j + 1] + C[j] * A[k]",
        "for k in range(9):\n        C[0] = C[0] + A[j * 9 + k]",
        "for k in range(j + 1):\n        C[j] = C[j] + A[k]",
        "for k in range(9):\n        N[j] = N[j] + N[k + 64]",
        "for k in range(9):\n        C[j * 9 + k] = A[k]",
        "for k in range(9):\n        C[j * 2:j * 2 + 4] = C[j * 2:j * 2 + 4] + A[k * 4:k * 4 + 4]",
    ],
    ids=["dependent", "one sum", "ragged", "integers", "no sum", "vectors that overlap"],
)
def test_what_does_not_run_side_by_side(body):
    func = normalize(program(f"for j in range(6):\n    {body}"))
    assert unroll_and_jam(func) is func


def test_copies_of_a_name_are_vectors_or_scalars_each_for_itself():
    becomes(
        lambda func: vectorize(loop_partition(func)),
        """
for i in T.vectorized(4):
    for j in range(4):
        a: T.float32 = T.if_then_else(j < 2, B[i], A[j])
        C[j * 4 + i] = a * T.float32(2)
""",
        """
for j in range(2):
    a: T.float32x4 = B[0:4]
    C[j * 4 : j * 4 + 4] = a * T.Broadcast(T.float32(2), 4)
for j in range(2, 4):
    a: T.float32 = A[j]
    C[j * 4 : j * 4 + 4] = T.Broadcast(a * T.float32(2), 4)
""",
    )


def test_marked_loops_around_others_are_vectorized():
    becomes(
        vectorize,
        """
for i in T.vectorized(8):
    for k in range(3):
        C[i] = C[i] + A[k * 8 + i]
""",
        """
for i in T.unroll(2):
    for k in range(3):
        C[i * 4 : i * 4 + 4] = C[i * 4 : i * 4 + 4] + A[k * 8 + i * 4 : k * 8 + i * 4 + 4]
""",
    )


def test_a_marked_loop_without_vector_form_runs_in_order():
    func = vectorize(normalize(program("for i in T.vectorized(8):\n    N[i] = N[i] // 3")))
    assert [loop.kind for loop in loops(func)] == [ForKind.SERIAL]


def test_small_loops_are_written_out():
    becomes(
        unroll,
        "for i in range(3):\n    C[i * 2] = A[i]",
        "C[0] = A[0]\nC[2] = A[1]\nC[4] = A[2]",
    )


def test_innermost_loops_are_written_out_in_part():
    func = unroll(normalize(program("for i in range(102):\n    C[i] = A[i * 2]")))
    (loop,) = loops(func)
    assert int(loop.extent) == 34
    assert loop.body.seq[2].value.indices[0].b.value == 4


def test_pragmas_allow_larger_loops():
    body = """
for i in T.serial(4, annotations={"pragma_auto_unroll_max_step": 512}):
    for j in range(32):
        C[i * 32 + j] = A[i * 32 + j] * B[j] + A[j]
"""
    assert not loops(unroll(normalize(program(body))))


def test_what_a_loop_updates_in_place_lives_in_registers():
    func = promote_accumulators(
        normalize(
            program(
                """
for i in range(4):
    for k in range(16):
        C[i * 2] = C[i * 2] + A[k]
        C[i * 2 + 1] = C[i * 2 + 1] + B[k]
"""
            )
        )
    )
    becomes(
        lambda _: func,
        "C[0] = A[0]",
        """
for i in range(4):
    with T.decl_buffer((2,), "float32", scope="register") as R:
        R[0] = C[i * 2]
        R[1] = C[i * 2 + 1]
        for k in range(16):
            R[0] = R[0] + A[k]
            R[1] = R[1] + B[k]
        C[i * 2] = R[0]
        C[i * 2 + 1] = R[1]
""",
    )


def test_vectors_of_elements_apart_live_in_registers():
    """As those of a vectorized loop over rows."""
    func = promote_accumulators(
        normalize(
            program(
                """
for i in range(4):
    for k in range(16):
        C[i * 8:i * 8 + 8:2] = C[i * 8:i * 8 + 8:2] + T.Broadcast(A[k], 4)
        C[i * 8 + 1:i * 8 + 9:2] = C[i * 8 + 1:i * 8 + 9:2] + T.Broadcast(B[k], 4)
"""
            )
        )
    )
    becomes(
        lambda _: func,
        "C[0] = A[0]",
        """
for i in range(4):
    with T.decl_buffer((8,), "float32", scope="register") as R:
        R[0:4] = C[i * 8:i * 8 + 8:2]
        R[4:8] = C[i * 8 + 1:i * 8 + 9:2]
        for k in range(16):
            R[0:4] = R[0:4] + T.Broadcast(A[k], 4)
            R[4:8] = R[4:8] + T.Broadcast(B[k], 4)
        C[i * 8:i * 8 + 8:2] = R[0:4]
        C[i * 8 + 1:i * 8 + 9:2] = R[4:8]
""",
    )


def test_a_sum_starts_in_its_register():
    func = promote_accumulators(
        normalize(
            program(
                """
for i in range(4):
    B[i] = T.float32(1)
    C[i] = T.float32(0)
    for k in range(16):
        C[i] = C[i] + A[k]
"""
            )
        )
    )
    becomes(
        lambda _: func,
        "C[0] = A[0]",
        """
for i in range(4):
    B[i] = T.float32(1)
    with T.decl_buffer((1,), "float32", scope="register") as R:
        R[0] = T.float32(0)
        for k in range(16):
            R[0] = R[0] + A[k]
        C[i] = R[0]
""",
    )


def test_what_stores_one_after_another_update_lives_in_registers():
    """As a loop that was unrolled leaves it."""
    func = promote_accumulators(
        normalize(
            program(
                """
for i in range(4):
    B[i] = T.float32(1)
    C[i] = T.float32(0)
    C[i] = C[i] + A[i]
    C[i] = C[i] * A[i + 1]
    B[i + 8] = C[i]
"""
            )
        )
    )
    becomes(
        lambda _: func,
        "C[0] = A[0]",
        """
for i in range(4):
    B[i] = T.float32(1)
    with T.decl_buffer((1,), "float32", scope="register") as R:
        R[0] = T.float32(0)
        R[0] = R[0] + A[i]
        R[0] = R[0] * A[i + 1]
        B[i + 8] = R[0]
        C[i] = R[0]
""",
    )


@pytest.mark.parametrize(
    "stores",
    [
        ["C[i] = A[i]", "C[i + 1] = A[i + 1]"],
        ["C[i] = A[i]", "C[N[i]] = A[i]", "C[i] = C[i] + A[i]"],
        ["C[i * 2] = A[i]", "C[i] = A[i + 1]", "C[i * 2] = A[i + 2]"],
        ["C[N[i]] = A[i]", "N[i] = 3", "C[N[i]] = A[i + 1]"],
    ],
    ids=["each once", "somewhere", "perhaps the same", "moved between"],
)
def test_stores_one_after_another_that_stay_in_memory(stores):
    body = "".join(f"    {store}\n" for store in stores)
    func = normalize(program(f"for i in range(4):\n{body}"))
    assert promote_accumulators(func) is func


@pytest.mark.parametrize(
    "body",
    [
        "if A[k] < T.float32(0):\n            C[i] = C[i] + A[k]",
        "C[i] = C[i] + C[k + 32]",
        "C[i + k] = C[i + k] + A[k]",
    ],
)
def test_what_must_stay_in_memory(body):
    func = normalize(program(f"for i in range(4):\n    for k in range(16):\n        {body}"))
    assert promote_accumulators(func) is func


def test_buffers_with_constant_places_are_registers():
    body = """
with T.decl_buffer((8,), "float32") as L:
    L[0:4] = A[0:4]
    L[4:8] = A[4:8]
    for i in range(16):
        L[0:4] = L[0:4] * L[4:8]
    C[0:4] = L[0:4]
    C[5] = L[6]
"""
    func = place_in_registers(program(body))
    scopes = {n.buffer.scope() for n in walk(func.body) if getattr(n, "buffer", None) is not None}
    assert REGISTER_SCOPE in scopes
    moving = program(body.replace("L[4:8]\n    C", "T.Broadcast(L[i % 2], 4)\n    C"))
    assert place_in_registers(moving) is moving


def test_copies_of_a_body_allocate_one_buffer_twice():
    """As unrolled loops do: each allocation is judged by its own accesses."""
    fixed = program('with T.decl_buffer((4,), "float32") as L:\n    L[0] = A[0]\n    C[0] = L[0]\n')
    allocation = fixed.body
    assert isinstance(allocation, AllocBuffer)
    moving = program("for i in range(4):\n    C[i] = A[i]\n").body
    assert isinstance(moving, For)
    store = replace(moving.body, buffer=allocation.buffer)
    second = replace(allocation, body=replace(moving, body=store))
    placed = place_in_registers(replace(fixed, body=sequence(allocation, second)))
    scopes = [n.buffer.scope() for n in walk(placed.body) if isinstance(n, AllocBuffer)]
    assert scopes == [REGISTER_SCOPE, allocation.buffer.scope()]


def test_vectors_of_elements_apart_are_registers_too():
    becomes(
        place_in_registers,
        """
with T.decl_buffer((8,), "float32") as L:
    L[T.Ramp(0, 2, 4)] = A[0:4]
    L[T.Ramp(1, 2, 4)] = A[4:8]
    C[0] = L[3] + L[4]
""",
        """
with T.decl_buffer((8,), "float32", scope="register") as L:
    L[0:4] = A[0:4]
    L[4:8] = A[4:8]
    C[0] = L[5] + L[2]
""",
    )


def test_vectors_that_overlap_in_part_stay_in_memory():
    body = """
with T.decl_buffer((8,), "float32") as L:
    L[T.Ramp(0, 2, 4)] = A[0:4]
    L[0:4] = A[4:8]
    C[0] = L[3]
"""
    func = program(body)
    assert place_in_registers(func) is func


def test_invariant_loads_leave_the_loop():
    becomes(
        hoist,
        """
for i in range(16):
    for j in range(16):
        C[i * 16 + j] = A[i] * B[j]
""",
        """
for i in range(16):
    a: T.float32 = A[i]
    for j in range(16):
        C[i * 16 + j] = a * B[j]
""",
    )


@pytest.mark.parametrize(
    "body",
    ["C[j] = T.if_then_else(N[j] < 3, A[i], B[j])", "A[j] = A[i] + B[j]"],
)
def test_loads_that_may_not_happen_or_change_stay(body):
    func = normalize(program(f"for i in range(16):\n    for j in range(16):\n        {body}"))
    assert hoist(func) is func


def test_neighbours_share_what_they_load():
    becomes(
        common_subexpr_elim,
        "C[0] = A[1] * B[0]\nC[1] = A[1] * B[1]\nA[1] = T.float32(2)\nC[2] = A[1] * B[2]",
        """
a: T.float32 = A[1]
C[0] = a * B[0]
C[1] = a * B[1]
A[1] = T.float32(2)
C[2] = A[1] * B[2]
""",
    )


@pytest.mark.parametrize("registers", [1, 2, 3])
def test_neighbours_share_no_more_than_stays_in_registers(registers):
    *_, shared = optimizations(dataclasses.replace(MACHINE, registers=registers))
    stores = [f"C[{i}] = A[200] * {i + 2}.0" for i in range(2)]
    stores += [f"C[{i}] = A[{i // 3}] * B[{i // 3}] + A[{i + 9}]" for i in range(3, 21)]
    stores += [f"C[{i + 20}] = A[{i}] * 3.0" for i in range(1, 7)]
    func = shared(normalize(program("\n".join(stores))))
    names = [node for node in walk(func.body) if isinstance(node, LetStmt)]
    assert len(names) == 2 * registers


def test_long_runs_of_statements_do_not_nest_deeply():
    value = "A[i] * A[i * 3 % 256] + B[i] * B[i * 5 % 256] + A[(i + 1) % 256] * B[(i + 2) % 256]"
    func = unroll(normalize(program(f"for i in T.unroll(250):\n    C[i * 7 % 256] = {value}")))
    assert len(func.body.seq) == 250
    common_subexpr_elim(hoist(promote_accumulators(place_in_registers(func))))


def test_the_only_value_of_a_loop_that_was_read_is_not_read_again():
    func = normalize(program("for i in range(M[0], M[0] + 1):\n    M[0] = 7\n    C[i] = A[i]"))
    first = next(node for node in walk(func.body) if isinstance(node, LetStmt))
    stores = [node for node in walk(first.body) if isinstance(node, BufferStore)]
    assert [store.indices[0] for store in stores if store.buffer.name == "C"] == [first.var]


def test_factors_stay_inside_of_narrow_types():
    func = program("""
for i in range(9):
    N[i] = T.Cast("int32", T.Cast("uint8", N[i]) - T.Cast("uint8", N[i + 9]))
""")
    constants = [n for n in walk(normalize(func).body) if isinstance(n, IntImm)]
    assert [n.value for n in constants if n.dtype == "uint8"] in ([], [255])
