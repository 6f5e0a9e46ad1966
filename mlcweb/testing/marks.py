"""`tvm.testing` for pytest: parameters, fixtures, and tests that need what may not be here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from mlcweb.codegen.registry import target_names
from mlcweb.runtime.device import device
from mlcweb.runtime.target import Target


def main() -> None:
    """Run the tests of the calling file; ends the process as pytest does."""
    import pytest

    file = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def parameter(*values: Any, ids: Any = None, by_dict: dict[str, Any] | None = None) -> Any:
    """A fixture, to be assigned to a name, that runs a test once for each value."""
    import pytest

    if by_dict is not None:
        ids, values = list(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def parametrized(request: Any) -> Any:
        return request.param

    return parametrized


def parameters(*value_sets: Iterable[Any], ids: Any = None) -> list[Any]:
    """Fixtures, to be assigned to several names, that take their values together."""
    import pytest

    rows = [tuple(row) for row in value_sets]
    name = f"_parameters_{id(rows)}"

    @pytest.fixture(name=name, params=rows, ids=ids)
    def joined(request: Any) -> Any:
        return request.param

    def column(index: int) -> Any:
        def parametrized(**arguments: Any) -> Any:
            return arguments[name][index]

        # pytest learns from its arguments what a fixture asks for.
        argument = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parametrized.__signature__ = inspect.Signature([argument])
        return pytest.fixture(parametrized)

    sys._getframe(1).f_globals[name] = joined
    return [column(index) for index in range(len(rows[0]))]


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """`pytest.fixture`; `cache_return_value` keeps one value for all tests."""
    import pytest

    scope = "session" if cache_return_value else "function"
    made = pytest.fixture(scope=scope)
    return made if func is None else made(func)


def enabled_targets() -> list[tuple[str, Any]]:
    """The targets that programs can be built for and run on, each with its device."""
    return [(name, device(name)) for name in target_names() if name != "cpu"]


def device_enabled(target: str | Target) -> bool:
    """Whether there is a device that runs programs of the target."""
    return Target(target).kind.name in target_names()


def parametrize_targets(*targets: Any) -> Callable[..., Any]:
    """Runs a test, which takes `target` and `dev`, once for each of the targets that are here."""
    import pytest

    def decorate(func: Callable[..., Any], names: Iterable[Any]) -> Any:
        rows = [
            pytest.param(
                name,
                device(Target(name).kind.name),
                marks=() if device_enabled(name) else pytest.mark.skip(f"no device runs {name}"),
            )
            for name in names
        ]
        return pytest.mark.parametrize(("target", "dev"), rows)(func)

    if len(targets) == 1 and callable(targets[0]):
        return decorate(targets[0], ["llvm"])
    return lambda func: decorate(func, targets)


def _requires(name: str, here: bool) -> Any:
    """A decorator of tests that need something; it takes arguments, or none."""

    def requirement(*args: Any, **_: Any) -> Any:
        import pytest

        mark = pytest.mark.skipif(not here, reason=f"needs {name}, which is not here")
        return mark(args[0]) if len(args) == 1 and callable(args[0]) else mark

    return requirement


def __getattr__(name: str) -> Any:
    """`requires_llvm` and all its like: what runs on this machine's processor is here."""
    what = name.removeprefix("requires_").removeprefix("uses_")
    if what == name:
        raise AttributeError(name)
    return _requires(what, what in ("llvm", "cpu", "x86", "package"))
