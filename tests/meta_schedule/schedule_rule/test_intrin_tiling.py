"""Tiles that an instruction computes: spaces are those of TVM (see `test_tvm_spaces`), and their
programs compute the same."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb.meta_schedule import TuneContext
from mlcweb.meta_schedule.schedule_rule import (
    MultiLevelTilingWideVector,
    MultiLevelTilingWithIntrin,
)
from mlcweb.runtime.target import Target
from mlcweb.schedule import Schedule, Trace
from tests.meta_schedule.space_generator.cases import module


def computed(mod, arguments):
    arrays = [tvm.nd.array(each) for each in arguments]
    tvm.build(mod, target="wasm")["main"](*arrays)
    return arrays[-1].numpy()


@pytest.mark.parametrize("seed", [1, 2])
def test_programs_of_vnni_compute_a_convolution(seed):
    mod = module("conv_nchw16c")
    target = Target({"kind": "llvm", "num-cores": 4})
    context = TuneContext(mod, target=target, space_generator="vnni", rand_state=seed)
    random = np.random.default_rng(seed)
    arguments = [
        random.integers(0, 100, [int(extent) for extent in buffer.shape]).astype(buffer.dtype)
        for buffer in mod["main"].parameter_buffers
    ]
    expected = computed(mod, arguments)
    spaces = context.generate_design_space()
    assert len(spaces) == 3
    for space in spaces:
        sch = Schedule(mod, seed=seed)
        Trace(space.trace.insts, {}).apply_to_schedule(sch, remove_postproc=True)
        sch.enter_postproc()
        assert all(postproc.apply(sch) for postproc in context.postprocs)
        assert "llvm.x86.avx512.vpdpbusd.512" in sch.mod.script()
        np.testing.assert_array_equal(computed(sch.mod, arguments), expected)


def test_an_intrinsic_has_to_be_registered():
    with pytest.raises(ValueError, match='TensorIntrin "dot_3x5" is not registered'):
        MultiLevelTilingWithIntrin("dot_3x5", "SSRSRS")


def test_what_an_intrinsic_does_not_compute_stays():
    rule = MultiLevelTilingWithIntrin("dot_16x4_vnni", "SSRSRS")
    sch = Schedule(module("matmul"))
    (same,) = rule.apply(sch, sch.get_block("C"))
    assert same is sch and len(sch.trace.insts) == 1


@pytest.mark.parametrize(("bits", "lanes"), [(512, 16), (4096, 128), (8192, 128)])
def test_the_last_axis_fills_a_vector(bits, lanes):
    rule = MultiLevelTilingWideVector("SRSRS", bits)
    sch = Schedule(module("matmul"), seed=1)
    block = sch.get_block("C")
    (tiled,) = rule.apply(sch, block)
    loops = [tiled.get(loop) for loop in tiled.get_loops(block)]
    columns = [int(loop.extent) for loop in loops if loop.loop_var.name.startswith("j_")]
    assert columns[-1] == lanes
    assert np.prod(columns) == 128
