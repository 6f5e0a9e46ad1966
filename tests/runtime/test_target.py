"""Targets and devices in TVM's notation."""

import pytest

from mlcweb.runtime import Target, cpu, device
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
