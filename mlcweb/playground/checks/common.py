"""What checkers share: finding the reader's objects, running them, and saying what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from mlcweb.ir import IRModule, Node
from mlcweb.ir.visitor import children
from mlcweb.playground.checks.verdict import Wrong
from mlcweb.runtime import nd
from mlcweb.runtime.build import build
from mlcweb.tir import PrimFunc
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.stmt import Block, For, ForKind, IterType

Kind = TypeVar("Kind")
Signature = Sequence[tuple[tuple[int, ...], str]]


def variable(variables: Mapping[str, Any], name: str, kind: type[Kind], what: str) -> Kind:
    """The reader's variable `name`; `what` says what it should be, such as "an IRModule"."""
    if name not in variables:
        raise Wrong(f"There is no {name} yet: the cell should define {what} of that name.")
    value = variables[name]
    if not isinstance(value, kind):
        raise Wrong(f"{name} should be {what}, but it is of type {type(value).__name__}.")
    return value


def prim_func(
    variables: Mapping[str, Any], module_name: str, function_name: str, signature: Signature
) -> PrimFunc:
    """A function of the reader's module, with buffers of the shapes and dtypes that are asked."""
    module = variable(variables, module_name, IRModule, "an IRModule")
    names = {var.name_hint: function for var, function in module.functions.items()}
    if not isinstance(function := names.get(function_name), PrimFunc):
        there = ", ".join(names) or "none"
        raise Wrong(f"{module_name} should have a function {function_name}; it has {there}.")
    buffers = function.parameter_buffers
    if len(buffers) != len(signature):
        raise Wrong(
            f"{function_name} should take {len(signature)} buffers, but it takes {len(buffers)}."
        )
    for buffer, (shape, dtype) in zip(buffers, signature, strict=True):
        actual = tuple(constant_value(extent) for extent in buffer.shape)
        if actual != shape or str(buffer.dtype) != dtype:
            raise Wrong(
                f"{buffer.name} should have shape {shape} and dtype {dtype}; "
                f"it has shape {actual} and dtype {buffer.dtype}."
            )
    return function


def run(
    program: PrimFunc | IRModule,
    inputs: Sequence[np.ndarray],
    output: np.ndarray,
    target: str | None = "llvm",
) -> Any:
    """What a program with one function writes for `inputs` to its last argument, which holds
    `output` before."""
    module = IRModule({"main": program}) if isinstance(program, PrimFunc) else program
    [name] = [var.name_hint for var in module.functions]
    arrays = [nd.array(array) for array in (*inputs, output)]
    build(module, target=target)[name](*arrays)
    return arrays[-1].numpy()


def same(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Equal, or for floats as close as another order of summing makes them."""
    if np.issubdtype(expected.dtype, np.floating):
        return bool(np.allclose(actual, expected, rtol=1e-4, atol=1e-4))
    return bool(np.array_equal(actual, expected))


def expect(
    name: str, actual: np.ndarray, expected: np.ndarray, *mistakes: tuple[np.ndarray, str]
) -> None:
    """Accept what is right; else say what is wrong.

    Args:
        mistakes: what usual mistakes compute, each with what to say of it.
    """
    if same(actual, expected):
        return
    for computed, verdict in mistakes:
        if same(actual, computed):
            raise Wrong(verdict)
    raise Wrong(first_difference(name, actual, expected))


def first_difference(name: str, actual: np.ndarray, expected: np.ndarray) -> str:
    """Such as "C[0, 1] is 3, but should be 7 (12 of 16 elements differ)"."""
    if np.issubdtype(expected.dtype, np.floating):
        wrong = ~np.isclose(actual, expected, rtol=1e-4, atol=1e-4)
    else:
        wrong = actual != expected
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = ", ".join(map(str, place))
    count = int(wrong.sum())
    return (
        f"{name}[{where}] is {actual[place]:.6g}, but should be {expected[place]:.6g} "
        f"({count} of {actual.size} elements differ)."
    )


def blocks_of(node: Node, loops: tuple[For, ...] = ()) -> Iterator[tuple[Block, tuple[For, ...]]]:
    """The blocks below `node`, in the program's order, each with the loops around it."""
    if isinstance(node, For):
        loops = (*loops, node)
    for child in children(node):
        yield from blocks_of(child, loops)
    if isinstance(node, Block) and node.name_hint != "root":
        yield node, loops


def loop_text(loop: For) -> str:
    """Such as "T.vectorized(8)"."""
    kinds = {
        ForKind.SERIAL: "range",
        ForKind.PARALLEL: "T.parallel",
        ForKind.VECTORIZED: "T.vectorized",
        ForKind.UNROLLED: "T.unroll",
    }
    if loop.kind is ForKind.THREAD_BINDING:
        tag = loop.thread_binding.thread_tag if loop.thread_binding else ""
        return f'T.thread_binding({loop.extent}, thread="{tag}")'
    return f"{kinds[loop.kind]}({loop.extent})"


def reduced_axes(block: Block) -> list[str]:
    """The names of a block's reduction axes."""
    return [axis.var.name for axis in block.iter_vars if axis.iter_type is IterType.COMM_REDUCE]
