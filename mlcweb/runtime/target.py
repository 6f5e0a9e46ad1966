"""Targets: what to generate code for, in TVM's notation of a kind with attributes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.registry import target_names
from mlcweb.runtime.device import Device

SOURCE_KINDS = ("cuda", "metal", "webgpu", "vulkan", "opencl")
"""Kinds that a program may be scheduled for although this package cannot build for them."""

_TAGS: dict[str, dict[str, Any]] = {
    "nvidia/tesla-p100": {"kind": "cuda", "arch": "sm_60", "max_threads_per_block": 1024},
    "nvidia/geforce-rtx-3090": {"kind": "cuda", "arch": "sm_86", "max_threads_per_block": 1024},
}

_current: ContextVar[tuple[Any, ...]] = ContextVar("current_target", default=())


@dataclass(frozen=True, slots=True)
class TargetKind:
    """The kind of a target, by name."""

    name: str

    def __str__(self) -> str:
        return self.name


class Target:
    """A target from "llvm -mcpu=core-avx2 --num-cores=1", from a mapping with a "kind", or a tag.

    `kind.name` is the first word, `attrs` the options: numbers where they are numbers. As a context
    (`with target:`) it is what `Target.current()` gives. A ValueError names unknown kinds.
    """

    __slots__ = ("attrs", "host", "kind", "tag")

    def __init__(
        self,
        target: str | Mapping[str, Any] | Target,
        host: str | Mapping[str, Any] | Target | None = None,
    ) -> None:
        self.tag = target if isinstance(target, str) and target in _TAGS else ""
        attrs = _attributes(target)
        kind = attrs.pop("kind", None)
        own_host = attrs.pop("host", None)
        if kind not in (*target_names(), *SOURCE_KINDS):
            known = ", ".join((*target_names(), *SOURCE_KINDS))
            raise ValueError(f'Target kind "{kind}" is not defined; there are {known}')
        self.kind = TargetKind(kind)
        self.attrs: dict[str, Any] = attrs
        chosen = host if host is not None else own_host
        self.host = Target(chosen) if chosen is not None else None

    @property
    def is_source_only(self) -> bool:
        """Whether nothing here can build for this target."""
        return self.kind.name in SOURCE_KINDS

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.kind.name, "gpu") if self.is_source_only else ("cpu",)

    @property
    def device_type(self) -> str:
        return self.kind.name if self.is_source_only else "cpu"

    @staticmethod
    def from_device(dev: str | Device) -> Target:
        """The target that a device's programs are built for."""
        name = dev.type if isinstance(dev, Device) else dev.partition(":")[0]
        if name != "cpu":
            return Target(name)
        return Target({"kind": "llvm", "num-cores": os.cpu_count() or 1})

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with`."""
        stack = _current.get()
        if not stack and not allow_none:
            raise ValueError('Target context required: write "with Target(…):"')
        return stack[-1] if stack else None

    def export(self) -> dict[str, Any]:
        """Kind and attributes as one mapping."""
        return {"kind": self.kind.name, **self.attrs}

    def __enter__(self) -> Target:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _current.set(_current.get()[:-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.export() == other.export()

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        options = (f"-{key}={_option(value)}" for key, value in self.attrs.items())
        return " ".join((self.kind.name, *options))

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


def _attributes(target: str | Mapping[str, Any] | Target) -> dict[str, Any]:
    if isinstance(target, Target):
        return target.export() | ({"host": target.host} if target.host else {})
    if isinstance(target, Mapping):
        return dict(target)
    if target in _TAGS:
        return dict(_TAGS[target])
    if target.lstrip().startswith("{"):
        return json.loads(target)
    words = target.split()
    attrs: dict[str, Any] = {"kind": words[0] if words else ""}
    for word in words[1:]:
        key, separator, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not separator:
            raise ValueError(
                f'Target "{target}": "{word}" is not an option; write "-name=value" after the kind'
            )
        attrs[key] = _value(value)
    return attrs


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lstrip("-").isdigit():
        return int(text)
    return text.split(",") if "," in text else text


def _option(value: Any) -> str:
    return ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
