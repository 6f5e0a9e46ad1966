"""Tensor intrinsics: what a tile computes, and what to run instead of the loops that say so."""

from __future__ import annotations

from dataclasses import dataclass

from mlcweb.ir.lazy_attributes import provided
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.stmt import Block, BlockRealize


@dataclass(frozen=True, eq=False, slots=True)
class TensorIntrin:
    """A tensor intrinsic: `desc` describes a computation on regions by loops over elements, `impl`
    does the same in another way.

    Both are functions on the same buffers, whose body is one block that says which region of each
    buffer it reads and writes. Buffers of `impl` may have symbolic strides and offsets; the program
    that is tensorized gives them values.
    """

    desc: PrimFunc
    impl: PrimFunc

    def __post_init__(self) -> None:
        described, implemented = self.described_buffers, self.implemented_buffers
        if len(described) != len(implemented):
            raise ValueError(
                f"The description has {len(described)} buffer parameter(s) and the implementation "
                f"{len(implemented)}; they must be the same"
            )
        for desc, impl in zip(described, implemented, strict=True):
            if desc.dtype != impl.dtype or desc.ndim != impl.ndim:
                raise ValueError(
                    f'The buffer "{desc.name}" of the description has {desc.ndim} dimension(s) of '
                    f'{desc.dtype}, but "{impl.name}" of the implementation has {impl.ndim} of '
                    f"{impl.dtype}"
                )
        regions = (*self.described_block.reads, *self.described_block.writes)
        for buffer in described:
            if not any(region.buffer is buffer for region in regions):
                raise ValueError(
                    f'The block of the description neither reads nor writes the buffer "'
                    f'{buffer.name}", so nothing of a program could stand for it'
                )
        _root_block(self.impl, "implementation")

    @property
    def described_block(self) -> Block:
        """The block that is the description's body."""
        return _root_block(self.desc, "description")

    @property
    def implemented_block(self) -> Block:
        """The block that is the implementation's body."""
        return _root_block(self.impl, "implementation")

    @property
    def described_buffers(self) -> tuple[Buffer, ...]:
        return _buffers(self.desc, "description")

    @property
    def implemented_buffers(self) -> tuple[Buffer, ...]:
        return _buffers(self.impl, "implementation")

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Register an intrinsic under a name. A name that is taken is a ValueError unless
        `override` is set."""
        if name in _intrinsics and not override:
            raise ValueError(
                f'TensorIntrin "{name}" has already been registered; pass override=True to '
                "replace it"
            )
        _intrinsics[name] = TensorIntrin(desc, impl)

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic registered under `name`; a ValueError where there is none, or None if that
        is allowed."""
        if name not in _intrinsics and name.startswith(_STANDARD):
            provided(__name__, "register_standard")
        if name in _intrinsics or allow_missing:
            return _intrinsics.get(name)
        registered = ", ".join(f'"{registered}"' for registered in sorted(_intrinsics)) or "none"
        raise ValueError(
            f'TensorIntrin "{name}" is not registered; registered are: {registered}. Register it '
            "with tvm.tir.TensorIntrin.register(name, desc, impl)"
        )


def name_of(intrinsic: str | TensorIntrin) -> str:
    """The name under which an intrinsic is registered; a ValueError where it is not."""
    if isinstance(intrinsic, str):
        TensorIntrin.get(intrinsic)
        return intrinsic
    for name, registered in _intrinsics.items():
        if registered is intrinsic:
            return name
    raise ValueError("The TensorIntrin is not registered, so a trace could not name it")


_intrinsics: dict[str, TensorIntrin] = {}

_STANDARD = ("wmma_", "mma_", "dot_", "dp4a", "sdot4")
"""How the names begin of those that are registered when one of them is first asked for."""


def _root_block(function: PrimFunc, what: str) -> Block:
    if not isinstance(function.body, BlockRealize):
        raise ValueError(f"The body of the {what} is not a block with its reads and writes")
    return function.body.block


def _buffers(function: PrimFunc, what: str) -> tuple[Buffer, ...]:
    for param in function.params:
        if param not in function.buffer_map:
            raise ValueError(f'The parameter "{param.name}" of the {what} is not a buffer')
    return function.parameter_buffers
