"""The cache of keys and values that `nn.KVCache` works on, `vm.builtin.attention_kv_cache_…`: rows,
one for each token, which programs append and see as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.relax_vm.packed import machine_function
from mlcweb.relax_vm.sizes import described
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.ndarray import NDArray, empty


class AttentionKVCache:
    """Rows of one shape and type, in memory for more of them."""

    def __init__(self, memory: NDArray, count: int) -> None:
        self.memory = memory
        self.count = count
        """Rows in use."""
        self.position = count
        """Where a window that is full is overwritten next."""

    def rows(self, start: int, count: int) -> NDArray:
        """Some rows, in the memory of the cache."""
        return _rows(self.memory, start, count)

    def check(self, value: NDArray) -> None:
        """Refuse what are no rows of this cache."""
        memory = self.memory
        if value.dtype != memory.dtype or value.ndim == 0 or value.shape[1:] != memory.shape[1:]:
            raise ArgumentValueError(
                f"A KV cache has rows of shape {memory.shape[1:]} and dtype {memory.dtype}; "
                f"{described(value)} has others"
            )

    def reserve(self, count: int, at_most: int | None = None) -> None:
        """Have memory for so many rows: twice as much, until it is enough."""
        capacity, *unit = self.memory.shape
        if count <= capacity:
            return
        while capacity < count:
            capacity = max(1, 2 * capacity)
        memory = empty((min(capacity, at_most or capacity), *unit), self.memory.dtype,
                       self.memory.device)  # fmt: skip
        _rows(memory, 0, self.count).copyfrom(self.rows(0, self.count))
        self.memory = memory

    def write(self, start: int, value: NDArray) -> None:
        """Overwrite rows, which are in use from then on."""
        stop = start + value.shape[0]
        self.rows(start, value.shape[0]).copyfrom(value)
        self.count, self.position = max(self.count, stop), stop


def _rows(tensor: NDArray, start: int, count: int) -> NDArray:
    row = tensor.nbytes // tensor.shape[0] if tensor.shape[0] else 0
    return tensor._create_view((count, *tensor.shape[1:]), None, start * row)


@machine_function("attention_kv_cache_create")
def create(initial: NDArray, shape: Sequence[int], count: int) -> AttentionKVCache:
    """A cache with memory of a shape, of which a tensor has the first rows; `count` are in use."""
    cache = AttentionKVCache(empty(tuple(map(int, shape)), initial.dtype, initial.device), 0)
    cache.check(initial)
    if not count <= initial.shape[0] <= shape[0]:
        raise ArgumentValueError(
            f"A KV cache of {shape[0]} rows, {count} of which are in use, cannot begin with "
            f"{described(initial)}"
        )
    cache.write(0, initial)
    cache.count = cache.position = count
    return cache


@machine_function("attention_kv_cache_append")
def append(cache: AttentionKVCache, value: NDArray) -> AttentionKVCache:
    """Add rows. The cache itself is changed, and given back."""
    cache.check(value)
    cache.reserve(cache.count + value.shape[0])
    cache.write(cache.count, value)
    return cache


@machine_function("attention_kv_cache_update")
def update(cache: AttentionKVCache, value: NDArray) -> AttentionKVCache:
    """Overwrite all rows."""
    cache.check(value)
    if value.shape[0] != cache.count:
        raise ArgumentValueError(f"{described(value)} is not the {cache.count} rows of a KV cache")
    cache.write(0, value)
    return cache


@machine_function(
    "attention_kv_cache_window_override", "attention_kv_cache_window_override_with_sinks"
)
def override(cache: AttentionKVCache, value: NDArray, size: int, sinks: int = 0):
    """Add rows to a window of a size. Where it is full they take the place of the oldest rows, but
    for the first ones, `sinks`, which stay."""
    cache.check(value)
    count = value.shape[0]
    if count > size - sinks:
        raise ArgumentValueError(
            f"{count} rows do not fit into a window of {size} of which {sinks} stay"
        )
    cache.reserve(min(size, cache.count + count), size)
    written = 0
    while written < count:
        start = sinks if cache.position >= size else cache.position
        part = min(count - written, size - start)
        cache.write(start, _rows(value, written, part))
        written += part
    return cache


@machine_function("attention_kv_cache_view")
def view(cache: AttentionKVCache, shape: Sequence[int] | None = None) -> NDArray:
    """All rows in use as one tensor, in the memory of the cache."""
    rows = cache.rows(0, cache.count)
    if shape is not None and tuple(shape) != rows.shape:
        raise ArgumentValueError(
            f"A KV cache with {cache.count} rows in use is {described(rows)}, not of shape "
            f"{tuple(shape)}"
        )
    return rows


@machine_function("attention_kv_cache_array_popn")
def pop(caches: Sequence[AttentionKVCache], count: int) -> None:
    """Forget the last rows of caches."""
    for cache in caches:
        if count > cache.count:
            raise ArgumentValueError(f"A KV cache with {cache.count} rows cannot lose {count}")
        cache.count = cache.position = cache.count - count


@machine_function("attention_kv_cache_array_clear")
def clear(caches: Sequence[AttentionKVCache]) -> None:
    """Forget all rows of caches."""
    for cache in caches:
        cache.count = cache.position = 0
