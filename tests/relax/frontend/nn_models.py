"""Models written with `nn.Module`, for ours and for a real TVM's `tvm.relax.frontend.nn`.

    .venv-oracle/bin/python tests/relax/frontend/nn_models.py

writes what TVM 0.27 traces of them into `nn_answers`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parent / "nn_answers"


def models(nn: Any) -> dict[str, tuple[Any, Any]]:  # noqa: C901
    """Name -> a model, and what its methods take."""
    spec, op = nn.spec, nn.op

    class Perceptron(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1 = nn.Linear(8, 16)
            self.act = nn.ReLU()
            self.fc2 = nn.Linear(16, 4, bias=False)

        def forward(self, x: Any) -> Any:
            return self.fc2(self.act(self.fc1(x)))

    class Norms(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LayerNorm(8)
            self.rms = nn.RMSNorm(8, axes=-1, bias=False)
            self.group = nn.GroupNorm(2, 4)

        def forward(self, x: Any) -> Any:
            return self.group(self.rms(self.layer(x)))

    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.two = nn.Conv2D(3, 8, 3, padding=1)
            self.one = nn.Conv1D(8, 4, 3, stride=2, bias=False)
            self.back = nn.ConvTranspose1D(4, 2, 3)

        def forward(self, x: Any) -> Any:
            y = op.reshape(self.two(x), (1, 8, -1))
            return self.back(self.one(y))

    class Operators(nn.Module):
        def forward(self, x: Any, y: Any, i: Any) -> Any:
            a = (x + y) * 2.0 - x / y
            b = op.softmax(op.matmul(a, op.permute_dims(y)), axis=-1)
            c = op.concat([b, op.silu(b)], dim=1)
            d, e = op.split(c, 2, axis=1)
            f = op.where(op.less(d, e), op.sigmoid(d), op.tanh(e))
            g = op.sum(f, axis=-1, keepdims=True) + op.max(f, axis=1, keepdims=True)
            h = op.take(x, i, axis=0)
            k = op.squeeze(op.unsqueeze(h, dim=0), 0).astype("float16")
            m = op.gelu(op.exp(op.negative(x)))
            n = op.broadcast_to(op.reshape(op.square(m), (1, 3, 4)), (2, 3, 4))
            return f, g, k, op.repeat(n, 2, axis=0), op.sqrt(m).maximum(y), op.cumsum(x, axis=1)

    class Making(nn.Module):
        def forward(self, x: Any) -> Any:
            total = x + op.zeros((3, 4)) + op.ones((3, 4)) + op.arange(0, 4)
            drawn = op.multinomial_from_uniform(op.softmax(x), op.sum(x, 1, keepdims=True))
            return op.triu(total), op.topk(x, k=2, axis=1), op.argsort(x, axis=1), drawn

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(8, 8)
            self.k = nn.Linear(8, 8)
            self.v = nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            parts = [op.reshape(f(x), (1, 5, 2, 4)) for f in (self.q, self.k, self.v)]
            return op.scaled_dot_product_attention(*parts, is_causal=True)

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 8)
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

        def forward(self, ids: Any) -> Any:
            return self.layers(self.table(ids))

        def one(self, ids: Any, k: Any) -> Any:
            return op.reshape(self.table(ids), (k, -1))

    tensor = spec.Tensor
    packed = {"param_mode": "packed", "effect_mode": "none"}
    x34 = tensor((3, 4), "float32")
    return {
        "perceptron": (Perceptron(), {"forward": {"x": tensor((1, 8), "float32")}}),
        "perceptron_packed": (
            Perceptron(),
            {"forward": {"x": tensor(("batch", 8), "float32"), "$": packed}},
        ),
        "norms": (Norms(), {"forward": {"x": tensor((2, 4, 8), "float32")}}),
        "convolutions": (Convolutions(), {"forward": {"x": tensor((1, 3, 6, 6), "float32")}}),
        "operators": (
            Operators(),
            {"forward": {"x": x34, "y": x34, "i": tensor((2,), "int32")}},
        ),
        "making": (Making(), {"forward": {"x": x34}}),
        "attending": (Attending(), {"forward": {"x": tensor((1, 5, 8), "float32")}}),
        "layers": (
            Layers(),
            {
                "forward": {"ids": tensor((2, "n"), "int32")},
                "one": {"ids": tensor(("n",), "int32"), "k": int},
            },
        ),
    }


def record() -> None:
    from tvm.relax.frontend import nn

    for name, (model, spec) in models(nn).items():
        mod, _ = model.export_tvm(spec)
        (ANSWERS / f"{name}.txt").write_text(mod.script(show_meta=True) + "\n")


if __name__ == "__main__":
    record()
