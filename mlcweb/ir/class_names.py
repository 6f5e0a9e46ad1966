"""What classes print as: under `import tvm`, as TVM's, which is what the courses show.

Python is quick to answer `isinstance` for classes of the plain type `type` alone: with a type of
their own it takes three times as long. Nodes are asked for all the time, so that their classes are
given other names while these show; `home` still says where they are defined.
"""

from __future__ import annotations

from collections.abc import Callable

_shown: list[Callable[[type], str]] = []
_nodes: list[type] = []
_homes: dict[type, str] = {}


def show_classes(name: Callable[[type], str] | None) -> None:
    """Let classes print as a function names them; None shows their own names again."""
    for cls, module in _homes.items():
        cls.__module__ = module
    _homes.clear()
    _shown[:] = [] if name is None else [name]
    for cls in _nodes if _shown else ():
        _rename(cls)


def add_node_class(cls: type) -> None:
    """Let a class of nodes print as the others do."""
    _nodes.append(cls)
    if _shown:
        _rename(cls)


def _rename(cls: type) -> None:
    name = _shown[0](cls)
    _homes[cls] = cls.__module__
    cls.__module__ = name.removesuffix(f".{cls.__qualname__}")


def home(cls: type) -> str:
    """The module that a class is defined in, whatever it prints as."""
    return _homes.get(cls, cls.__module__)


class NamedClass(type):
    """The class of classes that TVM has, too, but for nodes."""

    def __repr__(cls) -> str:
        return f"<class '{_shown[0](cls)}'>" if _shown else super().__repr__()
