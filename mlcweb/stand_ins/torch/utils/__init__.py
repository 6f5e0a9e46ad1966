"""Loading data."""

from mlcweb.stand_ins.torch.utils import data

__all__ = ["data"]
