"""Batches of a data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlcweb.stand_ins.torch.functions import arange, randperm, stack, tensor
from mlcweb.stand_ins.torch.tensors import Tensor, refusing

__all__ = ["DataLoader", "Dataset"]


__getattr__ = refusing("torch.utils.data")


class Dataset:
    """Something with a length whose elements are had by their numbers."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __len__(self) -> int:
        raise NotImplementedError("Subclasses of Dataset should implement __len__.")


class DataLoader:
    """Goes through a data set in batches, in its order or shuffled."""

    def __init__(
        self, dataset: Any, batch_size: int = 1, shuffle: bool = False, drop_last: bool = False,
        num_workers: int = 0,
    ) -> None:  # fmt: skip
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last = drop_last

    def __len__(self) -> int:
        extra = 0 if self.drop_last else self.batch_size - 1
        return (len(self.dataset) + extra) // self.batch_size

    def __iter__(self) -> Iterator[Any]:
        order = (randperm if self.shuffle else arange)(len(self.dataset)).tolist()
        for batch in range(len(self)):
            places = order[batch * self.batch_size : (batch + 1) * self.batch_size]
            yield _batch([self.dataset[place] for place in places])


def _batch(samples: list[Any]) -> Any:
    """Samples as one: tensors stacked, numbers as a tensor, parts of tuples each by itself."""
    if isinstance(samples[0], (list, tuple)):
        return [_batch(list(part)) for part in zip(*samples, strict=True)]
    return stack(samples) if isinstance(samples[0], Tensor) else tensor(samples)
