"""Functions known by name, which programs and models call: Python functions, or PrimFuncs as
micro-kernels of `T.call_extern`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.tir.function import PrimFunc


class NameTakenError(TVMError, ValueError):
    """A function has the name already. TVM has a ValueError, or since 2025 a RuntimeError."""


_functions: dict[str, Callable[..., Any] | PrimFunc] = {}


def register_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | PrimFunc | None = None,
    override: bool = False,
) -> Any:
    """Register a function under a name; also a decorator.

    ``register_func("env.relu")`` and ``register_func("env.relu", override=True)`` decorate,
    ``register_func("env.relu", relu)`` registers at once. A name that is taken is a NameTakenError
    unless `override` is set. A Python function that a kernel calls gets NumPy arrays for pointers,
    which it may write, and numbers for scalars; a PrimFunc is compiled into the kernel.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(function: Any) -> Any:
        if func_name in _functions and not override:
            raise NameTakenError(
                f'Global function "{func_name}" is already registered; pass override=True to '
                "replace it"
            )
        _functions[func_name] = function
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The function registered under `name`; a ValueError where there is none, or None if that is
    allowed."""
    if name in _functions:
        return _functions[name]
    function = _of_layers_above(name)
    if function is not None or allow_missing:
        return function
    raise ValueError(
        f'Cannot find global function "{name}"; register it with @tvm.register_func("{name}")'
    )


def _of_layers_above(name: str) -> Any:
    """What TVM registers for its virtual machine and schedules, imported when it is first asked
    for."""
    owner, _, function = name.rpartition(".")
    if name.startswith("vm.builtin."):
        provided(__name__, "functions_of_machines")  # which enters them here
        return _functions.get(name)
    if owner not in ("s_tir.schedule", "tir.schedule"):
        return None
    return provided(__name__, "functions_of_schedules").get(function)


def remove_global_func(name: str) -> None:
    """Forget a registered function."""
    _functions.pop(name, None)


def list_global_func_names() -> list[str]:
    return sorted(_functions)
