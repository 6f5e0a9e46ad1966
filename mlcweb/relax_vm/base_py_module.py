"""BasePyModule: a module whose compiled functions and Python functions call each other.

    @I.ir_module
    class Model(BasePyModule):
        @T.prim_func
        def double(...): ...

        @I.pyfunc
        def main(self, x):
            return self.call_tir("double", [x], R.Tensor((4,), "float32"))

    Model(tvm.cpu()).main(torch.ones(4))

Functions of Relax call those of Python by `R.call_py_func`.
Results are tensors of PyTorch where it is installed, else arrays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mlcweb.ir.dialect import also_named
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.relax.expr import Function, constant_int
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo
from mlcweb.relax_vm.packed import PYTHON_FUNCTIONS
from mlcweb.relax_vm.virtual_machine import VirtualMachine
from mlcweb.relax_vm.vm_build import build as build_model
from mlcweb.runtime.arguments import ArgumentValueError
from mlcweb.runtime.build import build
from mlcweb.runtime.device import Device, cpu
from mlcweb.runtime.module import PackedFunc
from mlcweb.runtime.ndarray import NDArray, array, empty, from_dlpack
from mlcweb.runtime.registry import get_global_func
from mlcweb.runtime.target import Target
from mlcweb.tir.function import PrimFunc

PYTHON_FUNCTION = "pyfunc"
"""How `I.pyfunc` marks functions."""


class BasePyModule:
    """A module, compiled for a device, whose functions are its attributes.

    Args:
        ir_mod: functions of TensorIR and of Relax.
        device: where they run.
        target: what they are compiled for; None: that of the device.
    """

    def __init__(
        self, ir_mod: IRModule, device: Device, target: Target | str | None = None
    ) -> None:
        self.ir_mod = ir_mod
        self.device = device
        self.target = Target.from_device(device) if target is None else Target(target)
        self.tir_func_names = _names(ir_mod, PrimFunc)
        self.relax_func_names = _names(ir_mod, Function)
        self.pyfuncs: dict[str, Callable[..., Any]] = {}
        self.extern_funcs: dict[str, Callable[..., Any]] = {}
        self.compiled_tir_funcs: dict[str, PackedFunc] = {}
        self.relax_vm: VirtualMachine | None = None
        if self.tir_func_names:
            kernels = {var: f for var, f in ir_mod.functions.items() if isinstance(f, PrimFunc)}
            library = build(IRModule(kernels), self.target)
            self.compiled_tir_funcs = {name: library[name] for name in self.tir_func_names}
        if self.relax_func_names:
            executable = build_model(ir_mod, self.target)
            for name in executable.packed_names:
                if name.startswith(PYTHON_FUNCTIONS):
                    executable.linked[name] = functools.partial(self._call_python, name)
            self.relax_vm = VirtualMachine(executable, device)

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if name in own.get("compiled_tir_funcs", ()):
            return self.compiled_tir_funcs[name]
        if name in own.get("relax_func_names", ()):
            return functools.partial(self._call_relax, name)
        if "ir_mod" in own and hasattr(self.ir_mod, name):
            return getattr(self.ir_mod, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _call_relax(self, name: str, *args: object) -> Any:
        assert self.relax_vm is not None
        return _given(self.relax_vm[name](*map(_taken, args)))

    @also_named(out_ty="out_sinfo")
    def call_tir(
        self, tir_func: str | GlobalVar | PrimFunc | PackedFunc, args: Sequence[object] | object,
        out_sinfo: object,
    ) -> Any:  # fmt: skip
        """What a function of TensorIR (`self.add`, or its name) writes to its last parameters.
        `out_sinfo` is the struct info (or shape) of one result, or a list; symbolic extents are
        those of an argument."""
        name = self._name_of(tir_func)
        if name not in self.compiled_tir_funcs:
            there = ", ".join(self.compiled_tir_funcs) or "none"
            raise ArgumentValueError(f"There is no function {tir_func} of TensorIR; there: {there}")
        return self._call_dps(self.compiled_tir_funcs[name], args, out_sinfo)

    def _name_of(self, func: str | GlobalVar | PrimFunc | PackedFunc) -> str:
        for name, compiled in self.compiled_tir_funcs.items():
            if compiled is func:
                return name
        for var, function in self.ir_mod.functions.items():
            if function is func:
                return var.name_hint
        if isinstance(func, PrimFunc):
            return str(func.attrs.get("global_symbol", ""))
        return func.name_hint if isinstance(func, GlobalVar) else str(func)

    @also_named(out_ty="out_sinfo")
    def call_dps_packed(
        self, func_name: str, args: Sequence[object] | object, out_sinfo: object
    ) -> Any:
        """What a registered function writes to its last arguments; a Python function of the module
        of this name is called by itself."""
        if func_name in self.pyfuncs:
            return getattr(self, func_name)(*_several(args))
        if func_name not in self.extern_funcs:
            self.extern_funcs[func_name] = get_global_func(func_name)
        return self._call_dps(self.extern_funcs[func_name], args, out_sinfo)

    def call_py_func(self, func_name: str, args: Sequence[object] | object) -> Any:
        """What a Python function of the module returns."""
        if func_name not in self.pyfuncs:
            there = ", ".join(self.pyfuncs) or "none"
            raise ArgumentValueError(f"There is no Python function {func_name}; there: {there}")
        return getattr(self, func_name)(*_several(args))

    def _call_python(self, symbol: str, *args: object) -> Any:
        """What a graph function of the module gets from a Python function, which may be added
        later."""
        name = symbol.removeprefix(PYTHON_FUNCTIONS)
        if name not in self.pyfuncs:
            other = get_global_func(symbol, True)
            if other is not None:
                return other(*args)
        result = self.call_py_func(name, [_given(arg) for arg in args])
        if isinstance(result, (list, tuple)):
            return [_taken(each) for each in result]
        return _taken(result)

    def _call_dps(self, func: Callable[..., Any], args: object, out_sinfo: object) -> Any:
        inputs = _several(args)
        infos = _infos(out_sinfo)
        results = [self._allocated(info, inputs) for info in infos]
        func(*map(_taken, inputs), *results)
        values = [_given(result) for result in results]
        return values[0] if len(values) == 1 else values

    def _allocated(self, info: object, args: Sequence[object]) -> NDArray:
        if isinstance(info, StructInfo):
            assert isinstance(info, TensorStructInfo) and info.known_values is not None, info
            shape, dtype = info.known_values, info.dtype
        else:
            shape, dtype = info, "float32"
        return empty(self._infer_concrete_shape_from_args(shape, args), dtype, self.device)

    def _infer_concrete_shape_from_args(self, shape: Any, in_args: Any) -> list[int]:
        """A shape with its symbolic extents taken from the first argument of as many dimensions."""
        extents = [each if isinstance(each, int) else constant_int(each) for each in shape]
        constants = [extent for extent in extents if extent is not None]
        if len(constants) == len(extents):
            return constants
        for arg in _several(in_args):
            there = getattr(arg, "shape", None)
            if there is not None and len(there) == len(extents):
                both = zip(extents, there, strict=True)
                return [int(size) if extent is None else extent for extent, size in both]
        raise ArgumentValueError(
            f"Cannot infer concrete output shape from {list(shape)}: no argument has "
            f"{len(extents)} dimension(s); give a shape of integers"
        )

    def _convert_pytorch_to_tvm(self, tensors: Any) -> Any:
        """Arrays of the module's device that share the memory of tensors; of a list, a list."""
        if isinstance(tensors, (list, tuple)):
            return [self._convert_pytorch_to_tvm(each) for each in tensors]
        return _taken(tensors)

    def _convert_tvm_to_pytorch(self, tvm_tensors: Any) -> Any:
        """Arrays as tensors of PyTorch, where it is installed; of a list, a list."""
        return _given(tvm_tensors)

    def add_python_function(self, name: str, func: Callable[..., Any]) -> None:
        """Let the module have a Python function. Where its first parameter is `self`, that is the
        module."""
        self.pyfuncs[name] = func
        bound = next(iter(inspect.signature(func).parameters), None) == "self"
        setattr(self, name, functools.partial(func, self) if bound else func)

    def get_function(self, name: str) -> Callable[..., Any] | None:
        """A function by name; None where there is none."""
        own = (*self.compiled_tir_funcs, *self.relax_func_names, *self.pyfuncs)
        return getattr(self, name) if name in own else self.extern_funcs.get(name)

    def list_functions(self) -> dict[str, list[str]]:
        """The names of all functions, by their kind."""
        extern = list(self.extern_funcs)
        return {"tir": self.tir_func_names, "relax": self.relax_func_names, "extern": extern}

    @staticmethod
    def of_ir_module(module: IRModule, source: type) -> ModuleFactory:
        """What `I.ir_module` makes of a class below this one."""
        return ModuleFactory(module, source)


