"""IRModule: the functions of a program, and the names by which they call each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from mlcweb.ir import printing
from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.dialect import without_prefix
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.function_attrs import FunctionAttrs
from mlcweb.ir.node import Node, attribute, hint, node, replace
from mlcweb.ir.visitor import Mutator


@node
class GlobalVar(Node):
    """The name of a function in a module. Equal where the names are equal.

    `struct_info` is what is known of the function, where `get_global_var` of its module gave it.
    """

    is_identity: ClassVar[bool] = True

    name_hint: str = attribute()
    struct_info: Any = hint(default=None)

    @property
    def ty(self) -> Any:
        """`struct_info`, under its name since 2026."""
        return self.struct_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and self.name_hint == other.name_hint

    def __hash__(self) -> int:
        return hash(self.name_hint)

    def __repr__(self) -> str:
        return f'I.GlobalVar("{self.name_hint}")'


@node
class BaseFunc(Node):
    """Base of functions of all dialects. `attrs` maps attribute names to plain values."""

    attrs: Mapping[str, Any] = attribute(default_factory=FunctionAttrs, kw_only=True)

    is_typed_by_name: ClassVar[bool] = True
    """Whether the variable that names it in a module has its `struct_info`."""

    def __post_init__(self) -> None:
        if type(self.attrs) is not FunctionAttrs:
            object.__setattr__(self, "attrs", FunctionAttrs(self.attrs))

    @property
    def __name__(self) -> str:
        """The name by which the function is called from outside, as that of a Python function; an
        AttributeError for one that is private."""
        name = self.attrs.get("global_symbol")
        if name is None:
            raise AttributeError("a private function has no __name__")
        return name

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> Self:
        """The function with one attribute (or a mapping of them) set."""
        keys = attr_key_or_dict
        changes = dict(keys) if isinstance(keys, Mapping) else {keys: attr_value}
        return replace(self, attrs={**self.attrs, **FunctionAttrs(changes)})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> Self:
        """The function with these attributes alone."""
        return replace(self, attrs=dict(attr_map))

    def without_attr(self, attr_key: str) -> Self:
        """The function without the attribute `attr_key`."""
        key = without_prefix(attr_key)
        return replace(self, attrs={k: v for k, v in self.attrs.items() if k != key})

    def __repr__(self) -> str:
        return printing.text(self)


class _Renaming(Mutator):
    """Gives functions other names wherever they are named, also as what a call is of."""

    def __init__(self, names: dict[GlobalVar, GlobalVar]) -> None:
        self.names = names

    def rewrite(self, node: Any) -> Any:
        if isinstance(node, GlobalVar):
            return self.names.get(node, node)
        new = self.rewrite_children(node)
        callee = getattr(new, "op", None)
        if isinstance(callee, GlobalVar) and callee in self.names:
            return replace(new, op=self.names[callee])
        return new


class IRModule(printing.Scriptable, metaclass=NamedClass):
    """A collection of functions by name.

    Transformations return new modules; only `update_func`, `mod[name] = func` and `update` change
    one in place, as in TVM.
    """

    def __init__(
        self,
        functions: Mapping[Any, BaseFunc] | None = None,
        attrs: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Any] | None = None,
    ) -> None:
        self.global_infos: dict[str, Any] = dict(global_infos or {})
        self.functions: dict[GlobalVar, BaseFunc] = {
            (GlobalVar(key) if isinstance(key, str) else key): func
            for key, func in (functions or {}).items()
        }
        self.attrs: dict[str, Any] = dict(attrs or {})

    def same_as(self, other: object) -> bool:
        """Identity, under TVM's name."""
        return self is other

    @staticmethod
    def from_expr(expr: BaseFunc, functions: Mapping[Any, BaseFunc] | None = None) -> IRModule:
        """A module with `expr` under its global symbol ("main" where it has none)."""
        module = IRModule(functions)
        module.functions[GlobalVar(expr.attrs.get("global_symbol", "main"))] = expr
        return module

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable that names a function; a ValueError lists the names there are."""
        for var, func in self.functions.items():
            if var.name_hint == name:
                info = getattr(func, "struct_info", None) if func.is_typed_by_name else None
                return var if info is None else replace(var, struct_info=info)
        raise ValueError(f'The module has no function "{name}"; it has {self._names()}')

    def get_global_vars(self) -> list[GlobalVar]:
        return list(self.functions)

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Replace (or add) the function that `var` names."""
        self.functions[var] = func

    def update(self, other: IRModule | Mapping[Any, BaseFunc]) -> None:
        """Take over all functions of another module."""
        functions = other.functions if isinstance(other, IRModule) else other
        self.functions.update(IRModule(functions).functions)

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """The functions with their variables, by name."""
        return sorted(self.functions.items(), key=lambda item: item[0].name_hint)

    def replace_global_vars(
        self, replacements: Mapping[str | GlobalVar, str | GlobalVar]
    ) -> IRModule:
        """The module with functions under other names, which calls of them and their global symbols
        have, too.

        Raises:
            ValueError: a function that is named is not there, or two would have one name.
        """
        renaming = _Renaming({})
        for old, new in replacements.items():
            var = self.get_global_var(old) if isinstance(old, str) else old
            renaming.names[var] = GlobalVar(new) if isinstance(new, str) else new
        if not renaming.names:
            return self
        functions: dict[GlobalVar, BaseFunc] = {}
        for var, func in self.functions.items():
            name, renamed = renaming.names.get(var, var), renaming.rewrite(func)
            if name in functions:
                raise ValueError(f'Two functions would be called "{name.name_hint}"')
            if name is not var and "global_symbol" in func.attrs:
                renamed = renamed.with_attr("global_symbol", name.name_hint)
            functions[name] = renamed
        return self.with_functions(functions)

    def copy(self) -> IRModule:
        """A module of its own with the same functions."""
        return self.with_attrs(self.attrs)

    clone = copy

    def update_global_info(self, name: str, global_info: Sequence[Any]) -> None:
        """Replace (or add) a list of what holds for the whole module, such as devices."""
        self.global_infos[name] = list(global_info)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        return self.with_attrs({**self.attrs, attr_key: attr_value})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> IRModule:
        """A module with the same functions and these attributes alone."""
        return IRModule(self.functions, attr_map, self.global_infos)

    def with_functions(self, functions: Mapping[Any, BaseFunc]) -> IRModule:
        """A module of these functions alone, with the same attributes and global infos."""
        return IRModule(functions, self.attrs, self.global_infos)

    def without_attr(self, attr_key: str) -> IRModule:
        return self.with_attrs({k: v for k, v in self.attrs.items() if k != attr_key})

    def get_attr(self, attr_key: str) -> Any:
        return self.attrs.get(attr_key)

    def structural_form(self) -> dict[str, Any]:
        """What structural equality compares: the functions in order of their names, attributes and
        global infos."""
        named = sorted(self.functions.items(), key=lambda item: item[0].name_hint)
        return {
            "functions": dict(named),
            "attrs": self.attrs,
            "global_infos": self.global_infos,
        }

    def __getitem__(self, key: str | GlobalVar) -> Any:
        name = key if isinstance(key, str) else key.name_hint
        return self.functions[self.get_global_var(name)]

    def __setitem__(self, key: str | GlobalVar, func: BaseFunc) -> None:
        self.functions[GlobalVar(key) if isinstance(key, str) else key] = func

    def __delitem__(self, key: str | GlobalVar) -> None:
        name = key if isinstance(key, str) else key.name_hint
        del self.functions[self.get_global_var(name)]

    def __contains__(self, key: str | GlobalVar) -> bool:
        return (GlobalVar(key) if isinstance(key, str) else key) in self.functions

    def __len__(self) -> int:
        return len(self.functions)

    def __repr__(self) -> str:
        return printing.text(self)

    def _names(self) -> str:
        return ", ".join(f'"{v.name_hint}"' for v in self.functions) or "no functions"


def the_function_name(module: IRModule, name: str | None) -> str:
    """`name`, or the only (or the "main") function of the module where it is None."""
    if name is not None:
        return module.get_global_var(name).name_hint
    names = [var.name_hint for var in module.functions]
    if len(names) == 1:
        return names[0]
    if "main" in names:
        return "main"
    raise DiagnosticError(f"Name one of the module's functions: {', '.join(names)}")
