"""Libraries as files: `Module.export_library` and `load_module`.

A file is a WebAssembly module, or machine code that contains one. It exports the functions whose
shapes are constant, as every module of the target "wasm" does, and imports their memory. A custom
section says what the file is: the program as text, the target, and how the code is called. Where a
function has no code in the file, or the code does not suit the engine that reads it, the program is
compiled again; so it is for machine code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlcweb.codegen.registry import Kernel
from mlcweb.codegen.wasm.binary import unsigned
from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import IRModule
from mlcweb.runtime.build import build, lookup_in
from mlcweb.runtime.module import Module
from mlcweb.runtime.target import Target
from mlcweb.runtime.thread_pool import has_threads
from mlcweb.script import from_source, script
from mlcweb.tir.function import PrimFunc, prim_funcs

SECTION = "mlcweb.library"
VERSION = 1
MAGIC = b"\0asm\1\0\0\0"
MACHINE_CODE = (".o", ".so", ".dylib", ".dll")
"""What files of machine code end in; it is written where there is some."""


class LibraryError(TVMError, ValueError):
    """A file is no library, or one of another version."""


def export_library(
    path: str | Path,
    kernels: Mapping[str, Kernel],
    target: str,
    entry: str | None,
    graph: IRModule | None = None,
) -> None:
    """Write kernels to a file; with `graph`, the module of the executable that calls them."""
    program = graph or IRModule({name: kernel.function for name, kernel in kernels.items()})
    code, scratch_bytes, names = _code(kernels)
    facts = {
        "version": VERSION,
        "target": target,
        "entry": entry,
        "graph": graph is not None,
        "compiled": names,
        "scratch_bytes": scratch_bytes,
        "parallel": any(getattr(kernel, "is_parallel", False) for kernel in kernels.values()),
        "program": script(program, show_meta=True),
    }
    name, content = SECTION.encode(), json.dumps(facts).encode()
    section = unsigned(len(name)) + name + content
    library = code + b"\0" + unsigned(len(section)) + section
    if Path(path).suffix in MACHINE_CODE and any(k.language == "ll" for k in kernels.values()):
        from mlcweb.runtime.host.llvm_target import write_machine_code

        if write_machine_code(Path(path), list(kernels.values()), library):
            return
    Path(path).write_bytes(library)


def _code(kernels: Mapping[str, Kernel]) -> tuple[bytes, int, list[str]]:
    """One module of all functions that have code for constant shapes, and what they are called."""
    whole: dict[str, Any] = {
        name: k for name, k in kernels.items() if getattr(k, "stands_alone", False)
    }
    if not whole:
        return MAGIC, 0, []
    from mlcweb.runtime.host.wasm_target import compile_together

    compiled = compile_together(whole)
    return compiled.code, compiled.scratch_bytes, list(whole)


def load_module(path: str | Path, fmt: str = "") -> Any:
    """What a file holds that `export_library` wrote: a `Module`, or the executable of a model.

    Raises:
        LibraryError: the file is no such library.
    """
    data = Path(path).read_bytes()
    if not data.startswith(MAGIC):
        data = data[max(data.find(MAGIC + b"\0"), 0) :]
    try:
        facts = _facts(data, str(path))
        _check(facts)
        program = from_source(facts["program"], runs=False)
    except LibraryError:
        raise
    except Exception as error:  # whatever the damage leads to
        reason = f"{type(error).__name__}: {error}"
        raise LibraryError(f'"{path}" is a damaged library ({reason})') from error
    if not isinstance(program, IRModule):
        raise LibraryError(f'The program in "{path}" is no module')
    library = _library(data, facts, prim_funcs(program))
    if facts["graph"]:
        return provided(__name__, "load_model")(program, library, facts["target"])
    return library or build(program, facts["target"])


def _library(
    data: bytes, facts: Mapping[str, Any], functions: Mapping[str, PrimFunc]
) -> Module | None:
    """The functions with the code of the file; None where one has none, or the engine does not
    take it, or runs loops in parallel that are serial in the file."""
    if not functions or functions.keys() - facts["compiled"]:
        return None
    if facts.get("parallel") and has_threads():
        return None
    from mlcweb.runtime.host.wasm_target import load_code

    kernels = load_code(data, functions, facts["scratch_bytes"], lookup_in(functions))
    return Module(kernels, facts["entry"], facts["target"]) if kernels else None


def _facts(data: bytes, path: str) -> dict[str, Any]:
    """What the custom section says."""
    if not data.startswith(MAGIC):
        raise LibraryError(
            f'"{path}" is no WebAssembly module; load_module reads what export_library wrote '
            "(libraries of other compilers cannot be loaded here)"
        )
    name = SECTION.encode()
    position = len(MAGIC)
    while position < len(data):
        number = data[position]
        size, start = _read_unsigned(data, position + 1)
        position = start + size
        if number == 0 and data[start + 1 : start + 1 + len(name)] == name:
            facts = json.loads(data[start + 1 + len(name) : position])
            if facts["version"] != VERSION:
                raise LibraryError(f'"{path}" was written by another version of mlcweb')
            return facts
    raise LibraryError(
        f'"{path}" is a WebAssembly module that export_library did not write: it has no section '
        f'"{SECTION}" that says what its functions take'
    )


def _check(facts: Mapping[str, Any]) -> None:
    """A ValueError or KeyError where what the section says is not of the form that is written."""
    kinds = {"target": str, "graph": bool, "compiled": list, "scratch_bytes": int, "program": str}
    for name, kind in kinds.items():
        if not isinstance(facts[name], kind):
            raise ValueError(f"{name} is {facts[name]!r}")
    if not all(isinstance(name, str) for name in facts["compiled"]):
        raise ValueError(f"compiled is {facts['compiled']!r}")
    if not isinstance(facts["entry"], str | None) or facts["scratch_bytes"] < 0:
        raise ValueError(f"entry is {facts['entry']!r}, scratch_bytes {facts['scratch_bytes']}")
    Target(facts["target"])


def _read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """A number in WebAssembly's variable-length form, and the position behind it."""
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
