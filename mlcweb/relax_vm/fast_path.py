"""Graph functions that are nothing but kernels, one after the other, on tensors of known layouts:
one Python function allocates the results and calls the kernels as a chain.

What is bound once (the addresses of arguments and results, and the kernels that are called with
them) is found again by the addresses, so that a model that is called again and again costs Python
the same few lines however many kernels it has.

This way stands beside the ordinary one (frame.py) because a call takes 6 µs less, however many
kernels it makes: one kernel 3.4 µs instead of 9.3, the model of three kernels of
`python -m benchmarks --engines native --only mlp_model/best` 22 µs instead of 28 (wasmtime, two
cores). In a browser Python is ten times slower, and the kernels are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlcweb.ir.array import Array
from mlcweb.relax_vm import instructions as vm
from mlcweb.runtime.device import Device
from mlcweb.runtime.direct_call import PointerCall
from mlcweb.runtime.host.engine import chain
from mlcweb.runtime.ndarray import Layout, NDArray
from mlcweb.runtime.storage import allocate
from mlcweb.tir import dtype as dtypes

if TYPE_CHECKING:
    from mlcweb.relax_vm.frame import Frame

MAX_ARGUMENTS = 64
"""Functions with more arguments take the slow path."""

MAX_BOUND = 64
"""Chains of kernels with different addresses that are cached for each frame."""


class NotKernelSequence(Exception):
    """The function does something else than calling kernels."""


@dataclass(frozen=True, slots=True)
class KernelSequence:
    """What a function does: `calls` are the positions of its kernels among the steps, `allocated`
    the registers of tensors that each call makes anew, `results` the registers of what it gives: a
    tensor, or an array of them."""

    calls: tuple[int, ...]
    allocated: tuple[vm.Register, ...]
    results: vm.Register | tuple[vm.Register, ...]


def kernel_sequence(frame: Frame) -> KernelSequence:
    """The kernel sequence of a function for the layouts of a frame.

    Raises:
        NotKernelSequence: something is not known before the call, or is no kernel called by its
            addresses.
    """
    calls: list[int] = []
    allocated: list[vm.Register] = []
    tuples: dict[vm.Register, tuple[vm.Register, ...]] = {}
    tensors = {register for register, value in frame.fixed.items() if isinstance(value, NDArray)}
    tensors.update(range(len(frame.plan.params)))
    for position, item in enumerate(frame.steps.instructions):
        if isinstance(item, vm.Alloc) and item.dst in frame.layouts:
            allocated.append(item.dst)
            tensors.add(item.dst)
        elif isinstance(item, vm.CallKernel) and tensors.issuperset(item.args):
            if not _takes_addresses(frame, item):
                raise NotKernelSequence
            calls.append(position)
        elif isinstance(item, vm.MakeTuple) and tensors.issuperset(item.args):
            tuples[item.dst] = item.args
        elif not isinstance(item, vm.Release):
            raise NotKernelSequence
    result = frame.plan.body.result
    results = tuples.get(result, result)
    written = set(results) if isinstance(results, tuple) else {results}
    if not written <= tensors or not calls:
        raise NotKernelSequence
    return KernelSequence(tuple(calls), tuple(allocated), results)


def _takes_addresses(frame: Frame, item: vm.CallKernel) -> bool:
    """Whether a kernel can be called with addresses alone, and writes none of the arguments of the
    function, of which two may be the same."""
    function = frame.machine.kernel(item.kernel)
    possible = [frame.layout(register) for register in item.args]
    layouts = tuple([layout for layout in possible if layout is not None])
    if function.kernel.pointers is None or len(layouts) < len(possible):
        return False
    for at in function.signature.written:
        register = item.args[at]
        if register < len(frame.plan.params) or item.args.count(register) > 1:
            return False
    kernel = function.kernel.pointers(layouts)
    return kernel is not None and all(layout.memory is kernel.memory for layout in layouts)


class FastPath:
    """A frame whose sequence is known, and the chains of kernels that were bound so far."""

    def __init__(self, frame: Frame, sequence: KernelSequence) -> None:
        self.frame = frame
        self.sequence = sequence
        self.bound: dict[tuple[int, ...], Callable[[], object]] = {}
        self._behind: dict[tuple[int, ...], tuple[list[PointerCall], Callable[[], int]]] = {}

    def bind(self, key: tuple[int, ...], arrays: Sequence[NDArray]) -> Callable[[], object]:
        """The chain for arguments and results, which are `arrays`; kept by their addresses."""
        frame, params = self.frame, len(self.frame.plan.params)
        values: dict[vm.Register, Any] = dict(frame.fixed)
        values.update(enumerate(arrays[:params]))
        values.update(zip(self.sequence.allocated, arrays[params:], strict=True))
        calls: list[Callable[[], object]] = []
        kernels: list[PointerCall] = []
        for position in self.sequence.calls:
            item: Any = frame.steps.instructions[position]
            taken = tuple([values[register] for register in item.args])
            function = frame.machine.kernel(item.kernel)
            try:
                function.prepare(taken)
            except Exception as error:
                frame.steps.annotate(error, position)
                raise
            assert function.kernel.pointers is not None
            kernel = function.kernel.pointers(taken)
            assert kernel is not None
            calls.append(kernel.bind(*[array.address for array in taken]))
            kernels.append(kernel)
        if len(self.bound) >= MAX_BOUND:
            self.bound.clear()
            self._behind.clear()
        run, reached = chain(calls)
        self.bound[key] = run
        self._behind[key] = kernels, reached
        return run

    def explain(self, key: tuple[int, ...], error: BaseException) -> BaseException:
        """The error to be raised for one that running, or binding, a chain has raised."""
        if key not in self._behind:
            return error
        kernels, reached = self._behind[key]
        place = reached()
        if isinstance(error, kernels[place].failure):
            error = kernels[place].explain(error)
        self.frame.steps.annotate(error, self.sequence.calls[place])
        return error


def fast_path_call(
    free: list[Frame],
    make: Callable[[], Frame],
    layouts: Sequence[Layout],
    otherwise: Callable[..., object],
) -> Callable[..., object] | None:
    """A function of NDArrays that runs a graph function on frames for `layouts`, which are `free`
    or made, and leaves all other arguments to `otherwise`. None where there is no fast path."""
    if len(layouts) > MAX_ARGUMENTS:
        return None
    frame = make()
    free.append(frame)
    try:
        sequence = kernel_sequence(frame)
    except NotKernelSequence:
        return None
    machine = frame.machine
    news = [_maker_of(frame.layouts[each], machine.device) for each in sequence.allocated]
    where = {register: f"array{register}" for register in range(len(layouts))}
    where |= {register: f"new{place}" for place, register in enumerate(sequence.allocated)}

    def name(register: vm.Register) -> str:
        return where.get(register) or f"frame.fixed[{register}]"

    results = sequence.results
    several = isinstance(results, tuple)
    text = f"Array([{', '.join(map(name, results))}])" if several else name(results)

    def bind_frame(frame: Frame) -> FastPath:
        frame.fast_path = FastPath(frame, sequence)
        return frame.fast_path

    written = _written_out(len(layouts), len(news), text)
    return written(machine, free, make, bind_frame, otherwise, *news, *layouts)


def _maker_of(layout: Layout, device: Device) -> Callable[[], NDArray]:
    """What makes a new tensor of a layout."""
    shape, dtype = layout.shape, layout.dtype
    nbytes, kind = math.prod(shape) * dtypes.size_in_bytes(dtype), device.type
    return lambda: NDArray(shape, dtype, device, allocate(nbytes, kind))


@lru_cache
def _written_out(params: int, count: int, results: str) -> Callable[..., Callable[..., object]]:
    """Makes such functions of `params` arrays, which allocate `count` new ones. It is written out
    as text, since loops would take longer than small kernels."""
    arrays = [f"array{i}" for i in range(params)]
    news = [f"new{i}" for i in range(count)]
    layouts = [f"layout{i}" for i in range(params)]
    makers = [f"make{i}" for i in range(count)]
    same = [f"{a}.layout is {b}" for a, b in zip(arrays, layouts, strict=True)]
    every = (*arrays, *news)
    text = f"""
def written(machine, free, make, bind_frame, otherwise, {", ".join((*makers, *layouts))}):
    def call(*arguments):
        try:
            [{", ".join(arrays)}] = arguments
            is_same = {" and ".join(same) or "True"}
        except (AttributeError, ValueError):
            is_same = False
        if not is_same or machine.observer is not None:
            return otherwise(*arguments)
        try:
            frame = free.pop()
        except IndexError:
            frame = make()
        try:
            fast_path = frame.fast_path or bind_frame(frame)
            [{", ".join(news)}] = [{", ".join(f"{maker}()" for maker in makers)}]
            key = ({"".join(f"{array}.address, " for array in every)})
            try:
                run = fast_path.bound.get(key) or fast_path.bind(key, ({", ".join(every)},))
                run()
            except Exception as error:
                raise fast_path.explain(key, error) from None
            return {results}
        finally:
            free.append(frame)
    return call
"""
    names: dict[str, Any] = {"Array": Array}
    exec(compile(text, "<fast_path call>", "exec"), names)
    return names["written"]
