"""Random graphs keep their results through random passes, and on all targets of the processor."""

import os
from random import Random

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.dpl import is_op, wildcard
from tests.relax.random_graphs import RandomGraph

T = relax.transform

SUM_OF_PRODUCT = is_op("relax.add")(is_op("relax.matmul")(wildcard(), wildcard()), wildcard())

ON_OPERATORS = [
    T.AdjustMatmulOrder(), T.CanonicalizeBindings(), T.CombineParallelMatmul(),
    T.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
    T.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]}),
    T.ConvertToDataflow(), T.DataflowUseInplaceCalls(), T.DeadCodeElimination(),
    T.DecomposeOpsForInference(), T.EliminateCommonSubexpr(), T.ExpandMatmulOfSum(),
    T.FoldConstant(), T.FuseOpsByPattern([("a.b", SUM_OF_PRODUCT)], bind_constants=False),
    T.FuseOpsByPattern([("a.b", SUM_OF_PRODUCT)]), T.LambdaLift(), T.LiftTransformParams(),
    T.Normalize(), T.NormalizeGlobalVar(), T.RemoveUnusedOutputs(), T.RemoveUnusedParameters(),
    T.ReorderPermuteDimsAfterConcat(), T.ReorderTakeAfterMatmul(), T.ToMixedPrecision(),
    T.ToNonDataflow(), T.TopologicalSort(),
]  # fmt: skip
FUSING = [T.AnnotateTIROpPattern(), T.FuseOps(), T.FuseTIR()]
ON_FUNCTIONS = [
    *FUSING, T.FuseOps(fuse_opt_level=1), T.CanonicalizeBindings(), T.ConvertToDataflow(),
    T.DataflowUseInplaceCalls(), T.DeadCodeElimination(), T.EliminateCommonSubexpr(),
    T.FoldConstant(), T.Normalize(), T.RewriteDataflowReshape(), T.ToNonDataflow(),
    tvm.transform.Sequential([T.RemovePurityChecking(), T.CallTIRRewrite()], name="CallTIRRewrite"),
]  # fmt: skip


def random_passes(random: Random) -> list[tvm.transform.Pass]:
    passes = random.choices(ON_OPERATORS, k=random.randrange(5))
    if random.random() < 0.3:
        return passes
    fusing = FUSING if random.random() < 0.7 else []
    later = random.choices(ON_FUNCTIONS, k=random.randrange(4))
    return [*passes, T.LegalizeOps(), *fusing, *later]


def check(seed: int) -> None:
    random = Random(seed)
    graph = RandomGraph(random)
    passes = random_passes(random)
    names = [one.info.name for one in passes]
    target = random.choice(["numpy", "wasm", "llvm"])
    try:
        changed = graph.module
        for one in passes:
            changed = one(changed)
            refuse_ill_formed(changed)
        vm = relax.VirtualMachine(relax.build(changed, target), tvm.cpu())
        results = vm["main"](*map(tvm.nd.array, graph.inputs))
        several = results if isinstance(results, (list, tuple)) else [results]
        is_rounded = "ToMixedPrecision" in names
        for result, expected in zip(several, graph.results, strict=True):
            compare(result.numpy(), expected, is_rounded)
    except Exception as error:
        error.add_note(f"seed {seed}, {target}, {names}:\n{graph.module.script()}")
        raise


def compare(result: np.ndarray, expected: np.ndarray, is_rounded: bool) -> None:
    """Numbers are near; what was cut to whole ones or compared may now and then differ by one, and
    has no bound where numbers were rounded to float16."""
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    if expected.dtype == np.float32:
        near = 5e-2 if is_rounded else 1e-3
        np.testing.assert_allclose(result, expected, near, near)
    elif not is_rounded:
        assert np.mean(result != expected) < 0.02


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_results_are_kept(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "first", range(1000, 1000 + int(os.environ.get("RANDOM_GRAPHS", 1000)), 100)
)
def test_results_of_many_graphs_are_kept(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)
