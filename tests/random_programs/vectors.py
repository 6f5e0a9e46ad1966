"""More stages of random programs: vectors, memory that is allocated by hand or by a block, views of
shared memory, names in `while`, annotations. They are drawn by tests of their own, so that the
programs of a seed stay what they are elsewhere."""

from __future__ import annotations

from tests.random_programs.programs import Axis, Draft, Nest, place_of
from tests.random_programs.values import FLOATS, INDEX_TYPES, UNSIGNED, Array, Index

ANNOTATIONS = (
    '"pragma_auto_unroll_max_step": 16', '"pragma_unroll_explicit": 1', '"note": "x"',
)  # fmt: skip


def _vector(draft: Draft, array: Array, lanes: int, rows: list[Index], offset: str = "") -> str:
    """Elements of an array as a vector: a ramp, a slice, or one element of every lane."""
    *leading, last = array.shape
    values = draft.values(rows)
    place = [*map(values.index, leading)]
    if last < lanes or draft.chance(0.2):
        place.append(values.index(last))
        return f"T.Broadcast({array.name}[{', '.join(place)}], {lanes})"
    step = draft.random.randrange(1, (last - 1) // (lanes - 1) + 1)
    first = draft.random.randrange(0, last - (lanes - 1) * step)
    if step == 1 and draft.chance(0.4):
        place.append(f"{first}:{first + lanes}")
    elif draft.chance(0.2):
        place.append(f"T.Ramp({first + (lanes - 1) * step}, {-step}, {lanes})")
    else:
        place.append(f"T.Ramp({first}, {step}, {lanes})")
    draft.loaded.append(array)
    return f"{array.name}[{', '.join(place)}]"


def _vector_value(
    draft: Draft, arrays: list[Array], dtype: str, lanes: int, rows: list[Index], depth: int
) -> str:
    random = draft.random
    if depth == 0 or draft.chance(0.3):
        array = random.choice(arrays)
        vector = _vector(draft, array, lanes, rows)
        if array.dtype != dtype:
            vector = f'T.Cast("{dtype}x{lanes}", {vector})'
        if dtype in INDEX_TYPES:
            vector = f"({vector}) % T.Broadcast(T.{dtype}(97), {lanes})"
        return vector
    a, b = (_vector_value(draft, arrays, dtype, lanes, rows, depth - 1) for _ in range(2))
    number = random.randrange(0 if dtype in UNSIGNED else -3, 4)
    constant = f"T.Broadcast(T.{dtype}({number}), {lanes})"
    forms = [f"{a} + {b}", f"{a} - {b}", f"{a} + {constant}", f"T.max({a}, {b})"]
    forms += [f"T.Select({a} < {b}, {a}, {constant})"]
    if dtype not in (*FLOATS, *INDEX_TYPES):
        forms += [f"{a} * {b}", f"{a} // T.Broadcast(T.{dtype}({random.randrange(1, 5)}), {lanes})"]
    return f"({random.choice(forms)})"


def vectors(draft: Draft) -> None:
    """Stores of vectors, in a block for each row or in loops."""
    wide = [array for array in draft.arrays if array.shape[-1] >= 2]
    if not wide:
        return
    array = draft.random.choice(wide)
    *leading, last = array.shape
    lanes = draft.random.choice([n for n in (2, 3, 4, 8) if n <= last])
    in_block = draft.chance(0.5)
    nest = draft.nest(leading, ["spatial"] * len(leading)) if in_block else Nest([], [], [], "")
    pairs = [] if in_block else [draft.loop(0, extent, False) for extent in leading]
    rows = [axis.variable for axis in nest.axes] if in_block else [index for _, index in pairs]
    others = [other for other in draft.arrays if other.memory != array.memory] or [array]

    def body() -> None:
        step = draft.random.randrange(1, (last - 1) // (lanes - 1) + 1)
        first = draft.random.randrange(0, last - (lanes - 1) * step)
        ramp = f"{first}:{first + lanes}" if step == 1 else f"T.Ramp({first}, {step}, {lanes})"
        place = ", ".join([*filter(None, [place_of(rows)]), ramp])
        value = _vector_value(draft, others, array.dtype, lanes, rows, 2)
        if draft.chance(0.3) and array.dtype not in INDEX_TYPES:
            value = f"{array.name}[{place}] + {value}"
        draft.written += [(array, place), (array, "")]  # declared as a whole, if it is
        draft.line(f"{array.name}[{place}] = {value}")

    if in_block:
        draft.block(nest, body)
    else:
        with draft.inside(*[header for header, _ in pairs]):
            body()


def allocated(draft: Draft) -> None:
    """Memory allocated by hand, declared as a buffer, filled and copied to an array."""
    array = draft.random.choice(draft.arrays)
    size = 1
    for extent in array.shape:
        size *= extent
    data, flat = draft.fresh("d"), Array(draft.fresh("F"), (size,), array.dtype)
    draft.line(f'{data} = T.allocate([{size}], "{array.dtype}", "global")')
    draft.line(f'{flat.name} = T.decl_buffer(({size},), "{array.dtype}", data={data})')
    header, index = draft.loop(0, size, True)
    with draft.inside(header):
        value = draft.values([index]).value(array.dtype)
        draft.stored(flat, index.name, value, running=True)
    nest = draft.nest(array.shape, ["spatial"] * len(array.shape))

    def body() -> None:
        indices = [axis.variable for axis in nest.axes]
        place = "0"
        for index, extent in zip(indices, array.shape, strict=True):
            place = f"({place}) * {extent} + {place_of([index])}"
        draft.stored(array, place_of(indices), f"{flat.name}[{place}]")

    draft.block(nest, body)


def inside_block(draft: Draft) -> None:
    """A buffer that a block allocates for itself, filled by a block inside and read by another."""
    array, new = draft.target()
    outer = draft.nest(array.shape[:1], ["spatial"])
    row = outer.axes[0].variable
    extents = array.shape[1:] or (1,)

    def rows() -> None:
        own = Array(draft.fresh("L"), extents, array.dtype)
        draft.allocate(own)
        for target in (own, array):
            inner = draft.nest(extents, ["spatial"] * len(extents))
            mine = Axis("spatial", Index(draft.fresh("v"), row.low, row.high), row.name)
            nest = Nest(inner.headers, inner.loops, [mine, *inner.axes], inner.predicate)

            def body(nest: Nest = nest, target: Array = target) -> None:
                indices = [axis.variable for axis in nest.axes]
                columns = place_of(indices[1:])
                values = draft.values(indices, without=[array])
                if target is own:
                    draft.stored(own, columns, values.value(array.dtype))
                    return
                place = place_of(indices[: len(array.shape)])
                draft.stored(array, place, f"{own.name}[{columns}] - {values.leaf(array.dtype)}")

            draft.block(nest, body)
        draft.loaded[:] = [loaded for loaded in draft.loaded if loaded is not own]
        draft.written[:] = [(written, at) for written, at in draft.written if written is not own]

    draft.block(outer, rows)
    draft.finish(array, new)


def viewed_exchange(draft: Draft) -> None:
    """Threads that store to shared memory and load from a view of it."""
    rows, columns = draft.random.choice([(2, 2), (2, 4), (4, 2)])
    count = rows * columns
    dtype = draft.random.choice(["int32", "float32", "int8"])
    shared = Array(draft.fresh("S"), (count,), dtype, "shared")
    result = Array(draft.fresh("Y"), (count,), shared.dtype)
    draft.allocate(shared)
    draft.allocate(result)
    view = draft.fresh("W")
    draft.line(
        f'{view} = T.decl_buffer(({rows}, {columns}), "{dtype}", data={shared.name}.data, '
        'scope="shared")'
    )
    thread = draft.fresh("tx")
    with draft.inside(f'for {thread} in T.thread_binding({count}, "threadIdx.x"):'):
        for array in (shared, result):
            with draft.inside(f'with T.block("{draft.fresh("B")}"):'):
                index = Index(draft.fresh("v"), 0, count - 1)
                draft.line(Axis("spatial", index, thread).line())
                value = draft.values([index], without=[array]).value(array.dtype, 1)
                if array is result:
                    place = f"{index.name} % {rows}, {index.name} // {rows}"
                    value = f"{view}[{place}] - {value}"
                    draft.stored(array, index.name, value)
                elif draft.chance(0.5):
                    place = f"{index.name} // {columns}, {index.name} % {columns}"
                    draft.line(f"{view}[{place}] = {value}")
                else:
                    draft.stored(array, index.name, value)
    draft.arrays.append(result)


def bound_names(draft: Draft) -> None:
    """A `while` in which a name is bound to what the body overwrites."""
    array = draft.random.choice(draft.arrays)
    counter = Array(draft.fresh("n"), (1,), "int32")
    draft.allocate(counter)
    draft.line(f"{counter.name}[0] = {draft.random.randrange(0, 3)}")
    with draft.inside(f"while {counter.name}[0] < {draft.random.randrange(1, 5)}:"):
        name = draft.fresh("k")
        with draft.inside(f"with T.LetStmt({counter.name}[0]) as {name}:"):
            pairs = [draft.loop(0, extent, False) for extent in array.shape]
            with draft.inside(*[header for header, _ in pairs]):
                indices = [index for _, index in pairs]
                values = draft.values([*indices, Index(name, 0, 4)])
                place = ", ".join(map(values.index, array.shape))
                value = f'{values.value(array.dtype)} + T.Cast("{array.dtype}", {name})'
                draft.stored(array, place, value, running=True)
            draft.line(f"{counter.name}[0] = {counter.name}[0] + 1")


def annotated(draft: Draft) -> None:
    """Loops and a block with annotations that change nothing."""
    array, new = draft.target()
    nest = draft.nest(array.shape, ["spatial"] * len(array.shape))
    notes = draft.random.choice(ANNOTATIONS)
    nest = nest._replace(
        headers=[
            header.replace("):", f", annotations={{{notes}}}):")
            if draft.chance(0.6) and "vectorized" not in header
            else header
            for header in nest.headers
        ]
    )

    def body() -> None:
        draft.line('T.block_attr({"note": 1})')
        indices = [axis.variable for axis in nest.axes]
        values = draft.values(indices, without=[array])
        draft.stored(array, place_of(indices), values.value(array.dtype))

    draft.block(nest, body)
    draft.finish(array, new)


MORE_STAGES = (vectors, allocated, inside_block, viewed_exchange, bound_names, annotated)
