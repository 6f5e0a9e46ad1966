"""The two spellings of TVM's language that programs and traces can be printed in.

"tir" is that of the courses, of TVM until 2025: ``T.block``, ``sch.get_block``, ``tir.Schedule``.
"s_tir" is that of TVM since 2026 (0.2x): ``T.sblock``, ``sch.get_sblock``, ``s_tir.Schedule``.
Both are read everywhere, and mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, cast


@dataclass(frozen=True, slots=True)
class Dialect:
    """A spelling: what it calls the things that the other spelling calls otherwise."""

    name: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    prefix: str = "tir."
    """What the names of operators and of attributes start with."""
    marks_functions: bool = False
    """Whether `@T.prim_func` says that a function has blocks, by `s_tir=True`."""
    marks_lets: bool = False
    """Whether the type of a name that stands for a value is `T.let[T.int32]`: without it, the name
    is a scalar that changes."""
    writes_points: bool = False
    """Whether a float that is a whole number has a decimal point."""
    loads_slices: bool = True
    """Whether a slice of a buffer is a vector in an expression, and may have a step."""

    def of(self, name: str) -> str:
        """The name of a thing, given its name in the other spelling, or in this one."""
        return self.renamed.get(name, name)

    def prefixed(self, name: str) -> str:
        """The name of an operator or attribute, given with the prefix `tir.` where it has one."""
        return self.prefix + name.removeprefix("tir.") if name.startswith("tir.") else name


TIR = Dialect("tir", {"GetSBlock": "GetBlock"})

S_TIR = Dialect(
    "s_tir",
    {
        "T.block": "T.sblock",
        "T.block_attr": "T.sblock_attr",
        "T.alloc_buffer": "T.sblock_alloc_buffer",
        "T.decl_buffer": "T.alloc_buffer",
        "get_block": "get_sblock",
        "GetBlock": "GetSBlock",
        "tir": "s_tir",
        "# from tvm.script import tir as T": "# from tvm.script import tirx as T",
        "out_sinfo": "out_ty",
        "sinfo_args": "ty_args",
        "R.Object": "R.Any",
        '"void"': "None",
    },
    prefix="tirx.",
    marks_functions=True,
    marks_lets=True,
    writes_points=True,
    loads_slices=False,
)

_DIALECTS = {dialect.name: dialect for dialect in (TIR, S_TIR)}


def dialect_of(name: str | Dialect) -> Dialect:
    """The dialect of a name; a ValueError lists the names there are."""
    if isinstance(name, Dialect):
        return name
    if name not in _DIALECTS:
        registered = " or ".join(f'"{registered}"' for registered in _DIALECTS)
        raise ValueError(f'There is no dialect "{name}": programs print in {registered}')
    return _DIALECTS[name]


def without_prefix(name: str) -> str:
    """The name of an operator or attribute in the course's spelling."""
    return "tir." + name.removeprefix("tirx.") if name.startswith("tirx.") else name


KEYWORDS = {
    "out_ty": "out_sinfo",
    "ty_args": "sinfo_args",
    "ret_ty": "ret_struct_info",
    "ty": "struct_info",
}
"""Keywords of TVM since 2026, and the course's names of them."""

Function = TypeVar("Function", bound=Callable[..., Any])


def also_named(**names: str) -> Callable[[Function], Function]:
    """Makes a function take keywords under other names too: `names` says, for a name that another
    version of TVM has, what it is here."""

    def with_names(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if options:
                options = {names.get(name, name): value for name, value in options.items()}
            return function(*args, **options)

        vars(call)["also_named"] = names
        return cast(Function, call)

    return with_names


takes_newer_keywords = also_named(**KEYWORDS)
"""Makes a function take keywords by their names since 2026 as well."""
