"""Import hooks that let one package answer to another's name.

An alias is not a copy: after ``import tvm.tir`` the entry ``sys.modules["tvm.tir"]`` *is*
``mlcweb.tir``, so classes, registries and ``isinstance`` agree however a module was reached.
"""

import importlib
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class AliasLoader(Loader):
    """Loads an alias by putting the module it stands for in its place."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the (empty, soon dropped) module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what it finds in sys.modules after this call, which leaves
        # the attributes of the real module, its `__spec__` above all, as they are.
        sys.modules[module.__name__] = importlib.import_module(self.target)


class AliasFinder(MetaPathFinder):
    """Finds ``{alias}.x.y`` as ``{package}.x.y``, with some modules renamed on the way.

    Args:
        alias: the name to answer to, such as ``"tvm"``.
        package: the package that is imported instead, such as ``"mlcweb"``.
        renamed: other names of modules of ``package``, relative to it.
    """

    def __init__(self, alias: str, package: str, renamed: Mapping[str, str] | None = None):
        self.alias = alias
        self.package = package
        self.renamed = dict(renamed or {})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The alias for ``fullname``; None where the name is none of ours.

        Raises:
            ModuleNotFoundError: there is no such module; says what there is.
        """
        root, _, relative = fullname.partition(".")
        if root != self.alias:
            return None
        real = self.resolve(relative)
        try:
            importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            raise self.missing(relative) from None
        return ModuleSpec(fullname, AliasLoader(real), is_package=True)

    def resolve(self, relative: str) -> str:
        """The full name of the module known as ``relative``: the longest renamed part wins."""
        parts = relative.split(".") if relative else []
        for length in range(len(parts), 0, -1):
            new = self.renamed.get(".".join(parts[:length]))
            if new is not None:
                parts = new.split(".") + parts[length:]
                break
        return ".".join([self.package, *parts])

    def missing(self, relative: str) -> ModuleNotFoundError:
        """An error for a name that is not there, telling which modules are in its place."""
        name = f"{self.alias}.{relative}"
        there = sorted(f"{self.alias}.{child}" for child in self._siblings(relative))
        listing = f" The modules there are {', '.join(there)}." if there else ""
        return ModuleNotFoundError(f"{self.package} has no {name}.{listing}", name=name)

    def _siblings(self, relative: str) -> set[str]:
        """Public modules beside ``relative``, named from the root."""
        parent, _, _ = relative.rpartition(".")
        prefix = f"{parent}." if parent else ""
        names = {n for n in self.renamed if n.startswith(prefix) and "." not in n[len(prefix) :]}
        module = sys.modules.get(self.resolve(parent))
        for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if not info.name.startswith("_"):
                names.add(prefix + info.name)
        return names


class AbsentLoader(Loader):
    """Loads an empty module in place of one that is not there; using it says what is missing."""

    def __init__(self, name: str, what: str):
        self.name = name
        self.what = what

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        def missing(attribute: str) -> None:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            raise AttributeError(f"{self.name}.{attribute}: {self.what} is not part of mlcweb yet")

        vars(module)["__getattr__"] = missing


class MissingFinder(MetaPathFinder):
    """Last in line: explains why ``from {alias} import x`` found nothing.

    That statement asks for ``{package}.x``, because the parent already is the real package.

    Args:
        aliases: the finder of the package's other names.
        absent: modules that can be imported all the same, and what each would hold.
    """

    def __init__(self, aliases: AliasFinder, absent: Mapping[str, str] | None = None):
        self.aliases = aliases
        self.absent = dict(absent or {})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A module of the package that nobody else has found: an empty one, or an error.

        Raises:
            ModuleNotFoundError: for a name that is not one of the `absent` modules either.
        """
        prefix = f"{self.aliases.package}."
        if not fullname.startswith(prefix):
            return None
        relative = fullname.removeprefix(prefix)
        if relative not in self.absent:
            raise self.aliases.missing(relative)
        name = f"{self.aliases.alias}.{relative}"
        return ModuleSpec(fullname, AbsentLoader(name, self.absent[relative]))
