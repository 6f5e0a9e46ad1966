"""Walking a graph of torch.fx, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import host_array
from mlcweb.relax.frontend.common import Extent, as_extents
from mlcweb.relax.struct_info import TensorStructInfo, TupleStructInfo
from mlcweb.tir.expr import PrimExpr


class TorchError(TVMError, NotImplementedError):
    """A model that cannot be imported, or not yet."""


WHERE_PYTORCH_IS = (
    'PyTorch comes with pip install "mlcweb[torch]"; it does not run in a browser, where '
    "relax.frontend.onnx.from_onnx reads what torch.onnx.export wrote elsewhere"
)


Number: TypeAlias = "int | float"

Operand: TypeAlias = "E.Expr | PrimExpr | int | float"
"""What is computed with: tensors, numbers and extents."""

Axes: TypeAlias = "int | Sequence[int] | None"

Result: TypeAlias = "Operand | Sequence[Result] | str | None"
"""What a node gives."""

FunctionConverter: TypeAlias = Callable[..., Result]
"""Called with the translator and the arguments as PyTorch gives them, where tensors are
expressions, shapes are lists, and several results are a tuple."""

Function = TypeVar("Function", bound=FunctionConverter)

FUNCTIONS: dict[str, FunctionConverter] = {}
"""By name, as functions, methods and ATen operators (without their overload) are called; those of
ATen that take other arguments than the function of the same name are "aten.batch_norm"."""

MODULES: dict[str, FunctionConverter] = {}
"""By the class of a layer; called with the translator, the layer and its arguments."""


def function(*names: str) -> Callable[[Function], Function]:
    """Register the converter of functions."""

    def decorate(convert: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, convert))
        return convert

    return decorate


def module(*names: str) -> Callable[[Function], Function]:
    """Register the converter of layers."""

    def decorate(convert: Function) -> Function:
        MODULES.update(dict.fromkeys(names, convert))
        return convert

    return decorate


class Translator:
    """One graph being imported."""

    def __init__(
        self, builder: BlockBuilder, custom: Mapping[str, FunctionConverter] | None = None,
        keep_params: bool = False,
    ) -> None:  # fmt: skip
        self.builder = builder
        self.custom = custom or {}
        self.keep_params = keep_params
        self.env: dict[Any, Any] = {}
        self.params: list[E.Var] = []
        self.param_data: list[Any] = []
        self._weights: dict[int, tuple[Any, Any]] = {}

    # Values

    def emit(self, value: E.Expr) -> E.Expr:
        return self.builder.emit(value)

    def weight(self, tensor: Any, name: str = "param") -> E.Expr:
        """A parameter or buffer as a constant, or as a parameter of the function."""
        if id(tensor) not in self._weights:
            data = host_array(tensor, dtype_name(tensor.dtype))
            value: Any = E.Constant(data)
            if self.keep_params and len(data.shape) > 0:
                unique = self.builder.get_unique_name(name.replace(".", "_"))
                value = E.Var(unique, value.struct_info)
                self.params.append(value)
                self.param_data.append(data)
            # The tensor is kept, so that no other one gets its id.
            self._weights[id(tensor)] = tensor, value
        return self._weights[id(tensor)][1]

    def optional_weight(self, tensor: Any, name: str = "param") -> E.Expr | None:
        return None if tensor is None else self.weight(tensor, name)

    def const(self, value: Number | Sequence[Number], dtype: str) -> E.Constant:
        return E.const(value, dtype)

    def shape(self, value: E.Expr) -> list[Extent]:
        """The extents of a tensor: integers, and expressions where they are symbolic."""
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.values is None:
            raise TorchError(f"The shape of {value} is not known: it is {info}")
        return as_extents(info.values)

    def extent(self, value: E.Expr, axis: int) -> int:
        """The extent of an axis, which must be a number."""
        extent = self.shape(value)[axis]
        if isinstance(extent, PrimExpr):
            raise TorchError(f"The extent {extent} of axis {axis} of {value} is not a number")
        return extent

    def dtype(self, value: E.Expr) -> str:
        info = value.struct_info
        if not isinstance(info, TensorStructInfo):
            raise TorchError(f"The element type of {value} is not known: it is {info}")
        return info.dtype

    def resolved(self, value: Any) -> Any:
        """An argument of a node with nodes replaced by what they gave."""
        if isinstance(value, (list, tuple)):
            return type(value)([self.resolved(item) for item in value]) if type(value) in (
                list, tuple,
            ) else [self.resolved(item) for item in value]  # fmt: skip
        if isinstance(value, dict):
            return {key: self.resolved(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(*(self.resolved(i) for i in (value.start, value.stop, value.step)))
        if hasattr(value, "op") and hasattr(value, "target"):
            return self.env[value]
        return value

    # Nodes

    def call(self, node: Any, name: str) -> Result:
        """What a node that calls a function or method gives."""
        if name in self.custom:
            return self.custom[name](node, self)
        args, kwargs = self.resolved(tuple(node.args)), self.resolved(dict(node.kwargs))
        # An overload tells ATen's operators from the functions of torch.nn.functional.
        aten = FUNCTIONS.get(f"aten.{base_name(name)}") if "." in name else None
        convert = aten or FUNCTIONS.get(base_name(name))
        if convert is None:
            raise TorchError(
                f'The node "{node.name}" calls {name}, which cannot be imported; what can is '
                f"{', '.join(sorted(FUNCTIONS))}"
            )
        return self._converted(node, convert, args, kwargs)

    def call_module(self, node: Any, layer: Any) -> Result:
        """What a node that calls a layer gives."""
        names = [kind.__name__ for kind in type(layer).__mro__]
        for name in names:
            if name in self.custom:
                return self.custom[name](node, self)
            if name in MODULES:
                args, kwargs = self.resolved(tuple(node.args)), self.resolved(dict(node.kwargs))
                return self._converted(node, MODULES[name], (layer, *args), kwargs)
        raise TorchError(
            f'The node "{node.name}" calls a layer {names[0]}, which cannot be imported; what can '
            f"is {', '.join(sorted(MODULES))}"
        )

    def _converted(
        self, node: Any, convert: FunctionConverter, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Result:
        try:
            return self.bound(convert(self, *args, **kwargs))
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise TorchError(
                    f'The node "{node.name}" ({node.target}) has arguments that are not '
                    f"supported: {error}"
                ) from error
            raise

    def bound(self, value: Any) -> Any:
        """Calls bound to variables, so that they can be used many times."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.bound(item) for item in value)
        if isinstance(value, E.Expr) and not isinstance(value, (E.Var, E.Constant)):
            value = self.emit(value)
            info = value.struct_info
            if isinstance(info, TupleStructInfo):
                return tuple(self.emit(E.TupleGetItem(value, i)) for i in range(len(info.fields)))
        return value

    # The function

    def finish(
        self, inputs: Sequence[E.Var], body: Callable[[], Any], unwrap: bool, unbound: bool
    ) -> IRModule:
        """The module with the function `main`, of which `body` imports the nodes and gives the
        result."""
        attrs = {"num_input": len(inputs)}
        with self.builder.function("main", attrs=attrs):
            with self.builder.dataflow():
                output = body()
                if unwrap and isinstance(output, (list, tuple)) and len(output) == 1:
                    output = output[0]
                if unbound and isinstance(output, (list, tuple)):
                    result: Any = E.Tuple([self.builder.emit_output(item) for item in output])
                else:
                    result = self.builder.emit_output(_tuple(output))
            self.builder.emit_func_output(result, [*inputs, *self.params])
        mod = self.builder.get()
        if self.keep_params:
            mod["main"] = mod["main"].with_attr("params", self.param_data)
        return mod


def _tuple(value: Any) -> E.Expr:
    if isinstance(value, (list, tuple)):
        return E.Tuple([_tuple(item) for item in value])
    if isinstance(value, dict):
        return E.Tuple([_tuple(item) for item in value.values()])
    return value


def base_name(name: str) -> str:
    """The name of a function without the overload of ATen and the mark of one that is in place:
    `add_.Tensor` is `add`."""
    name = name.split(".")[0]
    return name.rstrip("_") if not name.startswith("__") else name.strip("_")


def dtype_name(dtype: object) -> str:
    """`torch.float32`, or a name, as the name of an element type."""
    return str(dtype).removeprefix("torch.")
