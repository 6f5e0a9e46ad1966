"""Random graphs keep their results through the passes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.relax.dpl import is_op, wildcard
from tests.strategies import examples

op = relax.op
T = relax.transform

UNARY = {
    "relu": op.nn.relu,
    "negative": op.negative,
    "transpose": op.permute_dims,
    "softmax": lambda x: op.nn.softmax(x, axis=-1),
    "reshape": lambda x: op.reshape(op.reshape(x, (16,)), (4, 4)),
    "row sums": lambda x: op.sum(x, axis=[1], keepdims=True),
    "half": lambda x: op.multiply(x, relax.const(0.5, "float32")),
    "constant": lambda x: op.add(x, relax.const(np.eye(4), "float32")),
}
BINARY = {"add": op.add, "subtract": op.subtract, "maximum": op.maximum, "matmul": op.matmul}

steps = st.lists(
    st.tuples(st.sampled_from([*UNARY, *BINARY]), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=8,
)
ends = st.lists(st.integers(0, 9), min_size=1, max_size=2)


def graph(chosen, results):
    """A function of two (4, 4) tensors; `results` are the values that it gives."""
    bb = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorStructInfo((4, 4), "float32")) for name in "xy"]
    with bb.function("main", params):
        with bb.dataflow():
            values = list(params)
            for name, first, second in chosen:
                a, b = values[first % len(values)], values[second % len(values)]
                new = bb.emit(UNARY[name](a) if name in UNARY else BINARY[name](a, b))
                if new.struct_info.values[1].value == 1:
                    new = bb.emit(op.add(new, params[0]))
                values.append(new)
            outputs = [bb.emit_output(values[-1 - place % len(chosen)]) for place in results]
        bb.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))
    return bb.get()


def matmul_then_add():
    return is_op("relax.add")(is_op("relax.matmul")(wildcard(), wildcard()), wildcard())


PIPELINES = {
    "in place": [T.DataflowUseInplaceCalls(), T.LegalizeOps(), T.RewriteDataflowReshape()],
    "fused": [T.LegalizeOps(), T.AnnotateTIROpPattern(), T.FuseOps(), T.FuseTIR()],
    "by pattern": [
        T.FuseOpsByPattern([("a.b", matmul_then_add())], bind_constants=False),
        T.LegalizeOps(),
        T.FuseTIR(),
    ],
    "tidied": [
        T.EliminateCommonSubexpr(), T.FoldConstant(), T.CanonicalizeBindings(),
        T.DeadCodeElimination(),
    ],
    "other blocks": [
        T.ToNonDataflow(), T.ConvertToDataflow(), T.LegalizeOps(), T.FoldConstant(),
        T.AnnotateTIROpPattern(), T.FuseOps(), T.FuseTIR(), T.Normalize(),
    ],
}  # fmt: skip


def run(mod):
    rng = np.random.default_rng(0)
    x, y = (tvm.nd.array(rng.uniform(-1, 1, (4, 4)).astype("float32")) for _ in range(2))
    vm = relax.VirtualMachine(relax.build(mod, target="numpy"), tvm.cpu())
    results = vm["main"](x, y)
    return [r.numpy() for r in (results if isinstance(results, (list, tuple)) else [results])]


@pytest.mark.parametrize("pipeline", PIPELINES)
@examples(15)
@given(chosen=steps, results=ends)
def test_results_are_kept(pipeline, chosen, results):
    mod = graph(chosen, results)
    changed = mod
    for one in PIPELINES[pipeline]:
        changed = one(changed)
        refuse_ill_formed(changed)
    for found, expected in zip(run(changed), run(mod), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
