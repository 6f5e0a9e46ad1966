"""Runs functions of TensorIR on constants, for the pass FoldConstant."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.module import IRModule
from mlcweb.relax.constant_data import ArrayData
from mlcweb.relax.transform.fold_constant import Compiled
from mlcweb.relax_vm.virtual_machine import uploaded
from mlcweb.runtime.build import build
from mlcweb.runtime.device import cpu
from mlcweb.runtime.ndarray import NDArray, empty
from mlcweb.tir.function import PrimFunc


def evaluator(func: PrimFunc) -> Compiled:
    """A function, compiled for this machine, as what gives its results for the data of constants.
    What the module is built for may have threads, which the function lacks.

    Results stay where kernels reach them: most are weights in the layout in which they are read.
    """
    name = "folded"
    library = build(IRModule({name: func.with_attr("global_symbol", name)}), "cpu")
    run = library[name]

    def evaluate(
        inputs: Sequence[ArrayData], results: Sequence[tuple[tuple[int, ...], str]]
    ) -> list[NDArray]:
        outputs = [empty(shape, dtype) for shape, dtype in results]
        run(*(uploaded(data, cpu()) for data in inputs), *outputs)
        return outputs

    return evaluate
