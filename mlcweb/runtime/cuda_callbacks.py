"""Functions of a program's own that change CUDA source, or compile it: those that it registers as
`tvm_callback_cuda_postproc` and `tvm_callback_cuda_compile`, as in TVM."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from mlcweb.runtime.registry import get_global_func
from mlcweb.runtime.target import Target

POSTPROC = "tvm_callback_cuda_postproc"
COMPILE = "tvm_callback_cuda_compile"


def postprocessed(source: str, target: Target) -> str:
    """CUDA source as the program wants it.

    Raises:
        TypeError: its function gives no text.
    """
    function = get_global_func(POSTPROC, allow_missing=True)
    if function is None:
        return source
    changed = _called(function, source, target)
    if not isinstance(changed, str):
        raise TypeError(
            f'"{POSTPROC}" gave {type(changed).__name__}; it takes the source of the kernels (and '
            "the target), and returns the source to use as a str"
        )
    return changed


def compiled(source: str, target: Target) -> bytes | None:
    """PTX or machine code that the program's own compiler makes; None where it has none.

    Raises:
        TypeError: the compiler gives neither bytes nor text.
    """
    function = get_global_func(COMPILE, allow_missing=True)
    if function is None:
        return None
    code = _called(function, source, target)
    if isinstance(code, str):
        return code.encode() + b"\0"
    if isinstance(code, bytes | bytearray):
        # PTX is text, which the driver reads up to a zero.
        return bytes(code) + b"\0"
    raise TypeError(
        f'"{COMPILE}" gave {type(code).__name__}; it takes the source of the kernels (and the '
        "target), and returns PTX or a cubin as bytes or str"
    )


def _called(function: Callable[..., Any], source: str, target: Target) -> Any:
    """What a function gives, which may take the source alone."""
    try:
        signature(function).bind(source, target)
    except TypeError:
        return function(source)
    except ValueError:  # a builtin without a signature
        pass
    return function(source, target)
