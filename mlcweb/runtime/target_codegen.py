"""`tvm.target.codegen`: what LLVM knows of the processors that targets name.

A target "llvm" without a model is for this very machine, as in `tvm.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.runtime.build import options_of
from mlcweb.runtime.target import Target


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The version of LLVM: 22.

    Raises:
        RuntimeError: there is no LLVM here, unless `allow_none`.
    """
    if Target("llvm").code_generator != "llvm":
        if allow_none:
            return None
        raise TVMError('LLVM is not here; pip install "mlcweb[native]" adds it outside of browsers')
    return _llvm().binding().llvm_version_info[0]


def target_has_features(cpu_features: str | Sequence[str], target: Target | None = None) -> bool:
    """Whether the processor of a target, by default the one in use, has all of some features by
    LLVM's names: "avx2". That of another kind than "llvm" has none.

    Raises:
        InternalError: no target is given or in use.
        TVMError: there is no LLVM here, or it knows no processor of that name.
    """
    processor = _processor(target)
    names = [cpu_features] if isinstance(cpu_features, str) else cpu_features
    return processor is not None and all(
        _llvm().has_feature(processor.triple, processor.cpu, processor.features, name)
        for name in names
    )


llvm_cpu_has_features = target_has_features


def llvm_get_cpu_features(target: Target | None = None) -> set[str]:
    """What the processor of a target has, by LLVM's names, but for what only says which code is
    fast; raises as `target_has_features`."""
    processor = _processor(target)
    if processor is None:
        return set()
    return _llvm().features_of(processor.triple, processor.cpu, processor.features)


def llvm_get_cpu_archlist(target: Target | None = None) -> list[str]:
    """The models of processors that run code of a target's triple; raises as
    `target_has_features`."""
    processor = _processor(target)
    return [] if processor is None else list(_llvm().family(processor.triple).models)


def llvm_is_valid_cpu(cpu: str, triple: str) -> bool:
    """Whether LLVM knows a model of processors that run code of a triple."""
    llvm_version_major()
    return cpu in _llvm().family(triple).models


def llvm_get_vector_width(target: Target | None = None) -> int:
    """The bits of a target's vectors: what `-vector-width` says, else those of its processor; -1
    for another kind than "llvm". Raises as `target_has_features`."""
    chosen = _chosen(target)
    if "vector-width" in chosen.attrs:
        return chosen.attrs["vector-width"]
    processor = _processor(chosen)
    return -1 if processor is None else 8 * processor.vector_bytes


def llvm_get_targets() -> list[str]:
    """The families of processors that LLVM makes code for."""
    llvm_version_major()
    return list(_llvm().families())


def llvm_get_system_cpu() -> str:
    """LLVM's name of this machine's processor."""
    llvm_version_major()
    return _llvm().binding().get_host_cpu_name()


def llvm_get_system_triple() -> str:
    """LLVM's name of this machine."""
    llvm_version_major()
    return _llvm().binding().get_default_triple()


def _llvm() -> Any:
    from mlcweb.runtime.host import llvm_processors

    return llvm_processors


def _chosen(target: Target | None) -> Target:
    chosen = target if target is not None else Target.current(allow_none=False)
    assert chosen is not None
    return chosen


def _processor(target: Target | None) -> Any:
    """The processor of a target "llvm"; None for another."""
    chosen = _chosen(target)
    if chosen.kind.name != "llvm":
        return None
    llvm_version_major()
    from mlcweb.runtime.host.llvm_target import options_of as llvm_options

    return llvm_options(options_of(chosen)).processor
