"""What each public name is: as TVM, as TVM was, ours alone, or different from TVM's and why.

Only `differences.toml` is kept by hand. Our names come from the package, TVM's from the file
`tvm_names.json`, which `tvm_names.py` writes, and how primitives differ from the test cases
headed "unlike TVM".
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from mlcweb.compat.names import ATTRIBUTES
from mlcweb.ir.dialect import S_TIR
from mlcweb.ir.errors import TVMError

FOLDER = Path(__file__).parent
CASES = FOLDER.parents[1] / "tests/schedule/cases"
MODULES: dict[str, dict[str, Any]] = json.loads((FOLDER / "modules.json").read_text("utf8"))
"""The public modules: a title, and the modules of TVM 0.27 that hold the same names."""

_TVM = json.loads((FOLDER / "tvm_names.json").read_text("utf8"))
_BY_HAND = tomllib.loads((FOLDER / "differences.toml").read_text("utf8"))
TVM_VERSION = ".".join(_TVM["version"].split(".")[:2])
UNLISTED: dict[str, list[str]] = _BY_HAND["as_tvm"]
EARLIER: dict[str, list[str]] = _BY_HAND["until_2025"]
DIFFERS: dict[str, str] = _BY_HAND["differs"]


class Status(NamedTuple):
    """A word or two for a table, and a sentence where there is more to say."""

    label: str
    why: str = ""


def _offers(module: ModuleType, name: str) -> bool:
    """Whether a module has a name; one that it refuses with a reason is none."""
    try:
        return hasattr(module, name)
    except TVMError:
        return False


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, or else what is neither private, nor a module,
    nor a table in capitals, nor, in a module that is no package, taken from elsewhere. What a
    module makes on request counts where TVM has it, too."""
    listed = getattr(module, "__all__", None)
    names = listed or {name for name in dir(module) if not name.startswith("_")}
    if not listed:
        theirs = (_TVM[other] for other in MODULES.get(module.__name__, {}).get("tvm", ()))
        names |= {name for found in theirs for name in found if _offers(module, name)}
    package = hasattr(module, "__path__") or hasattr(module, "NAMES")
    return [
        name
        for name in sorted(names, key=lambda name: (name.lower(), name))
        if _is_public(getattr(module, name), name, None if listed or package else module.__name__)
    ]


def _is_public(value: Any, name: str, home: str | None) -> bool:
    if isinstance(value, ModuleType) or (name.isupper() and not isinstance(value, type)):
        return False
    origin = getattr(value, "__module__", None) or "mlcweb"
    return origin == home if home else str(origin).startswith("mlcweb")


def members(value: Any) -> list[str]:
    """The public methods and properties of a class that this package defines."""
    if not inspect.isclass(value):
        return []
    owners = [base for base in value.__mro__ if base.__module__.startswith("mlcweb")]
    return sorted(
        name
        for name in {name for owner in owners for name in vars(owner)}
        if not name.startswith("_")
        and (callable(getattr(value, name)) or isinstance(getattr(value, name), property))
    )


def every_name() -> Iterator[str]:
    """All public names and the members of classes, as `module:name` and `module:class.member`."""
    for path in MODULES:
        module = importlib.import_module(path)
        for name in public_names(module):
            yield f"{path}:{name}"
            yield from (f"{path}:{name}.{member}" for member in members(getattr(module, name)))


def status(path: str, name: str) -> Status:
    """What `name` (or `class.member`) of the public module `path` is."""
    for key in (f"{path}:{name}", name):
        if key in DIFFERS:
            return Status("differs", DIFFERS[key])
    owner, _, member = name.partition(".")
    if owner == "Schedule" and member in unlike_tvm():
        reasons = unlike_tvm()[member]
        listed = reasons if len(reasons) == 1 else [f"- {reason}" for reason in reasons]
        return Status("differs", "\n".join(listed))
    there = _in_tvm(path, owner)
    if owner in UNLISTED.get(path, ()):
        return Status("as TVM")
    if there is None:
        if owner not in EARLIER.get(path, ()):
            return Status("ours alone")
        return Status("" if member else "as TVM until 2025")
    tvm_name, tvm_members = there
    if member and not {member, S_TIR.of(member)} & set(tvm_members):
        return Status("ours alone")
    spelt = f"{tvm_name}.{S_TIR.of(member)}" if member else tvm_name
    return Status(
        "as TVM", "" if spelt.endswith(f".{name}") else f"TVM {TVM_VERSION} spells it `{spelt}`."
    )


@cache
def unlike_tvm() -> dict[str, list[str]]:
    """The primitives that the test cases show to differ from TVM's on purpose, and how."""
    found: dict[str, list[str]] = {}
    for path in sorted(CASES.glob("*.txt")):
        for case in re.split(r"^=== ", path.read_text("utf8"), flags=re.MULTILINE)[1:]:
            heading = re.search(r"^--- (gives|refused), unlike TVM\n((?: *#.*\n)*)", case, re.M)
            if heading is None:
                continue
            calls = re.findall(r"\bsch\.(\w+)\(", case.partition("--- schedule")[2])
            primitive = [call for call in calls if not call.startswith("get_")][-1]
            lines = [line.strip(" #") for line in heading[2].splitlines()]
            reason = " ".join(line for line in lines if not line.startswith("with T.")).rstrip(".")
            outcome = "Refused here" if heading[1] == "refused" else "Works here"
            sentence = f"{outcome}: {reason}."
            if sentence not in found.setdefault(primitive, []):
                found[primitive].append(sentence)
    return found


@cache
def _in_tvm(path: str, name: str) -> tuple[str, list[str]] | None:
    """The full name in TVM of a name of ours, and its members; None where TVM has none."""
    for spelling in _spellings(path, name):
        for module in MODULES[path]["tvm"]:
            if spelling in _TVM[module]:
                return f"{module}.{spelling}", _TVM[module][spelling]
    return None


def _spellings(path: str, name: str) -> Iterator[str]:
    """How TVM 0.27 may spell a name: as we do, by its new words, or by an alias of `compat`."""
    yield name
    yield S_TIR.of(name)
    yield S_TIR.of(f"T.{name}").removeprefix("T.")
    value = getattr(importlib.import_module(path), name)
    for alias, target in ATTRIBUTES.items():
        home, _, attribute = target.rpartition(".")
        module = importlib.import_module(f"mlcweb.{home}" if home else "mlcweb")
        if getattr(module, attribute, None) is value:
            yield alias.rpartition(".")[2]
