"""One decorator registers all of an operator: its builder, its deduction, its lowering."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, topi
from mlcweb.ir import assert_structural_equal
from mlcweb.ir.op import Op
from mlcweb.relax import op
from mlcweb.relax.expr import Call, ExprLike
from mlcweb.relax.op import infer
from mlcweb.relax.op.legalize import by
from mlcweb.relax.op.registry import builders, call, operator
from mlcweb.script import from_source
from tests.relax.op import stub

SCRIPT = """
from tvm.script import relax as R

@R.function
def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor((3,), "float32")):
    with R.dataflow():
        c = R.hypotenuse(a, b, scale=2.0)
        R.output(c)
    return c
"""


@pytest.fixture
def hypotenuse():
    def te_hypotenuse(x, y, scale):
        root = topi.sqrt(topi.add(topi.multiply(x, x), topi.multiply(y, y)))
        return topi.multiply(root, scale)

    @operator(
        "relax.hypotenuse", "x1", "x2",
        infer=infer.elementwise_float, legalize=by(te_hypotenuse, "scale"),
    )  # fmt: skip
    def hypotenuse(x1: ExprLike, x2: ExprLike, scale: float = 1.0) -> Call:
        return call(hypotenuse, x1, x2, scale=float(scale))

    yield hypotenuse
    del op.hypotenuse, builders["hypotenuse"]


def test_an_operator_is_ready_when_it_is_registered(hypotenuse):
    a = relax.Var("a", relax.TensorStructInfo((2, 3), "float32"))
    b = relax.Var("b", relax.TensorStructInfo((3,), "float32"))
    built = op.hypotenuse(a, b, 2.0)
    assert built.op is Op.get("relax.hypotenuse")
    assert built.op.arguments == ("x1", "x2")
    assert str(built.struct_info) == 'R.Tensor((2, 3), dtype="float32")'

    module = tvm.IRModule({"main": from_source(SCRIPT)})
    assert "R.hypotenuse(a, b, scale=2.0)" in module.script()
    assert_structural_equal(from_source(module.script()), module)

    machine = relax.VirtualMachine(relax.build(module, "numpy"), tvm.cpu())
    x = np.array([[3, 6, 9], [5, 8, 7]], "float32")
    y = np.array([4, 8, 12], "float32")
    result = machine["main"](tvm.nd.array(x), tvm.nd.array(y)).numpy()
    np.testing.assert_allclose(result, 2 * np.hypot(x, y), rtol=1e-6)


def test_its_deduction_names_its_arguments(hypotenuse):
    a = relax.Var("a", relax.TensorStructInfo((2,), "int32"))
    with pytest.raises(TypeError, match=r"relax\.hypotenuse: x1 must be float, not int32"):
        _ = op.hypotenuse(a, a).struct_info


def test_attention_with_a_bias_is_parsed_again():
    q = relax.Var("q", relax.TensorStructInfo((1, 2, 1, 4), "float32"))
    b = relax.Var("b", relax.TensorStructInfo((1, 1, 2, 2), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [q, b]):
        builder.emit_func_output(builder.emit(op.nn.attention(q, q, q, b, scale=0.5)))
    module = builder.get()
    assert "R.nn.attention_bias(q, q, q, b, scale=T.float32(0.5)" in module.script()
    assert_structural_equal(from_source(module.script()), module)


def test_an_unknown_name_of_R_is_refused():
    from mlcweb.script import relax as R

    assert R.add is op.add and R.nn.relu is op.nn.relu
    with pytest.raises(AttributeError, match="no attribute 'hypotenuse'"):
        _ = R.hypotenuse


def test_every_builder_says_what_it_builds():
    for name, build in builders.items():
        registered = getattr(build, "op", None)
        assert build.__doc__, name
        if registered is not None:
            assert registered.has_attr("FInferStructInfo"), name


def test_the_stubs_are_up_to_date():
    for path, text in stub.stubs().items():
        assert path.read_text("utf8") == text, "run `python -m tests.relax.op.stub`"


def test_operators_are_known_without_topi():
    code = (
        "import sys, mlcweb.relax; assert 'mlcweb.topi' not in sys.modules; "
        "assert mlcweb.relax.op.nn.relu"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SHARED = ("infer", "layout", "legalize")
"""The modules of parts that operators share."""


def operators():
    return [Op.get(name) for name in Op.list_op_names() if name.startswith("relax.")]


@pytest.mark.parametrize("operator", operators(), ids=lambda operator: operator.name)
def test_an_operator_is_one_file(operator):
    attributes = ("FBuild", "FInferStructInfo", "FLegalize", "FRelaxInferLayout")
    parts = [
        inspect.unwrap(operator.get_attr(name)) for name in attributes if operator.has_attr(name)
    ]
    homes = {part.__module__ for part in parts} - {f"{op.__name__}.{name}" for name in SHARED}
    assert homes == {inspect.unwrap(operator.get_attr("FBuild")).__module__}


def hand_lists(source: str, module: str) -> list[str]:
    """The literals that list names of operators which other modules register: three or more."""
    names = {}
    for name, build in builders.items():
        names |= dict.fromkeys((name, f"relax.{name}"), inspect.unwrap(build).__module__)
    found = []
    for node in ast.walk(ast.parse(source)):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        texts = [item.value for item in items if isinstance(item, ast.Constant)]
        listed = [text for text in texts if names.get(text, module) != module]
        if len(listed) >= 3:
            found.append(f"{module}:{node.lineno}: {', '.join(listed)}")
    return found


def test_nobody_lists_names_of_operators():
    """What is to be known of operators is registered with them. Importers list foreign names."""
    assert hand_lists('FOLLOW = ("add", "nn.relu", "relax.reshape")', "m") != []
    root = Path(tvm.__file__).parent
    paths = [path for folder in ("relax", "relax_vm") for path in (root / folder).rglob("*.py")]
    for path in paths:
        if "frontend" not in path.parts:
            module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            assert hand_lists(path.read_text("utf8"), module) == []
