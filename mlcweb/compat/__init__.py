"""`import tvm` resolving to this package.

    import mlcweb.compat
    mlcweb.compat.install()

    import tvm
    from tvm.script import tir as T

The page installs it before user code runs, and so does ``python -m mlcweb run``. Where IPython
or Pygments are missing, small stand-ins answer for the parts of them that course cells use.
"""

import sys
from importlib.util import find_spec

from mlcweb.compat.finder import AliasFinder, PackageFinder
from mlcweb.compat.names import ATTRIBUTES, MODULES, VIEWS
from mlcweb.compat.replaced import ABSENT
from mlcweb.compat.tree import Tree

_TREE = Tree("mlcweb", "tvm", MODULES, ATTRIBUTES, VIEWS, ABSENT)
_TVM = AliasFinder("tvm", "mlcweb", _TREE)
_ATTACHING = PackageFinder(_TREE, last=False)
_MISSING = PackageFinder(_TREE, last=True)
_STAND_INS = (
    AliasFinder("IPython", "mlcweb.compat.ipython"),
    AliasFinder("pygments", "mlcweb.compat.pygments"),
)


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
    sys.meta_path[:0] = [_TVM, _ATTACHING]
    sys.meta_path.extend([*_STAND_INS, _MISSING])
    _TREE.attach_loaded()


def uninstall() -> None:
    """Takes the aliases back: ``import tvm`` finds a real TVM again, or nothing."""
    if not installed():
        return
    for finder in (_TVM, _ATTACHING, *_STAND_INS, _MISSING):
        sys.meta_path.remove(finder)
    _TVM.forget()
    for finder in (_TVM, *_STAND_INS):
        root = sys.modules.get(finder.alias)
        if root is not None and root.__name__ == finder.package:
            _forget(finder.alias)


def installed() -> bool:
    """Whether ``import tvm`` gives this package."""
    return _TVM in sys.meta_path


def _forget(root: str) -> None:
    for name in [n for n in sys.modules if n == root or n.startswith(f"{root}.")]:
        del sys.modules[name]
