"""Products of signs, of which a word holds 32 (Courbariaux et al., "Binarized Neural Networks",
2016)."""

from __future__ import annotations

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes, tags
from mlcweb.topi.nn.bitserial import WORDS, word, words

WORD = "uint32"


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """A bit for each element, 1 where it is not negative; 32 along an axis, by default the last
    one, in a word of uint32, the first in the highest bit."""
    width = WORDS[WORD]
    place = shapes.axis_of("binarize_pack", -1 if axis is None else axis, data.ndim)
    shape = list(data.shape)
    shape[place] = words("binarize_pack", shape[place], width)

    def element(*index: PrimExpr) -> PrimExpr:
        values = [
            data(*index[:place], index[place] * width + k, *index[place + 1 :])
            for k in range(width)
        ]
        return word([arithmetic.cast(WORD, value >= 0) for value in values])

    return compute(shape, element, name, tag="binarize_pack")


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """The product in float32 of matrices of signs, (batch, in // 32) and (out, in // 32), that
    `binarize_pack` made."""
    for matrix in (data, weight):
        shapes.need_rank("binary_dense", matrix, 2, "(rows, words)")
        if matrix.dtype != WORD:
            raise DiagnosticError(f"binary_dense: words are {WORD}, not {matrix.dtype}")
    k = reduce_axis((0, data.shape[1]), "k")
    shape = (data.shape[0], weight.shape[0])

    def differences(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        bits = arithmetic.bitwise_xor(data(i, k.var), weight(j, k.var))
        return reducers.sum(intrinsics.call(WORD, "popcount", bits), k)

    count = compute(shape, differences, tag="binary_dense")
    signs = data.shape[1] * WORDS[WORD]
    return compute(
        shape,
        lambda i, j: (
            arithmetic.cast("float32", signs) - 2.0 * arithmetic.cast("float32", count(i, j))
        ),
        tag=tags.ELEMWISE,
    )
