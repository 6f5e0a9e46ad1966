"""Gradients of convolutions and pooling against differences of the functions themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.relax import Call, Var, op
from tests.relax.transform.running import run
from tests.relax.transform.test_gradient import check_gradients, module

DRAW = np.random.default_rng(3)


def draw(*shape: int) -> np.ndarray:
    """Numbers of which no two are nearly equal, so that small steps change no maximum."""
    count = int(np.prod(shape))
    return (DRAW.permutation(count).reshape(shape) / count * 4 - 2).astype("float32")


IMAGE = draw(2, 4, 5, 6)
nn = op.nn

CASES: dict[str, tuple[Callable[..., Call], tuple[np.ndarray, ...]]] = {
    "conv": (nn.conv2d, (draw(2, 3, 4, 4), draw(2, 3, 3, 2))),
    "conv_strides": (
        lambda x, w: nn.conv2d(x, w, strides=[2, 3], padding=[1, 0, 0, 2]),
        (draw(1, 2, 5, 6), draw(2, 2, 3, 2)),
    ),
    "conv_dilation": (
        lambda x, w: nn.conv2d(x, w, strides=[2, 1], padding=1, dilation=[1, 2]),
        (draw(1, 2, 5, 6), draw(2, 2, 3, 2)),
    ),
    "conv_groups": (lambda x, w: nn.conv2d(x, w, groups=2), (IMAGE, draw(6, 2, 2, 2))),
    "conv_channels_last": (
        lambda x, w: nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
        (draw(2, 4, 4, 3), draw(3, 2, 3, 2)),
    ),
    "conv_result_first": (
        lambda x, w: nn.conv2d(x, w, data_layout="NHWC", out_layout="NCHW"),
        (draw(2, 4, 4, 3), draw(2, 3, 3, 2)),
    ),
    "max": (lambda x: nn.max_pool2d(x, 2, 2), (IMAGE,)),
    "max_overlapping": (lambda x: nn.max_pool2d(x, 3, [1, 2], [1, 0, 0, 1]), (IMAGE,)),
    "max_ceil": (lambda x: nn.max_pool2d(x, 2, [2, 3], ceil_mode=True), (IMAGE,)),
    "max_dilation": (lambda x: nn.max_pool2d(x, 2, 1, 0, [2, 3]), (IMAGE,)),
    "max_channels_last": (
        lambda x: nn.max_pool2d(x, 2, layout="NHWC", out_layout="NCHW"),
        (draw(2, 4, 4, 3),),
    ),
    "avg": (lambda x: nn.avg_pool2d(x, 2, 2), (IMAGE,)),
    "avg_padding": (lambda x: nn.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "avg_padding_counted": (
        lambda x: nn.avg_pool2d(x, 3, 2, 1, count_include_pad=True, ceil_mode=True),
        (IMAGE,),
    ),
    "avg_dilation": (lambda x: nn.avg_pool2d(x, 2, 1, 1, 2), (IMAGE,)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name: str) -> None:
    build, arrays = CASES[name]
    check_gradients(build, *arrays)


def test_of_equal_elements_the_first_has_the_gradient() -> None:
    def pool(x: Var) -> Call:
        return nn.max_pool2d(x, 2)

    ones = np.ones((1, 1, 2, 2), "float32")
    adjoint = relax.transform.Gradient("main")(module(pool, ones))
    _, gradient = run(adjoint, [ones], "main_adjoint")
    assert gradient.reshape(-1).tolist() == [0.5, 0, 0, 0]
