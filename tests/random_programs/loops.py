"""Stages of random programs without blocks: loops whose statements depend on each other."""

from __future__ import annotations

from dataclasses import replace

from tests.random_programs.programs import Draft, place_of
from tests.random_programs.values import Array, Index


def raw(draft: Draft) -> None:
    """Loops and stores without a block: recurrences, conditions, bindings of names."""
    array = draft.random.choice(draft.arrays)
    headers, loops = [], []
    for extent in array.shape:
        header, index = draft.loop(draft.random.randrange(0, 2), extent, False)
        if index.high >= extent:
            header, index = (
                draft.loop(index.low, extent - index.low, False)
                if extent > 1
                else (draft.loop(0, extent, False))
            )
        headers.append(header)
        loops.append(index)
    with draft.inside(*headers):
        values = draft.values(loops)
        for _ in range(draft.random.randrange(1, 3)):
            place = ", ".join(loop.name for loop in loops)
            if loops[0].low and draft.chance(0.3):
                place = ", ".join([f"{loops[0].name} - 1", *(loop.name for loop in loops[1:])])
            elif draft.chance(0.3):
                place = ", ".join(map(values.index, array.shape))
            value = values.value(array.dtype)
            if loops[0].low and draft.chance(0.4):
                before = ", ".join([f"{loops[0].name} - 1", *(loop.name for loop in loops[1:])])
                value = f"{array.name}[{before}] + {value}"
            if draft.chance(0.3):
                with draft.inside(f"if {values.condition(2)}:"):
                    draft.stored(array, place, value, running=True)
            elif draft.chance(0.15):
                name = draft.fresh("x")
                with draft.inside(f"with T.LetStmt({value}) as {name}:"):
                    draft.stored(array, place, f"{name} + {values.leaf(array.dtype)}", running=True)
            else:
                draft.stored(array, place, value, running=True)


def loops(draft: Draft) -> None:
    """Nested loops whose statements depend on each other in every way."""
    arrays = [draft.random.choice(draft.arrays) for _ in range(2)]
    if draft.chance(0.3):
        own = draft.new_array()
        draft.allocate(own)
        fill(draft, own)
        arrays += [own, own]
    if draft.chance(0.1):
        header, index = draft.loop(0, 150, False)  # further than a byte counts
        with draft.inside(header):
            dependent_stores(draft, arrays, [index])
    else:
        more_loops(draft, arrays, [])


def carried(draft: Draft) -> None:
    """A loop with a buffer of its own: all of it is filled in the first iteration and one element
    in each, which may tell where to read; the rest is what earlier iterations have left there."""
    own = replace(draft.new_array(), dtype=draft.random.choice(["int8", "uint8", "int32"]))
    draft.allocate(own)
    others = [draft.random.choice(draft.arrays) for _ in range(2)]
    header, index = draft.loop(0, draft.random.randrange(2, 6), False)
    with draft.inside(header):
        with draft.inside(f"if {index.name} == 0:"):
            fill(draft, own)
        place = ", ".join(str(draft.random.randrange(extent)) for extent in own.shape)
        draft.stored(own, place, f'T.Cast("{own.dtype}", {index.name})')
        if draft.chance(0.5):
            array, source = draft.random.choice(draft.arrays), draft.random.choice(draft.arrays)
            told = f'T.Cast("int32", {own.name}[{place}])'
            read = ", ".join(f"{told} % {extent}" for extent in source.shape)
            draft.loaded += [own, source]
            value = draft.values([index]).cast(array.dtype, f"{source.name}[{read}]", source.dtype)
            here = ", ".join(map(draft.values([index]).index, array.shape))
            draft.stored(array, here, value, running=True)
        for _ in range(draft.random.randrange(1, 4)):
            dependent_stores(draft, [own, own, *others], [index])


def fill(draft: Draft, array: Array) -> None:
    """Numbers for a new buffer."""
    pairs = [draft.loop(0, extent, False) for extent in array.shape]
    with draft.inside(*[header for header, _ in pairs]):
        place = place_of([index for _, index in pairs])
        draft.stored(array, place, f'T.Cast("{array.dtype}", {pairs[-1][1].name})')


def more_loops(draft: Draft, arrays: list[Array], around: list[Index]) -> None:
    if len(around) == 3 or (around and draft.chance(0.5)):
        dependent_stores(draft, arrays, around)
        return
    header, index = draft.loop(0, draft.random.randrange(1, 6), False)
    if draft.chance(0.3):
        header = header.replace("T.serial", "T.unroll")
    with draft.inside(header):
        for _ in range(draft.random.randrange(1, 3)):
            more_loops(draft, arrays, [*around, index])


def dependent_stores(draft: Draft, arrays: list[Array], around: list[Index]) -> None:
    """A store, perhaps under a condition on what it or another one overwrites."""
    array = draft.random.choice(arrays)
    values = draft.values(around)
    values.arrays = [*values.arrays, *arrays, *arrays]
    place = ", ".join(map(values.index, array.shape))

    def store(target: str) -> None:
        value = values.value(array.dtype)
        if draft.chance(0.4):
            value = f"{array.name}[{place}] + {value}"
        draft.stored(array, target, value, running=True)

    if draft.chance(0.3):
        limit = f"T.{array.dtype}({draft.random.randrange(0, 6)})"
        condition = values.condition(2) if draft.chance(0.5) else f"{array.name}[{place}] < {limit}"
        with draft.inside(f"if {condition}:"):
            for _ in range(draft.random.randrange(1, 3)):
                store(draft.random.choice([place, ", ".join(map(values.index, array.shape))]))
        if draft.chance(0.4):
            with draft.inside("else:"):
                store(", ".join(map(values.index, array.shape)))
    else:
        store(place)
