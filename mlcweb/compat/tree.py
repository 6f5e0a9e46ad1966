"""The tree of names of another package, laid over the modules of this one.

Everything is looked up when it is first asked for, so that a table of names costs no import.
"""

import difflib
import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from mlcweb.compat.absent import Absent
from mlcweb.ir.lazy_attributes import provided_names


class View(ModuleType):
    """A module whose names are found elsewhere. It can be called if it covers a function."""

    def __init__(
        self, name: str, find: Callable[[str], Any], function: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(name)
        self._find = find
        self._function = function
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return self._find(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise TypeError(f"{self.__name__} is a module and cannot be called")
        return self._function(*args, **kwargs)


class Tree:
    """The tables, all with names relative to the package.

    Args:
        package: the package that is there.
        alias: the name of the other one, for messages.
        modules: a module's other name -> its name. Submodules follow it.
        attributes: another name of a function or class -> its name.
        views: a module of the other package -> where names are found that it has not itself.
        absent: what is not here, modules or names in them -> what to use instead. A last part `*`
            stands for all names that a module has not: they can be imported, and are no attributes.
        hints: a module -> what to use instead of names that neither package has in it.
        names: a module -> its name in the other package, for messages, where it has another.
    """

    def __init__(
        self,
        package: str,
        alias: str,
        modules: Mapping[str, str] | None = None,
        attributes: Mapping[str, str] | None = None,
        views: Mapping[str, tuple[str, ...]] | None = None,
        absent: Mapping[str, str] | None = None,
        hints: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.package = package
        self.alias = alias
        self.modules = dict(modules or {})
        self.attributes = dict(attributes or {})
        self.views = dict(views or {})
        self.absent = dict(absent or {})
        self.hints = dict(hints or {})
        self.names = dict(names or {})
        self.renamed_views = {self.resolve(name): name for name in self.views}
        named = (*self.modules, *self.attributes, *self.views, *self.absent)
        self.owners = {"", *self.views} | {self.resolve(n.rpartition(".")[0]) for n in named}
        self._views: dict[str, ModuleType] = {}
        self._attached: dict[str, tuple[ModuleType, dict[str, Any]]] = {}
        self._searched: set[tuple[str, str]] = set()

    def resolve(self, relative: str) -> str:
        """What the module known as ``relative`` is called here: the longest renamed part wins, and
        what comes of it may have been renamed, too."""
        parts = relative.split(".") if relative else []
        for length in range(len(parts), 0, -1):
            new = self.modules.get(".".join(parts[:length]))
            if new is not None:
                return self.resolve(".".join([new, *parts[length:]]))
        return relative

    def shown(self, relative: str) -> str:
        """What a module or name is called in messages: by the other package's name for it."""
        head, dot, tail = relative, "", ""
        while head and head not in self.names:
            head, _, part = head.rpartition(".")
            dot, tail = ".", f"{part}.{tail}" if tail else part
        shown_name = f"{self.names[head]}{dot}{tail}" if head else relative
        return f"{self.alias}.{shown_name}" if shown_name else self.alias

    def full(self, relative: str) -> str:
        return f"{self.package}.{relative}" if relative else self.package

    def module(self, relative: str) -> ModuleType | None:
        """The module known as ``relative``: one of ours, a view, an absent one; or None."""
        real = self.resolve(relative)
        try:
            return importlib.import_module(self.full(real))
        except ModuleNotFoundError as error:
            root, _, missing = (error.name or "").partition(".")
            if root not in (self.package, self.alias) or not f"{real}.".startswith(f"{missing}."):
                raise
        return self.extra(relative)

    def extra(self, relative: str) -> ModuleType | None:
        """The view or the absent module known as ``relative``."""
        for name in dict.fromkeys((relative, self.resolve(relative))):
            if name in self.views:
                return self._view(name)
            if self._is_name(name):
                continue
            if name in self.renamed_views:
                return self._view(self.renamed_views[name])
            why = self._reason(name)
            if why is not None:
                return Absent(self.shown(relative), why)
        return None

    def _is_name(self, relative: str) -> bool:
        """Whether a module that is loaded has a name, which is no module's."""
        owner, _, name = relative.rpartition(".")
        module = sys.modules.get(self.full(self.resolve(owner)))
        return name in _public(module) and not isinstance(vars(module)[name], ModuleType)

    def _reason(self, name: str) -> str | None:
        """Why ``name``, or what it is a part of, is absent."""
        while name:
            if name in self.absent:
                return self.absent[name]
            name = name.rpartition(".")[0]
            if f"{name}.*" in self.absent:
                return self.absent[f"{name}.*"]
        return None

    def _hint(self, module: str) -> str:
        """What to use instead of a name that a module has not, to end a message."""
        while module and module not in self.hints:
            module = module.rpartition(".")[0]
        return f": {self.hints[module]}" if module else ""

    def _view(self, relative: str) -> ModuleType:
        if relative not in self._views:
            name = f"{self.alias}.{relative}"
            self._views[relative] = View(name, lambda attribute: self._find(relative, attribute))
        return self._views[relative]

    def _find(self, view: str, attribute: str) -> Any:
        if attribute == "__all__":
            return sorted(self.public(view))
        value = self.name_in(view, attribute)
        if value is not None:
            return value
        if (view, attribute) not in self._searched:  # homes may be views of each other
            self._searched.add((view, attribute))
            try:
                for home in self.views.get(view, ()):
                    module = importlib.import_module(self.full(home))
                    if hasattr(module, attribute):
                        return getattr(module, attribute)
            finally:
                self._searched.discard((view, attribute))
        why = self.absent.get(f"{view}.*")
        raise AttributeError(
            f"{self.shown(view)} has no {attribute} here{f': {why}' if why else self._hint(view)}",
            name=attribute,
            obj=self.module(view),
        )

    def name_in(self, owner: str, attribute: str) -> Any:
        """What a module has by these tables under a name; None for nothing."""
        name = f"{owner}.{attribute}" if owner else attribute
        if name in self.attributes:
            return load(self.full(self.attributes[name]))
        if name in self.modules or name in self.views or name in self.absent:
            return self.module(name)
        return None

    def public(self, relative: str, seen: frozenset[str] = frozenset()) -> set[str]:
        """The names that `from` a module `import *` gives: those that it has, those that a layer
        above has for it, those that the tables add, and those of the homes of a view."""
        real = self.resolve(relative)
        module = sys.modules.get(self.full(real))
        names = {n for n in dir(module) if not n.startswith("_")} if module else set[str]()
        names = {n for n in names if not isinstance(vars(module).get(n), Absent)}
        names.update(provided_names(self.full(real)))
        for table in self.attributes:
            owner, _, name = table.rpartition(".")
            if self.resolve(owner) == real:
                names.add(name)
        for home in self.views.get(relative, ()):
            if home not in seen:
                importlib.import_module(self.full(home))
                names |= self.public(home, seen | {relative, home})
        return names

    def attach(self, relative: str, module: ModuleType) -> None:
        """Lets a module of ours have the names that the tables add to it."""
        before = dict(vars(module))
        own = before.get("__getattr__")

        def getattribute(name: str) -> Any:
            if name.startswith("__") and name != "__all__":
                raise AttributeError(f"module {relative} has no {name}")
            if own is not None and name != "__all__":
                try:
                    return own(name)
                except AttributeError:
                    pass
            return self._find(relative, name)

        self._attached[relative] = module, before
        vars(module)["__getattr__"] = getattribute
        # What is a file here may be a package there.
        vars(module).setdefault("__path__", [])

    def attach_loaded(self) -> None:
        """`attach` to the modules that are there already."""
        for relative in self.owners:
            module = sys.modules.get(self.full(relative))
            if module is not None:
                self.attach(relative, module)

    def detach(self) -> None:
        """Takes back what `attach`, and importing the names it gave, have set."""
        for relative, (module, before) in self._attached.items():
            for name, value in list(vars(module).items()):
                if name in ("__getattr__", "__path__") or self._is_added(relative, name, value):
                    delattr(module, name)
                    if name in before:
                        setattr(module, name, before[name])
        self._attached.clear()
        self._views.clear()
        for name, module in list(sys.modules.items()):
            if isinstance(module, (Absent, View)) and name.startswith(f"{self.package}."):
                del sys.modules[name]

    def _is_added(self, owner: str, name: str, value: Any) -> bool:
        alias = f"{owner}.{name}" if owner else name
        return isinstance(value, (Absent, View)) or (
            isinstance(value, ModuleType)
            and alias in self.modules
            and self.full(alias) not in sys.modules
        )

    def missing(self, relative: str) -> ModuleNotFoundError:
        """An error for a module that is not there, telling which may be meant.

        Where a view lacks it, the error has the view's `name`: Python drops the message of an error
        about the very name that `from m import x` asks for.
        """
        parent, _, last = relative.rpartition(".")
        children = [n for n in (*self.modules, *self.views) if n.rpartition(".")[0] == parent]
        module = sys.modules.get(self.full(self.resolve(parent)))
        names = [*(n.rpartition(".")[2] for n in children), *_public(module)]
        owner = self.module(parent) if parent else None
        close = difflib.get_close_matches(last, names, n=1, cutoff=0.8)
        meant = f"; did you mean {self.shown(parent)}.{close[0]}?" if close else ""
        reason = f"There is no {self.shown(relative)} here{meant}{self._hint(self.resolve(parent))}"
        if last in names:
            reason = f"{self.shown(relative)} is no module: from {self.shown(parent)} import {last}"
        return ModuleNotFoundError(
            reason,
            name=f"{self.alias}.{parent if isinstance(owner, View) else relative}",
        )


def load(name: str) -> Any:
    """What a module has under the last part of this full name."""
    owner, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(owner), attribute)


def _public(module: ModuleType | None) -> list[str]:
    names = () if module is None else vars(module)
    return [name for name in names if not name.startswith("_")]


class StandInTree(Tree):
    """The modules of a stand-in for a package of others; the rest is refused by name."""

    def module(self, relative: str) -> ModuleType | None:
        name = self.full(relative)
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise
        return None

    def missing(self, relative: str) -> ModuleNotFoundError:
        name = f"{self.alias}.{relative}"
        return ModuleNotFoundError(
            f"{name} is not part of the stand-in for {self.alias}, which has no build for "
            "browsers; it has what the course calls. Run this program natively, with "
            f"{self.alias} installed",
            name=name,
        )
