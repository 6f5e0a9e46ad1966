"""The error of models that cannot be imported."""

from __future__ import annotations

from mlcweb.ir.errors import TVMError


class TorchError(TVMError, NotImplementedError):
    """A model that cannot be imported, or not yet."""
