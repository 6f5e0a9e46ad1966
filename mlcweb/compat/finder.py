"""Import hooks that let one package answer to another's name.

An alias is not a copy: after ``import tvm.tir`` the entry ``sys.modules["tvm.tir"]`` *is*
``mlcweb.tir``, so classes, registries and ``isinstance`` agree however a module was reached.
A module that only the other package has is a `View` of ours, or an `Absent` one.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from mlcweb.compat.tree import Tree, View


class AliasLoader(Loader):
    """Loads an alias by putting the module it stands for in its place, and `children`, modules by
    full name, in theirs."""

    def __init__(self, target: ModuleType, children: Mapping[str, ModuleType] | None = None):
        self.target = target
        self.children = children or {}

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the (empty, soon dropped) module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what it finds in sys.modules after this call, which leaves
        # the attributes of the real module, its `__spec__` above all, as they are.
        sys.modules[module.__name__] = self.target
        sys.modules.update(self.children)


class AliasFinder(MetaPathFinder):
    """Finds ``{alias}.x.y`` as ``{package}.x.y``, or as what `tree` says of it.

    Args:
        alias: the name to answer to, such as ``"tvm"``.
        package: the package that is imported instead, such as ``"mlcweb"``.
        tree: other names of modules, views and what is absent, all relative to it.
    """

    def __init__(self, alias: str, package: str, tree: Tree | None = None):
        self.alias = alias
        self.package = package
        self.tree = tree or Tree(package, alias)
        self._covered: dict[tuple[ModuleType, str], object] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The alias for ``fullname``; None where the name is none of ours.

        Raises:
            ModuleNotFoundError: there is no such module; says what may be meant.
        """
        root, _, relative = fullname.partition(".")
        if root != self.alias:
            return None
        module = self.tree.module(relative)
        if module is None:
            raise self.tree.missing(relative)
        target = self._callable(relative, module)
        loader = AliasLoader(target, self._answered_by_others(fullname, relative, target))
        return ModuleSpec(fullname, loader, is_package=True)

    def _answered_by_others(
        self, fullname: str, relative: str, module: ModuleType
    ) -> dict[str, ModuleType]:
        """The submodules of an alias for which others of our modules answer than the files of that
        name. The import system, if it loaded them, would set them over these files."""
        modules: dict[str, ModuleType] = {}
        for name in self.tree.modules:
            owner, _, child = name.rpartition(".")
            own = vars(module).get(child)
            if owner == self.tree.resolve(relative) and isinstance(own, ModuleType):
                other = self.tree.module(name)
                if own.__name__ == self.tree.full(name) and other is not None:
                    modules[f"{fullname}.{child}"] = other
        return modules

    def _callable(self, relative: str, module: ModuleType) -> ModuleType:
        """The module; where its package has a function of that name, which the import system is
        about to cover, a view of the module that can be called as the function."""
        parent, _, name = relative.rpartition(".")
        owner = self.tree.module(parent) if parent else None
        function = vars(owner).get(name) if owner is not None else None
        if owner is None or function is None or isinstance(function, ModuleType):
            return module
        self._covered[owner, name] = function
        return View(
            f"{self.alias}.{relative}", lambda attribute: getattr(module, attribute), function
        )

    def forget(self) -> None:
        """Takes back what importing aliases has set on modules of the package."""
        for (owner, name), function in self._covered.items():
            setattr(owner, name, function)
        self._covered.clear()
        self.tree.detach()


class PackageFinder(MetaPathFinder):
    """Finds modules of the package itself under names that only the other package has.

    ``from {alias} import x`` may ask for ``{package}.x``, because the parent already is the real
    package. First in line it attaches the tree's names to modules as they are loaded; last in line
    it explains what nobody has found.
    """

    def __init__(self, tree: Tree, last: bool):
        self.tree = tree
        self.last = last

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        prefix = f"{self.tree.package}."
        if not fullname.startswith(prefix):
            return None
        relative = fullname.removeprefix(prefix)
        if relative.startswith("stand_ins."):
            return None  # they say by themselves what they lack
        if self.last:
            extra = self.tree.extra(relative)
            if extra is None:
                raise self.tree.missing(relative)
            return ModuleSpec(fullname, AliasLoader(extra), is_package=True)
        if relative not in self.tree.owners:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = AttachingLoader(spec.loader, self.tree, relative)
                return spec
        return None


class ReplacedFinder(MetaPathFinder):
    """Says what takes the place of packages that came with the other one: stands last in line, so
    that real packages of these names are found before."""

    def __init__(self, replaced: Mapping[str, str]):
        self.replaced = replaced

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        why = self.replaced.get(fullname)
        if why is not None:
            raise ModuleNotFoundError(f"There is no package {fullname} here: {why}", name=fullname)


class AttachingLoader(Loader):
    """Another loader, after which a module has the tree's names as well."""

    def __init__(self, loader: Loader, tree: Tree, relative: str):
        self.loader = loader
        self.tree = tree
        self.relative = relative

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        # What asks a module for its loader (for resources, for its source) means the real one.
        module.__loader__ = spec.loader = self.loader
        self.loader.exec_module(module)
        self.tree.attach(self.relative, module)
