"""Writes `mlcweb/relax/op/__init__.pyi` and `nn/__init__.pyi`, which tell editors and type checkers
the builders that operators register:

    python -m tests.relax.op.stub
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

from mlcweb.relax import op
from mlcweb.relax.op.registry import builders

FOLDER = Path(op.__file__).parent
LINE = 100


def stubs() -> dict[Path, str]:
    """The text of each stub."""
    return {
        FOLDER / "__init__.pyi": _text(op, ("", "inspect."), op.NAMESPACES),
        FOLDER / "nn/__init__.pyi": _text(op.nn, ("nn.",), ()),
    }


def _text(package: ModuleType, prefixes: tuple[str, ...], namespaces: tuple[str, ...]) -> str:
    homes: dict[str, set[str]] = defaultdict(set)
    for name, build in builders.items():
        prefix, short = name[: name.rfind(".") + 1], name[name.rfind(".") + 1 :]
        if prefix in prefixes:
            homes[_home(build, short)].add(short)
    if namespaces:
        homes[package.__name__].update(namespaces)
    lines = ['"""Written by `python -m tests.relax.op.stub`, from what operators register."""', ""]
    lines.append("# fmt: off\n# ruff: noqa: I001")
    for home in sorted(homes):
        lines.append(f"from {home} import (")
        row = "   "
        for name in sorted(homes[home]):
            item = f" {name} as {name},"
            if len(row) + len(item) > LINE:
                lines.append(row)
                row = "   "
            row += item
        lines += [row, ")"]
    if namespaces:
        lines += ["", "NAMESPACES: tuple[str, ...]"]
    return "\n".join(lines) + "\n"


def _home(build: object, short: str) -> str:
    """The module in which a builder has its name."""
    own = build.__module__
    if vars(sys.modules[own]).get(short) is build:
        return own
    return next(
        name
        for name, module in sorted(sys.modules.items())
        if name.startswith(f"{op.__name__}.") and vars(module).get(short) is build
        and not hasattr(module, "__path__")
    )  # fmt: skip


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
