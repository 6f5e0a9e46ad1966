"""Fusing, pass by pass, against TVM's results on the same modules.

Each file of `fused/` holds a module that TVM has lowered and annotated, what its FuseOps makes of
it, and what its FuseTIR makes of that, as TVM prints them.
"""

import re
from pathlib import Path

import pytest

from mlcweb import relax
from mlcweb.ir import IRModule, assert_structural_equal
from mlcweb.script import from_source
from mlcweb.tir import PrimFunc

CASES = Path(__file__).parent / "fused"
NAMES = sorted(path.stem for path in CASES.iterdir())


def answers(name):
    parts = re.split(r"^# --- (\w+)\n", (CASES / f"{name}.txt").read_text(), flags=re.M)[1:]
    return {title: from_source(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def block_names(mod):
    return re.findall(r'T\.block\("(\w+)"\)', mod.script())


@pytest.mark.parametrize("name", NAMES)
def test_kinds_of_computation(name):
    annotated = answers(name)["AnnotateTIROpPattern"]
    bare = IRModule(
        {
            var: func.without_attr("op_pattern") if isinstance(func, PrimFunc) else func
            for var, func in annotated.functions.items()
        }
    )
    assert_structural_equal(relax.transform.AnnotateTIROpPattern()(bare), annotated)


@pytest.mark.parametrize("name", NAMES)
def test_groups(name):
    there = answers(name)
    fused = relax.transform.FuseOps(fuse_opt_level=2)(there["AnnotateTIROpPattern"])
    assert_structural_equal(fused, there["FuseOps"])


@pytest.mark.parametrize("name", NAMES)
def test_fused_functions(name):
    there = answers(name)
    fused = relax.transform.FuseTIR()(there["FuseOps"])
    assert_structural_equal(fused, there["FuseTIR"])
    assert block_names(fused) == block_names(there["FuseTIR"])
