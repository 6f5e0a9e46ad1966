"""What the ONNX importer says when it cannot import a model."""

from __future__ import annotations

from mlcweb.ir.errors import TVMError


class OnnxError(TVMError, ValueError):
    """A model that is not ONNX, or that cannot be imported."""


class OpNotImplemented(OnnxError, NotImplementedError):
    """An operator, or a form of one, that the importer does not know."""


class ConstantNeeded(OnnxError):
    """An input whose value must be known when the model is imported, and is not.

    `input_name` is the name of the value in the ONNX graph.
    """

    def __init__(self, message: str, input_name: str) -> None:
        super().__init__(message)
        self.input_name = input_name
