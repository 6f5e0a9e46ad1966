"""Losses and sampled images, against NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb import relax
from mlcweb.relax import op
from mlcweb.relax.errors import ShapeError
from tests.relax.op.conftest import check_operator


@given(
    st.lists(st.integers(1, 4), max_size=2), st.sampled_from(["none", "sum", "mean"]),
    st.booleans(), st.integers(0, 9),
)  # fmt: skip
def test_nll_loss(rest, reduction, weighted, seed):
    random = np.random.default_rng(seed)
    n, classes = 3, 4
    x = random.standard_normal((n, classes, *rest)).astype("float32")
    targets = random.integers(0, classes, (n, *rest))
    weights = random.random(classes).astype("float32") + 1 if weighted else None
    factor = np.ones(classes, "float32") if weights is None else weights
    counts = np.where(targets == 2, 0, factor[targets])
    picked = np.take_along_axis(x, targets[:, None], 1)[:, 0]
    losses = (-picked * counts).astype("float32")
    if reduction == "mean" and counts.sum() == 0:
        return
    expected = {
        "none": losses, "sum": losses.sum(), "mean": losses.sum() / counts.sum(),
    }[reduction]  # fmt: skip
    given_weights = [] if weights is None else [weights]
    check_operator(
        lambda p, t, *w: op.nn.nll_loss(p, t, *w, reduction=reduction, ignore_index=2),
        [x, targets, *given_weights], np.asarray(expected, "float32"), rtol=1e-4,
    )  # fmt: skip


def test_one_target(random):
    x, target = random(5), np.array(3, "int64")
    check_operator(lambda p, t: op.nn.nll_loss(p, t), [x, target], np.asarray(-x[3]))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_cross_entropy_with_logits(shape, random):
    x, y = random(*shape), random(*shape)
    expected = -(x * y).sum() / (shape[0] if len(shape) > 1 else 1)
    check_operator(
        op.nn.cross_entropy_with_logits, [x, y], np.asarray(expected, "float32"), rtol=1e-4
    )


def sampled(x, grid, align_corners):
    """Bilinear sampling with zeros outside, straight from its definition."""
    n, c, *image = x.shape
    out = np.zeros((n, c, *grid.shape[2:]), x.dtype)
    for b in range(n):
        for place in np.ndindex(*grid.shape[2:]):
            at = grid[(b, slice(None), *place)][::-1]
            pixel = [
                (p + 1) / 2 * (extent - 1) if align_corners else ((p + 1) * extent - 1) / 2
                for p, extent in zip(at, image, strict=True)
            ]
            for corner in itertools.product((0, 1), repeat=len(image)):
                where = [int(np.floor(p)) + k for p, k in zip(pixel, corner, strict=True)]
                if all(0 <= i < extent for i, extent in zip(where, image, strict=True)):
                    weight = np.prod([1 - abs(p - i) for p, i in zip(pixel, where, strict=True)])
                    out[(b, slice(None), *place)] += weight * x[(b, slice(None), *where)]
    return out


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("image", [(4, 5), (3, 4, 2)])
def test_grid_sample(align_corners, image, random):
    x = random(2, 3, *image)
    grid = (random(2, len(image), *([3] * len(image))) * 0.8).astype("float32")
    layout = "NCHW" if len(image) == 2 else "NCDHW"
    check_operator(
        lambda v, g: op.image.grid_sample(
            v, g, "bilinear", layout, "zeros", align_corners
        ),
        [x, grid], sampled(x, grid, align_corners), rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("image", [(4, 5), (3, 1, 2)])
def test_affine_grid(align_corners, image, random):
    rank = len(image)
    matrices = random(2, rank, rank + 1)
    axes = [
        np.linspace(-1, 1, extent) if align_corners else (2 * np.arange(extent) + 1) / extent - 1
        for extent in image
    ]
    # The last axis of the image is the first coordinate.
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(image)])
    wanted = np.einsum("nca,a...->nc...", matrices, places.astype("float32"))
    check_operator(
        lambda m: op.image.affine_grid(m, image, align_corners), [matrices], wanted, rtol=1e-5
    )


def test_matrices_of_another_rank_are_refused(random):
    matrices = relax.Var("m", relax.TensorStructInfo((1, 3, 4), "float32"))
    with pytest.raises(ShapeError, match=r"matrices of \(2, 3\)"):
        relax.BlockBuilder().normalize(op.image.affine_grid(matrices, (4, 5)))


@pytest.mark.parametrize("padding", ["border", "reflection"])
def test_whole_positions_outside_of_an_image(padding, random):
    x = random(1, 1, 1, 4)
    places = np.arange(-3, 7, dtype="float32")  # in elements
    grid = np.stack([places / 3 * 2 - 1, np.zeros_like(places)])[None, :, None]
    if padding == "border":
        chosen = np.clip(places, 0, 3)
    else:
        chosen = np.abs((places + 3) % 6 - 3)
    check_operator(
        lambda v, g: op.image.grid_sample(v, g, "nearest", "NCHW", padding, True),
        [x, grid], x[..., chosen.astype(int)],
    )  # fmt: skip
