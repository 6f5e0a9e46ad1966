"""Writes `signatures-VERSION.json.xz`: the parameters of what a real TVM offers to users.

    .venv-oracle/bin/python tests/compat/record_signatures.py

`test_signatures.py` compares ours with them. A function is recorded under its name in a module, a
class with its constructor and its public methods, each as the text of a parameter list in which
only plain defaults are written out. `MLCWEB_RECORD_PATH` names a folder with packages that TVM's
modules import and its environment lacks (pytest, SciPy, ONNX, PyTorch).
"""

from __future__ import annotations

import importlib
import inspect
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = [
    "tvm",
    "tvm.ir",
    "tvm.ir.transform",
    "tvm.ir.instrument",
    "tvm.tirx",
    "tvm.tirx.transform",
    "tvm.tirx.analysis",
    "tvm.tirx.stmt_functor",
    "tvm.s_tir",
    "tvm.s_tir.transform",
    "tvm.s_tir.analysis",
    "tvm.s_tir.schedule",
    "tvm.te",
    "tvm.topi",
    "tvm.topi.nn",
    "tvm.topi.testing",
    "tvm.topi.vision",
    "tvm.topi.image",
    "tvm.relax",
    "tvm.relax.op",
    "tvm.relax.op.nn",
    "tvm.relax.op.image",
    "tvm.relax.op.memory",
    "tvm.relax.op.vm",
    "tvm.relax.op.builtin",
    "tvm.relax.op.grad",
    "tvm.relax.transform",
    "tvm.relax.frontend",
    "tvm.relax.frontend.nn",
    "tvm.relax.frontend.nn.op",
    "tvm.relax.frontend.torch",
    "tvm.relax.frontend.onnx",
    "tvm.relax.dpl",
    "tvm.relax.analysis",
    "tvm.relax.testing",
    "tvm.relax.training.optimizer",
    "tvm.relax.training.loss",
    "tvm.runtime",
    "tvm.runtime.vm",
    "tvm.target",
    "tvm.script",
    "tvm.script.tirx",
    "tvm.script.relax",
    "tvm.script.ir",
    "tvm.script.ir_builder",
    "tvm.script.ir_builder.ir",
    "tvm.script.ir_builder.tirx",
    "tvm.script.ir_builder.relax",
    "tvm.s_tir.meta_schedule",
    "tvm.s_tir.meta_schedule.builder",
    "tvm.s_tir.meta_schedule.runner",
    "tvm.s_tir.meta_schedule.database",
    "tvm.s_tir.meta_schedule.cost_model",
    "tvm.s_tir.meta_schedule.feature_extractor",
    "tvm.s_tir.meta_schedule.measure_callback",
    "tvm.s_tir.meta_schedule.mutator",
    "tvm.s_tir.meta_schedule.postproc",
    "tvm.s_tir.meta_schedule.schedule_rule",
    "tvm.s_tir.meta_schedule.search_strategy",
    "tvm.s_tir.meta_schedule.space_generator",
    "tvm.s_tir.meta_schedule.task_scheduler",
    "tvm.s_tir.meta_schedule.testing.te_workload",
    "tvm.arith",
    "tvm.sym",
    "tvm.testing",
    "tvm.support.utils",
    "tvm.support.cc",
]


def parameters(callable_: Callable[..., Any], bound: bool = False) -> str | None:
    """A parameter list as text, without `self` where `bound`; None where it says nothing."""
    try:
        signature = inspect.signature(callable_)
    except (TypeError, ValueError):
        return None
    given = list(signature.parameters.values())[bound:]
    plain = [
        p.replace(
            annotation=p.empty,
            default=p.default if p.default is p.empty or _is_plain(p.default) else ...,
        )
        for p in given
    ]
    if plain and all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in plain):
        return None
    return str(inspect.Signature(plain))[1:-1].replace("Ellipsis", "...")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return type(value) in (list, tuple) and all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def described(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """What is recorded of a name of a module: pairs of a name and parameters."""
    if not callable(value):
        return
    found = parameters(value)
    if found is not None:
        yield name, found
    if not inspect.isclass(value):
        return
    for member in sorted(set(dir(value))):
        owner = next((base for base in value.__mro__ if member in vars(base)), object)
        raw = vars(owner).get(member)
        if member.startswith("_") or not _is_of_tvm(owner) or isinstance(raw, type):
            continue
        is_method = inspect.isfunction(raw)
        if is_method or isinstance(raw, (staticmethod, classmethod)):
            found = parameters(getattr(value, member), bound=is_method)
            if found is not None:
                yield f"{name}.{member}", found


def _is_of_tvm(value: Any) -> bool:
    return str(getattr(value, "__module__", None)).startswith(("tvm.", "tvm_ffi."))


def namespace(name: str) -> Any:
    """A module, or what its package has under its name, as `T` is; None where there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, last = name.rpartition(".")
        return getattr(sys.modules.get(parent), last, None) if parent else None


def main() -> None:
    sys.path.extend(filter(None, [os.environ.get("MLCWEB_RECORD_PATH")]))
    import tvm

    modules: dict[str, dict[str, str]] = {}
    methods_of: set[type] = set()
    for name in MODULES:
        module = namespace(name)
        rows = modules[name] = {}
        for attribute in sorted(dir(module)):
            value = getattr(module, attribute)
            if attribute.startswith("_") or isinstance(value, ModuleType) or not _is_of_tvm(value):
                continue
            found = dict(described(attribute, value))
            if inspect.isclass(value):
                # A class is known by its methods in the first module that has it.
                if value in methods_of:
                    found = {key: text for key, text in found.items() if key == attribute}
                methods_of.add(value)
            rows.update(found)
    version = ".".join(tvm.__version__.split(".")[:2])
    rows = {name: rows for name, rows in modules.items() if rows}
    path = Path(__file__).with_name(f"signatures-{version}.json.xz")
    path.write_bytes(lzma.compress(json.dumps(rows, indent=0).encode()))


if __name__ == "__main__":
    main()
