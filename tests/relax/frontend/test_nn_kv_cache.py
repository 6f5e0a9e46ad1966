"""`nn.KVCache`: state that a model keeps from one call to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.relax.frontend import nn
from mlcweb.relax_vm import ShapeTuple

HEADS, SIZE = 2, 4


class Attention(nn.Module):
    """Attention of one token to all before it."""

    def __init__(self) -> None:
        self.qkv = nn.Linear(8, 3 * HEADS * SIZE, bias=False)
        self.k, self.v = nn.KVCache(2, [HEADS, SIZE]), nn.KVCache(2, [HEADS, SIZE])

    def forward(self, x: nn.Tensor, total: Any) -> nn.Tensor:
        qkv = nn.op.reshape(self.qkv(x), (1, 3 * HEADS, SIZE))
        q, k, v = nn.op.split(qkv, 3, axis=1)
        self.k.append(k)
        self.v.append(v)
        keys, values = (cache.view(total) for cache in (self.k, self.v))
        of_heads = (nn.op.permute_dims(t, [1, 0, 2]) for t in (q, keys, values))
        q, keys, values = of_heads
        scores = nn.op.softmax(nn.op.matmul(q, nn.op.permute_dims(keys, [0, 2, 1])), axis=-1)
        return nn.op.matmul(scores, values)


SPEC = {"forward": {"x": nn.spec.Tensor((1, 8), "float32"), "total": int}}


def attended(weight: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    q, k, v = np.split((tokens @ weight.T).reshape(-1, 3 * HEADS, SIZE), 3, axis=1)
    scores = np.exp(np.einsum("hd,thd->ht", q[-1], k))
    return np.einsum("ht,thd->hd", scores / scores.sum(-1, keepdims=True), v)[:, None]


@pytest.mark.parametrize("debug", [False, True])
def test_attention_sees_all_tokens_so_far(debug: bool) -> None:
    model = Attention()
    mod, _ = model.export_tvm(SPEC, debug=debug)
    assert mod["forward"].attrs["num_input"] == 4 + debug
    assert relax.analysis.well_formed(mod)
    draw = np.random.default_rng(0)
    weight = draw.standard_normal((3 * HEADS * SIZE, 8)).astype("float32")
    tokens = draw.standard_normal((6, 8)).astype("float32")
    model.load_state_dict({"qkv.weight": weight})
    step = model.jit(SPEC, out_format="numpy", debug=debug)["forward"]
    for count in range(1, 7):
        result = step(tokens[count - 1 : count], ShapeTuple((count,)))
        np.testing.assert_allclose(result, attended(weight, tokens[:count]), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="7 rows in use"):
        step(tokens[:1], ShapeTuple((3,)))


def test_what_a_cache_is_called_with_is_checked() -> None:
    cache = nn.KVCache(4, [2])
    cache.to("float16")
    with pytest.raises(RuntimeError, match="traced with effects"):
        cache.view(3)

    class Model(nn.Module):
        def __init__(self) -> None:
            self.cache = cache

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            self.cache.append(x)
            return x

    x = nn.spec.Tensor((1, 2), "float32")
    with pytest.raises(TypeError, match='dtype "float16", but got "float32"'):
        Model().export_tvm({"forward": {"x": x}})
    without = {"x": x, "$": {"param_mode": "plain", "effect_mode": "none"}}
    cache = nn.KVCache(4, [2])
    with pytest.raises(RuntimeError, match="traced with effects"):
        Model().export_tvm({"forward": without})
