"""Running printed programs on several targets: what they compute has to agree."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import mlcweb as tvm
from mlcweb.codegen.errors import IndexOutOfBounds
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import PassContext
from mlcweb.ir.visitor import walk
from mlcweb.lower.specialize import specialize
from mlcweb.script.parser import parse
from mlcweb.tir import PrimFunc
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.substitute import variables_in
from tests.corpus.test_printed import is_checked

MAX_ITERATIONS = 40_000
"""Programs with more take the interpreter too long."""

MULTIPLICATIONS_OF_A_TILE = 16**3
"""What one instruction of a tensor core does."""

MAX_ELEMENTS = 1 << 20
SIZE = 8
"""The value of sizes that are symbols."""

TOLERANCES = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}


class CannotRun(Exception):
    """A program that is not run, and why."""


def functions_of(text: str, checked: bool = True) -> list[tuple[str, PrimFunc]]:
    """The TensorIR functions of a program's text."""
    program = parse(text, check_well_formed=checked)
    if isinstance(program, PrimFunc):
        return [("main", program)]
    if not isinstance(program, IRModule):
        return []
    return [
        (var.name_hint, func)
        for var, func in program.functions.items()
        if isinstance(func, PrimFunc)
    ]


def functions_in(programs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, PrimFunc]]:
    """The TensorIR functions of programs, each after what made it and its name."""
    for origin, text in programs:
        functions = functions_of(text, is_checked(origin))
        yield from [(f"{origin}: {name}", func) for name, func in functions]


def count(functions: Iterable[tuple[str, PrimFunc]], run: Callable[[PrimFunc, int], int]) -> int:
    """The sum of what `run` gives for functions and their numbers; those that cannot be run count
    nothing, and other errors say which function it was."""
    total = 0
    for number, (name, func) in enumerate(functions):
        try:
            total += run(func, number)
        except CannotRun:
            continue
        except Exception as error:
            error.add_note(name)
            raise
    return total


def iterations(statement: Any, outer: float = 1) -> float:
    """How often the leaves of a statement run, about; each product of tiles is thousands."""
    if isinstance(statement, S.Evaluate) and "mma_sync" in str(statement.value):
        outer *= MULTIPLICATIONS_OF_A_TILE
    if isinstance(statement, S.For):
        outer *= statement.extent.value if isinstance(statement.extent, E.IntImm) else SIZE
    parts = [
        child
        for name in statement.child_fields
        for value in (getattr(statement, name),)
        for child in (value if isinstance(value, tuple) else (value,))
        if isinstance(child, (S.Stmt, S.Block))
    ]
    return sum(iterations(part, outer) for part in parts) if parts else outer


def sized(func: PrimFunc) -> PrimFunc:
    """The function with all sizes known: symbols are set to `SIZE`, offsets to 0."""
    values: dict[E.Var, int] = {}
    for buffer in func.parameter_buffers:
        for extent in (*buffer.shape, *buffer.strides):
            values.update(dict.fromkeys(variables_in(extent), SIZE))
        values.update(dict.fromkeys(variables_in(buffer.elem_offset), 0))
    scalars = {param for param in func.params if param not in func.buffer_map}
    for param in scalars:
        if not dtypes.is_integer(param.dtype):
            raise CannotRun(f"takes a {param.dtype}")
        values[param] = SIZE
    func = specialize(func, values) if values else func
    if any(
        not isinstance(extent, E.IntImm)
        for buffer in func.parameter_buffers
        for extent in (*buffer.shape, *buffer.strides)
    ):
        raise CannotRun("has a buffer without a size")
    return func


def content(buffer: Buffer, generator: np.random.Generator) -> np.ndarray:
    """Small numbers: of many signs where they are of floating point, else 0 to 3."""
    shape = tuple(extent.value for extent in buffer.shape if isinstance(extent, E.IntImm))
    if math.prod(shape) > MAX_ELEMENTS:
        raise CannotRun("is too large")
    if not re.fullmatch(r"(float(16|32|64)|u?int(8|16|32|64)|bool)", buffer.dtype):
        raise CannotRun(f"has elements of {buffer.dtype}")
    if buffer.dtype.startswith("float"):
        return generator.uniform(-2, 2, shape).astype(buffer.dtype)
    return generator.integers(0, 2 if buffer.dtype == "bool" else 4, shape).astype(buffer.dtype)


def check_can_run(func: PrimFunc) -> None:
    if not func.buffer_map:
        raise CannotRun("takes no buffers")
    if iterations(func.body) > MAX_ITERATIONS:
        raise CannotRun("runs too long")
    for node in walk(func.body):
        name = getattr(getattr(node, "op", None), "name", "")
        if isinstance(node, E.Call) and name.startswith(("tir.call_", "tir.tvm_call", "tir.ptx")):
            raise CannotRun(f"calls {name}")


def computed(func: PrimFunc, target: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The content of the parameters of a function after a call."""
    if any(buffer.strides for buffer in func.parameter_buffers):
        raise CannotRun("has strides")
    inputs = [tvm.nd.array(array) for array in arrays]
    values = iter(inputs)
    arguments = [next(values) if param in func.buffer_map else SIZE for param in func.params]
    # Rounding twice, as the others do.
    with PassContext(config={"mlcweb.relaxed_madd": False}):
        kernel = tvm.build(IRModule({"main": func}), target)
    kernel["main"](*arguments)
    return [array.numpy() for array in inputs]


def difference(one: np.ndarray, other: np.ndarray) -> str:
    """Where two results differ; "" where they agree up to rounding."""
    if one.dtype.kind != "f":
        wrong = one != other
    else:
        near = TOLERANCES[str(one.dtype)]
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(one, other, near, near, equal_nan=True)
    if not wrong.any():
        return ""
    place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, at {place} {one[place]} and {other[place]}"


def interpreted(func: PrimFunc, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Small inputs for a function without scalars whose sizes are known, and what the interpreter
    makes of them.

    Raises:
        CannotRun: the program is not one that can be run so.
    """
    check_can_run(func)
    if any(param not in func.buffer_map for param in func.params):
        raise CannotRun("takes scalars")
    func = sized(func)
    arrays = inputs_of(func, seed)
    return arrays, _expected(func, arrays)


def _expected(func: PrimFunc, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the interpreter computes; CannotRun where a program is wrong for these inputs."""
    try:
        return computed(func, "interpreter", arrays)
    except IndexOutOfBounds:
        raise CannotRun("reaches outside of its buffers") from None
    except (TVMError, ZeroDivisionError) as error:
        raise CannotRun(f"is refused: {type(error).__name__}: {error}") from None


def inputs_of(func: PrimFunc, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    return [content(buffer, generator) for buffer in buffers]


def disagreement(func: PrimFunc, seed: int = 0) -> str:
    """How targets differ on a function; "" where they agree.

    Raises:
        CannotRun: the program is not one that can be run.
    """
    check_can_run(func)
    func = sized(func)
    arrays = inputs_of(func, seed)
    expected = _expected(func, arrays)
    for target in ("numpy", "wasm"):
        try:
            results = computed(func, target, arrays)
        except CannotRun:
            raise
        except Exception as error:
            return f"{target}: {type(error).__name__}: {error}"
        for buffer, one, other in zip(func.parameter_buffers, expected, results, strict=True):
            where = difference(one, other)
            if where:
                return f"{target}: {buffer.name}: {where}"
    return ""
