"""Targets and devices in TVM's notation."""

import json
from pathlib import Path

import pytest

from mlcweb.runtime import Target, cpu, device
from mlcweb.runtime import target as target_module
from mlcweb.runtime.device import Device


def test_options_become_attributes():
    target = Target("llvm -mcpu=core-avx2 --num-cores=1 -mattr=+avx,+fma")
    assert target.kind.name == "llvm"
    assert target.attrs == {"mcpu": "core-avx2", "num-cores": 1, "mattr": ["+avx", "+fma"]}
    assert str(target) == "llvm -mcpu=core-avx2 -num-cores=1 -mattr=+avx,+fma"
    assert Target(str(target)) == target


def test_mappings_json_and_tags():
    assert Target({"kind": "llvm", "num-cores": 4}).attrs["num-cores"] == 4
    assert Target('{"kind": "c"}').kind.name == "c"
    assert Target("nvidia/tesla-p100").kind.name == "cuda"
    assert Target("llvm -mcpu=x86-64 -num-cores 4").attrs["num-cores"] == 4
    assert Target("cuda", host="llvm").host == Target("llvm")


def test_unknown_kinds_and_options_are_named():
    with pytest.raises(ValueError, match='"abacus" is not defined; there are'):
        Target("abacus")
    with pytest.raises(ValueError, match='"mcpu" is not an option'):
        Target("llvm mcpu")


def test_the_current_target_is_that_of_the_innermost_with():
    assert Target.current() is None
    with Target("llvm") as outer:
        with Target("numpy") as inner:
            assert Target.current() is inner
        assert Target.current() is outer
    with pytest.raises(ValueError, match="Target context"):
        Target.current(allow_none=False)


def test_from_device():
    assert Target.from_device(cpu()).kind.name == "llvm"
    assert Target.from_device("cuda").kind.name == "cuda"


def test_devices():
    assert device("cpu") == cpu(0) == device("llvm -mcpu=x") == Device("cpu", 0)
    assert device("cuda:1").index == 1
    assert str(cpu()) == "cpu:0"
    assert repr(cpu()) == "device(type='cpu', index=0)"
    assert cpu().exist
    assert not device("cuda").exist
    assert cpu().device_type == 1
    with pytest.raises(RuntimeError, match="Unknown device"):
        device("tpu")


def test_dictionaries():
    target = Target(
        {"kind": "llvm", "mcpu": "cortex-a53", "host": {"kind": "c"}, "keys": ["arm_cpu"]}
    )
    assert target.keys == ("arm_cpu", "cpu")
    assert target.host == Target("c") and target.mcpu == "cortex-a53"
    assert target.with_host("numpy").host == Target("numpy")
    assert Target({"tag": "nvidia/nvidia-a100", "arch": "sm_70"}).arch == "sm_70"
    with pytest.raises(ValueError, match="A target is a text or a mapping, not int"):
        Target(3)


# Real TVM 0.27 gives these.
@pytest.mark.parametrize(
    ("tag", "kind", "keys", "attrs"),
    [
        ("nvidia/nvidia-a100", "cuda", ("cuda", "gpu"),
         {"arch": "sm_80", "l2_cache_size_bytes": 41943040, "max_num_threads": 1024}),
        ("nvidia/jetson-nano", "cuda", ("cuda", "gpu"),
         {"arch": "sm_53", "registers_per_block": 32768, "thread_warp_size": 32}),
        ("apple/m1-gpu", "metal", ("metal", "gpu"),
         {"max_threads_per_block": 1024, "max_shared_memory_per_block": 32768}),
        ("raspberry-pi/4b-aarch64", "llvm", ("arm_cpu", "cpu"),
         {"mcpu": "cortex-a72", "num-cores": 4}),
        ("aws/cpu/c5.9xlarge", "llvm", ("x86", "cpu"),
         {"mcpu": "skylake-avx512", "num-cores": 18}),
        ("qcom/adreno-opencl", "opencl", ("adreno", "opencl", "gpu"),
         {"max_function_args": 128, "max_num_threads": 256}),
    ],
)  # fmt: skip
def test_tags(tag, kind, keys, attrs):
    target = Target(tag)
    assert (target.tag, target.kind.name, target.keys) == (tag, kind, keys)
    assert {name: getattr(target, name) for name in attrs} == attrs


