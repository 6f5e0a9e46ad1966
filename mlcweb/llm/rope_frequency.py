"""How fast RoPE turns each pair of features, and what models do to that where they are asked for
longer texts than they were trained on (`rope_scaling`).

Each function gives the cosine and the sine of an angle, in terms of variables, and what these
variables are. `s` is the position, `d` the feature, `d_range` how many features are turned.
"""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from mlcweb.script import tir as T
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr, Var

Frequency: TypeAlias = "tuple[PrimExpr, PrimExpr, dict[Var, PrimExpr]]"


def _angle(angle: PrimExpr, dtype: str, scale: float | None = None, **more: Any) -> Frequency:
    var = Var("freq", "float32")
    cos, sin = T.cos(var), T.sin(var)
    if scale is not None:
        cos, sin = cos * T.float32(scale), sin * T.float32(scale)
    return T.Cast(dtype, cos), T.Cast(dtype, sin), {var: angle, **more.get("before", {})}


def _power(theta: Any, exponent: Any, d_range: int) -> PrimExpr:
    base = theta if isinstance(theta, PrimExpr) else T.float32(theta)
    return T.power(base, T.Cast("float32", exponent) / T.float32(d_range))


def _float(value: Any) -> PrimExpr:
    return T.Cast("float32", value)


def rope_freq_default(s: Any, d: Any, d_range: int, theta: Any, dtype: str) -> Frequency:
    """theta ** (-2i / d_range) of the pair i, which lies half of the features apart."""
    return _angle(_float(s) / _power(theta, d * 2 % d_range, d_range), dtype)


