"""The default spaces of targets of one core and of several."""

import numpy as np
import pytest

pytest.importorskip("wasmtime")

from mlcweb import meta_schedule as ms
from mlcweb.meta_schedule.postproc import RewriteTensorize
from mlcweb.meta_schedule.schedule_rule import MultiLevelTilingWithIntrin
from mlcweb.meta_schedule.space import defaults
from mlcweb.runtime import build, config_threadpool, nd
from mlcweb.runtime.target import Target
from mlcweb.tir import stmt as S
from tests.meta_schedule.space_generator.cases import module


def rules(target):
    return [type(rule).__name__ for rule in defaults.defaults_for(Target(target)).sch_rules()]


def test_several_cores_get_loops_in_parallel():
    assert "ParallelizeVectorizeUnroll" in rules("llvm -num-cores 4")
    assert "MultiLevelTiling" in rules("llvm -num-cores 4")


@pytest.mark.parametrize("target", ["llvm", "llvm -num-cores 1", "wasm"])
def test_one_core_gets_registers_and_vectors(target):
    assert "ParallelizeVectorizeUnroll" not in rules(target)
    assert "RegisterTiling" in rules(target)


@pytest.mark.parametrize(
    ("named", "intrinsics"),
    [
        ("-mattr=+avx512vnni", ["dot_16x4_vnni"]),
        ("-mattr=+avx512f,+avx512bw", ["dot_16x4_avx512"]),
        ("-mattr=+avx512f", []),
        ("", []),
    ],
)
def test_several_cores_get_the_instructions_that_the_target_names(named, intrinsics):
    parts = defaults.defaults_for(Target(f"llvm -num-cores 4 {named}"))
    tilings = [rule for rule in parts.sch_rules() if isinstance(rule, MultiLevelTilingWithIntrin)]
    assert [rule.intrin_name for rule in tilings] == intrinsics
    tensorizing = [part for part in parts.postprocs() if isinstance(part, RewriteTensorize)]
    assert len(tensorizing) == len(intrinsics)


def test_several_cores_are_one_where_there_are_no_threads(monkeypatch):
    monkeypatch.setattr(defaults, "has_threads", lambda: False)
    assert rules("llvm -num-cores 4") == rules("llvm")


def test_a_search_for_several_cores_finds_a_parallel_program(tmp_path):
    mod, target = module("matmul"), Target("llvm -num-cores 4")
    database = ms.tune_tir(
        mod, target, str(tmp_path), max_trials_global=4, num_trials_per_iter=4, seed=1
    )
    sch = ms.tir_integration.compile_tir(database, mod, target)
    func = sch.mod["main"]
    kinds = {part.kind for part in S.statements_in(func.body) if isinstance(part, S.For)}
    assert S.ForKind.PARALLEL in kinds
    a, b = (np.random.default_rng(n).random((128, 128), "float32") for n in (1, 2))
    c = nd.array(np.zeros_like(a))
    config_threadpool(1, 2)
    try:
        build(func, target)(nd.array(a), nd.array(b), c)
    finally:
        config_threadpool()
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)
