"""Writes `mlcweb/schedule/schedule.pyi`, which tells editors and type checkers the methods that
`Schedule` gets from the primitives:

    python -m tests.schedule.stub
"""

import inspect
import textwrap
from pathlib import Path

from mlcweb.schedule.schedule import Schedule

STUB = Path(__file__).parents[2] / "mlcweb/schedule/schedule.pyi"

HEAD = '''"""Written by `python -m tests.schedule.stub`, from the functions in `primitives`."""

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.schedule.argument_types import AnnotationArgument, BufferArgument, MapArgument
from mlcweb.schedule.base import ScheduleBase
from mlcweb.schedule.errors import ScheduleError as ScheduleError
from mlcweb.schedule.instruction import BlockRV, ExprRV, LoopRV
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.tensor_intrin import TensorIntrin

class Schedule(ScheduleBase):
'''
LINE = 100


def text() -> str:
    """The stub."""
    own = {name: value for name, value in vars(Schedule).items() if not name.startswith("_")}
    parts = [_documentation(Schedule, "    "), *(_method(name, own[name]) for name in sorted(own))]
    return HEAD + "\n".join(parts)


def _method(name: str, method: object) -> str:
    signature = inspect.signature(method)
    returned = signature.return_annotation
    parameters = []
    for parameter in signature.parameters.values():
        is_first_by_name = parameter.kind is parameter.KEYWORD_ONLY and not any(
            part.startswith("*") for part in parameters
        )
        parameters += ["*"] if is_first_by_name else []
        parameters.append(str(parameter).replace("'", "") if parameter.name != "self" else "self")
    line = f"    def {name}({', '.join(parameters)}) -> {returned}:"
    if len(line) > LINE:
        inside = " " * 8 + ", ".join(parameters)
        lines = [inside] if len(inside) <= LINE else [f"{' ' * 8}{part}," for part in parameters]
        line = "\n".join([f"    def {name}(", *lines, f"    ) -> {returned}:"])
    return f"{line}\n{_documentation(method, ' ' * 8)}"


def _documentation(value: object, indent: str) -> str:
    """The first paragraph of a docstring."""
    first = (inspect.getdoc(value) or "").split("\n\n")[0]
    wrapped = textwrap.wrap(f'"""{first}"""', LINE, initial_indent=indent, subsequent_indent=indent)
    return "".join(f"{line}\n" for line in wrapped)


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
