"""Asks a real TVM 0.27 for operators as programs, and for their design spaces on a GPU. Run by the
interpreter that has it; the answer, as JSON on standard output, is what `tvm_operators.json` keeps.

For each operator: the `module` that Relax lowers and fuses it to, the `spaces` as lines without
decisions, and for each seed and space the `decisions`, what the post-processors added, and whether
they accepted.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import tvm
import tvm.s_tir.tensor_intrin  # registers what tensor cores do
from ask_tvm_spaces import spaces
from tvm import relax

TARGET = "nvidia/tesla-p100"
TENSOR_CORES = "nvidia/nvidia-t4"
"""The target of operators whose names start with "tensor_cores"."""

SEEDS = (1,)
DECISION = re.compile(r"decision=(\[[^\]]*\]|[^,)]*)")

nn, op = relax.op.nn, relax.op
NHWC = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
EIGHTH = relax.const(0.125, "float32")

OPERATORS: dict[str, Any] = {
    "matmul_uneven": (op.matmul, (96, 200), (200, 72)),
    "dense_bias_gelu": (
        lambda a, w, b: nn.gelu(op.add(op.matmul(a, op.permute_dims(w)), b)),
        (32, 256), (512, 256), (512,),
    ),
    "batch_matmul": (op.matmul, (8, 64, 48), (8, 48, 80)),
    "gemv": (op.matmul, (1, 1024), (1024, 1000)),
    "half_matmul": (op.matmul, (64, 64, "float16"), (64, 64, "float16")),
    "byte_matmul": (
        lambda a, b: op.matmul(a, b, out_dtype="int32"), (64, 96, "int8"), (96, 64, "int8"),
    ),
    "conv2d_nchw": (
        lambda x, w: nn.conv2d(x, w, padding=(1, 1)), (1, 64, 28, 28), (96, 64, 3, 3),
    ),
    "conv2d_strided": (
        lambda x, w, b: nn.relu(op.add(nn.conv2d(x, w, strides=(2, 2), padding=(3, 3)), b)),
        (1, 3, 64, 64), (32, 3, 7, 7), (1, 32, 1, 1),
    ),
    "conv2d_nhwc": (
        lambda x, w: nn.conv2d(x, w, padding=(1, 1), **NHWC), (1, 28, 28, 32), (3, 3, 32, 64),
    ),
    "conv2d_depthwise": (
        lambda x, w: nn.conv2d(x, w, padding=(1, 1), groups=32), (1, 32, 28, 28), (32, 1, 3, 3),
    ),
    "conv2d_transpose": (
        lambda x, w: nn.conv2d_transpose(x, w, strides=(2, 2)), (1, 8, 8, 8), (8, 16, 4, 4),
    ),
    "softmax": (nn.softmax, (256, 1000)),
    "layer_norm": (lambda x, g, b: nn.layer_norm(x, g, b, [-1]), (256, 768), (768,), (768,)),
    "group_norm": (
        lambda x, g, b: nn.group_norm(x, g, b, 4, 1, [2, 3]), (1, 16, 14, 14), (16,), (16,),
    ),
    "sum_all": (op.sum, (512, 768)),
    "sum_columns": (lambda x: op.sum(x, 0), (512, 768)),
    "argmax": (lambda x: op.argmax(x, 1), (32, 1000)),
    "max_pool": (
        lambda x: nn.max_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1)), (1, 16, 56, 56),
    ),
    "global_pool": (lambda x: nn.adaptive_avg_pool2d(x, (1, 1)), (1, 128, 7, 7)),
    "elementwise": (
        lambda x, y: op.tanh(op.add(op.multiply(x, y), op.exp(x))), (100, 777), (100, 777),
    ),
    "broadcast": (lambda x, y: op.sigmoid(op.add(x, y)), (64, 1, 128), (1, 32, 128)),
    "transpose": (lambda x: op.permute_dims(x, [0, 2, 1, 3]), (1, 128, 12, 64)),
    "attention": (
        lambda q, k, v: op.matmul(
            nn.softmax(op.multiply(op.matmul(q, op.permute_dims(k, [0, 2, 1])), EIGHTH)), v
        ),
        (8, 64, 32), (8, 64, 32), (8, 64, 32),
    ),
    "tensor_cores": (
        lambda a, b: op.matmul(a, b, out_dtype="float32"),
        (64, 128, "float16"), (128, 64, "float16"),
    ),
    "tensor_cores_uneven": (
        lambda a, b: op.matmul(a, b, out_dtype="float32"),
        (50, 70, "float16"), (70, 33, "float16"),
    ),
    "tensor_cores_relu": (
        lambda a, b: nn.relu(op.matmul(a, b, out_dtype="float32")),
        (127, 127, "float16"), (127, 127, "float16"),
    ),
    "tensor_cores_conv2d": (
        lambda x, w: nn.conv2d(x, w, padding=(1, 1), out_dtype="float32", **NHWC),
        (1, 14, 14, 64, "float16"), (3, 3, 64, 32, "float16"),
    ),
    "tensor_cores_conv2d_1x1": (
        lambda x, w: nn.conv2d(x, w, out_dtype="float32"),
        (1, 64, 14, 14, "float16"), (32, 64, 1, 1, "float16"),
    ),
    "batch_matmul_uneven": (
        lambda a, b: op.matmul(op.permute_dims(a, [0, 2, 1]), b), (5, 33, 47), (5, 33, 13),
    ),
    "conv2d_groups": (
        lambda x, w: nn.conv2d(x, w, padding=(1, 1), groups=4), (1, 32, 14, 14), (48, 8, 3, 3),
    ),
    "softmax_middle": (lambda x: nn.softmax(x, axis=1), (4, 12, 100)),
}  # fmt: skip


def programs(build: Any, *shapes: tuple[Any, ...]) -> list[str]:
    """The functions that Relax makes of an operator, each as a module of its own."""
    builder = relax.BlockBuilder()
    arguments = []
    for number, shape in enumerate(shapes):
        dtype = shape[-1] if isinstance(shape[-1], str) else "float32"
        sizes = [size for size in shape if not isinstance(size, str)]
        arguments.append(relax.Var(f"p{number}", relax.TensorType(sizes, dtype)))
    with builder.function("graph", arguments):
        with builder.dataflow():
            result = builder.emit_output(build(*arguments))
        builder.emit_func_output(result)
    module = builder.get()
    transform = relax.transform
    for step in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        module = getattr(transform, step)()(module)
    return [
        tvm.IRModule({"main": function.with_attr("global_symbol", "main")}).script()
        for function in module.functions.values()
        if isinstance(function, tvm.tirx.PrimFunc)
    ]


def answer(module: str, target: str) -> dict[str, Any]:
    question = {"module": module, "target": target}
    of_seeds = [spaces(question, seed) for seed in SEEDS]
    result: dict[str, Any] = {"module": module, "spaces": [], "seeds": []}
    for of_seed in of_seeds:
        result["seeds"].append(chosen := [])
        for space in of_seed:
            lines = space["lines"]
            end = lines.index("sch.enter_postproc()")
            decisions = [json.loads(found) for line in lines for found in DECISION.findall(line)]
            chosen.append([decisions, lines[end:], space["accepted"]])
    for space in of_seeds[0]:
        lines = space["lines"][: space["lines"].index("sch.enter_postproc()")]
        result["spaces"].append([DECISION.sub("decision=_", line) for line in lines])
    return result if target == TARGET else {**result, "target": target}


if __name__ == "__main__":
    answers = {}
    for name, (build, *shapes) in OPERATORS.items():
        modules = programs(build, *shapes)
        for number, module in enumerate(modules):
            answers[name if len(modules) == 1 else f"{name}_{number}"] = answer(
                module, TENSOR_CORES if name.startswith("tensor_cores") else TARGET
            )
    json.dump(answers, sys.stdout, indent=0)
