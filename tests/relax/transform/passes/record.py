"""What a real TVM 0.27 makes of the programs in `cases_*.py`: writes answers.json.

    .venv-oracle/bin/python tests/relax/transform/passes/record.py [names that begin with …]

Where TVM refuses, the answer is its error's first line.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

for compiler in "AB":
    tvm.register_global_func(f"relax.ext.{compiler}", lambda functions, options, constants: [])

HERE = Path(__file__).parent
NAMES: dict[str, Any] = {"tvm": tvm, "relax": relax, "I": I, "R": R, "T": T}
NAMES["VDevice"] = relax.VDevice


def cases() -> dict[str, tuple[str, str]]:
    sys.path.insert(0, str(HERE))
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(HERE.glob("cases_*.py")):
        found.update(import_module(file.stem).CASES)
    return found


def answer(name: str, transform: str, program: str) -> dict[str, str]:
    try:
        module = tvm.script.from_source(program)
        return {
            "module": eval(transform, {**NAMES, "module": module})(module).script(show_meta=True)
        }
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"error": f"{type(error).__name__}: {lines[-1] if lines else ''}"}


def main(prefixes: list[str]) -> None:
    path = HERE / "answers.json"
    answers = json.loads(path.read_text()) if path.exists() else {}
    known = cases()
    for name, (transform, program) in known.items():
        if not prefixes or name.startswith(tuple(prefixes)):
            answers[name] = answer(name, transform, program)
    kept = {name: answers[name] for name in sorted(known) if name in answers}
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
