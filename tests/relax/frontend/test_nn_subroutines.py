"""Modules with `define_subroutine = True`: functions of their own in what is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.frontend import nn

X = nn.spec.Tensor(("rows", 4), "float32")


class SwishUnit(nn.Module):
    define_subroutine = True

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return x * nn.op.sigmoid(x * self.slope)


class Layer(nn.Module):
    define_subroutine = True

    def __init__(self, inputs: int, outputs: int, slope: float = 1.0) -> None:
        self.weight = nn.Parameter((inputs, outputs), "float32")
        self.act = SwishUnit(slope)

    def forward(self, x: nn.Tensor, shift: nn.Tensor) -> tuple[nn.Tensor, nn.Tensor]:
        y = self.act(nn.op.matmul(x, self.weight))
        return y, y + shift


class Model(nn.Module):
    def __init__(self, *layers: Layer) -> None:
        self.layers = nn.ModuleList(layers)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        for layer in self.layers:
            _, x = layer(x, shift=x)
        return x


def names(mod: Any) -> list[str]:
    return sorted(var.name_hint for var in mod.functions)


@pytest.mark.parametrize("mode", ["plain", "packed"])
def test_layers_that_trace_alike_share_a_function(mode: str) -> None:
    model = Model(Layer(4, 4), Layer(4, 4), Layer(4, 4, slope=2.0))
    spec = {"forward": {"x": X, "$": {"param_mode": mode, "effect_mode": "none"}}}
    mod, params = model.export_tvm(spec)
    # The third layer has another slope, and so a function of its own.
    assert names(mod) == ["forward", "layer", "layer1", "swish_unit", "swish_unit1"]
    assert "global_symbol" not in mod["layer"].attrs
    assert relax.analysis.well_formed(mod)

    draw = np.random.default_rng(0)
    x, *weights = (draw.standard_normal(s).astype("float32") for s in [(3, 4)] + [(4, 4)] * 3)
    vm = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    arrays = [tvm.nd.array(weight) for weight in weights]
    args = arrays if mode == "plain" else [tuple(arrays)]
    expected = x
    for weight, slope in zip(weights, (1, 1, 2), strict=True):
        y = expected @ weight
        expected = expected + y / (1 + np.exp(-slope * y))
    result = vm["forward"](tvm.nd.array(x), *args).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert [name for name, _ in params] == [f"layers.{i}.weight" for i in range(3)]


def test_other_shapes_are_other_functions() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            self.first, self.second = Layer(4, 2), Layer(6, 2)

        def forward(self, x: nn.Tensor, y: nn.Tensor, shift: nn.Tensor) -> nn.Tensor:
            return self.first(x, shift)[0] + self.second(y, shift)[1]

    spec = {"x": (3, 4), "y": (3, 6), "shift": (2,)}
    mod, _ = Two().export_tvm(
        {"forward": {name: nn.spec.Tensor(shape, "float32") for name, shape in spec.items()}}
    )
    assert names(mod) == ["forward", "layer", "layer1", "swish_unit"]
    assert [str(mod[name].params[0].struct_info.shape) for name in ("layer", "layer1")] == [
        "R.shape([3, 4])",
        "R.shape([3, 6])",
    ]


def test_arguments_that_are_no_tensors_are_refused() -> None:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            self.layer = Layer(4, 4)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return self.layer(x, 3)[0]

    with pytest.raises(TypeError, match=r"Layer\.forward .* are tensors; shift is 3"):
        Wrong().export_tvm({"forward": {"x": X}})


def test_modules_with_state_are_refused() -> None:
    class Cached(nn.Module):
        define_subroutine = True

        def __init__(self) -> None:
            self.cache = nn.KVCache(2, [4])

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            self.cache.append(x)
            return x

    with pytest.raises(TypeError, match="Cached has the state cache"):
        Cached().export_tvm({"forward": {"x": X}})
