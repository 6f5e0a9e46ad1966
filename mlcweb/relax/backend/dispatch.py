"""DispatchSortScan and DispatchSampling: sorts, scans and samples as functions of TensorIR, ahead
of all other operators."""

from __future__ import annotations

from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass, PassInfo
from mlcweb.relax.transform.legalize_ops import LegalizeOps


def DispatchSortScan(index_bits: int | None = None) -> Pass:
    """Lower sorts, `topk`, cumulative sums and products, and `bucketize`, for the current target:
    `with target:`.

    `index_bits` (32 or 64) is accepted as in TVM.

    Raises: ValueError: another number of bits.
    """
    if index_bits not in (None, 32, 64):
        raise ValueError(f"index_bits is 32, 64 or None, not {index_bits!r}")
    return _lowering("DispatchSortScan")


def DispatchSampling() -> Pass:
    """Lower `multinomial_from_uniform`."""
    return _lowering("DispatchSampling")


def _lowering(name: str) -> Pass:
    """The pass that lowers the operators that are registered for it, and no others."""
    others = [each for each in Op.list_op_names() if Op.get(each).get_attr("TDispatched") != name]
    lowering = LegalizeOps(skip_ops=others)
    lowering.info = PassInfo(0, name)
    return lowering
