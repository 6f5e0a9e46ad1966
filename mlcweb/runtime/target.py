"""Targets: what to generate code for, in TVM's notation of a kind with attributes."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mlcweb.codegen.registry import find_target, target_names
from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.errors import InternalError
from mlcweb.ir.structural import COMPARED_AS
from mlcweb.runtime.device import DEVICE_TYPES, Device
from mlcweb.runtime.host.gpu import gpu_device, target_attributes
from mlcweb.runtime.target_facts import DEVICE_KINDS, KINDS, KindFacts
from mlcweb.runtime.target_options import check_options, value_of_text
from mlcweb.runtime.target_tags import TAGS
from mlcweb.tir.target_description import TargetDescription, options_of

SOURCE_KINDS = tuple(KINDS)
"""Kinds that a program may be scheduled for although this package cannot build for them."""

_tags = dict(TAGS)

_UNSET: dict[str, Any] = {
    "libs": [], "mcpu": "", "mattr": [], "model": "unknown", "device_name": "", "vtcm_capacity": 0,
    "supports_cooperative_matrix": False, "supports_integer_dot_product": False,
}  # fmt: skip
"""Options that may be asked for where they are not set."""

_ARM_FEATURES = {
    "has_asimd": "neon", "has_sve": "sve", "has_sme": "sme", "has_dotprod": "dotprod",
    "has_matmul_i8": "i8mm", "has_fp16_simd": "fullfp16",
}  # fmt: skip
"""Features of Arm's processors by the names of schedules -> by LLVM's."""

_current: ContextVar[tuple[Any, ...]] = ContextVar("current_target", default=())


class TargetContextError(InternalError, ValueError):
    """No target is in use. TVM raises an InternalError, or a ValueError in older versions."""


@dataclass(frozen=True, slots=True)
class TargetKind:
    """The kind of a target, by name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TargetFeatures:
    """What the processor of a target has, as attributes: those that the target gives by names such
    as "feature.has_avx", those of Arm's processors that LLVM knows, and None for any other."""

    target: Target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        attrs = self.target.attrs
        own = attrs.get(f"feature.{name}")
        is_arm = str(attrs.get("mtriple", "")).startswith(("arm", "aarch64"))
        if own is not None or name not in _ARM_FEATURES or not is_arm:
            return own
        from mlcweb.runtime.target_codegen import llvm_version_major, target_has_features

        if llvm_version_major(allow_none=True) is None:
            return None
        return target_has_features(_ARM_FEATURES[name], self.target)


