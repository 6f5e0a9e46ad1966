"""Writes the pages of the API reference: one for each public module, from the package itself."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from reference.status import MODULES, TVM_VERSION, Status, public_names, status

ABOUT = f"""# API reference

What each module offers, from its docstrings. The column *TVM* compares each name with
Apache TVM {TVM_VERSION}, in which some modules have moved and some words have changed
([spellings](../glossary.md#spellings)):

| | |
|---|---|
| as TVM | TVM has it, perhaps in its new spelling, which is then given |
| as TVM until 2025 | TVM had it in the generation that the courses are written in |
| differs | TVM has it, and ours does something else; the entry says what and why |
| ours alone | TVM has nothing of this name there |

How the schedule primitives differ is read from the test cases in `tests/schedule/cases` that
are headed "unlike TVM". Most of the differences are programs that TVM miscompiles.

"""


def write(folder: Path) -> None:
    """Write `index.md` and a page for each public module into a folder."""
    folder.mkdir(exist_ok=True)
    pages = {f"{path}.md": page(path) for path in MODULES}
    rows = [f"- [{path}]({path}.md): {entry['title']}" for path, entry in MODULES.items()]
    tree = "\n".join(f"{path} <{path}>" for path in MODULES)
    contents = "\n".join(rows)
    pages["index.md"] = f"{ABOUT}{contents}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    for name, text in pages.items():
        target = folder / name
        if not target.exists() or target.read_text("utf8") != text:
            target.write_text(text, "utf8")


def page(path: str) -> str:
    """The page of a module: a table of its names, then what is defined in it, entry by entry."""
    module = importlib.import_module(path)
    rows, entries = [], []
    for name in public_names(module):
        value = getattr(module, name)
        home = _home(path, name, value)
        documented = inspect.isclass(value) or inspect.isfunction(value)
        shown = f"{{py:obj}}`{name} <{home}.{name}>`" if documented else f"`{name}`"
        label = status(path, name).label.replace(" ", "\N{NO-BREAK SPACE}")
        rows.append(f"| {shown} | {label} | {_summary(value)} |")
        if documented and home == path:
            entries.append(_entry(path, name, value))
    title = MODULES[path]["title"]
    about = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    homes = ", ".join(f"`{name}`" for name in MODULES[path]["tvm"])
    about += f"\n\nIn TVM {TVM_VERSION}: {homes}." if homes else ""
    table = "| name | TVM | what it is |\n|---|---|---|\n" + "\n".join(rows)
    body = "\n".join(entries)
    return f"# {path}\n\n*{title}.* {about}\n\n{table}\n\n```{{eval-rst}}\n{body}\n```\n"


def _home(path: str, name: str, value: Any) -> str:
    """The public module that documents a value: the innermost that holds its definition."""
    origin = str(getattr(value, "__module__", None) or path)
    holders = [
        module
        for module in MODULES
        if (origin == module or origin.startswith(f"{module}."))
        and _is_same(getattr(importlib.import_module(module), name, None), value)
        and name in public_names(importlib.import_module(module))
    ]
    return max(holders, key=len) if holders else path


def _is_same(one: Any, other: Any) -> bool:
    """Whether two names mean one thing. The classes of nodes that programs call equal those inside
    the package."""
    return one is other or (inspect.isclass(one) and inspect.isclass(other) and one == other)


def _entry(path: str, name: str, value: Any) -> str:
    kind = "autofunction"
    options = ""
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        options = "   :members:\n   :inherited-members: object, Exception, RuntimeError\n"
    return f".. {kind}:: {path}.{name}\n{options}"


def _summary(value: Any) -> str:
    """The first sentence of a docstring, as one line of a table."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    return re.split(r"(?<=[.:;]) ", text)[0].rstrip(":;").replace("|", "\\|")


def add_status(path: str, lines: list[str]) -> None:
    """Put what a name is beside TVM's in front of its docstring, which is reStructuredText."""
    module, name = _split(path)
    if module is None:
        return
    told: Status = status(module, name)
    if told.label:
        why = told.why.splitlines()
        head = f"*{told.label[0].upper()}{told.label[1:]}.*"
        joined = [head, "", *why] if len(why) > 1 else [f"{head} {told.why}".strip()]
        lines[:0] = [line.replace("`", "``") for line in joined] + [""]


def _split(path: str) -> tuple[str | None, str]:
    """A full name as its public module and the name in it."""
    for module in sorted(MODULES, key=len, reverse=True):
        if path.startswith(f"{module}."):
            return module, path.removeprefix(f"{module}.")
    return None, path


PLURAL = re.compile(r"(`[^`\s]+`)(\w)")
"""Letters right behind code, as in "`Var`s", which reStructuredText does not take."""

SECTION = re.compile(r"(Args|Returns|Raises|Attributes|Yields|Note|Example):$")


def literal_blocks(lines: list[str]) -> None:
    """Make our docstrings reStructuredText: what is indented below a line, other than sections of
    arguments and items of lists, is text to be shown as it stands."""
    out: list[str] = []
    block: str | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        before = next((text for text in reversed(out) if text.strip()), "")
        if block is None and line.strip() and indent > _indent(before) and _starts(before):
            if before.strip() == "rewrite:":
                out.pop()
            while out and not out[-1].strip():
                out.pop()
            out += ["", "::", ""]
            block = line[:indent]
        elif block is not None and line.strip() and not line.startswith(block):
            block = None
            if out and out[-1].strip():
                out.append("")
        out.append(line)
    lines[:] = [PLURAL.sub(r"\1\\ \2", line) for line in out]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _starts(before: str) -> bool:
    text = before.strip()
    return not (text.startswith(("- ", "* ", ":", "..")) or SECTION.match(text))
