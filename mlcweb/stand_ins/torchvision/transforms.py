"""Transforms of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlcweb.stand_ins.torch.tensors import Tensor, refusing, wrap

__all__ = ["Compose", "ToTensor"]


__getattr__ = refusing("torchvision.transforms")


class ToTensor:
    """A picture of bytes (h, w) as a tensor (1, h, w) of numbers from 0 to 1."""

    def __call__(self, picture: Any) -> Tensor:
        return wrap(np.asarray(picture, np.uint8)[None].astype(np.float32) / np.float32(255))


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self.transforms:
            picture = transform(picture)
        return picture
