"""What TVM deduces and prints for calls of operators, and a sample of what it lowers them to.

The answers of a real TVM 0.27 are in tvm_answers.json; ask_tvm.py writes them."""

import json
import re

import pytest

from mlcweb import relax, tir
from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.relax import TensorStructInfo, op
from mlcweb.relax.transform import LegalizeOps
from mlcweb.script import from_source
from tests.relax.op.ask_tvm import ANSWERS

ENTRIES = json.loads(ANSWERS.read_text())
HEAD = """from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
"""


def module_of(entry):
    symbols = {}

    def parameter(name, shape, dtype):
        if not isinstance(shape, list):
            rank = -1 if shape is None else shape
            return relax.Var(name, TensorStructInfo(None, dtype, ndim=rank))
        extents = [
            symbols.setdefault(n, tir.Var(n, "int64")) if isinstance(n, str) else n for n in shape
        ]
        return relax.Var(name, TensorStructInfo(extents, dtype))

    params = {name: parameter(name, *spec) for name, spec in entry["params"].items()}
    names = {"op": op, "const": relax.const, "shape": relax.ShapeExpr, **params}
    builder = relax.BlockBuilder()
    with builder.function("main", list(params.values())):
        builder.emit_func_output(builder.emit(eval(entry["expr"], names)))
    return builder.get()


def plain(text):
    """A call as both print it: scalars without their wrapping, numbers in the shortest form."""
    text = re.sub(r"R\.prim_value\(((?:[^()]|\([^()]*\))*)\)", r"\1", text)
    text = re.sub(r'metadata\["[\w.]+"\]', "metadata", text)
    text = re.sub(r"index_map=.*, pad_value", "pad_value", text)
    return re.sub(r"\d+\.\d+(?:e-?\d+)?", lambda found: repr(float(found[0])), text)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["expr"])
def test_deduced_and_printed_as_tvm_does(entry):
    if "error" in entry:
        with pytest.raises(TVMError):
            module_of(entry)
        return
    script = module_of(entry)["main"].script(dialect="s_tir")
    lines = [line.strip() for line in script.splitlines() if " = R." in line]
    binding, _, call = lines[-1].partition(" = ")
    assert binding.partition(": ")[2] == entry["type"]
    assert plain(call) == plain(entry["call"])


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if "functions" in e], ids=lambda entry: entry["expr"]
)
def test_lowered_as_tvm_does(entry):
    theirs = from_source(HEAD + "\n".join(entry["functions"]))
    ours = LegalizeOps()(module_of(entry))
    assert {v.name_hint for v in ours.functions} == {v.name_hint for v in theirs.functions} | {
        "main"
    }
    for var, func in theirs.functions.items():
        both = (f.without_attr("global_symbol") for f in (ours[var], func))
        assert_structural_equal(*both)
