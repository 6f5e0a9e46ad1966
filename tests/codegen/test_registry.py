"""Targets are found by their names, and general names mean the best one."""

import subprocess
import sys

import pytest

from mlcweb.codegen import registry


@pytest.mark.parametrize("name", ["llvm", "c", "cpu"])
def test_general_names_mean_the_target_of_highest_rank(name):
    best = max(registry.find_target(n).rank for n in ("numpy", "interpreter"))
    assert registry.find_target(name).rank >= best


def test_a_new_target_takes_its_place_by_rank(monkeypatch):
    def builder(functions, lookup, *, config):
        return config

    monkeypatch.setattr(registry, "_targets", dict(registry._targets))
    entry = registry.register_target("fast", lambda: builder, aliases=("swift",), rank=1000)
    assert registry.find_target("cpu") is entry
    assert registry.find_target("swift") is entry
    assert entry.build({}, {}.get, {"speed": 3}) == {"speed": 3}
    assert registry.find_target("numpy").name == "numpy"


def test_unknown_targets_list_the_known_ones():
    with pytest.raises(RuntimeError, match="interpreter, llvm, numpy"):
        registry.find_target("abacus")


def test_lowering_and_the_registry_do_without_numpy():
    program = (
        "import sys; import mlcweb.lower, mlcweb.codegen, mlcweb.runtime; "
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
