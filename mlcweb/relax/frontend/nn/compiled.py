"""`Module.jit`: a model that is compiled, with the values of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.ir.lazy_attributes import provided
from mlcweb.relax.constant_data import detached
from mlcweb.relax.frontend.nn.exporter import export
from mlcweb.relax.frontend.nn.module import Module
from mlcweb.relax.frontend.nn.spec import ModuleSpec

if TYPE_CHECKING:
    from mlcweb.relax_vm.virtual_machine import VirtualMachine
    from mlcweb.runtime.device import Device
    from mlcweb.runtime.ndarray import NDArray

FORMATS = ("torch", "numpy", "tvm")


def compiled(
    module: Module, spec: object, device: Device | str, out_format: str, debug: bool = False
) -> Compiled:
    """The model's methods as functions of arrays; see `Module.jit`."""
    if out_format not in FORMATS:
        raise ValueError(f"out_format is one of {', '.join(FORMATS)}, not {out_format!r}")
    mod, params = export(ModuleSpec.from_raw(spec, module), debug)
    values = [param.data for _, param in params if param.data is not None]
    if len(values) < len(params):
        missing = [name for name, param in params if param.data is None]
        raise ValueError(
            f"Parameters without a value: {', '.join(missing)}; set them by "
            "model.load_state_dict(...) or param.data = array"
        )
    build = provided("mlcweb.relax", "build")
    machine = provided("mlcweb.relax", "VirtualMachine")(build(mod), device)
    effects = machine["_initialize_effect"]() if "_initialize_effect" in mod else None
    return Compiled(machine, values, out_format, effects)


class Compiled:
    """`model["forward"](x)` runs a method on arrays of NumPy or PyTorch, or NDArrays."""

    def __init__(
        self, vm: VirtualMachine, params: list[NDArray], out_format: str, effects: Any = None
    ) -> None:
        self.vm = vm
        self.params = params
        self.out_format = out_format
        self.effects = effects
        """What methods take and give back besides tensors, if anything."""

    def __getitem__(self, method: str) -> Callable[..., Any]:
        function = self.vm[method]
        array = provided("mlcweb.relax.frontend.common", "array")

        def run(*args: object) -> object:
            values = map(detached, args)
            arrays = [array(v) if hasattr(v, "__array_interface__") else v for v in values]
            if self.effects is None:
                return self._output(function(*arrays, *self.params))
            result, self.effects = function(*arrays, *self.effects, *self.params)
            return self._output(result)

        return run

    def _output(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._output(each) for each in value)
        if self.out_format == "tvm":
            return value
        if self.out_format == "numpy":
            return value.numpy()
        # Without PyTorch a type checker takes the importer beside this package for it.
        import torch

        return torch.from_numpy(value.numpy())  # pyright: ignore[reportAttributeAccessIssue]
