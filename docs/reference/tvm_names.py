"""Writes `tvm_names.json`: the public names of a real TVM, module by module, classes with members.

    .venv-oracle/bin/python docs/reference/tvm_names.py

Run it again when the TVM that the tests compare with changes; `status.py` reads the file.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


def names_in(module: ModuleType) -> dict[str, list[str]]:
    """Public names, each with the public members of a class, else with none."""
    found = {}
    for name in sorted(dir(module)):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or "tvm"
        if name.startswith("_") or isinstance(value, ModuleType) or not home.startswith("tvm"):
            continue
        owners = value.__mro__ if isinstance(value, type) else ()
        members = {m for owner in owners if owner.__module__.startswith("tvm") for m in vars(owner)}
        found[name] = sorted(member for member in members if not member.startswith("_"))
    return found


def main() -> None:
    import tvm  # pyright: ignore[reportMissingImports]

    modules = json.loads((FOLDER / "modules.json").read_text("utf8"))
    wanted = sorted({name for entry in modules.values() for name in entry["tvm"]})
    found = {name: names_in(importlib.import_module(name)) for name in wanted}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in wanted)
    text = f'{{\n  "version": "{tvm.__version__}",\n{lines}\n}}\n'
    (FOLDER / "tvm_names.json").write_text(text, "utf8")


if __name__ == "__main__":
    main()
