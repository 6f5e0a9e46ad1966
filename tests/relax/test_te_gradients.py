"""Functions of TensorIR with gradients that a program gives: call_te_with_grad."""

from __future__ import annotations

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax, te
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.relax.training.utils import register_te_gradient
from mlcweb.script import from_source
from mlcweb.script import relax as R

x, y = (np.arange(start, start + 4, dtype="float32") for start in (1, 3))


@register_te_gradient("tests.product_gradient")
def product_gradient(gradient, a, b, factor=1.0):
    return [
        te.compute(a.shape, lambda i: factor * gradient[i] * b[i], name="a_gradient"),
        te.compute(a.shape, lambda i: factor * gradient[i] * a[i], name="b_gradient"),
    ]


@register_te_gradient("tests.square_gradient")
def square_gradient(gradient, a):
    return te.compute(a.shape, lambda i: 2.0 * gradient[i] * a[i], name="a_gradient")


def product(a, b, factor=1.0):
    return te.compute(a.shape, lambda i: factor * a[i] * b[i], name="product")


def square(a):
    return te.compute(a.shape, lambda i: a[i] * a[i], name="square")


def model(names=("tests.product_gradient", "tests.square_gradient")):
    builder = relax.BlockBuilder()
    info = R.Tensor((4,), "float32")
    params = [relax.Var("x", info), relax.Var("y", info)]
    with builder.function("main", params):
        with builder.dataflow():
            both = builder.emit(
                builder.call_te_with_grad(
                    product, *params, te_grad_name=names[0], te_grad_kwargs={"factor": 3.0},
                    factor=3.0, primfunc_name_hint="scaled",
                )
            )  # fmt: skip
            result = builder.emit(builder.call_te_with_grad(square, both, te_grad_name=names[1]))
            total = builder.emit_output(relax.op.sum(result))
        builder.emit_func_output(total)
    return builder.get()


def test_the_call_names_its_gradient() -> None:
    mod = model()
    call = mod["main"].body.blocks[0].bindings[0].value
    assert call.op.name == "relax.call_tir_with_grad"
    direct = relax.call_tir_with_grad(
        call.args[0], call.args[1], R.Tensor((4,), "float32"), "tests.product_gradient",
        {"factor": 3.0},
    )  # fmt: skip
    assert structural_equal(direct, call, map_free_vars=True)
    assert call.attrs["te_grad_name"] == "tests.product_gradient"
    assert call.attrs["te_grad_kwargs"] == {"factor": 3.0}
    text = mod.script()
    assert "R.call_tir_with_grad(cls.scaled, (x, y)" in text
    assert structural_equal(from_source(text), mod)


def test_gradients_are_computed_by_the_registered_functions() -> None:
    mod = relax.transform.Gradient("main")(model())
    adjoint = mod["main_adjoint"].script()
    assert "call_tir_with_grad" not in adjoint
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    arguments = [tvm.nd.array(x), tvm.nd.array(y)]
    total = ((3 * x * y) ** 2).sum()
    np.testing.assert_allclose(machine["main"](*arguments).numpy(), total)
    loss, (dx, dy) = machine["main_adjoint"](*arguments)
    np.testing.assert_allclose(loss.numpy(), total)
    np.testing.assert_allclose(dx.numpy(), 18 * x * y * y)
    np.testing.assert_allclose(dy.numpy(), 18 * x * x * y)


def test_a_gradient_that_nobody_has_registered_is_refused() -> None:
    with pytest.raises(DiagnosticError, match=r'as the gradient "tests\.no_gradient"'):
        relax.transform.Gradient("main")(model(("tests.no_gradient", "tests.square_gradient")))
