"""A transformer with weights made by hand that goes on with a text which repeats: two layers with a
head each. The first looks one token back, and notes what it sees beside the token. The second looks
for where the last token was before, by these notes, and predicts the token that is there."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax.frontend import nn
from mlcweb.relax.frontend.nn import op
from mlcweb.relax_vm import ShapeTuple

LETTERS = "abdeg "
POSITIONS = 26
FEATURES = 32
# Of what is known of a token: itself, its position, the token before, the token predicted.
TOKEN = slice(0, 6)
POSITION = slice(6, 32)
BEFORE = slice(32, 38)
PREDICTED = slice(38, 44)
HIDDEN = 44
SURE = 200.0
"""How much the score of the one key exceeds those of others."""


class Layer(nn.Module):
    def __init__(self):
        self.qkv = nn.Linear(HIDDEN, 3 * FEATURES, bias=False)
        self.out = nn.Linear(FEATURES, HIDDEN, bias=False)

    def forward(self, x, cache, layer):
        b, s, _ = x.shape
        qkv = op.reshape(self.qkv(x), (b, s, 3, FEATURES))
        attended = cache.attention_with_fused_qkv(layer, qkv, 1, 1.0)
        return x + self.out(op.reshape(attended, (b, s, FEATURES)))


class Copying(nn.Module):
    def __init__(self, target):
        self.target = target
        self.tokens = nn.Embedding(len(LETTERS), HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.predict = nn.Linear(HIDDEN, len(LETTERS), bias=False)

    def forward(self, tokens, cache):
        (s,) = tokens.shape
        x = self.tokens(tokens) + self.positions(cache.get_query_positions(s))
        x = op.reshape(x, (1, s, HIDDEN))
        for number, layer in enumerate(self.layers):
            x = layer(x, cache, number)
        return op.reshape(self.predict(x), (s, len(LETTERS)))

    def create_cache(self, tokens):
        module = nn.llm.kv_cache
        return module.TIRPagedKVCache(
            attn_kind="mha", max_batch_size=1, max_total_seq_len=tokens, prefill_chunk_size=16,
            page_size=16, support_sliding_window=0, layer_partition=relax.ShapeExpr([0, 2]),
            num_hidden_layers=2, num_attention_heads=1, num_key_value_heads=1,
            qk_head_dim=FEATURES, v_head_dim=FEATURES, mla_original_qk_head_dim=0,
            mla_original_v_head_dim=0, rope_mode=module.RopeMode.NONE, rope_scale=1,
            rope_theta=1, rope_scaling={}, rope_ext_factors=relax.PrimValue(0),
            rotary_dim=FEATURES, enable_disaggregation=False, dtype="float32",
            target=tvm.target.Target(self.target),
        )  # fmt: skip


def weights():
    """By name."""
    one = np.eye(HIDDEN, dtype="float32")
    letters = len(LETTERS)
    result = {
        "tokens.weight": one[TOKEN],
        "positions.weight": one[POSITION],
        "predict.weight": one[PREDICTED],
    }
    for number in range(2):
        qkv, out = np.zeros((3, FEATURES, HIDDEN), "float32"), np.zeros((HIDDEN, FEATURES), "f4")
        if number == 0:  # what is at the position before
            for position in range(1, POSITIONS):
                qkv[0, position - 1, POSITION.start + position] = SURE
            qkv[1, :POSITIONS] = one[POSITION]
            out[BEFORE, :letters] = np.eye(letters)
        else:  # what follows a token like this one
            qkv[0, :letters] = SURE * one[TOKEN]
            qkv[1, :letters] = one[BEFORE]
            out[PREDICTED, :letters] = np.eye(letters)
        qkv[2, :letters] = one[TOKEN]
        result[f"layers.{number}.qkv.weight"] = qkv.reshape(-1, HIDDEN)
        result[f"layers.{number}.out.weight"] = out
    return result


def generate(text, count, target="llvm"):
    """The text and `count` letters more, the likeliest one at a time; yields each."""
    modes = {"param_mode": "packed", "effect_mode": "none"}
    mod, params = Copying(target).export_tvm(
        {
            "forward": {
                "tokens": nn.spec.Tensor(("n",), "int32"),
                "cache": nn.spec.Object(nn.llm.PagedKVCache),
                "$": modes,
            },
            "create_cache": {"tokens": int, "$": {**modes, "param_mode": "none"}},
        }
    )
    device = tvm.device("cpu" if target in ("llvm", "wasm") else target)
    machine = relax.VirtualMachine(relax.build(mod, target), device)
    arrays = [tvm.nd.array(weights()[name], device) for name, _ in params]
    cache = machine["create_cache"](ShapeTuple([64]))
    state = "vm.builtin.kv_state_"
    tvm.get_global_func(f"{state}add_sequence")(cache, 0)
    sample = tvm.get_global_func("vm.builtin.sample_top_p_from_logits")
    tokens = [LETTERS.index(letter) for letter in text]
    for _ in range(count):
        tvm.get_global_func(f"{state}begin_forward")(
            cache, ShapeTuple([0]), ShapeTuple([len(tokens)])
        )
        ids = tvm.nd.array(np.array(tokens, "int32"), device)
        logits = machine["forward"](ids, cache, arrays).numpy()[-1]
        tvm.get_global_func(f"{state}end_forward")(cache)
        tokens = [sample(tvm.nd.array(logits), 0.0, 1.0, 0.0)]
        yield LETTERS[tokens[0]]
