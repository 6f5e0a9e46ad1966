"""Written by `python -m tests.schedule.stub`, from the functions in `primitives`."""

from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.schedule.argument_types import AnnotationArgument, BufferArgument, MapArgument
from mlcweb.schedule.base import ScheduleBase
from mlcweb.schedule.errors import ScheduleError as ScheduleError
from mlcweb.schedule.instruction import BlockRV, ExprRV, LoopRV
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.tensor_intrin import TensorIntrin

class Schedule(ScheduleBase):
    """A program being transformed, with TVM's interface."""

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV | str) -> LoopRV:
        """Put a loop of one iteration around a block or loop."""

    def annotate(
        self, block_or_loop: BlockRV | LoopRV | str, ann_key: str, ann_val: AnnotationArgument
    ) -> None:
        """Annotate a block or loop with a value; a key that is there already keeps its value."""

    def annotate_buffer_access(
        self,
        block: BlockRV | str,
        buffer_index: int,
        buf_type: str,
        gen_new_ranges: Callable[..., Any],
    ) -> None:
        """Declare which region of a buffer a block reads or writes, where it is not what the
        accesses in the block say: accesses that depend on data, or on conditions."""

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Run the iterations of a loop on a thread axis such as "blockIdx.x" or "threadIdx.y"."""

    def blockize(
        self, target: LoopRV | Sequence[BlockRV | str], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """Make the nest that starts at a loop a block of its own, which touches regions of
        buffers."""

    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute what a block computes of its iterators alone (most often indices) in blocks of
        their own, and let the block read the results."""

    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
    ) -> list[BlockRV]:
        """Let a block update a copy in `storage_scope` of the box of a buffer that it reads and
        writes."""

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy a buffer that a block reads into `storage_scope`, and let its readers read the
        copy."""

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Let a block write into a copy in `storage_scope`, which a new block copies to the
        buffer."""

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether `decompose_padding` would accept this."""

    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a producer under a loop of its consumers, where it makes just what they need
        there."""

    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's values where its consumers read them, and remove the block."""

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Split a block that stores a value where a condition holds, and a constant elsewhere, into
        one that fills everything with the constant, right before `loop`, and one that stores the
        value."""

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Move the init of a reduction block into a block of its own, right before `loop`."""

    def enter_postproc(self) -> None:
        """Mark in the trace that what follows is post-processing. The program stays the same."""

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Fuse nested loops into one."""

    def fuse_reduction_epilogue(
        self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str
    ) -> None:
        """Start a sum from the term that a second block would add to it, and remove that block."""

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name in a function ("root" is the function's root block)."""

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The outermost blocks below a block or loop."""

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that read what a block writes."""

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block up to the next block outside, outermost first."""

    def get_output_blocks(
        self, scope_block: BlockRV | str | None = None, *, block: BlockRV | str | None = None
    ) -> list[BlockRV]:
        """The blocks inside a block, however deep, that write buffers which live on outside of the
        block around them."""

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of the same scope that write what a block reads."""

    def get_sblock(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name in a function ("root" is the function's root block)."""

    def loop_partition(
        self, loop: LoopRV, factors: Sequence[ExprRV | int | None], preserve_unit_iters: bool = True
    ) -> list[LoopRV]:
        """Cut a loop into loops that run one after another, each with a copy of the body."""

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Run the bodies of loops of the same shape one after another in one loop."""

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Round the domains of a block's iterators up to multiples of `padding`."""

    def parallel(self, loop: LoopRV) -> None:
        """Run the iterations of a loop in any order, possibly at once."""

    def read_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
    ) -> BlockRV:
        """Copy what an iteration of a loop reads of a buffer, in one block, before its first use
        there."""

    def reindex(self, block: BlockRV | str, buffer: BufferArgument) -> BlockRV:
        """Let a block access a buffer through a copy, which has a dimension for each iterator in
        the simplified indices of the buffer. A new block makes the copy right before the block's
        loops, or copies back right after them."""

    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int,
        storage_scope: str,
        index_map: MapArgument,
    ) -> BlockRV:
        """Let a block read a buffer through a copy in `storage_scope`, at the indices that a map of
        the block's iterators gives."""

    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int,
        storage_scope: str,
        index_map: MapArgument,
    ) -> BlockRV:
        """Let a block write a buffer through a copy in `storage_scope`, at the indices that a map
        of the block's iterators gives. Checked: as for `reindex_cache_read`."""

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put nested loops into the given order; loops between them that are not named stay in
        place."""

    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """List the iterators of a block in a new order: first the one at `new_order[0]`, and so
        on."""

    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a consumer under a loop of its producers, where it uses just what they have made
        there."""

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Apply a block to each value of its only producer as that is computed, and remove the
        block."""

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Give every iteration of a reduction loop a result of its own, which the block then
        reduces."""

    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Buffer) -> None:
        """Fold a buffer to the part that an iteration of the loops around its users needs, and
        compute in each iteration only the elements that the one before has not left there."""

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of the candidates, drawn with the given probabilities. The decision is its index."""

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A random loop to compute a block at, for `compute_at`; its decision counts the loops of
        the consumers from the outermost. Decision -1 leaves the block where it is, -2 inlines
        it."""

    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` random factors whose product is the extent of a loop; the product of those from
        `partition_pos` on is a multiple of `innerpart_factor`."""

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` random factors whose product is the extent of a loop, the last at most
        `max_innermost_factor`."""

    def set_axis_separator(
        self, block: BlockRV | str, buffer: BufferArgument, axis_separators: Sequence[int] | None
    ) -> None:
        """Say at which dimensions a buffer that a block reads or writes is cut when it is
        flattened: the dimensions before, between and after the separators become one physical
        dimension each."""

    def set_scope(
        self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str
    ) -> None:
        """Move a buffer that a block writes to another storage scope; its name tells the scope."""

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[ExprRV | int | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Split a loop into nested loops of the extents `factors`; one may be None (inferred)."""

    def storage_align(
        self,
        block: BlockRV | str,
        buffer_index: int | str | Buffer,
        axis: int,
        factor: int,
        offset: int,
    ) -> None:
        """Ask for rows of a buffer that start at multiples of `factor` elements, plus `offset`: the
        stride of `axis` becomes `factor * k + offset`, so that rows lie in different memory
        banks."""

    def tensorize(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        tensor_intrin: str | TensorIntrin,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Compute a block, or the nest at a loop, by a registered tensor intrinsic."""

    def transform_block_layout(self, block: BlockRV | str, index_map: MapArgument) -> None:
        """Replace the iterators of a block, and the loops around it, by those that a map gives."""

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: BufferArgument,
        index_map: MapArgument,
        pad_value: int | float | PrimExpr | MapArgument | None = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Store each element of a buffer that a block reads or writes at the indices that
        `index_map` gives, everywhere in the program; a parameter gets another shape."""

    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Remove the annotation `ann_key` from a block or loop; an IndexError where there is
        none."""

    def unroll(self, loop: LoopRV) -> None:
        """Repeat the body of a loop once per iteration in the code."""

    def unsafe_hide_buffer_access(
        self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]
    ) -> None:
        """Take buffers out of what a block declares to read or write, so that a description of an
        intrinsic, which does not know them, matches the block."""

    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int, dtype: str) -> None:
        """Give the buffer that a block writes as its `buffer_index`-th another element type."""

    def vectorize(self, loop: LoopRV) -> None:
        """Run the iterations of a loop as lanes of vectors."""

    def write_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
    ) -> BlockRV:
        """Let an iteration of a loop write a buffer through a copy, which one block copies back
        after its last use there."""
