"""What scripts of older TVMs write, by what says the same today.

Until 2022 memory was allocated as a pointer (`T.allocate`), over which `T.buffer_decl` laid
buffers, and read and written at flat places (`T.load`, `T.store`). Here the name of an allocation
is the buffer, and stands for its memory where a pointer is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.script import constructs
from mlcweb.script.namespace.buffers import decl_buffer
from mlcweb.script.namespace.loops import loop_range
from mlcweb.script.namespace.types import HandleType, make_buffer
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer

MAX_CONSTANTS = 4096
"""How many numbers `T.allocate_const` may list."""


def allocate(
    extents: Sequence[Any],
    dtype: Any,
    scope: str = "global",
    condition: Any = True,
    annotations: Mapping[str, Any] | None = None,
) -> constructs.Declaration | Buffer:
    """Memory from here on."""
    if not arithmetic.is_const_int(arithmetic.convert(condition), 1):
        raise DiagnosticError("T.allocate under a condition is not read: write `if` around it")
    return decl_buffer(extents, dtype, scope=scope, annotations=annotations)


def allocate_const(
    data: Any, dtype: Any, extents: Sequence[Any], annotations: Mapping[str, Any] | None = None
) -> constructs.Declaration:
    """Memory that holds given numbers."""
    nested = data.numpy() if hasattr(data, "numpy") else data
    values = _flat(nested.tolist() if hasattr(nested, "tolist") else nested)
    if len(values) > MAX_CONSTANTS or len(values) != prod(map(int, extents)):
        raise DiagnosticError(
            f"T.allocate_const takes as many numbers as it has elements, and at most "
            f"{MAX_CONSTANTS}, not {len(values)}; larger constants are arguments"
        )
    places = product(*(range(int(extent)) for extent in extents))
    contents = {
        tuple(map(arithmetic.convert, place)): arithmetic.cast(str(dtype), value)
        for place, value in zip(places, values, strict=True)
    }
    buffer = make_buffer(extents, dtype)
    return constructs.Declaration(buffer, S.AllocBuffer, annotations or {}, values=contents)


def _flat(data: Any) -> list[Any]:
    return [item for part in data for item in _flat(part)] if isinstance(data, list) else [data]


def preflattened_buffer(
    postflattened: Buffer, shape: Any, dtype: Any = "float32", data: Any = None, **options: Any
) -> constructs.Preflattened:
    """The shape that a parameter has for its caller, where its body sees flat memory."""
    whole = make_buffer(shape, dtype, postflattened.data, **options)
    return constructs.Preflattened(postflattened, whole)


def load(dtype: Any, memory: Any, index: Any, predicate: Any = True) -> E.PrimExpr:
    """The element of memory at a flat index, or a vector at a ramp of them."""
    _check_predicate(predicate)
    value = E.BufferLoad(*_place(memory, index))
    if value.dtype != str(dtype):
        raise DiagnosticError(f"T.load asks for {dtype}, where {memory} gives {value.dtype}")
    return value


def store(memory: Any, index: Any, value: Any, predicate: Any = True) -> S.BufferStore:
    """A store at a flat index, or at a ramp of them."""
    _check_predicate(predicate)
    buffer, indices = _place(memory, index)
    dtype = dtypes.like(buffer.dtype, indices[-1].dtype)
    return S.BufferStore(buffer, arithmetic.cast(dtype, value), indices)


def _check_predicate(predicate: Any) -> None:
    every = predicate.value if isinstance(predicate, E.Broadcast) else predicate
    if not arithmetic.is_const_int(arithmetic.convert(every), 1):
        raise DiagnosticError("T.load and T.store under a predicate are not read: use `if`")


def _place(memory: Any, index: Any) -> tuple[Buffer, tuple[E.PrimExpr, ...]]:
    """A buffer, and the indices of the element that stands at a flat place in its memory."""
    if not isinstance(memory, Buffer):
        raise DiagnosticError(
            f"{memory!r} is no memory that the script declares a buffer for; declare one over it, "
            f'A = T.decl_buffer((n,), "float32", data={memory!r}), and write A[i]'
        )
    if memory.strides or (len(memory.shape) != 1 and dtypes.lanes(str(index.dtype)) != 1):
        raise DiagnosticError(f'"{memory.name}" is not flat: read and write it by its indices')
    indices: list[E.PrimExpr] = []
    rest = arithmetic.convert(index)
    for extent in reversed(memory.shape[1:]):
        indices.append(arithmetic.floormod(rest, extent))
        rest = arithmetic.floordiv(rest, extent)
    return memory, (rest, *reversed(indices))


def iter_var(v: Any, dom: Any, iter_type: str, thread_tag: str = "") -> S.IterVar:
    """The axis of a `T.attr(…, "thread_extent", n)`."""
    domain = None if dom is None else loop_range(*dom) if isinstance(dom, (list, tuple)) else dom
    if iter_type != "ThreadIndex":
        raise DiagnosticError(f'T.iter_var makes axes of threads, not of kind "{iter_type}"')
    named = E.Var(v, "int32") if isinstance(v, str) else v
    return S.IterVar(domain, named, S.IterType.THREAD_INDEX, thread_tag)


class PointerType(HandleType):
    """`T.Ptr[T.float32]`, or `T.Ptr(T.float32, "shared")`: `T.handle("float32", "shared")`."""

    def __getitem__(self, arguments: Any) -> E.Var:
        return self(*arguments) if isinstance(arguments, tuple) else self(arguments)


METADATA_OMITTED = (
    "The text was printed without its metadata, and so lacks the constants that it refers to; "
    "print the program again by .script(show_meta=True)"
)

REPLACED = {
    "realize": "a block allocates by T.alloc_buffer",
    "Shuffle": "read the elements of a vector one by one",
    "jit": "make the function in a Python function whose arguments are the constants",
    "constexpr": "make the function in a Python function whose arguments are the constants",
    "alloc_scalar": 'a scalar that changes is a buffer: x = T.alloc_local((1,), "float32"), x[0]',
    "local_scalar": 'a scalar that changes is a buffer: x = T.alloc_local((1,), "float32"), x[0]',
    "shared_scalar": 'a scalar that changes is a buffer: x = T.alloc_shared((1,), "float32"), x[0]',
    "ProducerStore": "a block stores by A[i] = value",
    "ProducerRealize": "a block allocates by T.alloc_buffer",
    "partition": "in a block, T.match_buffer names a part of a buffer",
    "match_shape": 'it was replaced in 2023: R.match_cast(x, R.Tensor(("n", "m"), "float32"))',
    "call_py_func": "register it by tvm.register_func, and call it by R.call_packed",
}
"""Names of `T`, `R` and `I` that are refused, with what is written instead."""