class Target(metaclass=NamedClass):
    """A target from "llvm -mcpu=core-avx2 --num-cores=1", from a mapping with a "kind", or a tag.

    `kind.name` is the first word, `attrs` the options: numbers where they are numbers. As a context
    (`with target:`) it is what `Target.current()` gives. A ValueError names what is unknown: the
    kind, the tag or an option.
    """

    __slots__ = ("host", "kind", "options", "tag")

    def __init__(
        self,
        target: str | Mapping[str, Any] | Target,
        host: str | Mapping[str, Any] | Target | None = None,
    ) -> None:
        self.tag = target if isinstance(target, str) and target in _tags else ""
        if isinstance(target, Target):
            self.tag = target.tag
        attrs = _attributes(target)
        if "tag" in attrs:
            self.tag = attrs.pop("tag")
            attrs = {**(_attributes(self.tag) if self.tag else {}), **attrs}
        kind = attrs.pop("kind", None)
        own_host = attrs.pop("host", None)
        if kind not in (*target_names(), *SOURCE_KINDS):
            kinds = ", ".join((*target_names(), *SOURCE_KINDS))
            raise ValueError(f'Target kind "{kind}" is not defined; there are {kinds}')
        self.kind = TargetKind(kind)
        check_options(kind, attrs)
        self.options: dict[str, Any] = attrs
        chosen = host if host is not None else own_host
        self.host = Target(chosen) if chosen is not None else None

    @property
    def attrs(self) -> dict[str, Any]:
        """The options, and those of its kind by default: `max_num_threads` of "cuda"."""
        return {**self._facts.attrs, **self.options}

    @property
    def is_source_only(self) -> bool:
        """Whether nothing here can build for this target."""
        return self.kind.name in SOURCE_KINDS and self.kind.name not in DEVICE_KINDS

    @property
    def code_generator(self) -> str:
        """What makes its code for this machine's processor: "llvm", "wasm", "numpy", …; "" where
        its programs are for another device."""
        return "" if self.kind.name in SOURCE_KINDS else find_target(self.kind.name).name

    @property
    def compute_capability(self) -> int:
        """That of the GPU of NVIDIA which `arch` names, times 10, as in "sm_80"; 0 if none is."""
        version = re.fullmatch(r"sm_(\d+)[af]?", str(self.attrs.get("arch", "")))
        return int(version[1]) if version and self.kind.name == "cuda" else 0

    @property
    def limits(self) -> dict[str, Any]:
        """What its devices have: of its own attributes, else what the GPU says that is there, else
        those of its kind."""
        kind = self.kind.name
        here = _limits_here(kind) if kind == "webgpu" else {}
        return {**self._facts.attrs, **here, **self.options}

    @property
    def _facts(self) -> KindFacts:
        return KINDS.get(self.kind.name) or KindFacts("cpu", ("cpu",), {})

    @property
    def keys(self) -> tuple[str, ...]:
        """What schedules are chosen by: the keys that are given, the device, those of the kind."""
        own_keys = self.options.get("keys", ())
        listed = own_keys.split(",") if isinstance(own_keys, str) else own_keys
        device = (self.options["device"],) if "device" in self.options else ()
        return tuple(dict.fromkeys((*listed, *device, *self._facts.keys)))

    @property
    def device_type(self) -> str:
        return self._facts.device

    def get_target_device_type(self) -> int:
        """DLPack's number of the device that programs run on."""
        return DEVICE_TYPES[self.device_type]

    @property
    def features(self) -> TargetFeatures:
        """What the processor has."""
        return TargetFeatures(self)

    def get_kind_attr(self, attr_name: str) -> Any:
        """An attribute that all targets of the kind have; None where it is not known."""
        return self._facts.attrs.get(attr_name)

    def __getattr__(self, name: str) -> Any:
        """An option by its name, `mcpu` or `num_cores`: of this target, else of its kind."""
        if name.startswith("__") or name in Target.__slots__:
            raise AttributeError(name)
        for spelling in (name, name.replace("_", "-"), f"feature.{name}"):
            if spelling in self.attrs:
                return self.attrs[spelling]
        if name in _UNSET:
            return _UNSET[name]
        raise AttributeError(f"{self!r} has no attribute {name}", name=name, obj=self)

    def with_host(self, host: str | Mapping[str, Any] | Target | None = None) -> Target:
        """The target with another host."""
        return Target(self, host)

    @staticmethod
    def list_kinds() -> list[str]:
        return [*target_names(), *SOURCE_KINDS]

    @staticmethod
    def target_or_current(target: Any) -> Target:
        """The target, else that of the innermost `with`; a ValueError where there is none."""
        chosen = Target(target) if target is not None else Target.current()
        if chosen is None:
            raise ValueError("Target is not set in env or passed as argument.")
        return chosen

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        """The target that a text, a mapping or a target says; None for None."""
        return None if target is None else Target(target)

    @staticmethod
    def canon_target_and_host(
        target: Any, target_host: Any = None
    ) -> tuple[Target | None, Target | None]:
        """A target with its host, and that host."""
        if target is None:
            if target_host is not None:
                raise AssertionError("A host without a target")
            return None, None
        chosen = Target(target, target_host)
        return chosen, chosen.host

    @staticmethod
    def canon_multi_target(multi_targets: Any) -> list[Target] | None:
        """The targets that a list says, or one alone; None for None."""
        if multi_targets is None:
            return None
        several = isinstance(multi_targets, (list, tuple))
        return [Target(target) for target in (multi_targets if several else [multi_targets])]

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """The targets that a list says, or one alone, each with the host."""
        targets = Target.canon_multi_target(target)
        if targets is None:
            raise AssertionError("There are no targets")
        return [Target(one, target_host) for one in targets]

    @staticmethod
    def from_device(device: str | Device) -> Target:
        """The target that a device's programs are built for."""
        name = device.type if isinstance(device, Device) else device.partition(":")[0]
        if name != "cpu":
            return Target({"kind": name, **_limits_here(name)})
        return Target({"kind": "llvm", "num-cores": os.cpu_count() or 1})

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with`; a TargetContextError where there has to be one."""
        stack = _current.get()
        if not stack and not allow_none:
            raise TargetContextError('Target context required: write "with Target(…):"')
        return stack[-1] if stack else None

    def export(self) -> dict[str, Any]:
        """Kind and attributes as one mapping."""
        return {"kind": self.kind.name, **self.options}

    def description(self) -> TargetDescription:
        """What a script says of it, `T.target(…)`."""
        host = None if self.host is None else self.host.export()
        return TargetDescription(self.export(), host)

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
        options = (f"-{key}={_option(value)}" for key, value in self.options.items())
        return " ".join((self.kind.name, *options))

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


COMPARED_AS[Target] = options_of


def _limits_here(kind: str) -> dict[str, Any]:
    """The limits of the GPU that a kind's own driver reaches; none where another stands in."""
    device = gpu_device(kind) if kind in ("cuda", "opencl", "webgpu") else None
    return target_attributes(device) if device is not None and device.language == kind else {}


def list_tags() -> dict[str, Target]:
    """The targets that have a tag, by tag."""
    return {tag: Target(tag) for tag in _tags}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Give a target a tag. A tag that is taken is a ValueError, unless `override` is set."""
    if name in _tags and not override:
        raise ValueError(f'Tag "{name}" is taken; pass override=True to replace it')
    _tags[name] = dict(config)
    return Target(name)


def cuda(model: str = "unknown", arch: str | None = None, options: Any = None) -> Target:
    """A target for NVIDIA's GPUs."""
    return Target({"kind": "cuda", "model": model, **({"arch": arch} if arch else {})})


def rocm(model: str = "unknown", options: Any = None) -> Target:
    """A target for AMD's GPUs."""
    return Target({"kind": "rocm", "model": model})


def arm_cpu(model: str = "unknown", options: Any = None) -> Target:
    """A target for processors of Arm."""
    return Target({"kind": "llvm", "keys": ["arm_cpu"], "device": "arm_cpu", "model": model})


def _opencl(device: str, model: str) -> Target:
    return Target({"kind": "opencl", "device": device, "model": model})


def mali(model: str = "unknown", options: Any = None) -> Target:
    """A target for Arm's GPUs."""
    return _opencl("mali", model)


def intel_graphics(model: str = "unknown", options: Any = None) -> Target:
    """A target for Intel's GPUs."""
    return _opencl("intel_graphics", model)


def adreno(model: str = "unknown", options: Any = None) -> Target:
    """A target for Qualcomm's GPUs."""
    return _opencl("adreno", model)


def _attributes(target: str | Mapping[str, Any] | Target) -> dict[str, Any]:
    if isinstance(target, Target):
        return target.export() | ({"host": target.host} if target.host else {})
    if isinstance(target, Mapping):
        return dict(target)
    if not isinstance(target, str):
        raise ValueError(f"A target is a text or a mapping, not {type(target).__name__}")
    if target in _tags:
        return dict(_tags[target])
    if target.lstrip().startswith("{"):
        try:
            return json.loads(target)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"A target that is no JSON: {error}") from None
    try:
        kind, *words = shlex.split(target) or [""]
    except ValueError as error:
        raise ValueError(f"A target with quotation marks that do not match: {error}") from None
    attrs: dict[str, Any] = {"kind": kind}
    while words:
        word = words.pop(0)
        key, separator, value = word.lstrip("-").partition("=")
        if not separator and words and not words[0].startswith("-"):
            separator, value = " ", words.pop(0)
        if not word.startswith("-") or not separator:
            raise ValueError(
                f'Target "{target}": "{word}" is not an option; write "-name=value" after the kind'
            )
        attrs[key] = value_of_text(kind, key, value)
    return attrs


def _option(value: Any) -> str:
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return shlex.quote(text) if re.search(r"\s|^-", text) else text