class ModuleFactory:
    """A module that is compiled when it is called with a device: `Model(tvm.cpu())`."""

    def __init__(self, module: IRModule, source: type) -> None:
        self.ir_module = module
        self.original_class = source
        self.pyfunc_methods = [
            name
            for name, value in vars(source).items()
            if getattr(value, "dispatch_token", None) == PYTHON_FUNCTION
        ]
        self.__name__ = source.__name__

    def __call__(
        self, device: Device | None = None, target: Target | str | None = None
    ) -> BasePyModule:
        module = BasePyModule(self.ir_module.copy(), device or cpu(), target)
        for name in self.pyfunc_methods:
            module.add_python_function(name, vars(self.original_class)[name])
        return module

    def __getattr__(self, name: str) -> Any:
        if name == "ir_module":
            raise AttributeError(name)
        return getattr(self.ir_module, name)


def _names(mod: IRModule, kind: type) -> list[str]:
    return [var.name_hint for var, func in mod.functions_items() if isinstance(func, kind)]


def _several(args: Any) -> Sequence[Any]:
    return args if isinstance(args, (list, tuple)) else [] if args is None else [args]


def _infos(out_sinfo: object) -> list[object]:
    """The struct infos or shapes of the results; a list of integers is one shape."""
    several = isinstance(out_sinfo, list) and not all(isinstance(each, int) for each in out_sinfo)
    return list(out_sinfo) if isinstance(out_sinfo, list) and several else [out_sinfo]


def _taken(value: Any) -> NDArray:
    """An argument as an array: a tensor of PyTorch shares its memory."""
    if isinstance(value, NDArray):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "detach"):
        return from_dlpack(value.detach().contiguous())
    import numpy as np

    return array(value if isinstance(value, np.ndarray) else np.asarray(value, "float32"))


def _given(value: Any) -> Any:
    """A result as PyTorch's tensor, where it is there."""
    if isinstance(value, (list, tuple)):
        return [_given(each) for each in value]
    if not isinstance(value, NDArray):
        return value
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        return value
    return torch.from_numpy(value.numpy())


__all__ = ["BasePyModule", "ModuleFactory"]
