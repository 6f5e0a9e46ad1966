"""Options of targets: those of real TVM, with values of its types, and no others."""

import json
from pathlib import Path

import pytest

from mlcweb.runtime.target import Target

OPTIONS = json.loads(Path(__file__).with_name("tvm_target_options.json").read_text())
"""What `ask_tvm_target_options.py` has been told: the types that TVM takes, for each option."""

KINDS = sorted(set(OPTIONS) & set(Target.list_kinds()))
VALUES = {"int": 5, "str": "x", "list": ["x"]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_the_options_that_it_has_in_tvm(kind):
    assert len(KINDS) == 11
    for name, types in OPTIONS[kind].items():
        for text in types:
            value = VALUES[text]
            assert Target({"kind": kind, name: value}).options == {name: value}
        if "int" in types:
            with pytest.raises(ValueError, match=f'"{name}": expected type "int" but got "str"'):
                Target({"kind": kind, name: "x"})
        elif types:
            with pytest.raises(ValueError, match=f'"{name}": expected type .* but got "int"'):
                Target({"kind": kind, name: 5})


@pytest.mark.parametrize("kind", Target.list_kinds())
def test_an_option_that_does_not_exist_is_refused(kind):
    reason = f'Unknown config option "foo" of target kind "{kind}"; known are keys, '
    with pytest.raises(ValueError, match=reason):
        Target(f"{kind} -foo=1")
    with pytest.raises(ValueError, match=reason):
        Target({"kind": kind, "foo": 1})
    with pytest.raises(ValueError, match=reason):
        Target("llvm", host={"kind": kind, "foo": 1})
    # TVM does not list the features of processors either.
    assert Target({"kind": kind, "feature.has_sve": True}).has_sve is True


def test_texts_are_read_by_the_type_of_the_option():
    target = Target("llvm -mcpu=486 -num-cores=4 -mattr=+avx -keys=x86,cpu -fast-math=true")
    assert target.attrs == {
        "mcpu": "486", "num-cores": 4, "mattr": ["+avx"], "keys": ["x86", "cpu"], "fast-math": True,
    }  # fmt: skip
    assert Target(str(target)) == target
    with pytest.raises(ValueError, match=r'"num-cores": expected type "int" but got "str" \(\'1.5'):
        Target("llvm -num-cores=1.5")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ([], "text or a mapping, not list"),
        (None, "text or a mapping, not NoneType"),
        ({"kind": "llvm", "host": 5}, "text or a mapping, not int"),
        ({"kind": 5}, 'Target kind "5" is not defined'),
        ({}, 'Target kind "None" is not defined'),
        ('{"kind": "llvm"', "A target that is no JSON"),
        ('{"host": ' * 100_000, "A target that is no JSON"),
        ("nvidia/nvidia-a100 -x=1", 'kind "nvidia/nvidia-a100" is not defined'),
    ],
)
def test_what_is_no_target(target, reason):
    with pytest.raises(ValueError, match=reason):
        Target(target)
