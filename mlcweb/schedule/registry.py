"""`@primitive`: makes a method of `Schedule`, and a kind of trace instruction, of a function.

The function takes the state of a schedule and resolved arguments, and returns the new state, with
the variables of new loops or the identities of new blocks where it makes any:

    @primitive("Fuse")
    def fuse(
        state: ScheduleState, *loops: Var, preserve_unit_iters: bool = True
    ) -> tuple[ScheduleState, Var]:

Names and defaults of the method's parameters are those of the function. What is resolved, and how
it is recorded, follows from the annotations, of which `arguments.ROLES` has the list; what is
returned follows from the return annotation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import CO_VARARGS
from types import FunctionType
from typing import Any, TypeVar

from mlcweb.schedule.arguments import ROLES
from mlcweb.schedule.instruction import KINDS, BlockRV, InstructionKind, LoopRV, Parameter
from mlcweb.tir.expr import Var

T = TypeVar("T")

Sampled = tuple[T, Any]
"""What a sampling primitive returns: the value, and the decision that stands for it."""

_RESULTS: dict[str, type | None] = {
    "ScheduleState": None,
    "Var": LoopRV,
    "Location": LoopRV,
    "BlockIdentity": BlockRV,
    "int": Var,
}
"""The random variables for what a primitive returns; the new state is not returned to the user."""

_SHOWN = {LoopRV: "LoopRV", BlockRV: "BlockRV", Var: "ExprRV", None: "None"}
_RETURNED = re.compile(r"(?:tuple\[ScheduleState, |Sampled\[)?(list\[)?(\w+)(?: \| None)?\]*")


def primitive(
    name: str,
    *,
    inputs: tuple[str, ...] = (),
    title: str | None = None,
    aliases: tuple[str, ...] = (),
    pure: bool = False,
    prints_positional: bool = False,
    booleans_as_integers: bool = True,
) -> Callable[[T], T]:
    """Register a function as the primitive whose instructions TVM calls `name`.

    Args:
        inputs: parameters of plain values that TVM records among the inputs.
        title: the name in error messages, where it is not the function's with dashes.
        aliases: what other TVM generations call the instruction.
        pure: it changes nothing, so that a trace may leave it out.
        prints_positional: a trace prints its arguments without their names.
        booleans_as_integers: how a record has booleans.
    """

    def register(function: Any) -> Any:
        _, starred, _ = _parameter_names(function)
        annotations: dict[str, str] = function.__annotations__
        returned = _RETURNED.fullmatch(annotations["return"])
        if returned is None or returned[2] not in _RESULTS:
            raise TypeError(
                f'The primitive "{function.__name__}" returns {annotations["return"]}, which is '
                "neither ScheduleState nor tuple[ScheduleState, …] with one, or a list, of "
                + ", ".join(_RESULTS)
            )
        parameters = tuple(_parameters(function, inputs))
        signature = {
            name: f"Sequence[{role.annotation}]" if name in starred else role.annotation
            for name, role, _ in parameters
        }
        if "decision" in annotations:
            signature["decision"] = annotations["decision"]
        kind = InstructionKind(
            name,
            function,
            parameters,
            tuple(signature.items()),
            starred[0] if starred else None,
            sampling="decision" in annotations,
            result=_RESULTS[returned[2]],
            returns_list=returned[1] is not None,
            title=title or function.__name__.replace("_", "-"),
            pure=pure,
            prints_positional=prints_positional,
            booleans_as_integers=booleans_as_integers,
        )
        KINDS[name] = kind
        KINDS.update({alias: replace(kind, name=alias) for alias in aliases})
        return function

    return register


def method_of(kind: InstructionKind) -> FunctionType:
    """The method of `Schedule` for a primitive: of its name, parameters, defaults and docstring.

    Its code, that of `_hand_over`, passes its arguments on as a dictionary. It names none of them
    but `self`, so that others can be put behind that, and Python itself binds and checks arguments.
    """
    function: Any = kind.function
    code = function.__code__
    positional, starred, named = _parameter_names(function)
    if kind.sampling:
        named.remove("random")  # The schedule has it.
    names = ("self", *positional, *named, *starred)
    method = FunctionType(
        _hand_over.__code__.replace(
            co_name=code.co_name,
            co_qualname=f"Schedule.{code.co_name}",
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_argcount=code.co_argcount,
            co_kwonlyargcount=len(named),
            co_varnames=names,
            co_nlocals=len(names),
            co_flags=_hand_over.__code__.co_flags | code.co_flags & CO_VARARGS,
        ),
        {"kind": kind, "locals": locals},
        code.co_name,
        function.__defaults__,
    )
    method.__kwdefaults__ = function.__kwdefaults__
    method.__doc__ = function.__doc__
    method.__module__ = "mlcweb.schedule.schedule"
    result = _SHOWN[kind.result]
    method.__annotations__ = {
        **{name: role.annotation for name, role, _ in kind.parameters},
        **({"decision": function.__annotations__["decision"]} if kind.sampling else {}),
        "return": f"list[{result}]" if kind.returns_list else result,
    }
    return method


def _hand_over(self: Any) -> Any:
    return self._perform(kind, locals())  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def _parameters(function: Any, inputs: tuple[str, ...]) -> Iterator[Parameter]:
    """What an instruction records, in the order of the signature."""
    positional, starred, named = _parameter_names(function)
    for name in (*positional, *starred, *named):
        if name in ("decision", "random"):
            continue
        annotation = ("*" if name in starred else "") + function.__annotations__[name]
        if annotation not in ROLES:
            raise TypeError(
                f'There is no role for "{name}: {annotation}" of the primitive '
                f'"{function.__name__}": add it to `ROLES`, or write one of ' + ", ".join(ROLES)
            )
        role = ROLES[annotation]
        yield name, role, role.is_input or name in inputs


def _parameter_names(function: Any) -> tuple[list[str], list[str], list[str]]:
    """The parameters after the state: by position, a starred one, by keyword alone."""
    code = function.__code__
    first, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    starred = bool(code.co_flags & CO_VARARGS)
    names = list(code.co_varnames[: last + starred])
    return names[1:first], names[last:], names[first:last]
