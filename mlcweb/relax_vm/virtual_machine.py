"""The virtual machine: runs the graph functions of an executable.

    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](x)

A function is made ready to run once for each combination of shapes that it is called with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.relax.constant_data import ArrayData, HostArray
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.bytecode import BytecodeExecutable, BytecodeFunction
from mlcweb.relax_vm.executable import Executable
from mlcweb.relax_vm.fast_path import fast_path_call
from mlcweb.relax_vm.frame import Closure, Frame, Observer
from mlcweb.relax_vm.instrument import Instrument
from mlcweb.relax_vm.memory_plan import MemoryPlan, plan_memory
from mlcweb.relax_vm.packed import outward
from mlcweb.relax_vm.profiling import Report, profile
from mlcweb.relax_vm.sizes import Matching, described
from mlcweb.runtime.arguments import ArgumentTypeError
from mlcweb.runtime.benchmark import BenchmarkResult, measure, prepare_repeat, time_in_python
from mlcweb.runtime.device import Device, require
from mlcweb.runtime.device import device as device_of
from mlcweb.runtime.module import FunctionNotFound, PackedFunc
from mlcweb.runtime.ndarray import Layout, NDArray, array, empty
from mlcweb.runtime.registry import get_global_func
from mlcweb.tir.expr import Var as PrimVar

MAX_SHAPES = 16
"""Combinations of shapes for which a function is kept ready."""


class StateError(TVMError, ValueError):
    """What is asked of a function comes before what it needs: arguments, or a run."""


class VirtualMachine:
    """Runs an executable on a device.

    Args:
        rt_mod: what `relax.build` made.
        device: where it runs, or a list of which the first counts.
        memory_cfg: accepted as in TVM; memory is planned for each function anyway.
        profile: accepted as in TVM; `profile` is there in any case.
        reuse_memory: whether tensors share memory that are not needed at the same time.
    """

    def __init__(
        self,
        rt_mod: Executable,
        device: Device | str | Sequence[Device],
        memory_cfg: object = None,
        profile: bool = False,
        *,
        reuse_memory: bool = True,
    ) -> None:
        if not isinstance(rt_mod, Executable):
            raise TVMError(
                f"A virtual machine runs what relax.build gives, not {described(rt_mod)}"
            )
        first = device if isinstance(device, (Device, str)) else device[0]
        self.device = require(device_of(first))
        self.executable = rt_mod
        self.reuse_memory = reuse_memory
        self.observer: Observer | None = None
        self.functions = {name: VMFunction(self, plan) for name, plan in rt_mod.plans.items()}
        self.bytecode: dict[str, BytecodeFunction] = {}
        if isinstance(rt_mod, BytecodeExecutable):
            self.bytecode = rt_mod.functions_on(self)
        self._constants: dict[int, tuple[object, NDArray]] = {}
        self._saved: dict[str, Callable[[], object]] = {}
        self._inputs: dict[str, tuple[object, ...]] = {}
        self._outputs: dict[str, object] = {}
        for name in rt_mod.packed_names:
            self.packed(name)

    # What instructions refer to

    def constant(self, value: object) -> object:
        """A constant as a value: tensors are uploaded once."""
        if not isinstance(value, E.Constant):
            return value
        data = value.data
        cached = self._constants.get(id(data))
        if cached is None:
            cached = self._constants[id(data)] = data, uploaded(data, self.device)
        return cached[1]

    def kernel(self, name: str) -> PackedFunc:
        """A compiled function."""
        return self.executable.kernel(name)

    def packed(self, name: str) -> Callable[..., object]:
        """A registered function; the one of that name when it is called."""
        function = self.executable.linked.get(name) or get_global_func(name, True)
        if function is None:
            raise FunctionNotFound(
                f'The program calls "{name}", which is neither a function of the module nor '
                f'registered: add it to the module, or register it, @tvm.register_func("{name}")'
            )
        return function

    def memory_plan(self, plan: vm.FunctionPlan, sizes: Mapping[PrimVar, int]) -> MemoryPlan:
        """The memory of a function's intermediate tensors for the values of its extents."""
        return plan_memory(plan, sizes, self.executable.keeps_arguments, self.reuse_memory)

    # Calls

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function by name: a graph function, or a compiled one."""
        if name in self.functions:
            return self.functions[name]
        if name in self.bytecode:
            return self.bytecode[name]
        if name in self._saved:
            return self._saved[name]
        if name in self.executable.kernel_names:
            return self.kernel(name)
        if name == "invoke_stateful":  # a function of the machine's in TVM, too, so it can be timed
            return self.invoke_stateful
        offered = ", ".join(f'"{there}"' for there in self.executable.function_names) or "none"
        raise FunctionNotFound(f'The executable has no function "{name}"; there are {offered}')

    get_function = __getitem__

    def __contains__(self, name: str) -> bool:
        return name in self.functions or name in self.executable.function_names

    @property
    def module(self) -> VirtualMachine:
        """What can be asked for functions and timed: the machine itself."""
        return self

    def invoke_closure(self, closure: Closure, *args: object) -> Any:
        """Call a function that another function has returned."""
        return closure(*args)

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: object,
        include_return: bool = True,
        **kwargs: object,
    ) -> None:
        """Make `saved_name` a function without arguments that calls `func_name` with these."""
        function, arguments = self[func_name], self._ordered(func_name, args, kwargs)

        def saved() -> object:
            result = function(*arguments)
            return result if include_return else None

        self._saved[saved_name] = saved

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Arguments for `invoke_stateful`, by position or by the names of parameters. NumPy arrays
        are copied to the device."""
        arguments = self._ordered(func_name, args, kwargs)
        self._inputs[func_name] = tuple(_as_array(value, self.device) for value in arguments)

    def invoke_stateful(self, func_name: str) -> None:
        """Call a function with the arguments of `set_input`; `get_outputs` gives the result.

        Raises: StateError: it has no arguments yet.
        """
        if func_name not in self._inputs:
            raise StateError(f'"{func_name}" has no arguments yet: call vm.set_input first')
        self._outputs[func_name] = self[func_name](*self._inputs[func_name])

    def get_outputs(self, func_name: str) -> Any:
        """The result of the last `invoke_stateful`; without one, a StateError is raised."""
        if func_name not in self._outputs:
            raise StateError(f'"{func_name}" has no result yet: call vm.invoke_stateful first')
        return self._outputs[func_name]

    def _ordered(
        self, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[object, ...]:
        """Arguments in the order of the parameters."""
        function = self[name]
        if not kwargs or not isinstance(function, (VMFunction, BytecodeFunction)):
            return args
        names = list(function.param_names[len(args) :])
        if set(names) != set(kwargs):
            params, named = ", ".join(names) or "none", ", ".join(kwargs)
            raise ArgumentTypeError(
                f'"{name}" takes {params} after {len(args)} argument(s) by position, not {named}'
            )
        return (*args, *(kwargs[param] for param in names))

    # Measuring

    def set_instrument(self, instrument: Callable[..., object] | str | None) -> None:
        """Let a function (or the registered one of a name) see the calls that programs make:
        `instrument(func, name, before_run, ret_value, *args)`, before and after each. Given before
        a call, `VMInstrumentReturnKind.SKIP_RUN` leaves the call out. None ends it."""
        function = get_global_func(instrument) if isinstance(instrument, str) else instrument
        self.observer = None if function is None else Instrument(function)

    def profile(self, func_name: str, *args: object) -> Report:
        """How long each call takes that a function makes. Pure functions are run again and again
        until the clock can tell, and the means are reported."""
        return profile(self, func_name, args)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
        limit_zero_time_iterations: int = 100,
        cache_flush_bytes: int = 0,
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` on its arguments; see `Module.time_evaluator`."""
        if dev is not None and dev != self.device:
            raise TVMError(f"The virtual machine runs on {self.device}, not on {dev}")
        function = self[func_name]

        def evaluate(*arguments: object) -> BenchmarkResult:
            return measure(
                lambda calls: time_in_python(function, list(arguments), calls),
                number,
                repeat,
                min_repeat_ms,
                limit_zero_time_iterations,
                cooldown_interval_ms,
                repeats_to_cooldown,
                lambda: prepare_repeat(arguments, f_preproc, cache_flush_bytes),
                settle=not isinstance(function, VMFunction) or function.plan.is_pure,
            )

        return evaluate


class VMFunction:
    """A graph function that can be called: `vm["main"](x)`.

    It is called with NDArrays, numbers, shapes and tuples; tuples of results are `Array`s. An
    ArgumentTypeError or ArgumentValueError tells which argument does not fit its parameter.
    """

    # What is called is a slot of its own, so that no method stands between the caller and it.
    __slots__ = ("__call__", "__weakref__", "_frames", "_tensors_only", "machine", "plan")

    __call__: Callable[..., Any]

    def __init__(self, machine: VirtualMachine, plan: vm.FunctionPlan) -> None:
        self.machine = machine
        self.plan = plan
        self._tensors_only = (
            all(isinstance(param.info, S.TensorStructInfo) for param in plan.params)
            and not plan.outer
        )
        self._frames: dict[tuple[object, ...], _Frames] = {}
        self.__call__ = self._called

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(param.name for param in self.plan.params)

    def _called(self, *arguments: object) -> object:
        """Any call. Those with the same layouts that follow may take the fast path."""
        frames = self._frames_for(arguments)
        if frames.fast_path is not None and self.machine.observer is None:
            self.__call__ = frames.fast_path
            return frames.fast_path(*arguments)
        return outward(frames.run(arguments))

    def call(
        self, arguments: tuple[object, ...], outer: Mapping[PrimVar, int] | None = None
    ) -> object:
        """A call from the machine itself: tuples of results are tuples, and there may be symbolic
        extents from around a local function."""
        return self._frames_for(arguments, outer).run(arguments)

    def _frames_for(
        self, arguments: tuple[Any, ...], outer: Mapping[PrimVar, int] | None = None
    ) -> _Frames:
        """The frames for arguments, which are checked unless tensors of the same layouts have been
        met before."""
        key: tuple[object, ...] | None = None
        layouts: dict[vm.Register, Layout] = {}
        if self._tensors_only:
            try:
                own = tuple([value.layout for value in arguments])
            except AttributeError:
                pass
            else:
                if own in self._frames:
                    return self._frames[own]
                key, layouts = own, dict(enumerate(own))
        sizes = self._checked(arguments, outer)
        if key is None:
            key = tuple([sizes.get(var) for var in sizes])
        frames = self._frames.get(key)
        if frames is None:
            if len(self._frames) >= MAX_SHAPES:
                self._frames.pop(next(iter(self._frames)))
            frames = self._frames[key] = _Frames(self, sizes, layouts)
        return frames

    def _checked(
        self, arguments: tuple[object, ...], outer: Mapping[PrimVar, int] | None
    ) -> dict[PrimVar, int]:
        """The values of symbolic extents; an error that names the argument which does not fit."""
        params = self.plan.params
        if len(arguments) != len(params):
            names = ", ".join(param.name for param in params) or "none"
            raise ArgumentTypeError(
                f'"{self.name}" takes {len(params)} argument(s) ({names}) but got {len(arguments)}'
            )
        matching = Matching(outer)
        for index, (value, param) in enumerate(zip(arguments, params, strict=True)):
            place = f'argument {index} ("{param.name}") of "{self.name}"'
            matching.match(value, param.info, place)
        return matching.finish()

    def __repr__(self) -> str:
        names = ", ".join(self.param_names)
        return f"<{type(self).__module__}.{type(self).__name__} {self.name}({names})>"


class _Frames:
    """Frames of a function for the same shapes: one, or more where it calls itself. `fast_path` is
    the short way to run it, if there is one."""

    def __init__(
        self,
        function: VMFunction,
        sizes: Mapping[PrimVar, int],
        layouts: Mapping[vm.Register, Layout],
    ) -> None:
        machine, plan = function.machine, function.plan
        self._make = lambda: Frame(machine, plan, sizes, layouts)
        self.free: list[Frame] = []
        self.fast_path: Callable[..., object] | None = None
        if layouts:
            self.fast_path = fast_path_call(
                self.free, self._make, list(layouts.values()), function._called
            )

    def run(self, arguments: tuple[object, ...]) -> object:
        """Call the function with arguments that are checked, on a frame that nobody runs."""
        try:
            frame = self.free.pop()
        except IndexError:
            frame = self._make()
        try:
            return frame.run(arguments)
        finally:
            self.free.append(frame)


def uploaded(data: ArrayData, dev: Device) -> NDArray:
    """The data of a constant on a device: itself where it is there."""
    import numpy as np

    if isinstance(data, NDArray) and data.device == dev:
        return data
    result = empty(data.shape, str(data.dtype), dev)
    raw = data.data if isinstance(data, HostArray) else data.numpy().tobytes()
    result.storage.write(np.frombuffer(raw, np.uint8))
    return result


def _as_array(value: Any, dev: Device) -> object:
    if isinstance(value, NDArray) or not hasattr(value, "__array__"):
        return value
    return array(value, dev)
