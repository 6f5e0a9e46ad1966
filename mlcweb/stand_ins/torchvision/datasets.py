"""FashionMNIST, drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mlcweb.stand_ins.torch.tensors import Tensor, refusing, wrap
from mlcweb.stand_ins.torch.utils.data import Dataset
from mlcweb.stand_ins.torchvision.drawing import draw

__all__ = ["FashionMNIST"]


__getattr__ = refusing("torchvision.datasets")


class FashionMNIST(Dataset):
    """Pictures of garments of 28 x 28 bytes, always the same ones; not the data set's own.

    A picture without a transform is an array, since there is no PIL here.
    """

    classes = (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
        "Ankle boot",
    )  # fmt: skip

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        self.train, self.transform, self.target_transform = train, transform, target_transform

    def __len__(self) -> int:
        return 6000 if self.train else 1000

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        picture, label = _picture(index, self.train), index % 10
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.target_transform(label) if self.target_transform else label

    @property
    def data(self) -> Tensor:
        return wrap(np.stack([_picture(index, self.train) for index in range(len(self))]))

    @property
    def targets(self) -> Tensor:
        return wrap(np.arange(len(self)) % 10)


@cache
def _picture(index: int, train: bool) -> np.ndarray:
    return draw(index % 10, np.random.default_rng([index, train]))
