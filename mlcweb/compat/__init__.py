"""`import tvm` resolving to this package.

    import mlcweb.compat
    mlcweb.compat.install()

    import tvm
    from tvm.script import tir as T

The page installs it before user code runs, and so does ``python -m mlcweb run``. Where IPython
or Pygments are missing, small stand-ins answer for the parts of them that course cells use. In a
browser, where there is no PyTorch, so do stand-ins for torch and torchvision (`stand_ins=True`
elsewhere).
"""

import sys
from functools import partial
from importlib.util import find_spec

from mlcweb.compat.class_names import class_name
from mlcweb.compat.finder import AliasFinder, PackageFinder, ReplacedFinder
from mlcweb.compat.names import ATTRIBUTES, MODULES, NAMES, VIEWS
from mlcweb.compat.replaced import ABSENT, HINTS, PACKAGES
from mlcweb.compat.tree import StandInTree, Tree
from mlcweb.ir.class_names import show_classes
from mlcweb.playground import magics

_TREE = Tree("mlcweb", "tvm", MODULES, ATTRIBUTES, VIEWS, ABSENT, HINTS, NAMES)
_TVM = AliasFinder("tvm", "mlcweb", _TREE)
_ATTACHING = PackageFinder(_TREE, last=False)
_MISSING = PackageFinder(_TREE, last=True)
_REPLACED = ReplacedFinder(PACKAGES)
_STAND_INS = (
    AliasFinder("IPython", "mlcweb.compat.ipython"),
    AliasFinder("tvm_ffi", "mlcweb.compat.ffi"),
    AliasFinder("pygments", "mlcweb.compat.pygments"),
)
_TORCH = [
    AliasFinder(name, f"mlcweb.stand_ins.{name}", StandInTree(f"mlcweb.stand_ins.{name}", name))
    for name in ("torch", "torchvision")
]

WEIGHT_FILES = {
    "fashionmnist_mlp_params.pkl": "mlp",
    "fasionmnist_mlp_params.pkl": "mlp",
    "fasionmnist_mlp_assignment_params.pkl": "convolutional",
}
"""The course's files of weights, as the documents spell them, and which network they are of: they
fit the pictures of the real data set, so pictures that are drawn come with weights of their own."""


def install(*, force: bool = False, stand_ins: bool = sys.platform == "emscripten") -> None:
    """Makes ``import tvm`` give this package. Installing twice changes nothing.

    Args:
        force: also where a real TVM can be imported, which is then hidden from this process.
        stand_ins: make ``import torch`` and ``import torchvision`` give stand-ins over NumPy, and
            hide real ones.

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
    sys.meta_path.extend([*_STAND_INS, _MISSING, _REPLACED])
    if stand_ins:
        sys.meta_path[:0] = _TORCH
        for finder in _TORCH:
            _forget(finder.alias)
        magics.FILES.update({file: partial(_weights, of) for file, of in WEIGHT_FILES.items()})
    _TREE.attach_loaded()
    show_classes(class_name)


def uninstall() -> None:
    """Takes the aliases back: ``import tvm`` finds a real TVM again, or nothing."""
    if not installed():
        return
    for finder in (_TVM, _ATTACHING, *_STAND_INS, *_TORCH, _MISSING, _REPLACED):
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    magics.FILES.clear()
    show_classes(None)
    _TVM.forget()
    for finder in (_TVM, *_STAND_INS, *_TORCH):
        root = sys.modules.get(finder.alias)
        if getattr(root, "__name__", "") == finder.package:
            _forget(finder.alias)


def installed() -> bool:
    """Whether ``import tvm`` gives this package."""
    return _TVM in sys.meta_path


def _weights(network: str) -> bytes:
    from mlcweb.stand_ins.torchvision.weights import pickled  # NumPy is there by now

    return pickled(network)


def _forget(root: str) -> None:
    for name in [n for n in sys.modules if n == root or n.startswith(f"{root}.")]:
        del sys.modules[name]
