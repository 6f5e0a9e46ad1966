"""Tiles whose innermost loops an instruction of a processor does at once."""

from __future__ import annotations

from typing import Any

from mlcweb.arith import Analyzer
from mlcweb.meta_schedule.space.multi_level_tiling import MultiLevelTiling, ReuseType, Tiled
from mlcweb.meta_schedule.space.postprocs import AUTO_TENSORIZE
from mlcweb.schedule import BlockRV, ExprRV, LoopRV, Schedule
from mlcweb.schedule.analysis.block_facts import TILING_STRUCTURE, extent_of, loop_of, place_of
from mlcweb.schedule.analysis.products import computes_alike
from mlcweb.schedule.transform import tile_with_tensor_intrin
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.tensor_intrin import TensorIntrin


def intrinsic_of(name: str) -> TensorIntrin:
    """The registered intrinsic of a name."""
    intrinsic = TensorIntrin.get(name)
    assert intrinsic is not None
    return intrinsic


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles a block whose innermost loops fit an intrinsic, which is to compute them; a block that
    computes something else stays.

    Args:
        intrin_name: the intrinsic, which is registered.
        tiling, options: those of `MultiLevelTiling`, for the loops around the intrinsic's.

    Raises:
        ValueError: there is no such intrinsic.
    """

    def __init__(self, intrin_name: str, *tiling: Any, **options: Any) -> None:
        super().__init__(*tiling, **options)
        self.intrin_name = intrin_name
        self._description = intrinsic_of(intrin_name).described_block

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        if not computes_alike(place_of(sch, block).block, self._description):
            return [sch]
        own = sch.copy()
        if not self.concerns(own, block):
            return [own]
        own.annotate(block, TILING_STRUCTURE, self.structure)
        loop = tile_with_tensor_intrin(own, block, self.intrin_name)
        if loop is None:
            return [sch]
        tile = own.blockize(loop)
        own.annotate(tile, AUTO_TENSORIZE, self.intrin_name)
        return [state.sch for state in self.tilings(Tiled(own, tile))]


class MultiLevelTilingWideVector(MultiLevelTiling):
    """Tiles so that the innermost loop over the last axis of what is written fills a vector.

    Args:
        structure, max_innermost_factor, reuse_read, reuse_write: as of `MultiLevelTiling`.
        vector_length_in_bits: of a vector register.
    """

    def __init__(
        self,
        structure: str,
        vector_length_in_bits: int,
        max_innermost_factor: int | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(structure, None, max_innermost_factor, None, reuse_read, reuse_write)
        self.vector_length_in_bits = vector_length_in_bits

    def split_loop(
        self, sch: Schedule, block: BlockRV, loop: LoopRV, n: int
    ) -> tuple[tuple[ExprRV | int, ...], list[LoopRV]]:
        place, statement = place_of(sch, block), loop_of(sch, loop)
        (written,) = place.block.writes
        last = place.realize.iter_values[len(written.region) - 1]
        if not Analyzer().can_prove_equal(statement.loop_var, last):
            return super().split_loop(sch, block, loop, n)
        lanes = self.vector_length_in_bits // dtypes.bits(written.buffer.dtype)
        if (extent_of(statement) or 0) > lanes:
            outer, vector = sch.split(loop, [None, lanes])
            factors = self.sample_factors(sch, outer, n - 1)
            return (*factors, lanes), [*sch.split(outer, factors), vector]
        whole = (*[1] * (n - 1), statement.extent)
        return whole, sch.split(loop, whole)
