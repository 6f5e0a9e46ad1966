"""What a program has defined that can be offered: modules, schedules, schedule functions.

Objects are asked for nothing but their type: what they say of themselves (`__class__`) is code of
the program.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeGuard, TypeVar

from mlcweb.ir import IRModule
from mlcweb.schedule import Schedule
from mlcweb.tir import PrimFunc

Kind = TypeVar("Kind")


@dataclass(slots=True)
class SearchModule:
    """A module of the program.

    Attributes:
        functions: its TensorIR functions.
        model: whether it has a graph function "main", which can be timed as a whole.
    """

    name: str
    functions: list[str]
    model: bool


def modules(variables: Mapping[str, Any]) -> dict[str, IRModule]:
    """The program's modules by name; a function counts as a module of its own."""
    by_name: dict[str, IRModule] = {}
    for name, value in _public(variables):
        if _is(value, IRModule) and value.functions:
            by_name[name] = value
        elif _is(value, PrimFunc):
            by_name[name] = IRModule({"main": value})  # as Schedule takes a function
    return by_name


def search_modules(variables: Mapping[str, Any]) -> list[SearchModule]:
    """The modules that have a TensorIR function."""
    searchable: list[SearchModule] = []
    for name, module in modules(variables).items():
        kinds = {var.name_hint: isinstance(f, PrimFunc) for var, f in module.functions.items()}
        functions = [function for function, is_prim in kinds.items() if is_prim]
        if functions:
            searchable.append(SearchModule(name, functions, model=kinds.get("main") is False))
    return searchable


def schedules(variables: Mapping[str, Any]) -> dict[str, Schedule]:
    """The program's schedules by name, each once, in the order in which they were defined."""
    by_name: dict[str, Schedule] = {}
    for name, value in _public(variables):
        if _is(value, Schedule) and not any(value is earlier for earlier in by_name.values()):
            by_name[name] = value
    return by_name


def schedule_functions(variables: Mapping[str, Any], filenames: Collection[str]) -> list[str]:
    """Names of functions of the program that take a schedule and nothing else that they insist on.

    `filenames` are those of the program: functions that it imports are not its own.
    """
    return [
        name
        for name, value in _public(variables)
        if _is(value, FunctionType)
        and value.__code__.co_filename in filenames
        and _takes_schedule(value)
    ]


def _takes_schedule(function: FunctionType) -> bool:
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(required) != 1 or required[0].kind is inspect.Parameter.KEYWORD_ONLY:
        return False
    annotation = required[0].annotation
    if annotation is inspect.Parameter.empty:
        return required[0].name in ("sch", "s", "schedule")
    return annotation is Schedule or str(annotation).endswith("Schedule")


def name_of(variables: Mapping[str, Any], value: Any) -> str | None:
    """How the program can call `value`: by a variable, or as the module of a schedule."""
    for name, candidate in _public(variables):
        if candidate is value:
            return name
    for name, schedule in schedules(variables).items():
        if schedule.mod is value:
            return f"{name}.mod"
        if schedule.trace is value:
            return f"{name}.trace"
    return None


def can_be_shown(value: object) -> bool:
    """Whether a value is a schedule, a module or a function of TensorIR."""
    return issubclass(type(value), (Schedule, IRModule, PrimFunc))


def _public(variables: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in variables.items()
        if type(name) is str and not name.startswith("_")
    ]


def _is(value: object, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a value is of a class, without asking the value."""
    return issubclass(type(value), kind)
