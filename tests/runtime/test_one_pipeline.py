"""Whoever makes code of a program makes the same code: one pipeline of lowering."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import IRModule, TVMError, relax, tir
from mlcweb.driver import tvmc
from mlcweb.ir.transform import PassContext
from mlcweb.lower import transform
from mlcweb.lower.launch_threads import lower_for_device
from mlcweb.meta_schedule.measure.artifact import build_artifact, random_inputs
from mlcweb.meta_schedule.measure.process_pool import ProcessRunner
from mlcweb.playground import code_view
from mlcweb.playground.session import session
from mlcweb.relax_vm import Executable
from mlcweb.runtime import library
from mlcweb.script import from_source
from tests.codegen.wasm.test_select_code import schedule_mm

N = 128
"""The extent of all axes of the product."""


def products() -> IRModule:
    """A scheduled product of matrices, and a graph function that calls it."""
    graph = f"""
@R.function
def main(a: R.Tensor(({N}, {N}), "float32"), b: R.Tensor(({N}, {N}), "float32")) -> R.Tensor(
    ({N}, {N}), "float32"
):
    with R.dataflow():
        c = R.call_tir(cls.mm, (a, b), out_sinfo=R.Tensor(({N}, {N}), "float32"))
        R.output(c)
    return c
"""
    body = graph.strip().replace("\n", "\n    ")
    whole = from_source(f"@I.ir_module\nclass Module:\n    {body}\n    {KERNEL}")
    return IRModule({"main": whole["main"], "mm": schedule_mm(32).with_attr("global_symbol", "mm")})


KERNEL = f"""
    @T.prim_func
    def mm(A: T.Buffer(({N}, {N}), "float32"), B: T.Buffer(({N}, {N}), "float32"),
           C: T.Buffer(({N}, {N}), "float32")):
        T.evaluate(0)
