"""The `R` of TVMScript: `from mlcweb.script import relax as R`.

`NAMES` is the table by which the parser looks names up: what builds calls of operators, also of
those that are registered later, and what namespace/relax.py adds. The module has the same names as
attributes, of which one is `R.Any`.
"""

from __future__ import annotations

import typing
from collections import ChainMap
from collections.abc import Mapping

from mlcweb.relax import op
from mlcweb.relax.op.registry import builders
from mlcweb.script.decorators import relax_function, rewriter
from mlcweb.script.namespace import macros
from mlcweb.script.namespace import relax as own

_OWN: dict[str, typing.Any] = {
    **{name: getattr(op, name) for name in op.NAMESPACES},
    **own.NAMES,
    "function": relax_function,
    "macro": macros.macro,
    "meta_var": macros.meta_var,
    "rewriter": rewriter,
}
NAMES: Mapping[str, typing.Any] = ChainMap(_OWN, builders)


def __getattr__(name: str) -> typing.Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return NAMES[name]


def __dir__() -> list[str]:
    return sorted(name for name in NAMES if "." not in name)
