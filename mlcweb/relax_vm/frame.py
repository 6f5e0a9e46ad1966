"""A function made ready to run, for certain shapes of its arguments: its registers, the memory of
its intermediate tensors, and one Python function for each instruction.

Kernels are called by addresses. Where all tensors of a call stay in place from call to call, the
addresses are handed over once, when the frame is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter, length_hint
from typing import TYPE_CHECKING, Any, Protocol

from mlcweb.ir.errors import TVMError
from mlcweb.ir.op import Op
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.builtins import BUILTIN, truth
from mlcweb.relax_vm.memory_plan import MemoryPlan
from mlcweb.relax_vm.packed import call_packed, outward
from mlcweb.relax_vm.sizes import Matching, ShapeTuple, described, known_sizes
from mlcweb.relax_vm.text import one_line
from mlcweb.runtime.device import Device
from mlcweb.runtime.direct_call import PointerCall
from mlcweb.runtime.module import PackedFunc
from mlcweb.runtime.ndarray import Layout, NDArray, empty
from mlcweb.runtime.storage import BORROWED, allocate
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb.relax_vm.fast_path import FastPath

Step = Callable[[], object]


class Observer(Protocol):
    """What runs the steps of frames in place of `Steps.run`, to see them."""

    def run(self, steps: Steps) -> None: ...


class Callee(Protocol):
    """A graph function of the machine."""

    @property
    def plan(self) -> vm.FunctionPlan: ...

    def call(
        self, arguments: tuple[object, ...], outer: Mapping[PrimVar, int] | None = None
    ) -> object: ...


class Machine(Protocol):
    """What frames ask of their virtual machine."""

    @property
    def device(self) -> Device: ...

    @property
    def observer(self) -> Observer | None: ...

    @property
    def functions(self) -> Mapping[str, Callee]: ...

    def constant(self, value: object) -> object: ...

    def kernel(self, name: str) -> PackedFunc: ...

    def packed(self, name: str) -> Callable[..., object]: ...

    def memory_plan(self, plan: vm.FunctionPlan, sizes: Mapping[PrimVar, int]) -> MemoryPlan: ...


MAX_BOUND = 64
"""Calls of a kernel with different addresses that are cached for each instruction."""

_address = attrgetter("address")


class Frame:
    """The registers of a function and its steps. It runs one call at a time. `entry` are the
    symbolic extents that the arguments give, `sizes` also those that are learnt in a call."""

    def __init__(
        self,
        machine: Machine,
        plan: vm.FunctionPlan,
        sizes: Mapping[PrimVar, int],
        layouts: Mapping[vm.Register, Layout],
    ) -> None:
        self.machine = machine
        self.plan = plan
        self.entry = dict(sizes)
        self.sizes = self.entry
        self.layouts = dict(layouts)
        self.registers: list[Any] = [None] * plan.registers
        self.fixed = self._fixed_values()
        for register, value in self.fixed.items():
            self.registers[register] = value
        self._empty = list(self.registers)
        self.steps = Steps(self, plan.body)
        self.fast_path: FastPath | None = None

    def _fixed_values(self) -> dict[vm.Register, object]:
        """Constants, and intermediate tensors in the memory that is planned for them."""
        machine, device = self.machine, self.machine.device
        fixed = {register: machine.constant(value) for register, value in self.plan.constants}
        memory = machine.memory_plan(self.plan, self.sizes)
        pieces = [allocate(nbytes, device.type) for nbytes in memory.pieces]
        for instruction in vm.walk(self.plan.body):
            if isinstance(instruction, vm.Alloc) and instruction.dst in memory.place:
                shape = known_sizes(instruction.shape, self.sizes)
                assert shape is not None
                whole = pieces[memory.place[instruction.dst]]
                nbytes = memory.tensors[instruction.dst]
                storage = whole if whole.nbytes == nbytes else whole.part(nbytes)
                fixed[instruction.dst] = NDArray(shape, instruction.dtype, device, storage)
        return fixed

    def layout(self, register: vm.Register) -> Layout | None:
        """The layout of the tensor in a register, where it is known before the function runs."""
        value = self.fixed.get(register)
        return value.layout if isinstance(value, NDArray) else self.layouts.get(register)

    def run(self, arguments: tuple[object, ...]) -> object:
        """Call the function with arguments that are checked already."""
        registers = self.registers
        registers[: len(arguments)] = arguments
        try:
            self.steps.run()
            return registers[self.plan.body.result]
        finally:
            registers[:] = self._empty
            self.sizes = self.entry


class Steps:
    """What a body does, instruction by instruction."""

    def __init__(self, frame: Frame, body: vm.Body) -> None:
        self.frame = frame
        self.instructions = [
            instruction
            for instruction in body.instructions
            if getattr(instruction, "dst", None) not in frame.fixed
        ]
        self.explained: dict[int, PointerCall] = {}
        self.steps: list[Step] = []
        for position, instruction in enumerate(self.instructions):
            try:
                self.steps.append(_LINK[type(instruction)](self, position, instruction))
            except Exception as error:
                self.annotate(error, position)
                raise

    def run(self) -> None:
        observer = self.frame.machine.observer
        if observer is not None:
            observer.run(self)
            return
        progress = iter(self.steps)
        try:
            for step in progress:
                step()
        except Exception as error:
            self.fail(error, len(self.steps) - length_hint(progress) - 1)

    def fail(self, error: Exception, position: int) -> None:
        """Raise the error of an instruction, which tells where in the program that is."""
        pointers = self.explained.get(position)
        if pointers is not None and isinstance(error, pointers.failure):
            explained = pointers.explain(error)
            self.annotate(explained, position)
            raise explained from None
        self.annotate(error, position)
        raise error

    def annotate(self, error: BaseException, position: int) -> None:
        origin = self.instructions[position].origin
        if origin is not None:
            error.add_note(f'In the function "{self.frame.plan.name}": {one_line(origin)}')


def _alloc(steps: Steps, position: int, item: vm.Alloc) -> Step:
    frame, registers = steps.frame, steps.frame.registers
    dst, dtype, device = item.dst, item.dtype, steps.frame.machine.device
    shape = known_sizes(item.shape, frame.entry)
    if shape is not None:
        first = empty(shape, dtype, device)
        frame.layouts[dst] = first.layout
        nbytes, kind = first.nbytes, device.type

        def allocate_known() -> None:
            registers[dst] = NDArray(shape, dtype, device, allocate(nbytes, kind))

        return allocate_known

    def allocate_now() -> None:
        registers[dst] = empty(_sizes_now(frame, item.shape), dtype, device)

    return allocate_now


def _sizes_now(frame: Frame, extents: tuple[PrimExpr, ...]) -> tuple[int, ...]:
    values = known_sizes(extents, frame.sizes)
    if values is None:
        shown = ", ".join(map(str, extents))
        raise TVMError(f"The shape ({shown}) depends on an extent that has no value")
    return values


def _call_kernel(steps: Steps, position: int, item: vm.CallKernel) -> Step:
    frame, args = steps.frame, item.args
    registers, function = frame.registers, frame.machine.kernel(item.kernel)
    if all(isinstance(frame.fixed.get(register), NDArray) for register in args):
        arrays = tuple(registers[register] for register in args)
        call, pointers = _bound(function, arrays)
        if pointers is not None:
            steps.explained[position] = pointers
        return call
    layouts = [frame.layout(register) for register in args]
    if function.kernel.pointers is None or any(
        layout is None or layout.memory is BORROWED for layout in layouts
    ):
        # Somebody else made one of the arrays, or an argument is a number.
        return lambda: function(*[registers[register] for register in args])
    calls: dict[tuple[int, ...], Step] = {}

    def call_by_address() -> None:
        arrays = tuple([registers[register] for register in args])
        addresses = tuple(map(_address, arrays))
        call = calls.get(addresses)
        if call is None:
            call, pointers = _bound(function, arrays)
            if pointers is not None:
                if len(calls) >= MAX_BOUND:
                    calls.clear()
                calls[addresses] = call
                steps.explained[position] = pointers
        call()

    return call_by_address


def _bound(function: PackedFunc, arrays: tuple[NDArray, ...]) -> tuple[Step, PointerCall | None]:
    """A call of a kernel with these arrays, which are checked here; by addresses where it may be,
    which comes with what explains its failures."""
    function.prepare(arrays)
    pointers = function.kernel.pointers(arrays) if function.kernel.pointers else None
    addresses = [array.address for array in arrays]
    alone = all(addresses.count(addresses[at]) == 1 for at in function.signature.written)
    if pointers is None or not alone:
        return partial(function, *arrays), None
    if any(array.layout.memory is not pointers.memory for array in arrays):
        return partial(function, *arrays), None
    return pointers.bind(*addresses), pointers


def _call_packed(steps: Steps, position: int, item: vm.CallPacked) -> Step:
    registers, machine = steps.frame.registers, steps.frame.machine
    dst, name, args = item.dst, item.name, item.args

    def write() -> None:
        values = [registers[index] for index in args]
        call_packed(name, machine.packed(name), values, gives=False)

    if dst is None:
        return write

    def call() -> None:
        values = [registers[index] for index in args]
        registers[dst] = call_packed(name, machine.packed(name), values)

    return call


def _call_function(steps: Steps, position: int, item: vm.CallFunction) -> Step:
    registers, dst, args = steps.frame.registers, item.dst, item.args
    function = steps.frame.machine.functions[item.function]

    def call() -> None:
        registers[dst] = function.call(tuple([registers[index] for index in args]))

    return call


def _call_value(steps: Steps, position: int, item: vm.CallValue) -> Step:
    registers, dst, callee, args = steps.frame.registers, item.dst, item.callee, item.args

    def call() -> None:
        function = registers[callee]
        values = [registers[index] for index in args]
        if hasattr(function, "call"):
            registers[dst] = function.call(tuple(values))
        elif callable(function):  # of Python, given as an argument
            name = getattr(function, "__name__", "a function")
            registers[dst] = call_packed(name, function, values)
        else:
            raise TVMError(f"Only functions can be called; this is {described(function)}")

    return call


def _make_function(steps: Steps, position: int, item: vm.MakeFunction) -> Step:
    registers, dst, args = steps.frame.registers, item.dst, item.args
    frame = steps.frame
    function = frame.machine.functions[item.function]

    def make() -> None:
        captured = tuple([registers[index] for index in args])
        registers[dst] = Closure(function, captured, frame.sizes, item.last)

    return make


class Closure:
    """A function as a value, with the values and extents that it takes from around it."""

    def __init__(
        self,
        function: Callee,
        captured: tuple[object, ...],
        sizes: Mapping[PrimVar, int],
        last: bool = False,
    ) -> None:
        self.function = function
        self.first, self.last = ((), captured) if last else (captured, ())
        self.sizes = {var: sizes[var] for var in function.plan.outer if var in sizes}

    def call(self, arguments: tuple[object, ...]) -> object:
        return self.function.call((*self.first, *arguments, *self.last), self.sizes)

    def __call__(self, *arguments: object) -> object:
        return outward(self.call(arguments))


def _call_builtin(steps: Steps, position: int, item: vm.CallBuiltin) -> Step:
    registers, dst, args = steps.frame.registers, item.dst, item.args
    function: Callable[..., object] = Op.get(item.name).get_attr(BUILTIN)

    def call() -> None:
        registers[dst] = function(*[registers[index] for index in args])

    return call


def _load_function(steps: Steps, position: int, item: vm.LoadFunction) -> Step:
    registers, machine, dst = steps.frame.registers, steps.frame.machine, item.dst
    lookup = machine.kernel if item.compiled else machine.packed

    def load() -> None:
        registers[dst] = lookup(item.name)

    return load


def _make_tuple(steps: Steps, position: int, item: vm.MakeTuple) -> Step:
    registers, dst, args = steps.frame.registers, item.dst, item.args

    def make() -> None:
        registers[dst] = tuple([registers[index] for index in args])

    return make


def _get_item(steps: Steps, position: int, item: vm.GetItem) -> Step:
    registers, dst, source, index = steps.frame.registers, item.dst, item.source, item.index

    def get() -> None:
        registers[dst] = registers[source][index]

    return get


def _make_shape(steps: Steps, position: int, item: vm.MakeShape) -> Step:
    frame = steps.frame

    def make() -> None:
        frame.registers[item.dst] = ShapeTuple(_sizes_now(frame, item.values))

    return make


def _make_scalar(steps: Steps, position: int, item: vm.MakeScalar) -> Step:
    frame = steps.frame

    def make() -> None:
        (value,) = _sizes_now(frame, (item.value,))
        frame.registers[item.dst] = bool(value) if item.value.dtype == "bool" else value

    return make


def _match(steps: Steps, position: int, item: vm.Match) -> Step:
    frame = steps.frame

    def match() -> None:
        matching = Matching(frame.sizes)
        matching.match(frame.registers[item.source], item.info, item.place)
        frame.sizes = matching.finish()

    return match


def _branch(steps: Steps, position: int, item: vm.Branch) -> Step:
    frame, registers, dst = steps.frame, steps.frame.registers, item.dst
    true, false = Steps(frame, item.true), Steps(frame, item.false)
    bodies = ((false, item.false.result), (true, item.true.result))

    def branch() -> None:
        body, result = bodies[truth(registers[item.condition])]
        body.run()
        registers[dst] = registers[result]

    return branch


def _release(steps: Steps, position: int, item: vm.Release) -> Step:
    registers, gone = steps.frame.registers, item.registers

    def release() -> None:
        for register in gone:
            registers[register] = None

    return release


_LINK: dict[type, Callable[..., Step]] = {
    vm.Alloc: _alloc,
    vm.CallKernel: _call_kernel,
    vm.CallPacked: _call_packed,
    vm.CallFunction: _call_function,
    vm.CallValue: _call_value,
    vm.CallBuiltin: _call_builtin,
    vm.MakeFunction: _make_function,
    vm.LoadFunction: _load_function,
    vm.MakeTuple: _make_tuple,
    vm.GetItem: _get_item,
    vm.MakeShape: _make_shape,
    vm.MakeScalar: _make_scalar,
    vm.Match: _match,
    vm.Branch: _branch,
    vm.Release: _release,
}
