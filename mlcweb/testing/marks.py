"""`tvm.testing` for pytest: parameters, fixtures, and tests that need what may not be here."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
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
    decorator = pytest.fixture(scope=scope)
    return decorator if func is None else decorator(func)


def enabled_targets() -> list[tuple[str, Any]]:
    """The targets that programs can be built for and run on, each with its device."""
    return [(name, device(name)) for name in target_names() if name != "cpu"]


def device_enabled(target: str | Target) -> bool:
    """Whether there is a device that runs programs of the target."""
    return Target(target).kind.name in target_names()


def enabled(target: str) -> bool:
    """Whether a kind of device runs programs here; "gpu" means CUDA's, as in TVM."""
    return device_enabled({"gpu": "cuda", "cl": "opencl", "mtl": "metal"}.get(target, target))


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


IS_IN_CI = os.getenv("CI") == "true"
SKIP_SLOW_TESTS = False
DEFAULT_TEST_TARGETS = ["llvm"]


def identity_after(x: Any, sleep: float) -> Any:
    """A value, after some seconds."""
    time.sleep(sleep)
    return x


def terminate_self() -> None:
    """End the process, as a test of what happens then."""
    sys.exit(-1)


def run_with_gpu_lock(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function. TVM lets one process at a time use its GPU; here there is one process."""
    return func(*args, **kwargs)


def strtobool(val: str) -> int:
    """1 of "yes", "y", "true", "t", "on" and "1", 0 of their opposites; else a ValueError."""
    text = val.lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return 1
    if text in ("n", "no", "f", "false", "off", "0"):
        return 0
    raise ValueError(f"{val!r} is no truth value, such as 'yes' or 'no'")


def _requires(name: str, here: bool) -> Any:
    """A decorator of tests that need something; it takes arguments, or none."""

    def requirement(*args: Any, **_: Any) -> Any:
        import pytest

        mark = pytest.mark.skipif(not here, reason=f"needs {name}, which is not here")
        return mark(args[0]) if len(args) == 1 and callable(args[0]) else mark

    return requirement


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Skips a test where a package of Python cannot be imported."""
    import pytest

    lacking = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"needs {' and '.join(lacking)}")


def slow(func: Any) -> Any:
    """Marks a test that takes long; it runs all the same."""
    return func


def skip_if_32bit(reason: str) -> Callable[[Any], Any]:
    """Skips a test where Python's numbers of memory have 32 bits, as in a page."""
    import pytest

    return pytest.mark.skipif(sys.maxsize < 2**32, reason=reason)


def exclude_targets(*_: str) -> Callable[[Any], Any]:
    """Leaves targets out of those for which `parametrize_targets` runs a test."""
    return lambda func: func


known_failing_targets = exclude_targets


def __getattr__(name: str) -> Any:
    """`requires_llvm` and all its like: what runs on this machine's processor is here."""
    what = name.removeprefix("requires_").removeprefix("uses_")
    if what == name:
        raise AttributeError(name)
    return _requires(what, what in ("llvm", "cpu", "x86"))
