"""What a program takes, as tuning records say it: dtype and shape of each parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.module import the_function_name
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.function import PrimFunc


class ArgInfo:
    """What is known of one parameter."""

    __slots__ = ()

    def as_json(self) -> Any:
        """The layout of TVM's records."""
        raise NotImplementedError

    @staticmethod
    def from_json(json_obj: Any) -> ArgInfo:
        """Read what `as_json` made; ValueError where it is something else."""
        try:
            kind, dtype, shape = json_obj
            if kind == "TENSOR":
                return TensorInfo(str(dtype), tuple(int(extent) for extent in shape))
        except (TypeError, ValueError):
            pass
        raise ValueError(f'{json_obj!r} is no argument; expected ["TENSOR", dtype, [extent, …]]')

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[ArgInfo]:
        """What a function takes.

        Raises:
            TVMError: it takes something else than buffers of constant shape.
        """
        if len(func.parameter_buffers) != len(func.params):
            raise TVMError("A tuning record describes buffers only, and the function takes others")
        infos: list[ArgInfo] = []
        for buffer in func.parameter_buffers:
            shape = constant_shape(buffer)
            if shape is None:
                raise TVMError(f'The buffer "{buffer.name}" has no constant shape; bind its sizes')
            infos.append(TensorInfo(buffer.dtype, shape))
        return infos

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """What the function of a module takes: the only one, or "main"."""
        return ArgInfo.from_prim_func(mod[the_function_name(mod, None)])


@dataclass(frozen=True, slots=True)
class TensorInfo(ArgInfo):
    """A tensor parameter."""

    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))

    def __str__(self) -> str:
        return f'TensorInfo("{self.dtype}", {list(self.shape)})'

    def as_json(self) -> list[Any]:
        return ["TENSOR", self.dtype, list(self.shape)]
