"""`import tvm` resolving to this package.

    import mlcweb.compat
    mlcweb.compat.install()

    import tvm
    from tvm.script import tir as T

The page installs it before user code runs, and so does ``python -m mlcweb run``. Where IPython
or Pygments are missing, small stand-ins answer for the parts of them that course cells use.
"""

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from mlcweb.compat.finder import AliasFinder, MissingFinder
from mlcweb.compat.names import ABSENT, ATTRIBUTES, MODULES

_TVM = AliasFinder("tvm", "mlcweb", MODULES)
_MISSING = MissingFinder(_TVM, ABSENT)
_STAND_INS = (
    AliasFinder("IPython", "mlcweb.compat.ipython"),
    AliasFinder("pygments", "mlcweb.compat.pygments"),
)
_added: list[tuple[Any, str]] = []
"""Attributes set by `install` (owner and name), for `uninstall` to take away."""


def install(*, force: bool = False) -> None:
    """Makes ``import tvm`` give this package. Installing twice changes nothing.

    Args:
        force: also where a real TVM can be imported, which is then hidden from this process.

    Raises:
        ImportError: a real TVM can be imported and ``force`` is not set.
    """
    if installed():
        return
    real = find_spec("tvm")
    if real is not None and not force:
        raise ImportError(
            f"a real TVM is installed ({real.origin}), and `import tvm` should keep meaning it. "
            "Use mlcweb.compat.install(force=True) to hide it from this process, "
            "or `import mlcweb as tvm`."
        )
    _forget("tvm")
    # First in line, to hide a real TVM as well; the stand-ins stay behind the real things.
    sys.meta_path.insert(0, _TVM)
    sys.meta_path.extend([*_STAND_INS, _MISSING])
    for alias, name in {**MODULES, **ATTRIBUTES}.items():
        path, _, attribute = alias.rpartition(".")
        owner = _lookup(path)
        if attribute not in vars(owner):
            setattr(owner, attribute, _lookup(name))
            _added.append((owner, attribute))


def uninstall() -> None:
    """Takes the aliases back: ``import tvm`` finds a real TVM again, or nothing."""
    if not installed():
        return
    while _added:
        delattr(*_added.pop())
    for finder in (_TVM, *_STAND_INS, _MISSING):
        sys.meta_path.remove(finder)
    for finder in (_TVM, *_STAND_INS):
        root = sys.modules.get(finder.alias)
        if root is not None and root.__name__ == finder.package:
            _forget(finder.alias)


def installed() -> bool:
    """Whether ``import tvm`` gives this package."""
    return _TVM in sys.meta_path


def _lookup(name: str) -> Any:
    """What is called ``name``, relative to the package: a module or something inside one."""
    path = "mlcweb"
    found = importlib.import_module(path)
    for part in name.split(".") if name else ():
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


def _forget(root: str) -> None:
    for name in [n for n in sys.modules if n == root or n.startswith(f"{root}.")]:
        del sys.modules[name]
