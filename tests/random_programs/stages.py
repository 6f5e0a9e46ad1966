"""The stages of random programs, one function for each kind. A stage reads what is there, and
leaves what it has written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from tests.random_programs.loops import carried, loops, raw
from tests.random_programs.programs import (
    DTYPES,
    Axis,
    Draft,
    Nest,
    RandomProgram,
    place_of,
    return_unread,
    text_of,
)
from tests.random_programs.values import FLOATS, INDEX_TYPES, INTEGERS, UNSIGNED, Array, Index

Stage = Callable[[Draft], None]
MAX_STAGES = 4
SMALL_STAGES = 2


def elementwise(draft: Draft) -> None:
    """One block with an iteration for each element; of an old buffer perhaps for a part alone."""
    array, new = draft.target()
    nest = draft.nest(array.shape, ["spatial"] * len(array.shape))
    where, guard = "", ""
    if not new:
        style = draft.random.choice(["", "", "where", "memory", "if"])
        if style == "where":
            loop = draft.random.choice(nest.loops)
            where = f"{loop.name} < {draft.random.randrange(loop.low + 1, loop.high + 2)}"
        elif style == "memory":
            values = draft.values(nest.loops, without=[array])
            if values.arrays:
                dtype = draft.random.choice(values.arrays).dtype
                where = f"{values.leaf(dtype)} < T.{dtype}(3)"
        elif style == "if":
            guard = draft.values([a.variable for a in nest.axes], without=[array]).condition(2)

    def body() -> None:
        indices = [axis.variable for axis in nest.axes]
        values, place = draft.values(indices, without=[array]), place_of(indices)
        value = values.value(array.dtype)
        if not new and draft.chance(0.4):
            value = f"{array.name}[{place}] + {value}"
        if draft.chance(0.1):
            name = draft.fresh("x")
            draft.line(f"{name}: T.{array.dtype} = {value}")
            value = f"{name} - {values.leaf(array.dtype)}"
        if guard:
            draft.line(f"if {guard}:")
            draft.depth += 1
        draft.stored(array, place, value)
        if guard:
            draft.depth -= 1
            if draft.chance(0.3):
                with draft.inside("else:"):
                    draft.stored(array, place, values.value(array.dtype, 1))

    draft.block(nest, body, where)
    draft.finish(array, new)


def part(draft: Draft) -> None:
    """A block whose domain covers a part of an old buffer."""
    array = draft.random.choice(draft.arrays)
    rows = draft.random.randrange(1, array.shape[0] + 1)
    first = draft.random.randrange(0, array.shape[0] - rows + 1)
    nest = draft.nest((rows, *array.shape[1:]), ["spatial"] * len(array.shape))

    def body() -> None:
        indices = [axis.variable for axis in nest.axes]
        lead, *rest = indices
        place = ", ".join([f"{lead.name} + {first - lead.low}", *(place_of([i]) for i in rest)])
        values = draft.values(indices, without=[array])
        draft.stored(array, place, values.value(array.dtype))

    draft.block(nest, body)


def reduction(draft: Draft) -> None:
    """A sum, product or extremum, with an init or onto what is there."""
    array, new = draft.target(0.3)
    reduced = draft.random.choice([(3,), (4,), (8,), (2, 3)])
    extents = (*array.shape, *reduced)
    kinds = ["spatial"] * len(array.shape) + ["reduce"] * len(reduced)
    nest = draft.nest(extents, kinds)
    spatial = [axis.variable for axis in nest.axes[: len(array.shape)]]
    place = place_of(spatial)
    dtype = array.dtype
    forms = ["{0} + {1}", "T.max({0}, {1})", "T.min({0}, {1})"]
    if dtype in INTEGERS and dtype not in INDEX_TYPES:
        forms.append("{0} * {1}")
    if dtype in FLOATS and not draft.exact:
        forms = forms[1:]
    form = draft.random.choice(forms)
    start = {"{0} * {1}": "1", "{0} + {1}": "0"}.get(form, draft.random.choice(["0", "5"]))

    def body() -> None:
        values = draft.values([axis.variable for axis in nest.axes], without=[array])
        operand = values.value(dtype, 1)
        if dtype in (*FLOATS, *INDEX_TYPES):
            low = 0 if dtype in UNSIGNED else -8
            operand = f"T.max(T.min({operand}, T.{dtype}(8)), T.{dtype}({low}))"
        if new or draft.chance(0.6):
            with draft.inside("with T.init():"):
                draft.stored(array, place, f"T.{dtype}({start})")
        draft.stored(array, place, form.format(f"{array.name}[{place}]", operand))

    draft.block(nest, body)
    draft.finish(array, new)


def conditional(draft: Draft) -> None:
    """A stage under an `if`, or in a `while` that runs a few times."""
    draft_kind = draft.random.choice([elementwise, part, raw, loops, reduction])
    arrays = list(draft.arrays)
    if draft.chance(0.35):
        counter = Array(draft.fresh("n"), (1,), "int32")
        draft.allocate(counter)
        draft.line(f"{counter.name}[0] = 0")
        with draft.inside(f"while {counter.name}[0] < {draft.random.randrange(0, 4)}:"):
            draft_kind(draft)
            draft.line(f"{counter.name}[0] = {counter.name}[0] + 1")
    else:
        with draft.inside(f"if {draft.values([]).condition(2)}:"):
            draft_kind(draft)
        if draft.chance(0.3):
            draft.arrays = list(arrays)
            with draft.inside("else:"):
                draft.random.choice([part, raw])(draft)
    draft.arrays = arrays


def nested(draft: Draft) -> None:
    """A block for each row, and in it a block for each element."""
    array, new = draft.target()
    outer = draft.nest(array.shape[:1], ["spatial"])
    row = outer.axes[0].variable
    base = place_of([row])

    def rows() -> None:
        if draft.chance(0.3) and len(array.shape) > 1:
            inner_matched()
            return
        reduced = () if draft.chance(0.6) else (4,)
        kinds = ["spatial"] * (len(array.shape) - 1) + ["reduce"] * len(reduced)
        inner = draft.nest((*array.shape[1:], *reduced), kinds)
        own = Axis("spatial", Index(draft.fresh("v"), row.low, row.high), row.name)
        nest = Nest(inner.headers, inner.loops, [own, *inner.axes], inner.predicate)
        draft.block(nest, lambda: element(nest, bool(reduced)))

    def element(nest: Nest, reduced: bool) -> None:
        indices = [axis.variable for axis in nest.axes]
        place = place_of(indices[: len(array.shape)])
        values = draft.values(indices, without=[array])
        if reduced:
            with draft.inside("with T.init():"):
                draft.stored(array, place, f"T.{array.dtype}(1)")
            value = f"T.max({array.name}[{place}], {values.value(array.dtype, 1)})"
        else:
            value = values.value(array.dtype)
        draft.stored(array, place, value)

    def inner_matched() -> None:
        name = draft.fresh("M")
        whole = ", ".join(f"0:{extent}" for extent in array.shape[1:])
        lead, shape = draft.random.choice(
            [(base, array.shape[1:]), (f"{base}:{base} + 1", (1, *array.shape[1:]))]
        )
        strides = ", ".join(f'"{name}_s{n}"' for n in range(len(shape)))
        layout = draft.random.choice(["", f", strides=[{strides}]"])
        region = f"{array.name}[{lead}, {whole}]"
        draft.line(
            f'{name} = T.match_buffer({region}, {shape}, "{array.dtype}"{layout}, offset_factor=1)'
        )
        loops = [draft.loop(0, extent, False) for extent in shape]
        with draft.inside(*[header for header, _ in loops]):
            indices = [index for _, index in loops]
            values = draft.values([row], without=[array])
            draft.line(f"{name}[{place_of(indices)}] = {values.value(array.dtype)}")

    draft.block(outer, rows)
    draft.finish(array, new)


def opaque(draft: Draft) -> None:
    """A block without axes, or with axes of which nothing is promised."""
    array = draft.random.choice(draft.arrays)
    header, loop = draft.loop(0, array.shape[0], False)
    axes = []
    if draft.chance(0.5):
        name = Index(draft.fresh("v"), 0, array.shape[0] - 1)
        axes.append(Axis(draft.random.choice(["opaque", "scan"]), name, loop.name))
    nest = Nest([header], [loop], axes, "")
    indices = [axis.variable for axis in axes] or [loop]

    def body() -> None:
        values = draft.values(indices)
        for _ in range(draft.random.randrange(1, 3)):
            place = ", ".join(map(values.index, array.shape))
            draft.stored(array, place, values.value(array.dtype), running=True)

    draft.block(nest, body)


def guarded(draft: Draft) -> None:
    """A block whose predicate keeps it from reading what is not there, or from dividing by zero,
    and one that uses what it has computed where that holds."""
    tell = draft.random.choice(draft.parameters)
    source = draft.random.choice(draft.arrays)
    divides = draft.chance(0.5)
    between = Array(draft.fresh("Y"), tell.shape, "int32" if divides else source.dtype)
    result = Array(draft.fresh("Y"), tell.shape, draft.random.choice(DTYPES))
    for array in (between, result):
        draft.allocate(array)

    def told(indices: list[Index]) -> str:
        return draft.values([]).cast("int32", f"{tell.name}[{place_of(indices)}]", tell.dtype)

    def holds(indices: list[Index]) -> str:
        number = told(indices)
        return f"{number} != 0" if divides else f"0 <= {number} and {number} < {source.shape[0]}"

    draft.loaded += [tell, source, between]
    for array in (between, result):
        nest = draft.plain_nest(tell.shape)
        variables = [axis.variable for axis in nest.axes]
        if array is result:
            read = f"{between.name}[{place_of(variables)}]"
            value = draft.values([]).cast(result.dtype, read, between.dtype)
            value = f"T.if_then_else({holds(variables)}, {value}, T.{result.dtype}(5))"
        elif divides:
            value = f"{draft.random.choice([7, 12, 40])} // {told(variables)}"
        else:
            others = [str(draft.random.randrange(extent)) for extent in source.shape[1:]]
            value = f"{source.name}[{', '.join([told(variables), *others])}]"
        where = holds(nest.loops) if array is between else ""

        place = place_of(variables)
        draft.block(nest, partial(draft.stored, array, place, value), where)
    draft.arrays.append(result)


def view(draft: Draft) -> None:
    """Another buffer over the memory of a parameter, of other strides or of another type."""
    array = draft.random.choice(draft.parameters)
    size = 1
    for extent in array.shape:
        size *= extent
    dtype, strides = array.dtype, ""
    if array.dtype in INTEGERS and draft.chance(0.4):
        dtype = draft.random.choice(["int8", "uint8"])
        size *= {"8": 1, "16": 2, "32": 4, "64": 8}[array.dtype.strip("uint")]
    rows = draft.random.randrange(1, min(size, 8) + 1)
    offset = draft.random.randrange(0, size - rows + 1)
    shape: tuple[int, ...] = (rows,)
    if draft.chance(0.4) and size >= 4:
        step = max(1, min(size // 2, 5))
        shape = (2, max(1, min(step, size - step)))
        offset = draft.random.randrange(0, size - step - shape[1] + 1)
        strides = f", strides=[{step}, 1]"
    name = draft.fresh("V")
    draft.line(
        f'{name} = T.decl_buffer({shape}, "{dtype}", data={array.name}.data{strides}, '
        f"elem_offset={offset})"
    )
    made = Array(name, shape, dtype, viewed=array.name)
    draft.arrays.append(made)
    if draft.chance(0.6):
        nest = draft.nest(shape, ["spatial"] * len(shape))
        indices = [axis.variable for axis in nest.axes]

        def body() -> None:
            values = draft.values(indices, without=[made])
            draft.stored(made, place_of(indices), values.value(dtype))

        draft.block(nest, body)


def threads(draft: Draft) -> None:
    """Threads that each compute an element, in one block of threads or two."""
    array, new = draft.target()
    blocks = draft.random.choice([1, array.shape[0]])
    names = [draft.fresh("bx"), draft.fresh("tx")]
    count = array.shape[0] // blocks
    headers = [
        f'for {names[0]} in T.thread_binding({blocks}, "blockIdx.x"):',
        f'for {names[1]} in T.thread_binding({count}, "threadIdx.x"):',
    ]
    inner = (
        draft.nest(array.shape[1:], ["spatial"] * (len(array.shape) - 1))
        if (len(array.shape) > 1)
        else Nest([], [], [], "")
    )
    own = Axis(
        "spatial", Index(draft.fresh("v"), 0, array.shape[0] - 1),
        f"{names[0]} * {count} + {names[1]}",
    )  # fmt: skip
    nest = Nest([*headers, *inner.headers], [], [own, *inner.axes], inner.predicate)

    def body() -> None:
        indices = [axis.variable for axis in nest.axes]
        values = draft.values(indices, without=[array])
        draft.stored(array, place_of(indices), values.value(array.dtype))

    draft.block(nest, body)
    draft.finish(array, new)


def exchange(draft: Draft) -> None:
    """Threads that store elements in shared memory and load those of other threads."""
    count = draft.random.choice([4, 8])
    shared = Array(draft.fresh("S"), (count,), draft.random.choice(["int32", "float32"]), "shared")
    result = Array(draft.fresh("Y"), (count,), shared.dtype)
    for array in (shared, result):
        draft.allocate(array)
    thread = draft.fresh("tx")
    with draft.inside(f'for {thread} in T.thread_binding({count}, "threadIdx.x"):'):
        for array, source in ((shared, None), (result, shared)):
            with draft.inside(f'with T.block("{draft.fresh("B")}"):'):
                index = Index(draft.fresh("v"), 0, count - 1)
                draft.line(Axis("spatial", index, thread).line())
                value = draft.values([index], without=[array]).value(array.dtype, 1)
                if source is not None:
                    value = f"{source.name}[{count - 1} - {index.name}] - {value}"
                draft.stored(array, index.name, value)
    draft.arrays.append(result)


WEIGHTS: dict[Stage, int] = {
    elementwise: 6, part: 2, reduction: 4, raw: 2, loops: 2, conditional: 2, nested: 2, opaque: 2,
    view: 1, threads: 1, exchange: 1,
}  # fmt: skip
"""How often a program has a stage of each kind."""

WITHOUT_BLOCKS = (raw, loops, carried, view)


def random_program(
    seed: int, among: Sequence[Stage] = tuple(WEIGHTS), symbolic: bool = False
) -> RandomProgram:
    """The program of a seed, of stages of some kinds; `symbolic` sizes, strides and offsets."""
    random = Random(seed)
    draft = Draft(random, symbolic)
    weights = [WEIGHTS.get(stage, 2) for stage in among]
    most = SMALL_STAGES if draft.small else MAX_STAGES
    chosen = random.choices(among, weights, k=random.randrange(1, most + 1))
    for stage in chosen:
        stage(draft)
    return_unread(draft)
    return RandomProgram(text_of(draft), tuple(draft.parameters), draft.exact, seed)
