"""The `R` of TVMScript: `from mlcweb.script import relax as R`.

`NAMES` is the table by which the parser looks names up: the operators of `relax.op`, and what
namespace/relax.py adds. The module has the same names as attributes.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from mlcweb.relax import op
from mlcweb.script.decorators import relax_function
from mlcweb.script.namespace import macros
from mlcweb.script.namespace import relax as own

NAMES: dict[str, Any] = {
    **{
        name: value
        for name, value in vars(op).items()
        if not name.startswith("_")
        and name.islower()
        and (not isinstance(value, ModuleType) or name in op.NAMESPACES)
    },
    **own.NAMES,
    "function": relax_function,
    "macro": macros.macro,
    "meta_var": macros.meta_var,
}

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    globals().update(NAMES)
