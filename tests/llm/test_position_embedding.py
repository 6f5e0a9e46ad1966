"""RoPE and its scalings against NumPy; the same numbers come from TVM 0.27 to 4e-6, where it has
them (its longrope and llama_rope raise errors)."""

import math

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.frontend import nn
from mlcweb.relax_vm import ShapeTuple

THETA, SCALE, TRAINED = 10000.0, 1.5, 64
HEADS, KV_HEADS, FEATURES = 4, 2, 16

SMOOTH = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": TRAINED,
}  # fmt: skip
LONG = {
    "rope_type": "longrope", "max_position_embeddings": 256, "original_max_position_embeddings": 8
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "factor": 4.0, "beta_fast": 32, "beta_slow": 1,
    "original_max_position_embeddings": 128, "inv_theta_log_scale": 1 / (2 * math.log(THETA)),
}  # fmt: skip
SCALINGS = {
    "default": {},
    "gptj": {"rope_type": "gptj"},
    "llama3": {"rope_type": "llama3", **SMOOTH},
    "llama4": {"rope_type": "llama4", **SMOOTH},
    "llama4 with a threshold": {"rope_type": "llama4", **SMOOTH, "low_freq_factor": 4.0},
    "yarn": YARN,
}


def frequencies(scaling, turned, factors=None):
    """Of each pair, in radians for a position; and the factor of the result."""
    count = turned // 2
    plain = THETA ** (-np.arange(count) / count)
    kind = scaling.get("rope_type", "")
    if kind.startswith("llama"):
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = TRAINED * plain / (2 * math.pi)
        if low == high:
            return np.where(turns < low, plain / scaling["factor"], plain), 1.0
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        return (1 - smooth) * plain / scaling["factor"] + smooth * plain, 1.0
    if kind == "longrope":
        trained = scaling["original_max_position_embeddings"]
        ratio = scaling["max_position_embeddings"] / trained
        return plain / factors, math.sqrt(1 + math.log(ratio) / math.log(trained))
    if kind == "yarn":
        trained = scaling["original_max_position_embeddings"]
        low, high = (
            turned * math.log(trained / (n * 2 * math.pi)) / (2 * math.log(THETA))
            for n in (scaling["beta_fast"], scaling["beta_slow"])
        )
        low, high = max(low, 0), min(high, turned - 1)
        # The ramp is over features, of which a pair has two: those of both halves differ.
        ramp = np.clip((np.arange(turned) - low) / (high - low), 0, 1)
        both = np.concatenate([plain, plain])
        return both / scaling["factor"] * ramp + both * (1 - ramp), 1.0
    return plain, 1.0


def expected(x, positions, scaling, turned, neighbours, factors=None):
    per_pair, scale = frequencies(scaling, turned, factors)
    feature = np.arange(turned)
    if len(per_pair) == turned:
        angle = positions[:, None] * SCALE * per_pair
    else:
        by_half = not neighbours and scaling.get("rope_type") != "llama4"
        pair = feature % (turned // 2) if by_half else feature // 2
        angle = positions[:, None] * SCALE * per_pair[pair]
    result = x.astype("float64")
    head = result[..., :turned].copy()
    if neighbours:
        partner = np.where(feature % 2 == 0, -np.roll(head, -1, -1), np.roll(head, 1, -1))
    else:
        partner = np.concatenate([-head[..., turned // 2 :], head[..., : turned // 2]], axis=-1)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    result[..., :turned] = scale * (cos * head + sin * partner)
    return result


def run(function, x, positions, last):
    outputs = [
        tvm.nd.empty((len(x), heads, FEATURES), str(x.dtype))
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    ]
    library = tvm.build(function.with_attr("global_symbol", "rope"), "llvm")
    library["rope"](tvm.nd.array(x), tvm.nd.array(positions), *outputs, last)
    return np.concatenate([output.numpy() for output in outputs], axis=1)


def tokens(count, dtype="float32"):
    rng = np.random.default_rng(count)
    x = rng.standard_normal((count, HEADS + 2 * KV_HEADS, FEATURES)).astype(dtype)
    return x, rng.integers(0, 90, count).astype("int32")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("turned", [16, 8])
@pytest.mark.parametrize("kind", SCALINGS)
def test_queries_and_keys_are_turned_by_their_positions(kind, turned, dtype):
    x, positions = tokens(5, dtype)
    module, scaling = nn.llm.position_embedding, SCALINGS[kind]
    makers = {module.llama_rope_with_position_map: kind == "gptj"}
    if kind.startswith("llama4"):
        makers[module.llama4_rope_with_position_map] = True
    for maker, neighbours in makers.items():
        function = maker(THETA, SCALE, FEATURES, HEADS, KV_HEADS, dtype, scaling, turned)
        result = run(function, x, positions, 1)
        turned_heads = x[:, : HEADS + KV_HEADS]
        numbers = expected(turned_heads, positions, scaling, turned, neighbours)
        tolerance = 2e-5 if dtype == "float32" else 4e-3
        np.testing.assert_allclose(
            result[:, : HEADS + KV_HEADS], numbers, rtol=tolerance, atol=tolerance
        )
        np.testing.assert_array_equal(result[:, HEADS + KV_HEADS :], x[:, HEADS + KV_HEADS :])
        np.testing.assert_array_equal(run(function, x, positions, 0), x)


@pytest.mark.parametrize("count", [5, 12])
def test_long_texts_have_factors_of_their_own(count):
    x, positions = tokens(count)
    maker = nn.llm.position_embedding.llama_rope_with_position_map
    function = maker(THETA, SCALE, FEATURES, HEADS, KV_HEADS, "float32", LONG)
    factors = np.linspace(1, 2, FEATURES).astype("float32")
    result = run(function, x, positions, tvm.nd.array(factors))
    own = factors[: FEATURES // 2] if count > 8 else factors[FEATURES // 2 :]
    heads = HEADS + KV_HEADS
    numbers = expected(x[:, :heads], positions, LONG, FEATURES, False, own)
    np.testing.assert_allclose(result[:, :heads], numbers, rtol=2e-5, atol=2e-5)


def test_rope_in_a_model():
    class Model(nn.Module):
        def forward(self, x: nn.Tensor, total):
            return nn.llm.llama_rope(x, total, THETA, SCALE, HEADS, KV_HEADS, {})

    x, _ = tokens(5)
    spec = nn.spec.Tensor((1, "n", HEADS + 2 * KV_HEADS, FEATURES), "float32")
    mod, _ = Model().export_tvm({"forward": {"x": spec, "total": int}})
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = machine["forward"](tvm.nd.array(x[None]), ShapeTuple([9]))
    result = np.concatenate([part.numpy()[0] for part in result], axis=1)
    heads = HEADS + KV_HEADS
    numbers = expected(x[:, :heads], np.arange(4, 9), {}, FEATURES, False)
    np.testing.assert_allclose(result[:, :heads], numbers, rtol=2e-5, atol=2e-5)


def test_unknown_scalings_are_refused():
    switch = nn.llm.position_embedding.switch_rope_freq_func
    with pytest.raises(ValueError, match="Unsupported RoPE scaling type: ntk"):
        switch({"rope_type": "ntk"})
    with pytest.raises(ValueError, match='"llama3" lacks factor'):
        switch({"rope_type": "llama3", "low_freq_factor": 1, "high_freq_factor": 4})