@pytest.mark.parametrize(
    ("kind", "keys", "number", "threads"),
    [
        ("cuda", ("cuda", "gpu"), 2, 1024),
        ("rocm", ("rocm", "gpu"), 10, 256),
        ("nvptx", ("cuda", "gpu"), 2, 1024),
        ("webgpu", ("webgpu", "gpu"), 15, 256),
    ],
)
def test_kinds_of_other_hardware(kind, keys, number, threads):
    target = Target(kind)
    assert (target.keys, target.get_target_device_type()) == (keys, number)
    assert target.max_num_threads == target.get_kind_attr("max_num_threads") == threads


def test_attributes_have_what_the_kind_has_by_default():
    target = Target({"kind": "cuda", "thread_warp_size": 16})
    assert target.attrs == {"arch": "sm_50", "max_num_threads": 1024, "thread_warp_size": 16}
    assert target.export() == {"kind": "cuda", "thread_warp_size": 16}
    assert str(Target("cuda")) == "cuda"


def test_options_that_are_not_set():
    assert Target("llvm").mcpu == "" and Target("llvm").libs == []
    with pytest.raises(AttributeError, match=r"^Target\('llvm'\) has no attribute mcpuu$"):
        Target("llvm").mcpuu


def test_tags_of_ones_own():
    made = target_module.register_tag("my/board", {"kind": "llvm", "mcpu": "cortex-m7"})
    assert made == Target("my/board") == target_module.list_tags()["my/board"]
    with pytest.raises(ValueError, match="is taken"):
        target_module.register_tag("my/board", {"kind": "c"})


def test_the_target_of_a_call():
    with pytest.raises(ValueError, match="not set"):
        Target.target_or_current(None)
    with Target("llvm"):
        assert Target.target_or_current(None) == Target("llvm")
        assert Target.target_or_current("c") == Target("c")


def facts(target):
    """A target as TVM exports it: what its kind says and what is set of it."""
    own = {**target.limits, "kind": target.kind.name, "keys": list(target.keys)}
    return own | ({"host": facts(target.host)} if target.host else {})


def test_every_tag_has_the_attributes_that_tvm_gives_it():
    groups = json.loads(Path(__file__).with_name("tvm_tags.json").read_text())
    expected = {tag: attrs for attrs, tags in groups for tag in tags.split()}
    tags = {tag: attrs for tag, attrs in expected.items() if attrs["kind"] != "trn"}
    assert len(tags) == 285
    assert {tag: facts(Target(tag)) for tag in tags} == tags
    assert tags.keys() <= target_module.list_tags().keys()


def test_options_with_spaces_and_dashes_are_quoted():
    for target in (
        Target("vulkan -device_name='Some GPU' -device_type=discrete"),
        Target({"kind": "vulkan", "device_name": "Some GPU", "device_type": "discrete"}),
    ):
        assert target.attrs["device_name"] == "Some GPU"
        assert Target(str(target)) == target
    options = Target("llvm -cl-opt='-unroll-threshold:uint=100,-unroll-count:uint=3'")
    assert options.attrs["cl-opt"] == ["-unroll-threshold:uint=100", "-unroll-count:uint=3"]
    assert Target(str(options)) == options
    with pytest.raises(ValueError, match="quotation marks"):
        Target("vulkan -device_name='Some GPU")


def test_targets_and_hosts_of_several_forms():
    target, host = Target.canon_target_and_host("cuda", "llvm")
    assert (target.kind.name, host.kind.name, target.host) == ("cuda", "llvm", host)
    assert Target.canon_target_and_host(None) == (None, None)
    assert Target.canon_target(None) is None
    assert Target.canon_multi_target(None) is None
    both = Target.canon_multi_target_and_host(["llvm", "cuda"], "llvm")
    assert [(one.kind.name, one.host.kind.name) for one in both] == [
        ("llvm", "llvm"),
        ("cuda", "llvm"),
    ]
    assert Target.canon_multi_target_and_host(Target("wasm")) == [Target("wasm")]
    for wrong in (
        lambda: Target.canon_target_and_host(None, "llvm"),
        lambda: Target.canon_multi_target_and_host(None),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_features_are_given_or_none():
    features = Target({"kind": "llvm", "feature.has_avx": True}).features
    assert features.has_avx is True
    assert features.has_sve is None


@pytest.mark.parametrize("device", ["mali", "intel_graphics", "adreno"])
def test_functions_make_targets_of_opencl(device):
    target = getattr(target_module, device)("some")
    attrs = target.attrs
    assert (target.kind.name, attrs["device"], attrs["model"]) == ("opencl", device, "some")
    assert device in target.keys
