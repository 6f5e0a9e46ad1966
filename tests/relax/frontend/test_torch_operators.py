"""Operators of PyTorch that TVM imports give what PyTorch gives: traced by torch.fx, exported, and
exported and decomposed."""

from functools import cache
from unittest import mock

import numpy as np
import pytest

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend.torch import from_exported_program, from_fx
from mlcweb.runtime.host import llvm_target

torch = pytest.importorskip("torch", reason="PyTorch comes with `make test-all`")
from torch import fx, nn  # noqa: E402

from tests.relax.frontend.compiling import equal_kernels_compiled_once  # noqa: E402
from tests.relax.frontend.torch_operators import (  # noqa: E402
    FUNCTIONS,
    LAYERS,
    ONLY_EXPORTED,
    Layers,
)

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings(
        "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:The tensor attribute"
    ),
]


@pytest.fixture(scope="module", autouse=True)
def what_is_equal_is_done_once():
    """Kernels are compiled, and the operators of a namespace of PyTorch are listed, which every
    decomposition does for all of them several times."""
    utils = torch._export.utils
    listed = cache(utils._collect_all_valid_cia_ops_for_namespace)
    with (
        equal_kernels_compiled_once(llvm_target),
        mock.patch.object(utils, "_collect_all_valid_cia_ops_for_namespace", listed),
    ):
        yield


def traced(model, inputs):
    return [from_fx(fx.symbolic_trace(model), [(tuple(x.shape), str(x.dtype)) for x in inputs])]


def exported(model, inputs):
    """As it is, and decomposed."""
    program = torch.export.export(model, inputs)
    return [
        from_exported_program(program, run_ep_decomposition=False), from_exported_program(program)
    ]  # fmt: skip


def flat(value):
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return [value] if hasattr(value, "numpy") else [each for part in value for each in flat(part)]


def check(model, inputs, way):
    with torch.no_grad():
        expected = flat(model(*inputs))
    for mod in way(model, inputs):
        machine = relax.VirtualMachine(relax.build(mod, "llvm"), mlcweb.cpu())
        results = flat(machine["main"](*[mlcweb.nd.array(x.numpy()) for x in inputs]))
        for found, value in zip(results, expected, strict=True):
            assert found.numpy().dtype == value.numpy().dtype
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", [traced, exported])
def test_a_function(name, way):
    if way is traced and name in ONLY_EXPORTED:
        pytest.skip("torch.fx computes a part of it while it traces")
    torch.manual_seed(1)
    function, make = FUNCTIONS[name]

    class Whole(nn.Module):
        def forward(self, *args):
            return function(*args)

    class Named(nn.Module):  # torch.fx traces no *args
        def forward(self, a, b=None, c=None):
            return function(*(a, b, c)[: len(inputs)])

    inputs = make()
    check(Named() if way is traced else Whole(), inputs, way)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("way", [traced, exported])
def test_a_layer(name, way):
    torch.manual_seed(1)
    make, inputs = LAYERS[name]

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = make()

        def forward(self, a, b=None):
            return self.layer(a) if count == 1 else self.layer(a, b)

    given = inputs()
    count = len(given)
    check(Named().eval() if way is traced else Layers(make()).eval(), given, way)
