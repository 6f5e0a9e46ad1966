"""`tvm.rpc.LocalSession`: the session with a remote machine that is this one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlcweb.compat.tempdir import TempDirectory
from mlcweb.runtime.device import DEVICE_TYPES, Device, device
from mlcweb.runtime.library import load_module
from mlcweb.runtime.registry import get_global_func


class LocalSession:
    """What is uploaded is kept in a folder of its own; libraries and registered functions run in
    this process, on its devices: `session.cpu()`, `session.cuda(0)` and so on."""

    def __init__(self) -> None:
        self._files = TempDirectory()

    def upload(self, data: str | Path | bytes | bytearray, target: str | None = None) -> None:
        """Copy a file, or bytes, into the folder; `target` is its name there."""
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ValueError("upload of bytes needs the name of the file: target=...")
        else:
            target = target or Path(data).name
            data = Path(data).read_bytes()
        self._path(target).write_bytes(data)

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the folder."""
        return bytearray(self._path(path).read_bytes())

    def remove(self, path: str) -> None:
        """Delete a file of the folder."""
        self._path(path).unlink()

    def listdir(self, path: str = "") -> str:
        """The names of the folder's files, between commas."""
        return ",".join(sorted(entry.name for entry in self._path(path).iterdir()))

    def load_module(self, path: str) -> Any:
        """The library or model that an uploaded file holds."""
        return load_module(self._path(path))

    def get_function(self, name: str) -> Callable[..., Any]:
        """A registered function."""
        return get_global_func(name)

    def device(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """A device of this machine."""
        return device(dev_type, dev_id)

    def __getattr__(self, name: str) -> Callable[..., Device]:
        kind = "opencl" if name == "cl" else name
        if kind not in DEVICE_TYPES:
            raise AttributeError(f"a LocalSession has no {name}", name=name, obj=self)
        return functools.partial(self.device, kind)

    def _path(self, name: str) -> Path:
        path = (self._files.path / name).resolve()
        if not path.is_relative_to(self._files.path.resolve()):
            raise ValueError(f'"{name}" is outside of the session\'s folder')
        return path


__all__ = ["LocalSession"]
