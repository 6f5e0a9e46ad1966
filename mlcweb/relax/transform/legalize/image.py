"""Lowering of operators on images."""

from __future__ import annotations

from typing import Any

from mlcweb import topi
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.transform.legalize.common import attribute, by, enter

_ATTRIBUTES = {
    "layout": "layout",
    "method": "method",
    "coordinate_transformation_mode": "coordinate_transformation_mode",
    "rounding_method": "rounding_method",
    "cubic_alpha": "bicubic_alpha",
    "cubic_exclude": "bicubic_exclude",
    "extrapolation_value": "extrapolation_value",
    "out_dtype": "out_dtype",
}
"""Attributes of the operator, and what TOPI calls them."""


def _resize2d(builder: BlockBuilder, call: E.Call) -> Any:
    data, size = call.args
    options = {theirs: attribute(call, ours) for ours, theirs in _ATTRIBUTES.items()}
    roi = [extent.value for extent in attribute(call, "roi")]
    return builder.call_te(topi.image.resize2d, data, roi, size, **options)


enter({
    "image.resize2d": _resize2d,
    "image.grid_sample": by(
        topi.image.grid_sample, "method", "layout", "padding_mode", "align_corners"
    ),
})  # fmt: skip