def rope_freq_gptj(s: Any, d: Any, d_range: int, theta: Any, dtype: str) -> Frequency:
    """The same of pairs that lie side by side."""
    return _angle(_float(s) / _power(theta, 2 * (d // 2) % d_range, d_range), dtype)


def _smoothed(
    s: Any, exponent: Any, d_range: int, theta: Any, dtype: str, factor: float,
    low_freq_factor: float, high_freq_factor: float, original_max_position_embeddings: float,
) -> Frequency:  # fmt: skip
    """Frequencies whose wavelength is long are divided by a factor, short ones stay, and those
    between are interpolated; without a range between, a threshold decides."""
    original = Var("orig_freq", "float32")
    rotations = original_max_position_embeddings / (2 * math.pi) * original
    if high_freq_factor == low_freq_factor:
        is_long = rotations < T.float32(low_freq_factor)
        frequency = T.if_then_else(is_long, original / T.float32(factor), original)
    else:
        share = (rotations - low_freq_factor) / (high_freq_factor - low_freq_factor)
        smooth = T.max(T.float32(0), T.min(T.float32(1), share))
        frequency = (1 - smooth) * original * T.float32(1 / factor) + smooth * original
    before = {original: T.float32(1) / _power(theta, exponent, d_range)}
    return _angle(_float(s) * frequency, dtype, before=before)


def rope_freq_llama3(
    s: Any, d: Any, d_range: int, theta: Any, dtype: str, factor: float, low_freq_factor: float,
    high_freq_factor: float, original_max_position_embeddings: float,
) -> Frequency:  # fmt: skip
    """Llama 3's scaling."""
    return _smoothed(
        s, d * 2 % d_range, d_range, theta, dtype, factor, low_freq_factor, high_freq_factor,
        original_max_position_embeddings,
    )  # fmt: skip


def rope_freq_llama4(
    s: Any, d: Any, d_range: int, theta: Any, dtype: str, factor: float, low_freq_factor: float,
    high_freq_factor: float, original_max_position_embeddings: float,
) -> Frequency:  # fmt: skip
    """Llama 4's: the same of pairs that lie side by side."""
    return _smoothed(
        s, 2 * (d // 2), d_range, theta, dtype, factor, low_freq_factor, high_freq_factor,
        original_max_position_embeddings,
    )  # fmt: skip


def rope_freq_longrope(
    s: Any, d: Any, d_range: int, theta: Any, dtype: str, max_position_embeddings: int,
    original_max_position_embeddings: int, ext_factors: Buffer | Callable[[Any], Any] | None = None,
) -> Frequency:  # fmt: skip
    """LongRoPE: each frequency is divided by a factor of its own, and the result is scaled."""
    ratio = max_position_embeddings / original_max_position_embeddings
    scale = (
        math.sqrt(1 + math.log(ratio) / math.log(original_max_position_embeddings))
        if ratio > 1
        else 1.0
    )
    divisor = _power(theta, d * 2 % d_range, d_range)
    if ext_factors is not None:
        pair = d % (d_range // 2)
        factor = ext_factors(pair) if callable(ext_factors) else ext_factors[pair]
        divisor = factor * divisor
    return _angle(_float(s) / divisor, dtype, scale)


def yarn_find_correction_dim(
    num_rotations: float, d: Any, max_position_embeddings: int, inv_theta_log_scale: Any = None
) -> Any:
    """The feature that turns so many times within the positions of the training."""
    turns = math.log(max_position_embeddings / (num_rotations * 2 * math.pi))
    return d * turns * inv_theta_log_scale


def yarn_find_correction_range(
    low_rot: float, high_rot: float, d: Any, max_position_embeddings: int,
    inv_theta_log_scale: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The first and the last feature of those that are interpolated in part."""
    low, high = (
        yarn_find_correction_dim(rotations, d, max_position_embeddings, inv_theta_log_scale)
        for rotations in (low_rot, high_rot)
    )
    if isinstance(low, PrimExpr):
        return T.max(low, T.float32(0)), T.min(high, T.float32(d - 1))
    return max(low, 0), min(high, d - 1)


def rope_freq_yarn(
    s: Any, d: Any, d_range: int, theta: Any, dtype: str, original_max_position_embeddings: int,
    scaling_factor: float, beta_fast: float, beta_slow: float, inv_theta_log_scale: Any = None,
) -> Frequency:  # fmt: skip
    """YaRN: slow features are interpolated, fast ones stay, in a range both are mixed."""
    power = _power(theta, d * 2 % d_range, d_range)
    low, high = yarn_find_correction_range(
        beta_fast, beta_slow, d_range, original_max_position_embeddings, inv_theta_log_scale
    )
    if isinstance(low, PrimExpr):
        high = T.if_then_else(low == high, high + T.float32(0.001), high)
    else:
        low, high = T.float32(low), T.float32(high + 0.001 if low == high else high)
    ramp = T.max(T.min((_float(d) - low) / (high - low), T.float32(1)), T.float32(0))
    stays = 1 - ramp
    frequency = (1 - stays) / (T.float32(scaling_factor) * power) + stays / power
    return _angle(_float(s) * frequency, dtype)


def switch_rope_freq_func(rope_scaling: Mapping[str, Any]) -> Callable[..., Frequency]:
    """The function of a scaling, as models say it: `{"rope_type": "llama3", "factor": 8.0, …}`.

    Raises: ValueError: there is no such type.
    """

    def options(function: Callable[..., Frequency], *names: str, **renamed: str) -> Any:
        missing = [n for n in (*names, *renamed.values()) if n not in rope_scaling]
        if missing:
            raise ValueError(f'rope_scaling of type "{kind}" lacks {", ".join(missing)}')
        values = {name: rope_scaling[name] for name in names}
        return partial(function, **values, **{n: rope_scaling[m] for n, m in renamed.items()})

    kind = rope_scaling.get("rope_type")
    original = "original_max_position_embeddings"
    if kind is None:
        return rope_freq_default
    if kind == "gptj":
        return rope_freq_gptj
    if kind in ("llama3", "llama4"):
        function = rope_freq_llama3 if kind == "llama3" else rope_freq_llama4
        return options(function, "factor", "low_freq_factor", "high_freq_factor", original)
    if kind == "longrope":
        return options(rope_freq_longrope, "max_position_embeddings", original)
    if kind == "yarn":
        return options(
            rope_freq_yarn, original, "beta_fast", "beta_slow", "inv_theta_log_scale",
            scaling_factor="factor",
        )  # fmt: skip
    raise ValueError(f"Unsupported RoPE scaling type: {kind}")


def side_by_side(rope_scaling: Mapping[str, Any]) -> bool:
    """Whether the two features of a pair are neighbours."""
    return rope_scaling.get("rope_type") == "gptj"


def rotated(
    element: Callable[[Any], PrimExpr],
    position: Any,
    d: Any,
    rotary_dim: int,
    theta: Any,
    rope_scaling: Mapping[str, Any],
    dtype: str,
    *,
    neighbours: bool | None = None,
    **factors: Any,
) -> PrimExpr:
    """A feature of a token at a position, turned, in a type. `element(d)` is a feature before."""
    frequency = switch_rope_freq_func(rope_scaling)
    cos, sin, variables = frequency(position, d, rotary_dim, theta, dtype, **factors)
    half = rotary_dim // 2
    if side_by_side(rope_scaling) if neighbours is None else neighbours:
        partner = T.if_then_else(d % 2 == 0, -element(d + 1), element(d - 1))
    else:
        partner = T.if_then_else(d < half, -element(d + half), element(d - half))
    value = cos * T.Cast(dtype, element(d)) + sin * T.Cast(dtype, partner)
    for var, meaning in variables.items():
        value = T.Let(value, where={var: meaning})
    return value
