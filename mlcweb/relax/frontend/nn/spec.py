"""What the methods of a model take when they are traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mlcweb.relax.frontend.nn.module import Module
from mlcweb.relax.frontend.nn.tensor import Extent

MODES = ("plain", "packed", "none")
Mode: TypeAlias = Literal["plain", "packed", "none"]
"""How parameters (or effects) are taken: each by itself, as one tuple, or not at all."""


class Int:
    """An integer, known when the program runs."""

    def __repr__(self) -> str:
        return "int"


@dataclass(frozen=True)
class Tensor:
    """A tensor; a string among the extents names a symbolic one, the same in all arguments."""

    shape: tuple[Extent, ...]
    dtype: str

    def __init__(self, shape: Sequence[Extent], dtype: str) -> None:
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", dtype)

    def __repr__(self) -> str:
        return f"Tensor([{', '.join(map(repr, self.shape))}], '{self.dtype}')"


@dataclass(frozen=True)
class Object:
    """What is no tensor: an instance of a subclass of `nn.Object`."""

    object_type: type


class Tuple:
    """Several in one, under a name."""

    def __init__(self, name: str, elements: list[Argument] | tuple[Argument, ...]) -> None:
        if not isinstance(elements, (list, tuple)):
            raise TypeError(f"The elements of {name} are a list or a tuple, not {elements!r}")
        self.name = name
        self.elements = elements

    def __repr__(self) -> str:
        return f"Tuple({self.name}, {list(self.elements)!r})"


Argument: TypeAlias = "Int | Tensor | Object | Tuple"
"""What a method takes for one of its parameters."""


class MethodSpec:
    """A method and what it takes, argument by argument."""

    def __init__(
        self,
        method: Callable[..., object],
        arg_names: list[str],
        arg_specs: list[Argument],
        param_mode: Mode | str,
        effect_mode: Mode | str,
    ) -> None:
        for name, mode in (("param_mode", param_mode), ("effect_mode", effect_mode)):
            if mode not in MODES:
                raise ValueError(f"{name} is one of {', '.join(MODES)}, not {mode!r}")
        self.method = method
        self.arg_names = arg_names
        self.arg_specs = arg_specs
        self.param_mode = param_mode
        self.effect_mode = effect_mode

    @staticmethod
    def from_raw(spec: MethodSpec | Mapping[str, Any], method: Callable[..., object]) -> MethodSpec:
        """From a dictionary of arguments, in which `"$"` has the modes."""
        if isinstance(spec, MethodSpec):
            return spec
        modes = dict(spec.get("$", {}))
        names = list(inspect.signature(method).parameters)
        arguments = {name: each for name, each in spec.items() if name != "$"}
        unknown = [name for name in arguments if name not in names]
        if unknown:
            raise TypeError(
                f"{method.__qualname__} takes {', '.join(names) or 'nothing'}, not "
                f"{', '.join(unknown)}"
            )
        ordered = [name for name in names if name in arguments]
        return MethodSpec(
            method,
            ordered,
            [argument(arguments[name], name) for name in ordered],
            modes.get("param_mode", "plain"),
            modes.get("effect_mode", "plain"),
        )

    def __repr__(self) -> str:
        args = zip(self.arg_names, self.arg_specs, strict=True)
        return f"MethodSpec({', '.join(f'{name}: {spec!r}' for name, spec in args)})"


def argument(spec: object, name: str) -> Argument:
    """A specification of one argument from what a user writes."""
    if spec is Int or spec is int:
        return Int()
    if isinstance(spec, (Int, Tensor, Object)):
        return spec
    if isinstance(spec, Tuple):
        elements = [argument(each, f"{name}_{i}") for i, each in enumerate(spec.elements)]
        return Tuple(spec.name, type(spec.elements)(elements))
    if isinstance(spec, (list, tuple)):
        return argument(Tuple(name, spec), name)
    shape, dtype = getattr(spec, "shape", None), getattr(spec, "dtype", None)
    if shape is not None and dtype is not None:
        return Tensor(tuple(shape), str(dtype))
    raise TypeError(
        f'Invalid spec for argument {name}: {spec!r}; write nn.spec.Tensor((1, 8), "float32") '
        "or int"
    )


class ModuleSpec:
    """A model and the methods to trace."""

    def __init__(self, module: Module, method_names: list[str], method_specs: list[MethodSpec]):
        self.module = module
        self.method_names = method_names
        self.method_specs = method_specs

    @staticmethod
    def from_raw(spec: object, module: Module) -> ModuleSpec:
        """From a dictionary of methods."""
        if isinstance(spec, ModuleSpec):
            return spec
        if not isinstance(spec, Mapping):
            raise TypeError(
                f'The spec of a model is {{"forward": {{"x": nn.spec.Tensor(...)}}}}, not {spec!r}'
            )
        names = list(spec)
        for name in names:
            if not callable(getattr(module, name, None)):
                raise AttributeError(f"{type(module).__name__} has no method {name!r} to trace")
        methods = [MethodSpec.from_raw(spec[name], getattr(module, name)) for name in names]
        return ModuleSpec(module, names, methods)

    def __repr__(self) -> str:
        lines = zip(self.method_names, self.method_specs, strict=True)
        return "ModuleSpec:\n" + "\n".join(f"  {name}: {spec!r}" for name, spec in lines)
