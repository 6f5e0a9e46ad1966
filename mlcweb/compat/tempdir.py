"""`tvm.contrib.utils`: folders for a while."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path


class TempDirectory:
    """A folder that goes with this object, or with the end of a `with`."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        self._delete: Callable[[], object] | None = None
        if custom_path:
            Path(custom_path).mkdir(parents=True)
            self.temp_dir = custom_path
        elif keep_for_debug:
            self.temp_dir = tempfile.mkdtemp()
        else:
            self.temp_dir = tempfile.mkdtemp()
            self._delete = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> Path:
        return Path(self.temp_dir)

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    def remove(self) -> None:
        if self._delete is not None:
            self._delete()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new folder. `custom_path` names it, and must not exist yet."""
    return TempDirectory(custom_path, keep_for_debug)


def which(exec_name: str) -> str | None:
    """The path of a program; None where there is none."""
    return shutil.which(exec_name)


def is_source_path(path: str) -> bool:
    """Whether a text is the path of a file, rather than what would be in it."""
    _, dot, suffix = path.rpartition(".")
    looks_so = bool(dot) and "\n" not in path and suffix.strip() == suffix
    return looks_so or Path(path).exists()
