"""Chapter 7: a pass that makes one function of a product and the addition that follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.ir.op import Op
from mlcweb.playground.checks.common import expect
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.device import cpu


def check(variables: Mapping[str, Any]) -> str:
    if not isinstance(fusor := variables.get("MatmulAddFusor"), type):
        raise Wrong("There is no class MatmulAddFusor yet; run the cell that defines it.")
    model = _model()
    fused = fusor(model).transform()
    if not isinstance(fused, IRModule):
        raise Wrong("transform should return an IRModule; return self.builder_.get().")
    functions = {var.name_hint: function for var, function in fused.functions.items()}
    composites = {name: function for name, function in functions.items() if name != "main"}
    if not composites:
        raise Wrong(
            "The model has two products that are followed by an addition, but no function was "
            "made of either: visit_call_ returned every call as it was."
        )
    if len(composites) != 2:
        raise Wrong(
            f"The model has two products followed by an addition; you made {len(composites)} "
            f"function(s): {', '.join(composites)}. An addition of something else stays as it is."
        )
    for name, function in composites.items():
        if (operators := _operators(function)) != ["relax.matmul", "relax.add"]:
            raise Wrong(f"{name} should be a matmul and an add; it is {', '.join(operators)}.")
        if not (function.attrs and function.attrs.get("Primitive")):
            raise Wrong(
                f'{name} lacks the attribute "Primitive", by which later passes know that it is '
                'one operation: .with_attr("Primitive", 1).'
            )
    if (left := _operators(functions["main"])) != ["relax.nn.relu", "relax.add"]:
        raise Wrong(
            "In main a relu and the last addition should be left beside the two calls; there is "
            f"{', '.join(left)}. Products that nobody uses go with remove_all_unused."
        )
    _compare(model, fused)
    return "Both layers are functions of their own, the other addition is not, results are equal."


def _model() -> IRModule:
    """Two layers, and an addition that follows no product."""
    rng = np.random.default_rng(0)
    w0, b0, w1, b1 = (
        relax.const(rng.uniform(-1, 1, shape).astype("float32"))
        for shape in ((8, 6), (6,), (6, 4), (4,))
    )
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 8), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            hidden = bb.emit(relax.op.add(bb.emit(relax.op.matmul(x, w0)), b0))
            active = bb.emit(relax.op.nn.relu(hidden))
            scores = bb.emit(relax.op.add(bb.emit(relax.op.matmul(active, w1)), b1))
            result = bb.emit_output(relax.op.add(scores, scores))
        bb.emit_func_output(result)
    return bb.get()


def _operators(function: Any) -> list[str]:
    """The operators that a function calls, in order."""
    return [
        binding.value.op.name
        for block in function.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and isinstance(binding.value.op, Op)
    ]


def _compare(model: IRModule, fused: IRModule) -> None:
    rng = np.random.default_rng(1)
    x = nd.array(rng.uniform(-1, 1, (1, 8)).astype("float32"))
    expected, actual = (
        relax.VirtualMachine(relax.build(module, "llvm"), cpu())["main"](x).numpy()
        for module in (model, fused)
    )
    expect("The fused model's result", actual, expected)
