"""A small model like Llama, written as for mlc-llm: grouped heads, RoPE, RMSNorm, SiLU, and a paged
cache; and the same in NumPy."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mlcweb as tvm
from mlcweb import relax, te
from mlcweb.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache
from mlcweb.relax.frontend import nn
from mlcweb.relax.frontend.nn import op
from mlcweb.relax_vm import ShapeTuple


@dataclass
class Config:
    hidden: int = 16
    intermediate: int = 24
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    features: int = 8
    vocabulary: int = 30
    theta: float = 10000.0
    rope_scaling: dict[str, Any] = field(default_factory=dict)
    rope_mode: RopeMode = RopeMode.NORMAL
    epsilon: float = 1e-5
    target: str = "llvm"


class Attention(nn.Module):
    def __init__(self, config):
        self.config = config
        all_heads = config.heads + 2 * config.kv_heads
        self.qkv_proj = nn.Linear(config.hidden, all_heads * config.features, bias=False)
        self.o_proj = nn.Linear(config.heads * config.features, config.hidden, bias=False)

    def forward(self, hidden, cache, layer_id):
        c = self.config
        b, s, _ = hidden.shape
        qkv = op.reshape(self.qkv_proj(hidden), (b, s, c.heads + 2 * c.kv_heads, c.features))
        output = cache.attention_with_fused_qkv(layer_id, qkv, c.heads, sm_scale=c.features**-0.5)
        return self.o_proj(op.reshape(output, (b, s, c.heads * c.features)))


class FeedForward(nn.Module):
    def __init__(self, config):
        self.gate_up_proj = nn.Linear(config.hidden, 2 * config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(self, x):
        gate, up = op.split(self.gate_up_proj(x), 2, axis=-1)
        return self.down_proj(op.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self, config):
        self.self_attn = Attention(config)
        self.mlp = FeedForward(config)
        self.input_layernorm = nn.RMSNorm(config.hidden, -1, config.epsilon, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden, -1, config.epsilon, bias=False)

    def forward(self, hidden, cache, layer_id):
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), cache, layer_id)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class Llama(nn.Module):
    def __init__(self, config):
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.hidden)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config.layers)])
        self.norm = nn.RMSNorm(config.hidden, -1, config.epsilon, bias=False)
        self.lm_head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def _hidden(self, embedded, cache):
        hidden = embedded
        for layer_id, layer in enumerate(self.layers):
            hidden = layer(hidden, cache, layer_id)
        return self.norm(hidden)

    def embed(self, input_ids):
        return self.embed_tokens(input_ids)

    def prefill(self, input_embed, paged_kv_cache):
        def last(x):
            b, s, d = x.shape
            return te.compute((b, 1, d), lambda i, _, k: x[i, s - 1, k], name="index")

        hidden = self._hidden(input_embed, paged_kv_cache)
        return self.lm_head(op.tensor_expr_op(last, "index", [hidden])), paged_kv_cache

    def decode(self, input_embed, paged_kv_cache):
        return self.lm_head(self._hidden(input_embed, paged_kv_cache)), paged_kv_cache

    def create_paged_kv_cache(
        self, max_batch_size, max_total_seq_len, prefill_chunk_size, page_size,
        support_sliding_window,
    ):  # fmt: skip
        c = self.config
        return TIRPagedKVCache(
            attn_kind="mha", max_batch_size=max_batch_size, max_total_seq_len=max_total_seq_len,
            prefill_chunk_size=prefill_chunk_size, page_size=page_size,
            support_sliding_window=support_sliding_window,
            layer_partition=relax.ShapeExpr([0, c.layers]), num_hidden_layers=c.layers,
            num_attention_heads=c.heads, num_key_value_heads=c.kv_heads, qk_head_dim=c.features,
            v_head_dim=c.features, mla_original_qk_head_dim=0, mla_original_v_head_dim=0,
            rope_mode=c.rope_mode, rope_scale=1, rope_theta=c.theta, rope_scaling=c.rope_scaling,
            rope_ext_factors=relax.PrimValue(0), rotary_dim=c.features,
            enable_disaggregation=False, dtype="float32", target=tvm.target.Target(c.target),
        )  # fmt: skip

    def spec(self):
        c = self.config
        modes = {"param_mode": "packed", "effect_mode": "none"}
        cache = nn.spec.Object(object_type=PagedKVCache)
        sizes = (
            "max_batch_size", "max_total_seq_len", "prefill_chunk_size", "page_size",
            "support_sliding_window",
        )  # fmt: skip
        return {
            "embed": {"input_ids": nn.spec.Tensor(["seq_len"], "int32"), "$": modes},
            "prefill": {
                "input_embed": nn.spec.Tensor([1, "seq_len", c.hidden], "float32"),
                "paged_kv_cache": cache,
                "$": modes,
            },
            "decode": {
                "input_embed": nn.spec.Tensor(["batch_size", 1, c.hidden], "float32"),
                "paged_kv_cache": cache,
                "$": modes,
            },
            "create_paged_kv_cache": {
                **dict.fromkeys(sizes, int),
                "$": {"param_mode": "none", "effect_mode": "none"},
            },
        }


class Generator:
    """A built model with weights, and the sequences of its cache."""

    def __init__(self, config, weights=None):
        mod, params = Llama(config).export_tvm(Llama(config).spec())
        rng = np.random.default_rng(0)
        self.weights = weights or {
            name: (rng.standard_normal(param.shape) / 3).astype("float32") for name, param in params
        }
        on_host = config.target in ("llvm", "wasm", "simulated")
        self.device = tvm.cpu() if on_host else tvm.device(config.target)
        self.machine = relax.VirtualMachine(relax.build(mod, config.target), self.device)
        self.params = [tvm.nd.array(self.weights[name], self.device) for name, _ in params]
        self.cache = self.machine["create_paged_kv_cache"](
            *(ShapeTuple([size]) for size in (4, 128, 64, 16, 0))
        )

    def state(self, name, *args):
        return tvm.get_global_func(f"vm.builtin.kv_state_{name}")(self.cache, *args)

    def logits(self, sequences, tokens):
        """The logits after new tokens: a list for one sequence, or one token for each."""
        ids = tvm.nd.array(np.array(tokens, "int32"), self.device)
        embedded = self.machine["embed"](ids, self.params)
        rows = (len(tokens), 1) if len(sequences) > 1 or len(tokens) == 1 else (1, len(tokens))
        name = "prefill" if rows[1] > 1 else "decode"
        shape = ShapeTuple([*rows, embedded.shape[1]])
        embedded = tvm.get_global_func("vm.builtin.reshape")(embedded, shape)
        counts = [rows[1]] * len(sequences)
        self.state("begin_forward", ShapeTuple(sequences), ShapeTuple(counts))
        logits, _ = self.machine[name](embedded, self.cache, self.params)
        self.state("end_forward")
        return logits.numpy()[:, 0]


def reference(config, weights, tokens):
    """The logits after each token, by NumPy and without a cache."""

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + config.epsilon) * weights[name]

    def rope(x):
        half = config.features // 2
        frequency = config.theta ** (-np.arange(half) / half)
        angle = np.arange(len(x))[:, None] * np.concatenate([frequency, frequency])
        turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
        return x * np.cos(angle)[:, None] + turned * np.sin(angle)[:, None]

    count, group = len(tokens), config.heads // config.kv_heads
    hidden = weights["embed_tokens.weight"][tokens].astype("float64")
    for layer in (f"layers.{i}." for i in range(config.layers)):
        x = norm(hidden, f"{layer}input_layernorm.weight")
        qkv = (x @ weights[f"{layer}self_attn.qkv_proj.weight"].T).reshape(
            count, -1, config.features
        )
        q, k, v = np.split(qkv, [config.heads, config.heads + config.kv_heads], axis=1)
        if config.rope_mode != RopeMode.NONE:
            q, k = rope(q), rope(k)
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) * config.features**-0.5
        scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        attended = np.einsum("hqk,khd->qhd", powers / powers.sum(-1, keepdims=True), v)
        hidden = hidden + attended.reshape(count, -1) @ weights[f"{layer}self_attn.o_proj.weight"].T
        x = norm(hidden, f"{layer}post_attention_layernorm.weight")
        gate, up = np.split(x @ weights[f"{layer}mlp.gate_up_proj.weight"].T, 2, axis=-1)
        silu = gate / (1 + np.exp(-gate))
        hidden = hidden + (silu * up) @ weights[f"{layer}mlp.down_proj.weight"].T
    return norm(hidden, "norm.weight") @ weights["lm_head.weight"].T
