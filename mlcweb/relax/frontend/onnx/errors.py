"""What the ONNX importer says when it cannot import a model."""

from __future__ import annotations

from collections.abc import Callable

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


class importing:
    """With this around, whatever goes wrong is an `OnnxError` that begins with what was imported.

    A class, since a generator could not pass on a StopIteration.
    """

    def __init__(self, what: Callable[[], str]) -> None:
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, OnnxError) or not isinstance(error, Exception):
            return
        reason = str(error)
        if not isinstance(error, TVMError):
            reason = f"it is malformed ({type(error).__name__}: {error})"
        raise OnnxError(f"{self.what()}: {reason}") from error
