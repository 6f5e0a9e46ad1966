"""Attributes of packages that are loaded when they are first asked for.

Some are submodules of the package, too slow to import before somebody needs them. Others are
implemented by a layer above: `relax.build` is part of the graph level's interface, but the virtual
machine, which builds models, is in a layer that the graph level must not import. Such a name has a
provider. `mlcweb.providers`, above all layers, registers every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

Provider = Callable[[str], Any]
"""Imports what has a name, and gives what the name means."""

_providers: dict[tuple[str, str], Provider] = {}


def provides(module: str, *names: str) -> Callable[[Provider], Provider]:
    """Decorates the function that gives each of the `names` of a module."""

    def register(provider: Provider) -> Provider:
        _providers.update(dict.fromkeys(((module, name) for name in names), provider))
        return provider

    return register


def provided(module: str, name: str) -> Any:
    """What a layer above implements for a module under a name.

    Raises:
        AttributeError: the name has no provider.
        ImportError: the provider's module cannot be imported, for want of NumPy, say.
    """
    provider = _providers.get((module, name))
    if provider is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return provider(name)


def provided_names(module: str) -> set[str]:
    """The names that layers above implement for a module."""
    return {name for owner, name in _providers if owner == module}


def lazy_attributes(
    package: str, submodules: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Callable[[str], Any]:
    """The `__getattr__` of a package: its provided names, and its submodules.

    Args:
        package: its full name.
        submodules: by their names in the package, the names that the package takes from each.
    """
    homes = {name: submodule for submodule, names in submodules.items() for name in names}

    def getattribute(name: str) -> Any:
        if name in submodules:
            return import_module(f"{package}.{name}")
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        return provided(package, name)

    return getattribute
