"""Nodes as text, and by the names of their classes."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from mlcweb import compat, relax, tir
from mlcweb.compat.containers import convert
from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.relax.dpl import wildcard
from mlcweb.runtime import nd
from mlcweb.script import ir as I
from mlcweb.script import relax as R
from mlcweb.script import tir as T

WEIGHT = np.arange(64, dtype="float32")


@I.ir_module
class Model:
    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(0.1)

    @R.function
    def main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):
        return R.add(x, R.const(WEIGHT))


@pytest.fixture(autouse=True)
def ir():
    compat.install()
    yield importlib.import_module("tvm").ir
    compat.uninstall()


@pytest.mark.parametrize("what", ["module", "fill", "main"])
def test_programs_survive(ir, what):
    program = Model if what == "module" else Model[what]
    text = ir.save_json(program)
    assert_structural_equal(ir.load_json(text), program)
    assert ir.load_json(json_str=text).script() == program.script()


@pytest.mark.parametrize(
    "parts", [("fill", "body"), ("fill", "params"), ("main", "ret_struct_info")]
)
def test_parts_of_programs_survive(ir, parts):
    part = getattr(Model[parts[0]], parts[1])
    for node in part if isinstance(part, tuple) else [part]:
        assert_structural_equal(ir.load_json(ir.save_json(node)), node, map_free_vars=True)


def test_one_variable_stays_one(ir):
    x = tir.Var("x", "int64")
    loaded = ir.load_json(ir.save_json(x * x + relax.PrimValue(x).value))
    assert loaded.a.a is loaded.a.b is loaded.b


def test_a_text_makes_nodes_alone(ir):
    table = '{"format": "mlcweb-nodes", "root": {"node": 0}, "nodes": [%s]}'
    with pytest.raises(TVMError, match="no class of the IR"):
        ir.load_json(table % '{"class": "subprocess.Popen", "fields": {"args": "true"}}')
    with pytest.raises(TVMError, match="has no form in JSON"):
        ir.save_json(relax.const(WEIGHT))


def test_no_python_in_a_text_is_run(ir, tmp_path):
    made = tmp_path / "made"
    script = T_SCRIPT.replace("range(8)", f"range(len([open({str(made)!r}, 'w')] * 8))")
    for text, runs in ((T_SCRIPT, True), (script, False)):
        content = json.dumps({"format": "mlcweb-script", "script": text})
        if runs:
            assert "A[i] = T.float32(1" in ir.load_json(content).script()
            continue
        with pytest.raises(TVMError, match="when the script runs"):
            ir.load_json(content)
    assert not made.exists()


T_SCRIPT = """
# from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = 1.0
"""

NODES = '{"format": "mlcweb-nodes", "root": %s, "nodes": [%s]}'


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "5", "{", "[" * 100_000, '{"a": ' * 100_000, "1" * 5000, "[]",
        '{"format": "mlcweb-script"}',
        '{"format": "mlcweb-script", "script": 5}',
        '{"format": "mlcweb-script", "script": "\\ud800"}',
        '{"format": "mlcweb-script", "script": "%s"}' % ("(" * 5000),
        '{"format": "mlcweb-script", "script": "x = %s1"}' % ("-" * 100_000),
        '{"format": "mlcweb-nodes"}',
        NODES % ("[" * 5000 + "]" * 5000, ""),
        # A node that holds itself.
        NODES % ('{"node": 0}', '{"class": "mlcweb.tir.expr.Add", "fields": {"a": {"node": 0}}}'),
        NODES % ('{"node": 5}', ""),
        NODES % ('{"node": []}', ""),
        NODES % ('{"op": "no such"}', ""),
        NODES % ('{"op": []}', ""),
        NODES % ('{"enum": "mlcweb.tir.stmt.IterType", "value": 99}', ""),
        NODES % ('{"items": 5}', ""),
        NODES % ('{"attrs": [[[], 1, 2]]}', ""),
        NODES % ("0", "5"),
        NODES % ("0", '{"class": "mlcweb.tir.expr.IntImm", "fields": {"no": 5}}'),
        NODES % ("0", '{"class": [], "fields": {}}'),
        '{"root_index": 0, "nodes": [{"type": []}]}',
    ],
)  # fmt: skip
def test_damaged_json_is_refused(ir, text):
    with pytest.raises(TVMError):
        ir.load_json(text)


def test_a_module_that_tvm_has_saved(ir):
    """By `tvm.ir.save_json` of TVM 0.27."""
    saved = Path(__file__).with_name("saved_by_tvm.json").read_text()
    assert "A[vi] = A[vi] + T.float32(1)" in ir.load_json(saved)["main"].script()


def test_what_is_no_program_is_refused(ir):
    with pytest.raises(TVMError, match="not a WildcardPattern: print it"):
        ir.save_json(wildcard())
    with pytest.raises(TVMError, match="This JSON was not made here"):
        ir.load_json('{"root": 1, "nodes": []}')


def test_lists_and_dictionaries_of_nodes_are_saved(ir):
    values = {"a": [1, "text", tir.IntImm("int32", 3)], "b": {"c": None}}
    loaded = ir.load_json(ir.save_json(values))
    assert loaded["a"][:2] == (1, "text") and loaded["b"] == {"c": None}
    assert_structural_equal(loaded["a"][2], tir.IntImm("int32", 3))
    assert ir.load_json(ir.save_json("text")) == "text"


def test_what_has_a_form_of_its_own_is_not_converted():
    array, info = nd.array(np.zeros(2, "float32")), relax.ObjectStructInfo()
    for value in (None, "text", 3, 2.5, True, array, info, len):
        assert convert(value) is value
    assert convert([array, None])[0] is array
    assert {*convert({"a": 2, "b": 3}).values()} == {2, 3}
    x = tir.Var("x", "int32")
    assert isinstance(convert(x == 1), tir.EQ)


def test_arrays_are_saved_with_their_elements(ir):
    array = nd.array(np.array([[1.5, -2], [3, np.inf]], "float16"))
    saved = ir.save_json({"weights": [array]})
    (loaded,) = ir.load_json(saved)["weights"]
    assert loaded.dtype == "float16" and loaded.numpy().tolist() == array.numpy().tolist()
    assert json.loads(saved)["metadata"]["tvm_version"]


def test_nodes_by_name(ir):
    attrs = ir.make_node("ir.DictAttrs", x=1, name="xyz", padding=(0, 0))
    assert isinstance(attrs, ir.DictAttrs)
    assert (attrs.x, attrs["name"], list(attrs.keys())) == (1, "xyz", ["x", "name", "padding"])
    number = ir.make_node("ir.IntImm", dtype="int32", value=10, span=None)
    assert number.value == 10 and number.dtype == "int32"
    assert ir.make_node("tirx.StringImm", value="a").value == "a"
    with pytest.raises(TVMError, match=r'no node "tirx\.NoSuchNode"'):
        ir.make_node("tirx.NoSuchNode")
