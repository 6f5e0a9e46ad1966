"""Patterns that many external compilers take, each with its named parts, as `FusionPattern` wants
them: `FusionPattern("mine.matmul", *make_matmul_pattern(with_bias=True))`."""

from __future__ import annotations

from collections.abc import Mapping

from mlcweb.relax.dpl.pattern import (
    DFPattern,
    GlobalVarPattern,
    TuplePattern,
    is_const,
    is_op,
    is_tuple_get_item,
    wildcard,
)  # fmt: skip

Annotated = tuple[DFPattern, dict[str, DFPattern]]
"""A pattern, and its parts by name."""


def _followed(
    root: DFPattern,
    parts: dict[str, DFPattern],
    with_bias: bool,
    activation: str | None,
    allow_reshape: bool = False,
) -> Annotated:
    """What may come after an operator: the sum with a bias, then an activation."""
    out = root
    if with_bias:
        bias = parts["bias"] = wildcard()
        if allow_reshape:
            out = is_op("relax.add")(out, is_op("relax.reshape")(bias, wildcard()))
        else:
            out = is_op("relax.add")(out, bias)
    if activation is not None:
        out = is_op(activation)(out)
    return out, parts


def make_fused_bias_activation_pattern(
    op_name: str,
    with_bias: bool = False,
    activation: str | None = None,
    allow_reshape: bool = False,
) -> Annotated:
    """An operator of two arguments, "lhs" and "rhs", then perhaps a "bias" and an activation.

    `op_name` and `activation` are names as "relax.nn.conv2d". `allow_reshape`: the bias is
    reshaped before it is added.
    """
    lhs, rhs = wildcard(), wildcard()
    root = is_op(op_name)(lhs, rhs)
    parts: dict[str, DFPattern] = {"lhs": lhs, "rhs": rhs, "root": root}
    return _followed(root, parts, with_bias, activation, allow_reshape)


def make_conv2d_pattern(with_bias: bool = False, activation: str | None = None) -> Annotated:
    """A convolution of "input" by "weight", then perhaps a "bias" and an activation."""
    data, weight = wildcard(), wildcard()
    root = is_op("relax.nn.conv2d")(data, weight)
    return _followed(root, {"input": data, "weight": weight, "root": root}, with_bias, activation)


def _product(transposed_rhs: bool) -> Annotated:
    lhs, rhs = wildcard(), wildcard()
    right = is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs
    root = is_op("relax.matmul")(lhs, right)
    return root, {"lhs": lhs, "rhs": rhs, "root": root}


def make_matmul_pattern(
    with_bias: bool = False, activation: str | None = None, transposed_rhs: bool = False
) -> Annotated:
    """A product of "lhs" and "rhs", or of the transposed "rhs", then perhaps a "bias" and an
    activation."""
    return _followed(*_product(transposed_rhs), with_bias, activation)


def make_matmul_dequantize_pattern(transposed_rhs: bool = False) -> Annotated:
    """A product whose result is dequantized by the constants "scale" and "zp"."""
    root, parts = _product(transposed_rhs)
    parts |= {"scale": is_const(), "zp": is_const()}
    return is_op("relax.dequantize")(root, parts["scale"], parts["zp"]), parts


def make_matmul_multiply_pattern(transposed_rhs: bool = False) -> Annotated:
    """A product that is multiplied by two scales of one element, "scaleA" and "scaleB", and
    cast."""
    root, parts = _product(transposed_rhs)
    scales = wildcard(), wildcard()
    parts |= dict(zip(("scaleA", "scaleB"), scales, strict=True))
    scale = is_op("relax.multiply")(*(each.has_shape((1,)) for each in scales))
    return is_op("relax.astype")(is_op("relax.multiply")(root, scale)), parts


