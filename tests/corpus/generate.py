"""Writes `printed-0.27.json.xz`, or of which TVM it is run with: programs as a real TVM prints
them, without repeats, and without those that the file of another TVM has.

Run it in the environment that has that TVM: `.venv-oracle/bin/python tests/corpus/generate.py`.
Each program has the name of what made it. The programs are TVM's operators, each pass of its
pipelines after which a program is another, schedules of its design spaces and rules, and its tensor
intrinsics.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent))

import tvm
from operators import RELAX, TOPI
from tvm import relax, s_tir, te, tirx, topi
from tvm.s_tir import dlight
from tvm.s_tir import meta_schedule as ms

# The search wants it to count cores; the number is given here.
sys.modules.setdefault("psutil", cast(Any, SimpleNamespace(cpu_count=lambda logical=True: 4)))

PLAIN = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "num-cores": 4}
CPU = tvm.target.Target(PLAIN, host=PLAIN)
VNNI = tvm.target.Target({**PLAIN, "mcpu": "cascadelake"}, host=PLAIN)
GPU = tvm.target.Target("nvidia/nvidia-a100", host=PLAIN)

MAX_LENGTH = 40_000
"""Longer texts repeat what they say."""

programs: dict[str, str] = {}
"""Texts, each with what made it first."""

failures: list[str] = []


def keep(origin: str, program: Any) -> None:
    text = program.script()
    if len(text) <= MAX_LENGTH:
        if 'metadata["' in text:
            text = program.script(show_meta=True)
        programs.setdefault(text, origin)


def attempt(origin: str, make: Callable[[], None]) -> None:
    """Make something; what this TVM cannot do is listed at the end."""
    try:
        make()
    except Exception as error:
        failures.append(f"{origin}: {type(error).__name__}: {str(error).strip().splitlines()[-1:]}")


@tvm.instrument.pass_instrument
class KeepPasses:
    """Keeps the program after each pass."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def run_after_pass(self, mod: Any, info: Any) -> None:
        if mod.functions:
            keep(f"{self.origin}, {info.name}", mod)


class Tensors:
    """`t` of the operators' texts: makes inputs, and lists them. `t.n` is a size by its name."""

    def __init__(self, make: Callable[..., Any], size: Callable[[str], Any]) -> None:
        self.make, self.size = make, size
        self.inputs: list[Any] = []
        self.sizes: dict[str, Any] = {}

    def __call__(self, *shape: Any, d: str = "float32") -> Any:
        dims = [getattr(self, e) if isinstance(e, str) else e for e in shape]
        self.inputs.append(self.make(f"x{len(self.inputs)}", dims, d))
        return self.inputs[-1]

    def __getattr__(self, name: str) -> Any:
        if name not in self.sizes:
            self.sizes[name] = self.size(name)
        return self.sizes[name]


def tensor_program(text: str) -> Any:
    """The function of an operator of `topi`."""
    t = Tensors(
        lambda name, shape, dtype: te.placeholder(shape, dtype, name),
        lambda name: te.var(name, "int64"),
    )
    outputs = eval(text, {"topi": topi, "te": te, "tvm": tvm, "t": t})
    results = [outputs] if isinstance(outputs, te.Tensor) else list(outputs)
    return te.create_prim_func([*t.inputs, *results])


def graph_program(text: str) -> Any:
    """A module whose main function calls an operator of Relax."""
    t = Tensors(
        lambda name, shape, dtype: relax.Var(name, relax.TensorType(shape, dtype)),
        lambda name: tirx.Var(name, "int64"),
    )
    value = eval(text, {"op": relax.op, "relax": relax, "tvm": tvm, "t": t})
    builder = relax.BlockBuilder()
    with builder.function("main", t.inputs, pure="print" not in text and "assert" not in text):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(value))
        builder.emit_func_output(result)
    return builder.get()


def lower(origin: str, program: Any, target: Any) -> None:
    """Keep a scheduled function after each pass of the pipeline for a target."""
    mod = program if isinstance(program, tvm.IRModule) else tvm.IRModule({"main": program})
    with tvm.transform.PassContext(instruments=[KeepPasses(origin)]), target:
        mod = tirx.transform.BindTarget(target)(mod)
        pipeline, host, device = s_tir.pipeline.default_s_tir_pipeline()
        mod = pipeline(mod)
        for passes in (host, device):
            passes()(mod)


