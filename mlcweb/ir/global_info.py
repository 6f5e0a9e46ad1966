"""What holds for a whole module: the virtual devices that its tensors are annotated with.

A program runs on one device here, so that annotations say where TVM would put a tensor, and change
no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mlcweb.ir.errors import DiagnosticError


class GlobalInfo:
    """Base of what the lists of `I.module_global_infos` hold."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DummyGlobalInfo(GlobalInfo):
    """An entry without content."""

    def __repr__(self) -> str:
        return "I.dummy_global_info()"


@dataclass(frozen=True, slots=True)
class VDevice(GlobalInfo):
    """A device that is not bound to a real one.

    Attributes:
        target: a target, as a text ("llvm -num-cores 4"), a mapping with a "kind", or a `Target`.
        vdevice_id: which device of this kind.
        memory_scope: where in its memory.
    """

    target: Any = None
    vdevice_id: int = 0
    memory_scope: str = "global"

    @property
    def kind(self) -> str:
        """The kind of the target."""
        if isinstance(self.target, Mapping):
            return str(self.target["kind"])
        return str(self.target or "llvm").split()[0]

    def __hash__(self) -> int:
        return hash((self.kind, self.vdevice_id, self.memory_scope))

    def __str__(self) -> str:
        return vdevice_name(self)

    def __repr__(self) -> str:
        target = dict(self.target) if isinstance(self.target, Mapping) else str(self.target)
        text = repr(target).replace("'", '"')
        return f'I.vdevice({text}, {self.vdevice_id}, "{self.memory_scope}")'


_devices: ContextVar[tuple[VDevice, ...]] = ContextVar("vdevices", default=())


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice | None:
    """The virtual device of a kind in the module that is read; the first where none is said."""
    return find_vdevice(f"{target_kind or 'vdevice'}:{max(device_index, 0)}")


@contextmanager
def known_vdevices(infos: Mapping[str, Sequence[Any]]) -> Iterator[None]:
    """While active, devices are named by their order in the global infos of a module."""
    token = _devices.set(tuple(infos.get("vdevice", ())))
    try:
        yield
    finally:
        _devices.reset(token)


def vdevice_name(device: VDevice) -> str:
    """How annotations name a device: "llvm:0:global" is the module's first of that kind. Outside of
    a module the number is the device's own."""
    alike = [other for other in _devices.get() if other.kind == device.kind]
    number = alike.index(device) if device in alike else device.vdevice_id
    return f"{device.kind}:{number}:{device.memory_scope}"


def find_vdevice(name: VDevice | str | None) -> VDevice | None:
    """The virtual device of the module that is read: "cuda:1" for the second of that kind,
    "cuda:1:global" to say its memory, too, "vdevice:2" for the third of all. Outside of a module a
    kind names a new one, and a number none.

    Raises:
        DiagnosticError: the module has no such device.
    """
    if not isinstance(name, str):
        return name
    devices = _devices.get()
    kind, _, rest = name.partition(":")
    index, _, scope = rest.partition(":")
    number = int(index or 0)
    if kind == "vdevice" and number < len(devices):
        return devices[number]
    if not devices:
        return None if kind == "vdevice" else VDevice(kind, number, scope or "global")
    alike = [device for device in devices if device.kind == kind]
    if number < len(alike) and scope in ("", alike[number].memory_scope):
        return alike[number]
    choices = ", ".join(map(vdevice_name, devices))
    raise DiagnosticError(f'The module has no virtual device "{name}"; it has {choices}')
