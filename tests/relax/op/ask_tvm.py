"""Write again what a real TVM answers to the calls of tvm_answers.json: run with its Python.

    python tests/relax/op/ask_tvm.py

Each entry has the parameters (name: [shape, dtype]; a string is a symbolic extent, a number alone a
rank) and the call as `expr`. TVM adds `type` and `call`, as it prints them, or the class of the
`error`, and, where an entry has `functions`, what LegalizeOps makes of it.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_name("tvm_answers.json")


def answer(entry: dict[str, Any]) -> dict[str, Any]:
    from tvm import relax, tirx

    symbols: dict[str, Any] = {}

    def parameter(name: str, shape: Any, dtype: str | None) -> Any:
        if not isinstance(shape, list):
            rank = -1 if shape is None else shape
            return relax.Var(name, relax.TensorType(None, dtype, ndim=rank))
        extents = [
            symbols.setdefault(n, tirx.Var(n, "int64")) if isinstance(n, str) else n for n in shape
        ]
        return relax.Var(name, relax.TensorType(extents, dtype))

    params = {name: parameter(name, *spec) for name, spec in entry["params"].items()}
    names = {"op": relax.op, "const": relax.const, "shape": relax.ShapeExpr, **params}
    new = {"expr": entry["expr"], "params": entry["params"]}
    try:
        builder = relax.BlockBuilder()
        call = eval(entry["expr"], names)
        with builder.function("main", list(params.values())):
            builder.emit_func_output(builder.emit(call))
        module = builder.get()
    except Exception as error:
        return {**new, "error": type(error).__name__}
    lines = [line.strip() for line in module["main"].script().splitlines() if " = R." in line]
    binding, _, called = lines[-1].partition(" = ")
    new |= {"type": binding.partition(": ")[2], "call": called}
    if "functions" in entry:
        text = relax.transform.LegalizeOps()(module).script()
        part = text[text.index("    @T.prim_func") : text.index("    @R.function")]
        new["functions"] = part.rstrip().splitlines()
    return new


def main() -> None:
    entries = json.loads(ANSWERS.read_text())
    answers = [json.dumps(answer(entry)) for entry in entries]
    ANSWERS.write_text("[\n" + ",\n".join(answers) + "\n]\n")
    logging.info("%d answers", len(answers))


if __name__ == "__main__":
    main()