def schedule_by_rules(origin: str, program: Any) -> Any:
    """A function scheduled for a GPU by rules."""
    rules = (
        dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(),
        dlight.gpu.GeneralReduction(), dlight.gpu.Fallback(),
    )  # fmt: skip
    with GPU:
        mod = dlight.ApplyDefaultSchedule(*rules)(tvm.IRModule({"main": program}))
    keep(f"{origin}, scheduled by rules for a GPU", mod)
    return mod


def tensor_operators() -> None:
    for text in TOPI:

        def make(text: str = text) -> None:
            program = tensor_program(text)
            keep(text, program)
            if "topi.nn." in text or hash_of(text) % 5 == 0:
                attempt(f"{text} for a CPU", lambda: lower(f"{text} for a CPU", program, CPU))
            if "topi.nn." in text or hash_of(text) % 9 == 0:
                attempt(
                    f"{text} for a GPU",
                    lambda: lower(f"{text} for a GPU", schedule_by_rules(text, program), GPU),
                )

        attempt(text, make)


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def graph_operators() -> None:
    for text in RELAX:

        def make(text: str = text) -> None:
            mod = graph_program(text)
            keep(text, mod)
            every = "op.nn." in text or hash_of(text) % 5 == 0
            with tvm.transform.PassContext(instruments=[KeepPasses(text)] if every else []), CPU:
                keep(f"{text}, legalised", relax.transform.LegalizeOps()(mod))
                relax.backend.cpu_generic.get_default_pipeline(CPU)(mod)

        attempt(text, make)


def models() -> None:
    """Networks of several layers through both pipelines, and their training."""
    nn = relax.frontend.nn

    class Perceptron(nn.Module):
        def __init__(self) -> None:
            self.first, self.second = nn.Linear(784, 128), nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return nn.op.softmax(self.second(nn.op.relu(self.first(x))), axis=-1)

    class Convolutions(nn.Module):
        def __init__(self) -> None:
            self.conv = nn.Conv2D(3, 8, 3, padding=1)
            self.norm = nn.GroupNorm(2, 8)
            self.last = nn.Linear(8 * 64, 10)

        def forward(self, x: Any) -> Any:
            x = nn.op.silu(self.norm(self.conv(x)))
            return self.last(nn.op.reshape(x, (-1, 8 * 64)))

    class Attention(nn.Module):
        def __init__(self) -> None:
            self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
            self.norm = nn.RMSNorm(32, -1, bias=False)

        def forward(self, x: Any) -> Any:
            n = x.shape[0]
            q, k, v = nn.op.split(self.qkv(self.norm(x)), 3, axis=-1)
            scores = nn.op.matmul(q, nn.op.permute_dims(k))
            return x + self.out(nn.op.matmul(nn.op.softmax(scores, -1), v))

    for model, shape in (
        (Perceptron, (1, 784)), (Perceptron, ("n", 784)), (Convolutions, (1, 3, 8, 8)),
        (Attention, (16, 32)), (Attention, ("n", 32)),
    ):  # fmt: skip

        def make(model: Any = model, shape: Any = shape) -> None:
            origin = f"{model.__name__}{shape}"
            spec = {"forward": {"x": nn.spec.Tensor(shape, "float32")}}
            mod, _ = model().export_tvm(spec)
            keep(origin, mod)
            for name in ("zero", "default_build"):
                with tvm.transform.PassContext(instruments=[KeepPasses(f"{origin}, {name}")]), CPU:
                    fused = relax.get_pipeline("zero")(mod)
                    relax.get_pipeline(name)(fused)
            with GPU:
                scheduled = dlight.ApplyDefaultSchedule(
                    dlight.gpu.Matmul(), dlight.gpu.GEMV(), dlight.gpu.Reduction(),
                    dlight.gpu.GeneralReduction(), dlight.gpu.Fallback(),
                )(fused)  # fmt: skip
            keep(f"{origin}, scheduled by rules for a GPU", scheduled)

        attempt(f"{model.__name__}{shape}", make)


