"""The simulated GPU stops where a thread touches what an asynchronous copy has not brought yet."""

from __future__ import annotations

import numpy as np
import pytest

from mlcweb.codegen.simulated.simulation import DataRace, PendingCopy
from mlcweb.script import from_source
from tests.codegen.simulated.test_races import run

ROWS = np.arange(128, dtype="float32").reshape(32, 4)


def shifted(before, after="", element="S[tx, i]"):
    """B = A by way of shared memory, with statements after the copy and before it is read."""
    return from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("copy"):
            S = T.alloc_buffer((32, 4), "float32", scope="shared")
            with T.attr(0, "async_scope", 1):
                for i in range(4):
                    S[tx, i] = A[tx, i]
            {before}
            {after}
            for i in range(4):
                B[tx, i] = {element}
"""
    )


COMMIT, BARRIER = "T.ptx_commit_group()", 'T.tvm_storage_sync("shared")'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("T.evaluate(0)", ""),
        (COMMIT, ""),
        (COMMIT, "T.ptx_wait_group(1)"),
        ("T.ptx_wait_group(0)", COMMIT),
        (COMMIT, BARRIER),
    ],
)
def test_a_copy_is_read_too_early(before, after):
    with pytest.raises(PendingCopy) as raised:
        run(shifted(before, after), ROWS, np.zeros_like(ROWS))
    message = raised.value.message
    assert message.startswith("Thread (threadIdx.x=0) reads S[0, 0] in line ")
    assert "while thread (threadIdx.x=0) copies to it asynchronously in line " in message
    assert isinstance(raised.value, DataRace) and raised.value.span is not None


def test_a_copy_that_is_waited_for():
    for count in (0, 1):
        # Of two groups the first one has the copy.
        before = COMMIT if count == 0 else f"{COMMIT}\n            {COMMIT}"
        func = shifted(before, f"T.ptx_wait_group({count})")
        np.testing.assert_array_equal(run(func, ROWS, np.zeros_like(ROWS)), ROWS)


def test_a_thread_waits_for_its_own_copies_alone():
    wait = f"{COMMIT}\n            T.ptx_wait_group(0)"
    func = shifted(wait, BARRIER, "S[31 - tx, i]")
    np.testing.assert_array_equal(run(func, ROWS, np.zeros_like(ROWS)), ROWS[::-1])
    late = shifted(f"{COMMIT}\n            {BARRIER}", "T.ptx_wait_group(0)", "S[31 - tx, i]")
    with pytest.raises(PendingCopy, match=r"threadIdx.x=0\) reads S\[31, 0\].*threadIdx.x=31\)"):
        run(late, ROWS, np.zeros_like(ROWS))


def test_a_store_into_what_is_copied():
    func = shifted("S[tx, 0] = T.float32(1)", f"{COMMIT}\n            T.ptx_wait_group(0)")
    with pytest.raises(PendingCopy, match=r"writes S\[0, 0\]"):
        run(func, ROWS, np.zeros_like(ROWS))