def make_residual_block_pattern(
    node_output: DFPattern | tuple[DFPattern, Mapping[str, DFPattern]],
    binary_op: str = "relax.add",
    activation: str | None = None,
) -> Annotated:
    """A pattern whose result is combined with a "residual" by `binary_op`, on either side, then
    perhaps an activation."""
    output, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual, combined = wildcard(), is_op(binary_op)
    both = combined(output, residual) | combined(residual, output)
    out = both if activation is None else is_op(activation)(both)
    return out, {**parts, "residual": residual}


def _attention(query: DFPattern, key: DFPattern, value: DFPattern, with_bias: bool) -> Annotated:
    if not with_bias:
        return is_op("relax.nn.attention")(query, key, value), {}
    bias = wildcard()
    return is_op("relax.nn.attention_bias")(query, key, value, bias), {"bias": bias}


def make_attention_pattern(with_bias: bool = False, var_len: bool = False) -> Annotated:
    """Attention of "query", "key" and "value"; with a "bias", or of sequences of several lengths
    (`var_len`), which begin at "seqstart_q" and "seqstart_k"."""
    parts: dict[str, DFPattern] = {name: wildcard() for name in ("query", "key", "value")}
    if var_len and not with_bias:
        names = ("seqstart_q", "seqstart_k", "max_seqlen_q", "max_seqlen_k")
        parts |= {name: wildcard() for name in names}
        return is_op("relax.nn.attention_var_len")(*parts.values()), parts
    out, bias = _attention(parts["query"], parts["key"], parts["value"], with_bias)
    return out, parts | bias


def make_stacked_attention_pattern(
    start_op: str, with_bias: bool = False, layout: str = "BS3NH"
) -> Annotated:
    """Attention whose query, key and value are parts of one tensor, "stacked_qkv".

    Args:
        start_op: how it is taken apart: "split" or "strided_slice".
        layout: of the tensor: "BS3NH", where the parts are reshaped, or "SBN3H", where the axes of
            the parts and of the result are permuted.

    Raises: NotImplementedError: another `start_op` or `layout`.
    """
    names = ("query", "key", "value")
    stacked = wildcard()
    parts: dict[str, DFPattern] = {"stacked_qkv": stacked}
    if start_op == "split":
        whole = parts["split"] = is_op("relax.split")(stacked)
        taken: list[DFPattern] = [is_tuple_get_item(whole, n) for n in range(3)]
    elif start_op == "strided_slice":
        taken = [_sliced(stacked) for _ in names]
        parts |= {f"strided_slice_{n}": each for n, each in zip(names, taken, strict=True)}
    else:
        raise NotImplementedError(f'start_op is "split" or "strided_slice", not {start_op!r}')
    shapes = {f"{name}_reshape_list": wildcard() for name in names}
    parts |= shapes
    if layout == "BS3NH":
        pairs = zip(taken, shapes.values(), strict=True)
        inputs: list[DFPattern] = [is_op("relax.reshape")(each, shape) for each, shape in pairs]
    elif layout == "SBN3H":
        inputs = [is_op("relax.permute_dims")(each) for each in taken]
        parts |= {f"{n[0]}_transpose": each for n, each in zip(names, inputs, strict=True)}
    else:
        raise NotImplementedError(f'layout is "BS3NH" or "SBN3H", not {layout!r}')
    out, bias = _attention(inputs[0], inputs[1], inputs[2], with_bias)
    parts |= {**bias, "attention": out}
    return (is_op("relax.permute_dims")(out) if layout == "SBN3H" else out), parts


def _sliced(stacked: DFPattern) -> DFPattern:
    return is_op("relax.strided_slice")(stacked, varg_default_wildcard=True)


def make_layer_norm_pattern() -> Annotated:
    """A layer norm, without named parts."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_rms_norm_pattern() -> Annotated:
    """A call of a function of TensorIR, "gv", of "inp" and a weight: "rms_norm"."""
    gv, inp = GlobalVarPattern(), wildcard()
    out = is_op("relax.call_tir")(gv, TuplePattern((inp, wildcard())))
    return out, {"gv": gv, "inp": inp, "rms_norm": out}
