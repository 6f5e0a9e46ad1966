"""The program's other files, put where ``import`` finds them."""

from __future__ import annotations

import importlib
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

from mlcweb.ir import TVMError
from mlcweb.playground.protocol.program import ProgramFile


def place(files: list[ProgramFile]) -> None:
    """Write the files of a program into a folder of their own on Python's path.

    What an earlier call wrote and is no longer there is removed, and modules imported from the
    folder are forgotten, so that the next ``import`` reads them anew.

    Raises:
        TVMError: a name has a folder in it.
    """
    folder = _folder()
    names = {file.name for file in files}
    for name in names:
        if Path(name).name != name or name in ("", ".", ".."):
            raise TVMError(f"{name!r} is no name of a file: it must not contain a folder")
    for old in folder.iterdir():
        if old.is_file() and old.name not in names:
            old.unlink()
    for file in files:
        (folder / file.name).write_text(file.text, encoding="utf-8")
    for name, module in list(sys.modules.items()):
        # Programs can put anything there, under any `__file__`.
        origin = vars(module).get("__file__") if issubclass(type(module), ModuleType) else None
        if isinstance(origin, str) and Path(origin).parent == folder:
            del sys.modules[name]
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="program-"))
