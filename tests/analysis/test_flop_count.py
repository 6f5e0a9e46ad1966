"""Operation counts, as TVM's `estimate_tir_flops` gives them."""

import pytest

from mlcweb.analysis.flop_count import estimate_flops
from mlcweb.ir import DiagnosticError
from mlcweb.script import from_source
from tests.programs import matmul


def test_a_matrix_product_of_128_has_two_operations_for_each_of_128_cubed():
    assert estimate_flops(matmul()) == 4194304
    assert estimate_flops(matmul()["main"]) == 2 * 128**3


def test_comparisons_do_not_count_and_the_dearest_branch_does():
    func = from_source(
        """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        A[i] = T.exp(A[i] * T.float32(3)) + T.if_then_else(i < 3, A[i] * T.float32(2), T.float32(0))
    for i in range(16):
        B[i] = T.Select(i < 4, B[i] // 3 + 1, 0)
    for i in range(16):
        if i < 8:
            B[i + 1 - 1] = B[i] * 2
        else:
            B[i] = B[i] * 2 + 1
"""
    )
    assert estimate_flops(func) == 16 * 3 + 16 * 2 + 16 * 2


def test_an_attribute_overrides_the_count():
    assert estimate_flops(matmul()["main"].with_attr("estimated_flops", 7)) == 7


def test_a_loop_of_unknown_extent_is_an_error():
    func = from_source(
        """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        A[i] = A[i] + T.float32(1)
"""
    )
    with pytest.raises(DiagnosticError, match='loop "i"'):
        estimate_flops(func)