SPACES = (
    "topi.nn.matmul(t(512, 512), t(512, 512))",
    'topi.nn.matmul(t(512, 512, d="float16"), t(512, 512, d="float16"), out_dtype="float32")',
    'topi.nn.matmul(t(512, 512, d="float16"), t(512, 512, d="float16"), out_dtype="float16")',
    'topi.nn.dense(t(128, 256, d="uint8"), t(64, 256, d="int8"), out_dtype="int32")',
    "topi.nn.batch_matmul(t(4, 64, 64), t(4, 64, 64))",
    "topi.nn.conv2d_nchw(t(1, 16, 32, 32), t(32, 16, 3, 3), 1, 1, 1)",
    'topi.nn.conv2d_nhwc(t(1, 16, 16, 64, d="float16"), t(3, 3, 64, 64, d="float16"), 1, 1, 1, '
    '"float32")',
    "topi.nn.depthwise_conv2d_nchw(t(1, 32, 16, 16), t(32, 1, 3, 3), 1, 1, 1)",
    "topi.nn.softmax(t(64, 256))",
    "topi.nn.layer_norm(t(64, 256), t(256), t(256), [1])",
    "topi.sum(t(256, 256), axis=1)",
    "topi.nn.pool2d(t(1, 16, 16, 16), [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], 'max')",
)


def design_spaces() -> None:
    """Schedules that the search starts from, after its postprocessors, and lowered."""
    kinds = (
        ("llvm", CPU), ("from-target", VNNI), ("cuda", GPU), ("cuda-tensorcore", GPU),
    )  # fmt: skip
    for text in SPACES:
        program = tensor_program(text)
        for kind, target in kinds:

            def make(
                text: str = text, kind: str = kind, target: Any = target, program: Any = program
            ) -> None:
                space = ms.space_generator.PostOrderApply(
                    sch_rules=kind, postprocs=kind, mutator_probs=kind
                )
                context = ms.TuneContext(
                    tvm.IRModule({"main": program}), target=target, space_generator=space,
                    search_strategy="evolutionary", rand_state=7,
                )  # fmt: skip
                for number, schedule in enumerate(space.generate_design_space(context.mod)):
                    origin = f"{text}, design {number} for {kind}"
                    keep(origin, schedule.mod)
                    if all(post.apply(schedule) for post in space.postprocs):
                        keep(f"{origin}, postprocessed", schedule.mod)
                        if number == 0:
                            lower(origin, schedule.mod, target)

            attempt(f"{text} for {kind}", make)


def intrinsics() -> None:
    """The tensor intrinsics of all machines, by the names in their modules."""
    folder = Path(s_tir.__file__).parent / "tensor_intrin"
    for path in sorted(folder.glob("*.py")):
        if path.stem != "__init__":
            import_module(f"tvm.s_tir.tensor_intrin.{path.stem}")
    for name in sorted(_intrinsic_names()):
        intrinsic = s_tir.TensorIntrin.get(name, allow_missing=True)
        if intrinsic is not None:
            keep(f"the description of {name}", intrinsic.desc)
            keep(f"the implementation of {name}", intrinsic.impl)


def _intrinsic_names() -> Iterator[str]:
    for name, module in list(sys.modules.items()):
        if name.startswith("tvm.s_tir.tensor_intrin."):
            for value in vars(module).values():
                if isinstance(value, str) and re.fullmatch(r"\w+", value):
                    yield value


def main() -> None:
    for part in (tensor_operators, intrinsics, models, graph_operators, design_spaces):
        part()
        print(f"{part.__name__}: {len(programs)} programs by now", flush=True)
        store()
    print(*failures, sep="\n")


def store() -> None:
    version = ".".join(tvm.__version__.split(".")[:2])
    path = Path(__file__).parent / f"printed-{version}.json.xz"
    others = {
        text
        for other in path.parent.glob("printed-*.json.xz")
        if other != path
        for _, text in json.loads(lzma.decompress(other.read_bytes()))["programs"]
    }
    kept = [[origin, text] for text, origin in programs.items() if text not in others]
    text = json.dumps({"tvm": tvm.__version__, "programs": kept}, ensure_ascii=False)
    path.write_bytes(lzma.compress(text.encode(), preset=6))


if __name__ == "__main__":
    main()
