"""Attention with masks, caches and grouped heads, and what goes with it."""

from __future__ import annotations

import math

from mlcweb.relax import op
from mlcweb.relax.expr import Expr
from mlcweb.relax.frontend.onnx.arguments import normalized
from mlcweb.relax.frontend.onnx.node import Node, converter
from mlcweb.relax.frontend.onnx.operators.reductions import extremum
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.tir.expr import PrimExpr


def _heads(node: Node, index: int, attribute: str) -> Expr:
    """An input as (batch, heads, length, size); those of three dimensions have the heads side by
    side in the last one."""
    x, shape = node.tensor(index), node.shape(index)
    if len(shape) == 4:
        return x
    batch, length, width = shape
    heads = node.attrs[attribute]
    split = node.emit(op.reshape(x, [batch, length, heads, width // heads]))
    return node.emit(op.permute_dims(split, [0, 2, 1, 3]))


def _length(node: Node, value: Expr, axis: int) -> int:
    extent = node.shape_of(value)[axis]
    if isinstance(extent, PrimExpr):
        raise node.unsupported(f"the symbolic length {extent} with a mask")
    return extent


def _repeated(node: Node, value: Expr, times: int) -> Expr:
    """Each head for a group of queries."""
    return value if times == 1 else node.emit(op.repeat(value, times, 1))


@converter("Attention")
def _attention(node: Node) -> list[Expr]:
    q = _heads(node, 0, "q_num_heads")
    k, v = _heads(node, 1, "kv_num_heads"), _heads(node, 2, "kv_num_heads")
    past = 0
    if node.has(4):
        past = _length(node, node.tensor(4), 2)
        k = node.emit(op.concat([node.tensor(4), k], 2))
        v = node.emit(op.concat([node.tensor(5), v], 2))
    dtype = node.dtype(0)
    size = _length(node, q, 3)
    scale = math.sqrt(node.attrs.get("scale") or 1 / math.sqrt(size))
    groups = _length(node, q, 1) // _length(node, k, 1)
    keys, values = _repeated(node, k, groups), _repeated(node, v, groups)
    left = q * node.const(scale, dtype)
    right = op.permute_dims(keys, [0, 1, 3, 2]) * node.const(scale, dtype)
    raw = node.emit(op.matmul(left, right))
    capped = raw
    cap = node.attrs.get("softcap", 0.0)
    if cap:
        bound = node.const(cap, dtype)
        capped = node.emit(op.tanh(raw / bound) * bound)
    scores = _masked(node, capped, past)
    weights = _softmax(node, scores)
    result = node.emit(op.matmul(weights, values))
    if node.ndim(0) == 3:
        batch, length, _ = node.shape(0)
        width = node.shape_of(q)[1] * node.shape_of(v)[3]
        result = op.reshape(op.permute_dims(result, [0, 2, 1, 3]), [batch, length, width])
    shown = (raw, capped, scores, weights)[node.attrs.get("qk_matmul_output_mode", 0)]
    return [result, k, v, shown]


def _masked(node: Node, scores: Expr, past: int) -> Expr:
    """Scores with -inf where a query does not see a key."""
    dtype = node.info_of(scores).dtype
    never, seen = node.const(-math.inf, dtype), node.const(0.0, dtype)
    if node.has(3):
        mask = _whole_mask(node, _length(node, scores, 3))
        if node.info_of(mask).dtype == "bool":
            mask = op.where(mask, seen, never)
        scores = node.emit(scores + mask)
    bounds = [node.attrs.get(name, -1) for name in ("left_window_size", "right_window_size")]
    causal = bool(node.attrs.get("is_causal", 0))
    if not (causal or node.has(6) or max(bounds) >= 0):
        return scores
    queries, keys = _length(node, scores, 2), _length(node, scores, 3)
    column = node.const([list(range(keys))], "int64")
    row: Expr = node.const([[i] for i in range(queries)], "int64")
    allowed = []
    if node.has(6):
        valid = op.reshape(op.astype(node.tensor(6), "int64"), [node.shape(6)[0], 1, 1, 1])
        valid = node.emit(valid)
        allowed.append(column < valid)
        offset = valid - node.const(queries, "int64")
    else:
        offset = node.const(past, "int64")
    if node.has(6) and past:
        offset = node.const(past, "int64")
    row = node.emit(row + offset)
    if causal:
        allowed.append(column <= row)
    for side, bound in zip((row, column), bounds, strict=True):
        if bound >= 0:
            other = column if side is row else row
            allowed.append(side - other <= node.const(bound, "int64"))
    for condition in allowed:
        scores = node.emit(op.where(node.emit(condition), scores, never))
    return scores


def _whole_mask(node: Node, keys: int) -> Expr:
    """The mask for all keys: those behind its end are not seen."""
    mask, dtype = node.tensor(3), node.dtype(3)
    short = keys - _length(node, mask, -1)
    if short <= 0:
        return mask
    widths = [0, 0] * (node.ndim(3) - 1) + [0, short]
    if dtype != "bool":
        return node.emit(op.nn.pad(mask, widths, "constant", -math.inf))
    padded = op.nn.pad(node.emit(op.astype(mask, "int8")), widths)
    return node.emit(op.astype(node.emit(padded), "bool"))


def _softmax(node: Node, scores: Expr) -> Expr:
    """Weights of the keys; all are zero for a query that sees none."""
    dtype = node.info_of(scores).dtype
    precision = node.attrs.get("softmax_precision")
    wide = dtype_name(precision, f"{node}: softmax_precision") if precision else dtype
    if wide != dtype:
        scores = node.emit(op.astype(scores, wide))
    never, zero, one = (node.const(value, wide) for value in (-math.inf, 0.0, 1.0))
    most = node.emit(extremum(node, scores, [3], True, "max"))
    most = op.where(op.equal(most, never), zero, most)
    powers = node.emit(op.exp(scores - most))
    total = node.emit(op.sum(powers, [3], True))
    weights = powers / op.where(op.equal(total, zero), one, total)
    return node.emit(weights if wide == dtype else op.astype(weights, dtype))


@converter("RotaryEmbedding")
def _rotary(node: Node) -> Expr:
    """Pairs of elements turned by an angle that depends on the position."""
    shape = node.shape(0)
    x = node.tensor(0)
    if len(shape) == 4:
        x = node.emit(op.permute_dims(x, [0, 2, 1, 3]))
    else:
        heads = node.attrs["num_heads"]
        x = node.emit(op.reshape(x, [*shape[:2], heads, shape[2] // heads]))
    size = _length(node, x, 3)
    turned = node.attrs.get("rotary_embedding_dim", 0) or size
    half = turned // 2
    caches = []
    for index in (1, 2):
        cache = node.tensor(index)
        if node.has(3):
            cache = op.take(cache, node.tensor(3), 0)
        cache = op.strided_slice(node.emit(cache), [2], [0], [half])
        caches.append(node.emit(op.expand_dims(cache, 2)))
    cos, sin = caches
    rest = None
    if turned < size:
        x, rest = node.fields(op.split(x, [turned], 3))
    if node.attrs.get("interleaved", 0):
        a, b = (op.strided_slice(x, [3], [start], [turned], [2]) for start in (0, 1))
    else:
        a, b = (op.strided_slice(x, [3], [at], [at + half]) for at in (0, half))
    a, b = node.emit(a), node.emit(b)
    real = cos * a - sin * b
    imaginary = sin * a + cos * b
    if node.attrs.get("interleaved", 0):
        whole = op.stack([real, imaginary], -1)
        whole = op.reshape(node.emit(whole), node.shape_of(x))
    else:
        whole = op.concat([real, imaginary], 3)
    if rest is not None:
        whole = op.concat([node.emit(whole), rest], 3)
    if len(shape) == 4:
        return op.permute_dims(node.emit(whole), [0, 2, 1, 3])
    return op.reshape(node.emit(whole), shape)


@converter("SwiGLU")
def _swiglu(node: Node) -> Expr:
    gate, value = node.tensor(0), node.tensor(1)
    alpha = node.const(node.attrs.get("alpha", 1.0), node.dtype(0))
    return gate * op.sigmoid(gate * alpha) * value


@converter("TensorScatter")
def _tensor_scatter(node: Node) -> Expr:
    """New elements of a cache, from a place on that may be different for each sample."""
    shape, new = node.static_shape(0), node.static_shape(1)
    axis = normalized(node, node.attrs.get("axis", -2), len(shape))
    steps = [1] * len(new)
    steps[axis] = new[axis]
    place = op.reshape(node.const(list(range(new[axis])), "int64"), steps)
    if node.has(2):
        starts = op.reshape(op.astype(node.tensor(2), "int64"), [shape[0], *[1] * (len(shape) - 1)])
        place = place + starts
    if node.attrs.get("mode", "linear") == "circular":
        place = op.floor_mod(node.emit(place), node.const(shape[axis], "int64"))
    indices = node.emit(op.broadcast_to(node.emit(place), new))
    return op.scatter_elements(node.tensor(0), indices, node.tensor(1), axis)


@converter("CausalConvWithState")
def _causal_convolution(node: Node) -> list[Expr]:
    """A convolution of each channel by itself, which sees the past only: what came before, or
    zeros."""
    x, weight = node.tensor(0), node.tensor(1)
    reach = node.static_shape(1)[2] - 1
    channels = node.static_shape(0, [1])[0]
    if node.has(3):
        whole = node.emit(op.concat([node.tensor(3), x], 2))
    else:
        whole = node.emit(op.nn.pad(x, [0, 0, 0, 0, reach, 0]))
    result = node.emit(op.nn.conv1d(whole, weight, groups=channels))
    if node.has(2):
        result = node.emit(result + op.expand_dims(node.tensor(2), 1))
    activation = node.attrs.get("activation", "none")
    if activation in ("silu", "swish"):
        result = op.nn.silu(result)
    elif activation != "none":
        raise node.unsupported(f'activation="{activation}"')
    length = _length(node, whole, 2)
    state = op.strided_slice(whole, [2], [length - reach], [length])
    return [result, state]


@converter("LinearAttention")
def _linear_attention(node: Node) -> list[Expr]:
    """A matrix per head that each key and value change, and each query reads; the steps are written
    out."""
    dtype = node.dtype(0)
    heads, count = node.attrs["q_num_heads"], node.attrs["kv_num_heads"]
    batch, length, _ = node.static_shape(0)
    rule = node.attrs.get("update_rule", "gated_delta")
    wide = "float32"

    def per_head(index: int, number: int) -> list[Expr]:
        """For each step (batch, number, size)."""
        width = node.static_shape(index)[2] // number
        x = op.astype(node.tensor(index), wide) if dtype != wide else node.tensor(index)
        split = node.emit(op.reshape(x, [batch, length, number, width]))
        return [
            node.emit(op.squeeze(op.strided_slice(split, [1], [t], [t + 1]), [1]))
            for t in range(length)
        ]

    queries, keys, values = per_head(0, heads), per_head(1, count), per_head(2, count)
    key_size, value_size = (node.static_shape(i)[2] // count for i in (1, 2))
    scale = node.attrs.get("scale", 0.0) or 1 / math.sqrt(key_size)
    if node.has(3):
        state = node.emit(op.astype(node.tensor(3), wide) if dtype != wide else node.tensor(3))
    else:
        state = node.emit(op.zeros([batch, count, key_size, value_size], wide))
    decays = per_head(4, count) if "gated" in rule else None
    rates = None
    if "delta" in rule:
        rates = per_head(5, count if node.static_shape(5)[2] > 1 else 1)
    outputs = []
    for t in range(length):
        column = node.emit(op.expand_dims(keys[t], 3))
        if decays is not None:
            state = node.emit(state * op.expand_dims(op.exp(decays[t]), 3))
        value = node.emit(op.expand_dims(values[t], 2))
        if rates is not None:
            row = op.expand_dims(keys[t], 2)
            there = node.emit(op.matmul(row, state))
            rate = op.expand_dims(rates[t], 3)
            value = node.emit(rate * (value - there))
        state = node.emit(state + column * value)
        shared = _repeated(node, state, heads // count)
        read = op.matmul(op.expand_dims(queries[t], 2), shared)
        read = read * node.const(scale, wide)
        outputs.append(node.emit(op.reshape(read, [batch, heads * value_size])))
    result = op.stack(outputs, 1)
    if dtype != wide:
        result, state = op.astype(node.emit(result), dtype), op.astype(state, dtype)
    return [result, state]
