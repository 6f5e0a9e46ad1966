"""The exercises on models: library functions, tensor expressions, and passes over graphs."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from mlcweb import relax, te
from mlcweb.ir import IRModule
from mlcweb.ir.op import Op
from mlcweb.playground.checks.common import expect, run, variable
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.device import cpu
from mlcweb.runtime.registry import get_global_func

NAME = "env.leaky_relu"


def packed_functions(variables: Mapping[str, Any]) -> str:
    """A library function that models call by its name."""
    function = get_global_func(NAME, allow_missing=True)
    if function is None:
        raise Wrong(
            f'No function is registered as "{NAME}": put @tvm.register_func("{NAME}", '
            "override=True) above yours."
        )
    rng = np.random.default_rng(0)
    for shape in ((1, 10), (1, 128), (3, 5)):
        x = rng.uniform(-2, 2, shape).astype("float32")
        x_array, out = nd.array(x), nd.array(np.full(shape, np.nan, "float32"))
        function(x_array, out)
        result, expected = out.numpy(), np.where(x > 0, x, np.float32(0.1) * x)
        if np.isnan(result).all():
            raise Wrong(
                "out is still as it was. A function in destination passing style writes its result "
                "into its last argument; what it returns is not used: out.copyfrom(…)."
            )
        cut = "Negative elements become 0; a leaky ReLU keeps a tenth of them."
        expect("out", result, expected, (np.maximum(x, 0), cut))
    return f"{NAME} is right for three shapes. Any model that names it may call it now."


def te_linear(variables: Mapping[str, Any]) -> str:
    """A linear layer as a tensor expression."""
    function = variable(variables, "te_linear", FunctionType, "a function")
    rng = np.random.default_rng(0)
    for n, inputs, outputs in ((1, 8, 8), (1, 16, 10), (4, 3, 5)):
        shapes = (n, inputs), (outputs, inputs), (outputs,)
        parameters = [
            te.placeholder(shape, "float32", name)
            for shape, name in zip(shapes, "XWB", strict=True)
        ]
        result = function(*parameters)
        if not isinstance(result, te.Tensor):
            raise Wrong(f"te_linear should return a te.Tensor; it returned {result!r}.")
        shape = tuple(int(str(extent)) for extent in result.shape)
        if shape != (n, outputs):
            raise Wrong(
                f"For X of shape {shapes[0]} and W of shape {shapes[1]} the result should have "
                f"shape {(n, outputs)}; it has {shape}. W holds one row per output."
            )
        x, w, b = (rng.uniform(-1, 1, s).astype("float32") for s in shapes)
        program = te.create_prim_func([*parameters, result])
        out = run(program, [x, w, b], np.full(shape, np.nan, "float32"))
        mistakes = [(x @ w.T, "The product is right, but B is not added yet.")]
        if inputs == outputs:
            transposed = "You sum X[i, k] * W[k, j]. A layer's weights are transposed: W[j, k]."
            mistakes.append((x @ w + b, transposed))
        expect("The result", out, x @ w.T + b, *mistakes)
    return "te_linear gives X W^T + B for three shapes."


def matmul_add_fusion(variables: Mapping[str, Any]) -> str:
    """A pass that makes one function of a product and the addition that follows it."""
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
