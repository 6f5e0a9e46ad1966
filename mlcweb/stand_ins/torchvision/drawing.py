"""Garments drawn by a program: outlines of the ten classes of FashionMNIST, no two the same.

The outlines are polygons in a square of 28 x 28, y downwards. Most are symmetric and given by their
right half; sleeves, legs and the handle of a bag come from the outline itself.
"""

from __future__ import annotations

import numpy as np

Points = list[tuple[float, float]]

SIZE = 28
FINE = 2
"""Samples of an element in each direction, so that edges are soft."""


def _mirrored(*right: tuple[float, float]) -> Points:
    return [*right, *((SIZE - x, y) for x, y in reversed(right))]


def _top(sleeve: float, hem: float, flare: float = 0) -> Points:
    """A garment with shoulders, sleeves that end at the height `sleeve`, and a hem."""
    return _mirrored(
        (16.5, 4), (19.5, 4.5), (21.5, 6), (22.5 + (sleeve - 9) / 6, sleeve),
        (20.5 + (sleeve - 9) / 6, sleeve + 0.5), (18.7, 10.5), (18.7 + flare, hem),
    )  # fmt: skip


OUTLINES: list[list[Points]] = [
    [_top(10.5, 24)],
    [_mirrored((18.5, 2), (19.5, 26), (15.5, 26), (14.2, 9))],
    [_top(23.5, 24.5)],
    [_mirrored((15.5, 2), (17, 2), (17.2, 6), (16.2, 11), (19.5, 26))],
    [_top(24, 27, 2.4)],
    [
        [(2, 20), (9, 17.5), (10, 18.6), (17, 19.5), (24, 13.5), (26, 14), (26, 22), (24.8, 22),
         (24.2, 17), (18, 21.8), (2, 21.8)],
        [(7, 18.5), (13, 12.5), (14.6, 13), (9, 19)],
        [(19, 18.5), (20, 10), (21.6, 10), (22, 16)],
    ],
    [_top(20, 25.5)],
    [[(1.5, 20), (2, 17.5), (8, 16), (14, 12), (16.5, 11.5), (18, 13.5), (24.5, 12), (26, 14),
      (26.5, 20.5), (2, 21)]],
    [[(3, 12), (25, 12), (26, 24), (2, 24)],
     [(8, 12), (10, 5.5), (18, 5.5), (20, 12), (18.6, 12), (17, 7), (11, 7), (9.4, 12)]],
    [[(2, 23), (2.5, 19.5), (9, 17.5), (13, 13), (14, 3.5), (23.5, 3.5), (23.5, 14), (25, 22),
      (25, 24.5), (20, 24.5), (19, 23.2), (12, 24.5), (2.5, 24.5)]],
]  # fmt: skip
"""By class; the polygons of one are drawn over each other."""

_FRONTS: dict[int, tuple[float, float]] = {4: (13, 15), 6: (13.7, 14.3)}
"""Where the front of a class is open or buttoned: from x to x, dark."""


def draw(kind: int, rng: np.random.Generator) -> np.ndarray:
    """A picture (28, 28) of bytes of class `kind`, in a size, place and shade of its own."""
    steps = (np.arange(SIZE * FINE) + 0.5) / FINE
    (wide, high), (right, down) = rng.uniform(0.9, 1.06, 2), rng.uniform(-0.8, 0.8, 2)
    x = (steps[None, :] - 14 - right) / wide + 14
    y = (steps[:, None] - 14 - down) / high + 14
    inside = np.zeros((SIZE * FINE, SIZE * FINE), bool)
    for polygon in OUTLINES[kind]:
        inside |= _inside(polygon, x, y)
    shade = rng.uniform(150, 235)
    folds = 18 * np.sin(x * rng.uniform(0.5, 1.1) + y * rng.uniform(0, 0.25) + rng.uniform(0, 6))
    light = inside * (shade + folds)
    if kind in _FRONTS:
        left_edge, right_edge = _FRONTS[kind]
        light *= 1 - 0.75 * ((x > left_edge) & (x < right_edge))
    coarse = light.reshape(SIZE, FINE, SIZE, FINE).mean(axis=(1, 3))
    return np.clip(coarse + (coarse > 0) * rng.normal(0, 6, coarse.shape), 0, 255).astype(np.uint8)


def _inside(polygon: Points, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which points are inside of a polygon: those right of an odd number of its edges."""
    inside = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    for (ax, ay), (bx, by) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if ay != by:
            inside ^= ((y < ay) != (y < by)) & (x > ax + (y - ay) / (by - ay) * (bx - ax))
    return inside
