"""The paged cache of keys and values of language models, `vm.builtin.paged_attention_kv_cache_…`.

Each layer has an array of pages; cached_sequences.py knows which belong to which sequence. What is
computed, functions of the module compute, which the cache is made with. Between `begin_forward` and
`end_forward` each layer appends the keys and values of the new tokens, and attends to all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from mlcweb.relax_vm.cached_sequences import CachedSequence, PagePool, check_batch, check_tree
from mlcweb.relax_vm.forward_batch import Batch, running_sums
from mlcweb.relax_vm.packed import machine_function
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentTypeError, ArgumentValueError
from mlcweb.runtime.ndarray import NDArray, array, empty

Function = Callable[..., object]

NONE, NORMAL, INLINE = range(3)
"""When queries and keys are turned by their positions: never, when keys are appended, or whenever
they are read."""

_MULTI_HEAD = 0

_KINDS = {1: '"mla"', 3: '"mha_sliding"'}


@dataclass
class Functions:
    """What computes on pages."""

    append: Function
    attention_ragged: Function | None
    prefill: Function | None
    decode: Function | None
    tree: Function | None
    merge: Function | None
    split_rotary: Function
    copy_page: Function
    debug_get: Function
    compact: Function | None


class PagedKVCache:
    """See the module. Sequences have numbers that the program chooses."""

    def __init__(
        self, first: NDArray, layers: range, shape: tuple[int, int, int, int], max_batch: int,
        max_tokens: int, has_windows: bool, functions: Functions,
        rope: tuple[int, float, float], rope_factors: NDArray | None,
    ) -> None:  # fmt: skip
        self.device, self.dtype = first.device, first.dtype
        self.layers = layers
        self.q_heads, self.kv_heads, self.features, self.page_size = shape
        self.max_batch, self.has_windows = max_batch, has_windows
        self.functions = functions
        self.rope_mode, self.rope_scale, self.rope_theta = rope
        self.rope_factors = rope_factors
        self.page_count = -(-max_tokens // self.page_size) + 1
        if has_windows:
            self.page_count += 2 * max_batch
        page = (self.page_count, 2, self.kv_heads, self.page_size, self.features)
        self.pages = [empty(page, self.dtype, self.device) for _ in layers]
        self.clear()

    # Sequences

    def clear(self) -> None:
        self.pool = PagePool(self.page_count)
        self.sequences: dict[int, CachedSequence] = {}
        self.batch: Batch | None = None

    def sequence(self, number: int) -> CachedSequence:
        if number not in self.sequences:
            raise ArgumentValueError(f'The sequence "{number}" cannot be found in KV cache.')
        return self.sequences[number]

    def _new(self, number: int, sequence: CachedSequence) -> None:
        self.sequences[number] = sequence

    def _check_new(self, number: int) -> None:
        if number in self.sequences:
            raise ArgumentValueError(f'The sequence "{number}" is already in the KV cache.')

    def add_sequence(self, number: int) -> None:
        self._check_new(number)
        self._new(number, CachedSequence(self.pool, self.page_size))

    def remove_sequence(self, number: int) -> None:
        self.sequence(number).release()
        del self.sequences[number]

    def fork_sequence(self, parent: int, child: int, position: int = -1) -> None:
        self._check_new(child)
        source = self.sequence(parent)
        if source.window is not None or source.tree:
            what = "has a sliding window" if source.window is not None else "ends with a tree"
            raise ArgumentValueError(f'The sequence "{parent}" {what} and cannot be forked.')
        length = source.length if position == -1 else position
        if not 0 <= length <= source.length:
            raise ArgumentValueError(
                f'The sequence "{parent}" has {source.length} tokens; it cannot be forked at '
                f"{position}"
            )
        self._new(child, source.fork(length))

    def popn(self, number: int, count: int) -> None:
        sequence = self.sequence(number)
        sequence.pop(count)
        del sequence.tree[max(0, len(sequence.tree) - count) :]

    def enable_window(self, number: int, size: int, sinks: int) -> None:
        sequence = self.sequence(number)
        if not self.has_windows:
            raise ArgumentValueError("The KV cache does not support sliding window.")
        if not 0 <= sinks < size:
            raise ArgumentValueError(
                f"Of a window of {size} tokens, at most {size - 1} may stay, not {sinks}"
            )
        if sequence.window is not None:
            raise ArgumentValueError("A sequence cannot be enabled twice for sliding window.")
        sequence.window, sequence.sinks = size, sinks

    # Forward passes

    def begin_forward(
        self, numbers: Sequence[int], counts: Sequence[int], parents: Sequence[int] | None = None
    ) -> None:
        """Take slots for the new tokens of sequences."""
        if self.batch is not None:
            raise ArgumentValueError("A forward pass is under way: call end_forward first")
        check_batch(numbers, counts)
        if len(numbers) > self.max_batch:
            raise ArgumentValueError(
                f"The KV cache was made for {self.max_batch} sequences at once, not {len(numbers)}"
            )
        sequences = [self.sequence(number) for number in numbers]
        needed = sum(s.pages_needed(n) for s, n in zip(sequences, counts, strict=True))
        if needed > len(self.pool.free):
            raise ArgumentValueError(
                f"The KV cache is full. No page can be allocated: {needed} are needed, and "
                f"{len(self.pool.free)} are free"
            )
        if parents is not None:
            self._add_trees(sequences, counts, parents)
        elif any(sequence.tree for sequence in sequences):
            raise ArgumentValueError("A tree of tokens is not decided: commit its accepted nodes")
        slots: list[int] = []
        positions: list[int] = []
        for sequence, count in zip(sequences, counts, strict=True):
            slots += sequence.append(count, self.copy_page)
            if sequence.tree:
                start = sequence.length - len(sequence.tree)
                positions += [start + depth for depth in sequence.depths()[-count:]]
            else:
                positions += range(sequence.length - count, sequence.length)
        self.batch = Batch(self, sequences, list(counts), slots, positions)

    def _add_trees(
        self, sequences: list[CachedSequence], counts: Sequence[int], parents: Sequence[int]
    ) -> None:
        if len(parents) != sum(counts):
            raise ArgumentValueError(
                f"Each of {sum(counts)} tokens has a parent in a tree; {len(parents)} are given"
            )
        if self.rope_mode == INLINE:
            raise ArgumentValueError(
                "Keys that are turned when they are read have their positions by their order, "
                "which is not that of a tree: make the cache with RopeMode.NORMAL"
            )
        if any(sequence.window is not None for sequence in sequences):
            raise ArgumentValueError("A sequence with a sliding window has no trees of tokens")
        start, parts = 0, []
        for sequence, count in zip(sequences, counts, strict=True):
            parts.append(parents[start : start + count])
            check_tree(sequence, parts[-1])
            start += count
        for sequence, part in zip(sequences, parts, strict=True):
            sequence.tree.extend(map(int, part))

    def end_forward(self) -> None:
        for sequence in self._running().sequences:
            sequence.slide()
        self.batch = None

    def _running(self) -> Batch:
        if self.batch is None:
            raise ArgumentValueError("No forward pass is under way: call begin_forward first")
        return self.batch

    def commit(self, numbers: Sequence[int], leaves: Sequence[int]) -> None:
        """Of the trees of tokens, keep a token of each and what is above it."""
        sequences = [self.sequence(number) for number in numbers]
        copies = []
        for sequence, leaf in zip(sequences, leaves, strict=True):
            if not -1 <= leaf < len(sequence.tree):
                raise ArgumentValueError(
                    f"The accepted token is -1 or one of {len(sequence.tree)} of the tree, not "
                    f"{leaf}"
                )
            copies.append(sequence.accept(leaf))
        old = [slot for one, _ in copies for slot in one]
        new = [slot for _, one in copies for slot in one]
        if old:
            indptr = self.integers(running_sums([len(one) for one, _ in copies]))
            slots = self.integers([old, new])
            for pages in self.pages:
                _required(self.functions.compact)(pages, indptr, slots, len(copies))
        for sequence, leaf in zip(sequences, leaves, strict=True):
            sequence.settle(leaf)

    # Attention

    def attention_with_fused_qkv(
        self, layer: int, sm_scale: float, qkv: NDArray, *outputs: NDArray | None
    ) -> None:
        """Append what a layer has computed for the new tokens, and attend to all tokens."""
        batch, output = self._checked(qkv, self.q_heads + 2 * self.kv_heads), outputs[-1]
        q, k, v = (
            empty((batch.rows, heads, self.features), self.dtype, self.device)
            for heads in (self.q_heads, self.kv_heads, self.kv_heads)
        )
        last = self.rope_factors
        if last is None:
            last = int(self.rope_mode == NORMAL)
        self.functions.split_rotary(qkv, batch.positions, q, k, v, last)
        self.functions.append(self._pages(layer), k, v, batch.slots)
        assert output is not None
        self._attend(layer, sm_scale, q, output)

    def attention_with_shared_kv(
        self, layer: int, sm_scale: float, q: NDArray, k: NDArray, v: NDArray, output: NDArray
    ) -> None:
        """Attend to the keys that another layer has appended."""
        self._checked(q, self.q_heads)
        self._attend(layer, sm_scale, q, output)

    def _attend(self, layer: int, sm_scale: float, q: NDArray, output: NDArray) -> None:
        batch, functions = self._running(), self.functions
        lse, pages = self._lse(batch), self._pages(layer)
        shared = (*batch.keys, batch.no_offset, batch.positions, output, lse)
        if batch.in_tree:
            _required(functions.tree)(
                q, batch.indptr, pages, *shared, *self._rope(sm_scale), batch.tree_indptr,
                batch.tree_order,
            )  # fmt: skip
        elif batch.is_decode:
            _required(functions.decode)(q, pages, *shared, *self._rope(sm_scale))
        else:
            _required(functions.prefill)(q, batch.indptr, pages, *shared, 1, *self._rope(sm_scale))

    def self_attention(
        self, layer: int, sm_scale: float, q: NDArray, k: NDArray, v: NDArray, output: NDArray,
        lse: NDArray,
    ) -> None:  # fmt: skip
        """Attend from the new tokens to the new tokens."""
        batch = self._running()
        starts = [s.length - n for s, n in zip(batch.sequences, batch.counts, strict=True)]
        _required(self.functions.attention_ragged)(
            q, batch.indptr, k, v, batch.indptr, batch.positions, self.integers(starts), output,
            lse, 1, *self._rope(sm_scale),
        )  # fmt: skip

    def cross_attention(
        self, layer: int, sm_scale: float, q: NDArray, output: NDArray, lse: NDArray
    ) -> None:
        """Attend from the new tokens to those before."""
        batch = self._running()
        _required(self.functions.prefill)(
            q, batch.indptr, self._pages(layer), *batch.past(), batch.no_offset, batch.positions,
            output, lse, 0, *self._rope(sm_scale),
        )  # fmt: skip

    def merge(
        self, output: NDArray, lse: NDArray, other: NDArray, other_lse: NDArray
    ) -> tuple[NDArray, NDArray]:
        _required(self.functions.merge)(output, lse, other, other_lse)
        return output, lse

    def _checked(self, tokens: NDArray, heads: int) -> Batch:
        batch = self._running()
        expected = (batch.rows, heads, self.features)
        if tokens.shape != expected or tokens.dtype != self.dtype:
            raise ArgumentValueError(
                f"The forward pass is of {batch.rows} tokens: {expected} of {self.dtype} are "
                f"expected, not {described(tokens)}"
            )
        return batch

    def _pages(self, layer: int) -> NDArray:
        if layer not in self.layers:
            raise ArgumentValueError(f"The KV cache has the layers {self.layers}, not {layer}")
        return self.pages[layer - self.layers.start]

    def _lse(self, batch: Batch) -> NDArray:
        return empty((batch.rows, self.q_heads), "float32", self.device)

    def _rope(self, sm_scale: float) -> tuple[int, float, float, float]:
        return int(self.rope_mode == INLINE), self.rope_scale, self.rope_theta, sm_scale

    # Memory

    def integers(self, values: list[Any]) -> NDArray:
        import numpy as np

        return array(np.array(values, "int32"), self.device)

    def copy_page(self, old: int, new: int, slots: int) -> None:
        for pages in self.pages:
            self.functions.copy_page(pages, old, new, slots)

    def debug_get_kv(self, number: int, start: int, end: int, k: NDArray, v: NDArray) -> None:
        """Read the keys and values of some tokens of a sequence, in all layers."""
        sequence = self.sequence(number)
        if not 0 <= start <= end <= sequence.length:
            raise ArgumentValueError(
                f'The sequence "{number}" has {sequence.length} tokens, not those from {start} to '
                f"{end}"
            )
        slots = self.integers([sequence.slot(token) for token in range(start, end)])
        for layer, pages in enumerate(self.pages):
            self.functions.debug_get(pages, slots, k, v, layer)


def _required(function: Function | None) -> Function:
    if function is None:
        raise ArgumentTypeError("The KV cache was made without a function for this attention")
    return function


def _function_of(value: object) -> Function | None:
    """The function of a backend that the cache is made with: `("tirx", function)`, or nothing."""
    if callable(value):
        return value
    assert isinstance(value, Sequence)
    if not value:
        return None
    if value[0] not in ("tir", "tirx"):
        raise ArgumentTypeError(
            f'Attention by "{value[0]}" is a library of other hardware; make the cache with '
            "functions of TensorIR, TIRPagedKVCache"
        )
    return value[1]


@machine_function("paged_attention_kv_cache_create")
def create(
    sizes: Sequence[int], layer_partition: Sequence[int], num_qo_heads: int, num_kv_heads: int,
    qk_head_dim: int, v_head_dim: int, attn_kinds: Sequence[int], enable_disaggregation: int,
    rope_mode: int, rope_scale: float, rope_theta: float, rope_ext_factors: NDArray | None,
    init: NDArray, append: Function, append_mla: object, ragged: object, prefill: object,
    decode: object, prefill_window: object, decode_window: object, tree_paged: object,
    tree: object, mla: object, merge: Sequence[Function], split_rotary: Function,
    copy_page: Function, debug_get: Function, compact: Function | None = None,
) -> PagedKVCache:  # fmt: skip
    """A cache, as TVM's programs make it. `sizes` are sequences at once, tokens in all, tokens at
    once, tokens of a page, and whether sequences may have a window."""
    max_batch, max_tokens, _, page_size, has_windows = map(int, sizes[:5])
    other = [kind for kind in attn_kinds if kind != _MULTI_HEAD]
    if other or qk_head_dim != v_head_dim:
        kind = _KINDS.get(other[0], str(other[0])) if other else "values of another size than keys"
        raise ArgumentValueError(
            f'Attention of {kind} has no cache here; layers of "mha" have (of whatever number of '
            "heads)"
        )
    if enable_disaggregation:
        raise ArgumentValueError("A KV cache lies on one device here: enable_disaggregation=False")
    if has_windows and rope_mode == NORMAL:
        raise ArgumentValueError(
            "Tokens change their positions when a window slides, so keys are turned when they are "
            "read: RopeMode.INLINE"
        )
    functions = Functions(
        append, _function_of(ragged), _function_of(prefill_window if has_windows else prefill),
        _function_of(decode_window if has_windows else decode), _function_of(tree_paged),
        merge[0] if merge else None, split_rotary, copy_page, debug_get, compact,
    )  # fmt: skip
    return PagedKVCache(
        init, range(*map(int, layer_partition[:2])),
        (num_qo_heads, num_kv_heads, qk_head_dim, page_size), max_batch, max_tokens,
        bool(has_windows), functions, (rope_mode, rope_scale, rope_theta),
        rope_ext_factors if isinstance(rope_ext_factors, NDArray) else None,
    )  # fmt: skip


for _name, _method in (
    ("clear", "clear"), ("add_sequence", "add_sequence"), ("remove_sequence", "remove_sequence"),
    ("fork_sequence", "fork_sequence"), ("popn", "popn"), ("begin_forward", "begin_forward"),
    ("end_forward", "end_forward"),
):  # fmt: skip

    @machine_function(f"kv_state_{_name}")
    def _of_state(state: object, *args: object, method: str = _method) -> None:
        getattr(state, method)(*args)


for _name, _method in (
    ("enable_sliding_window_for_seq", "enable_window"),
    ("commit_accepted_token_tree_nodes", "commit"), ("debug_get_kv", "debug_get_kv"),
    ("attention_with_fused_qkv", "attention_with_fused_qkv"),
    ("attention_with_shared_kv", "attention_with_shared_kv"),
    ("self_attention", "self_attention"), ("cross_attention", "cross_attention"),
    ("merge_attn_output_inplace", "merge"),
):  # fmt: skip

    @machine_function(f"attention_kv_cache_{_name}")
    def _of_cache(cache: PagedKVCache, *args: object, method: str = _method) -> object:
        return getattr(cache, method)(*args)


@machine_function("attention_kv_cache_empty")
def is_empty(cache: PagedKVCache) -> bool:
    return not cache.sequences


@machine_function("attention_kv_cache_get_num_available_pages")
def available_pages(cache: PagedKVCache) -> int:
    return len(cache.pool.free)


@machine_function("attention_kv_cache_get_sequence_length")
def sequence_length(cache: PagedKVCache, number: int) -> int:
    return cache.sequence(number).length


@machine_function("attention_kv_cache_get_total_sequence_length")
def total_length(cache: PagedKVCache) -> int:
    return sum(sequence.length for sequence in cache.sequences.values())


@machine_function("attention_kv_cache_get_query_positions")
def query_positions(cache: PagedKVCache) -> NDArray:
    return cache._running().positions


_REFUSED = {
    'keys of "mla", which all heads share compressed, have no cache here': (
        "attention_kv_cache_append_mla_kv attention_kv_cache_debug_get_kv_mla"
    ),
    "pages do not go to other caches; fork_sequence shares them within one": (
        "attention_kv_cache_export_page_group attention_kv_cache_finish_import "
        "attention_kv_cache_get_checkpoint_metadata attention_kv_cache_get_layout_hash "
        "attention_kv_cache_import_page_group attention_kv_cache_prepare_import"
    ),
    "a KV cache lies on one device here": (
        "kv_cache_disagg_mark_send kv_cache_disagg_prepare_recv"
    ),
}


def _refuse(name: str, reason: str) -> None:
    @machine_function(name)
    def refused(*arguments: object) -> NoReturn:
        raise ArgumentValueError(f"vm.builtin.{name} is not here: {reason}")


for _reason, _names in _REFUSED.items():
    for _name in _names.split():
        _refuse(_name, _reason)
