"""Tensors that a function of TensorIR computes: `te.extern_primfunc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.analysis.access_regions import block_access_regions
from mlcweb.analysis.effects import exposed_reads
from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import extern
from mlcweb.te.tensor import Tensor
from mlcweb.tir.buffer import Buffer, decl_buffer
from mlcweb.tir.fresh_copy import fresh_statement
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """What a function of TensorIR writes, computed from tensors.

    Args:
        input_tensors: for the parameters that the function only reads, in order; their shapes give
            symbolic extents of the parameters their values.
        primfunc: its other parameters are the outputs. Each is written before it is read.
        kwargs: `name`, `tag` and `attrs`, as in `te.extern`.

    Returns: the Tensor, or a list of them where there are several outputs.

    Raises:
        DiagnosticError: the function has other parameters than buffers, does not write, or needs
            what an output held before.
        ValueError: a tensor has another shape or dtype than its parameter.
    """
    if len(primfunc.parameter_buffers) != len(primfunc.params):
        names = [p.name for p in primfunc.params if p not in primfunc.buffer_map]
        raise DiagnosticError(
            f"te.extern_primfunc takes functions of buffers alone; {', '.join(names)} is none"
        )
    written = _written(primfunc)
    inputs = [p for p in primfunc.params if primfunc.buffer_map[p] not in written]
    if len(inputs) != len(input_tensors):
        names = ", ".join(primfunc.buffer_map[p].name for p in inputs) or "none"
        raise DiagnosticError(
            f"te.extern_primfunc: the function reads {len(inputs)} buffer(s) that it does not "
            f"write, {names}; {len(input_tensors)} tensor(s) are given"
        )
    input_buffers = {
        param: decl_buffer(tensor.shape, tensor.dtype)
        for param, tensor in zip(inputs, input_tensors, strict=True)
    }
    func = primfunc.specialize(input_buffers)
    outputs = [func.buffer_map[p] for p in func.params if p not in input_buffers]
    return extern(
        [buffer.shape for buffer in outputs], input_tensors,
        lambda ins, outs: fresh_statement(func.body),
        in_buffers=[func.buffer_map[param] for param in inputs], out_buffers=outputs, **kwargs,
    )  # fmt: skip


def _written(func: PrimFunc) -> set[Buffer]:
    """The parameters that a function writes, and needs not to hold anything before."""
    body = func.body
    root = Block((), (), (), "root", body)
    if isinstance(body, BlockRealize) and not body.block.iter_vars:
        root = body.block
    parameters = {buffer.data: buffer for buffer in func.parameter_buffers}
    regions = block_access_regions(root, parameters)
    written = {region.buffer for region in (*regions.writes, *regions.opaque)}
    if not written:
        raise DiagnosticError("te.extern_primfunc: the function writes none of its parameters")
    for region in (*exposed_reads(root), *regions.opaque):
        if region.buffer in written:
            raise DiagnosticError(
                f'te.extern_primfunc: the function may read "{region.buffer.name}" before it '
                "writes it; an output of tensors is computed from inputs alone"
            )
    return written
