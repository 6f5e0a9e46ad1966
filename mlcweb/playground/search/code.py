"""Python that builds a trial's schedule again, and puts it in the place of the function."""

from __future__ import annotations

from mlcweb.playground.search.program import Program
from mlcweb.schedule import Trace


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
