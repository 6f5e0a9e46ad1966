"""Where tensors are: `R.to_vdevice`, `R.hint_on_device`. A program runs on one device here."""

from __future__ import annotations

from mlcweb.ir.global_info import VDevice, find_vdevice
from mlcweb.relax.deduction import Context
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import first_argument
from mlcweb.relax.op.registry import call, operator
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo


def _infer_moved(call: Call, context: Context) -> StructInfo:
    info = infer.tensor(call, 0, context)
    return TensorStructInfo(
        info.shape, info.dtype, infer.attribute(call, "dst_vdevice"), ndim=info.ndim
    )


@operator("relax.to_vdevice", "data", infer=_infer_moved, legalize=first_argument)
def to_vdevice(data: ExprLike, dst_vdevice: VDevice | str) -> Call:
    """A tensor on another virtual device."""
    return call(to_vdevice, data, dst_vdevice=find_vdevice(dst_vdevice))


@operator("relax.hint_on_device", "data", infer=infer.same, legalize=first_argument)
def hint_on_device(data: ExprLike, dst_vdevice: object, memory_scope: str = "global") -> Call:
    """A tensor, of which it is better that this device computes it."""
    name = str(dst_vdevice) if not isinstance(dst_vdevice, VDevice) else dst_vdevice
    return call(hint_on_device, data, dst_vdevice=find_vdevice(name))
