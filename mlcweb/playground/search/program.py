"""The program that a search schedules, a function of a module of the page's program; and Python
that builds a trial's schedule of it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.meta_schedule.tune_context import normalized
from mlcweb.playground.session import Document
from mlcweb.schedule import Trace
from mlcweb.tir.function import prim_funcs
from mlcweb.user_code import namespace


@dataclass(frozen=True, slots=True)
class Program:
    """A function to schedule.

    Attributes:
        name: the variable that holds its module; "mod in main" is the variable of a function.
        module: the module as the variable holds it.
        function: the function's name there.
        scheduled: the module that schedules start from. Where the function is one of several, it
            stands alone there under the name "main", as `tune_tir` and records have it.
    """

    name: str
    module: IRModule
    function: str
    scheduled: IRModule

    @property
    def variable(self) -> str:
        """What the code around the module calls it."""
        return self.name.partition(" in ")[0]

    @property
    def alone(self) -> bool:
        """Whether schedules start from the very module that the variable holds."""
        return self.scheduled is self.module

    @property
    def title(self) -> str:
        return self.name if self.alone else f"{self.function} of {self.name}"

    @property
    def main(self) -> str:
        """The function's name in `scheduled`."""
        return self.function if self.alone else "main"


def find(document: Document, name: str, function: str | None = None) -> Program:
    """A function of a document.

    Raises:
        TVMError: there is none of these names.
    """
    module = namespace.modules(document.offered).get(name)
    if module is None:
        raise TVMError(f"the program has no {name}; run it first")
    names = list(prim_funcs(module))
    chosen = function or (names[0] if len(names) == 1 else the_function_name(module, None))
    if chosen not in names:
        raise TVMError(f'{name} has no TensorIR function "{chosen}", but {", ".join(names)}')
    alone = len(module.functions) == 1
    scheduled = module if alone else normalized(module[chosen])
    return Program(name, module, chosen, scheduled)


def named(document: Document, name: str) -> Any:
    """A function of a document; a TVMError where there is none of this name."""
    function = document.variables.get(name)
    if not callable(function):
        raise TVMError(f"the program has no {name}; run it first")
    return function


def schedule_code(program: Program, trace: Trace, title: str, seconds: float) -> str:
    """Repeats the steps on the program, decisions included, and shows what they make."""
    return _text([*_steps(program, trace, title, seconds), "sch.mod.show()"])


def replacing_code(program: Program, trace: Trace, title: str, seconds: float) -> str:
    """Repeats the steps and replaces the function in its module."""
    name, module = program.function, program.name
    function = f'sch.mod["{program.main}"]'
    if not program.alone:
        function += f'.with_attr("global_symbol", "{name}")'
    return _text(
        [
            *_steps(program, trace, title, seconds),
            f"new_func = {function}",
            f'gv = {module}.get_global_var("{name}")',
            f"{module}.update_func(gv, new_func)",
            f"{module}.show()",
        ]
    )


def _steps(program: Program, trace: Trace, title: str, seconds: float) -> list[str]:
    start = program.variable
    if not program.alone:
        start += f'["{program.function}"].with_attr("global_symbol", "main")'
    return [
        f"# {title} of a search, {seconds * 1000:.4g} ms.",
        f"sch = tvm.tir.Schedule({start})",
        *trace.as_python(),
    ]


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