"""


def kernels() -> IRModule:
    return IRModule({"mm": products()["mm"]})


def code_of(made: Any) -> bytes:
    return made["mm"].kernel.variant(()).compiled.code


def of_model(executable: Executable) -> bytes:
    assert executable.library is not None
    return code_of(executable.library)


def by_build() -> bytes:
    return code_of(tvm.build(kernels(), "wasm"))


def by_builder_of_the_search() -> bytes:
    return build_artifact(kernels(), "mm", "wasm").code


def by_worker() -> bytes:
    async def main() -> bytes:
        runner = ProcessRunner(random_inputs(kernels(), "mm"), timeout_s=60.0)
        try:
            return (await runner.build(kernels(), "wasm")).code
        finally:
            runner.close()

    return asyncio.run(main())


def by_relax() -> bytes:
    return of_model(relax.build(products(), "wasm"))


def by_tvmc() -> bytes:
    return of_model(tvmc.compile(products(), "wasm").executable)


def by_page() -> bytes:
    [program] = code_view.register(session.open("test"), [("products", kernels())])
    return code_view.compiled_code(program.id, "mm")


ROUTES = [by_builder_of_the_search, by_worker, by_relax, by_tvmc, by_page]


def change_stores(
    change: Callable[[tir.PrimExpr], tir.PrimExpr], func: tir.PrimFunc, *context: Any
) -> tir.PrimFunc:
    def changed(node: tir.Stmt) -> tir.Stmt:
        assert isinstance(node, tir.BufferStore)
        return tir.BufferStore(node.buffer, change(node.value), node.indices)

    new = tir.stmt_functor.ir_transform(func.body, None, changed, ["tir.BufferStore"])
    return func.with_body(new)


def negated(value: tir.PrimExpr) -> tir.PrimExpr:
    return value * tir.const(-1, value.dtype)


NEGATE = transform.prim_func_pass(partial(change_stores, negated), opt_level=0, name="negate")

SETTINGS: dict[str, dict[str, Any]] = {
    "checked": {"config": {"mlcweb.bounds_check": True}},
    "not fused": {"config": {"mlcweb.relaxed_madd": False}},
    "scalar": {"config": {"tir.disable_vectorize": True}},
    "a pass of phase 0": {"config": {"tir.add_lower_pass": [(0, NEGATE)]}},
    "a pass of phase 1": {"config": {"tirx.add_lower_pass": [(1, NEGATE)]}},
    "not unrolled": {"disabled_pass": ["tir.UnrollLoop"]},
    "nothing optional": {
        "disabled_pass": [
            *("tir.Simplify", "tir.CompactBufferAllocation", "tir.PeelInit", "s_tir.LoopPartition"),
            *("tirx.VectorizeLoop", "tir.UnrollAndJam", "tir.UnrollLoop", "tir.PlaceInRegisters"),
            *("tir.PromoteAccumulators", "tir.HoistInvariants", "tir.CommonSubexprElimTIR"),
            *("tir.PlaceAllocations", "tir.AssumeNoAlias"),
        ]
    },
}


@pytest.mark.parametrize("route", ROUTES)
def test_kernels_are_the_same_by_every_route(route: Callable[[], bytes]) -> None:
    assert route() == by_build()


@pytest.mark.parametrize("route", [route for route in ROUTES if route is not by_worker])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_route_obeys_the_settings(route: Callable[[], bytes], name: str) -> None:
    usual = by_build()
    with PassContext(**SETTINGS[name]):
        assert route() == by_build() != usual


@pytest.mark.parametrize("name", ["not fused", "a pass of phase 0"])
def test_workers_obey_the_settings(name: str) -> None:
    with PassContext(**SETTINGS[name]):
        assert by_worker() == by_build()


@pytest.mark.parametrize("target", ["wasm", "numpy", "interpreter"])
@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "checked"])
def test_settings_keep_the_numbers(target: str, name: str) -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.integers(-8, 8, (4, 4)).astype("float32") for _ in range(2))
    c = tvm.nd.empty((4, 4))
    with PassContext(**SETTINGS[name]):
        small = tvm.build(from_source(SMALL), target)
    small(tvm.nd.array(a), tvm.nd.array(b), c)
    if not name.startswith("a pass"):
        np.testing.assert_array_equal(c.numpy(), a @ b)
    else:
        # Each store negates: a sum s of products p becomes -(s + p), from a zero negated.
        expected = np.zeros((4, 4), "float32")
        for k in range(4):
            expected = -(expected + np.outer(a[:, k], b[k]))
        np.testing.assert_array_equal(c.numpy(), expected)


SMALL = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
         C: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def test_what_code_needs_cannot_be_disabled() -> None:
    needed = pytest.raises(TVMError, match=r'"tir\.FlattenBuffer" cannot be disabled: no code')
    with PassContext(disabled_pass=["tir.FlattenBuffer"]), needed:
        by_build()


def test_files_have_the_same_code(tmp_path: Path) -> None:
    made = tvm.build(kernels(), "wasm")
    made.export_library(str(tmp_path / "mm.wasm"))
    assert (tmp_path / "mm.wasm").read_bytes().startswith(code_of(made))
    loaded = library.load_module(tmp_path / "mm.wasm")
    assert loaded["mm"].kernel.source == made["mm"].kernel.source


def test_passes_of_a_model_run_before_its_functions_are_lowered() -> None:
    made = relax.build(products(), "wasm", tir_pipeline=NEGATE)
    with PassContext(config={"tir.add_lower_pass": [(0, NEGATE)]}):
        assert of_model(made) == by_build()


def test_kernels_of_gpus_obey_the_settings() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
"""
    func = from_source(text)
    names: list[str] = []

    class Hearing:
        def run_after_pass(self, mod: IRModule, info: tvm.transform.PassInfo) -> None:
            names.append(info.name)

    usual = lower_for_device(func)
    with PassContext(instruments=[Hearing()], config={"tir.add_lower_pass": [(0, NEGATE)]}):
        assert not tvm.ir.structural_equal(lower_for_device(func), usual)
    assert names[:2] == ["negate", "tir.LowerInitBlock"]
    assert {"tir.ThreadSync", "tir.InjectVirtualThread"} < set(names)
