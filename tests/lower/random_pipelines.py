"""Random loops with annotations of software pipelines: their text, and what NumPy computes."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

THREADS = 16


class Read(NamedTuple):
    """An operand: of a buffer of the loop at this thread's element or the opposite one, or of an
    array at an earlier iteration."""

    buffer: str
    back: int = 0
    opposite: bool = False


class Pipeline(NamedTuple):
    extent: int
    first: int
    own: list[str]
    arrays: list[str]
    statements: list[tuple[str, list[Read], int]]
    stages: list[int]
    order: list[int]
    asynchronous: list[int]


def draw(seed: int, threads: bool) -> Pipeline:
    """Statements that add up what they read: arrays A, the parameters between, and D, and buffers
    that the loop allocates, which are read only once they are written."""
    rng = random.Random(seed)
    count = rng.randint(2, 5)
    own = [f"S{n}" for n in range(rng.randint(1, 3))]
    arrays = [f"G{n}" for n in range(rng.randint(0, 2))]
    statements: list[tuple[str, list[Read], int]] = []
    written: list[str] = []
    for number in range(count):
        target = rng.choice(own + arrays) if number < count - 1 else "D"
        reads = [Read("A")]
        for buffer in written:
            # A thread does not read what another writes in the same statement.
            opposite = rng.random() < 0.5 and buffer != target
            if rng.random() < 0.7:
                reads.append(Read(buffer, 0, opposite))
        for array in arrays:
            if rng.random() < 0.5:
                reads.append(Read(array, rng.randint(0, 2)))
        statements.append((target, reads, rng.randint(1, 3)))
        if target in own and target not in written:
            written.append(target)
    stages = [0]
    while len(stages) < count:
        stages.append(stages[-1] + rng.choice([0, 0, 1, 1, 2]))
    if rng.random() < 0.2:
        rng.shuffle(stages)
    order = list(range(count))
    if rng.random() < 0.6:
        rng.shuffle(order)
    return Pipeline(
        rng.choice([1, 2, 3, 5, 8]), rng.choice([0, 0, 3]), own, arrays, statements, stages, order,
        sorted({stage for stage in stages if rng.random() < 0.4}),
    )  # fmt: skip


def random_pipeline(seed: int, threads: bool) -> tuple[str, list[Any]]:
    """A program, and arrays to call it with."""
    p = draw(seed, threads)
    names = ["A", *p.arrays, "D"]
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(0, 4, (THREADS, p.extent)).astype("float32") for _ in names]
    at = f"(i - {p.first})" if p.first else "i"

    def operand(read: Read) -> str:
        thread = f"{THREADS - 1} - tx" if read.opposite else "tx"
        if read.buffer in p.own:
            return f"{read.buffer}[{thread}, 0]"
        index = f"T.max({at} - {read.back}, 0)" if read.back else at
        return f"{read.buffer}[{thread}, {index}]"

    parameters = (f'{name}: T.Buffer(({THREADS}, {p.extent}), "float32")' for name in names)
    loop = f'T.thread_binding({THREADS}, thread="threadIdx.x")' if threads else f"range({THREADS})"
    scope = "shared" if threads else "global"
    lines = [
        "@T.prim_func",
        f"def main({', '.join(parameters)}):",
        f"    for i in T.serial({p.first}, {p.first + p.extent}, annotations={{"
        f'"software_pipeline_stage": {p.stages}, "software_pipeline_order": {p.order}, '
        f'"software_pipeline_async_stages": {p.asynchronous}}}):',
        '        with T.block("compute"):',
        "            T.reads()",
        "            T.writes()",
    ]
    lines += [
        f'            {name} = T.alloc_buffer(({THREADS}, 1), "float32", scope="{scope}")'
        for name in p.own
    ]
    for target, reads, factor in p.statements:
        value = " + ".join(map(operand, reads))
        element = operand(Read(target))
        lines += [f"            for tx in {loop}:"]
        lines += [f"                {element} = ({value}) % T.float32({factor + 3})"]
    return "\n".join(lines) + "\n", inputs


def reference(seed: int, inputs: list[Any]) -> list[Any]:
    """What the arrays hold after the loop, iteration by iteration."""
    p = draw(seed, threads=False)
    memory = dict(zip(["A", *p.arrays, "D"], (array.copy() for array in inputs), strict=True))
    for i in range(p.extent):
        for target, reads, factor in p.statements:
            total = np.zeros(THREADS, "float32")
            for read in reads:
                values = memory[read.buffer]
                if read.buffer not in p.own:
                    values = values[:, max(i - read.back, 0)]
                total = total + (values[::-1] if read.opposite else values)
            result = np.mod(total, np.float32(factor + 3))
            if target in p.own:
                memory[target] = result
            else:
                memory[target][:, i] = result
    return [memory[name] for name in ("A", *p.arrays, "D")]
