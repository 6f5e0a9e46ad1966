"""`tvm.contrib.cc` and `tvm.contrib.clang`: other compilers, where this machine has them.

`tvm.build` needs none of them. They are for the code of users: libraries of C that Python loads,
and LLVM's text of micro-kernels.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mlcweb.compat.absent import AbsentError

COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")


def get_cc() -> str | None:
    """The compiler of C and C++: what the variable CXX says, or the first that is found."""
    named = os.environ.get("CXX") or os.environ.get("CC")
    if sys.platform == "emscripten":
        return None
    return named or next((path for name in COMPILERS if (path := shutil.which(name))), None)


def _compiler(named: str | None, instead: str) -> str:
    compiler = named or get_cc()
    if compiler is None:
        raise AbsentError(f"There is no C compiler here: {instead}")
    return compiler


def _run(command: Sequence[str], cwd: str | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Compilation error:\n{done.stdout}{done.stderr}\n{' '.join(command)}")


def _listed(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def create_shared(
    output: str,
    objects: str | Sequence[str],
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: object = None,
) -> None:
    """Compile and link files to a shared library.

    Raises:
        AbsentError: there is no compiler.
        RuntimeError: it refuses; says what it said.
    """
    compiler = _compiler(cc, "tvm.build and lib.export_library(path) need none")
    _run([compiler, "-shared", "-fPIC", *(options or ()), "-o", output, *_listed(objects)], cwd)


def create_executable(
    output: str,
    objects: str | Sequence[str],
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: object = None,
) -> None:
    """Compile and link files to a program; raises as `create_shared`."""
    compiler = _compiler(cc, "python -m mlcweb run runs a program")
    _run([compiler, *(options or ()), "-o", output, *_listed(objects)], cwd)


def create_staticlib(output: str, inputs: str | Sequence[str], ar: str | None = None) -> None:
    """Put object files into an archive; raises as `create_shared`."""
    archiver = ar or shutil.which("ar")
    if archiver is None:
        raise AbsentError("There is no archiver (ar) here: lib.export_library(path) needs none")
    _run([archiver, "rcs", output, *_listed(inputs)])


def cross_compiler(
    compile_func: object, options: Sequence[str] | None = None, **other: object
) -> object:
    """`create_shared` with another compiler, given by its name."""
    if not isinstance(compile_func, str):
        return compile_func

    def compile(output: str, objects: str | Sequence[str], more: Sequence[str] = ()) -> None:
        create_shared(output, objects, [*(options or ()), *more], compile_func)

    return compile


def find_clang(required: bool = True) -> list[str]:
    """The paths of Clang.

    Raises: AbsentError: there is none, unless `required` is False.
    """
    path = shutil.which("clang") if sys.platform != "emscripten" else None
    if required and path is None:
        raise AbsentError(f"There is no clang here: {INSTEAD}")
    return [path] if path else []


INSTEAD = (
    "write the micro-kernel as @T.prim_func, or as a Python function, and call it by "
    'T.call_extern("name", ...) (lesson 7)'
)


def create_llvm(
    inputs: str | Sequence[str],
    output: str | None = None,
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> str:
    """LLVM's text of C++: the code itself, or files.

    Raises:
        AbsentError: there is no Clang.
        RuntimeError: it refuses; says what it said.
    """
    compiler = cc or find_clang()[0]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, text in enumerate(_listed(inputs)):
            path = Path(folder) / f"input{number}.cc"
            if not Path(text).suffix or "\n" in text:
                path.write_text(text)
                files.append(str(path))
            else:
                files.append(text)
        result = output or str(Path(folder) / "output.ll")
        _run([compiler, "-O3", "-emit-llvm", "-S", *(options or ()), *files, "-o", result])
        return Path(result).read_text()
