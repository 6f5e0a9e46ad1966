"""Walking a graph of torch.fx, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias, TypeVar

from mlcweb.ir.module import IRModule
from mlcweb.relax import dims, op
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.constant_data import ArrayData, host_array
from mlcweb.relax.frontend.common import Extent, as_extents
from mlcweb.relax.frontend.torch.errors import TorchError as TorchError
from mlcweb.relax.frontend.torch.extents import Extents
from mlcweb.relax.struct_info import TensorStructInfo, TupleStructInfo
from mlcweb.tir.expr import PrimExpr

WHERE_PYTORCH_IS = (
    'PyTorch comes with pip install "mlcweb[torch]"; it does not run in a browser, where '
    "relax.frontend.onnx.from_onnx reads what torch.onnx.export wrote elsewhere"
)


Number: TypeAlias = "int | float"

Operand: TypeAlias = "E.Expr | PrimExpr | int | float"
"""What is computed with: tensors, numbers and extents."""

Axes: TypeAlias = "int | Sequence[int] | None"


class NotImported:
    """A result that a converter leaves out: who uses it is refused."""


NOT_IMPORTED = NotImported()

Result: TypeAlias = "Operand | Sequence[Result] | NotImported | str | None"
"""What a node gives."""

Layer: TypeAlias = Any
"""A `torch.nn.Module`, with whatever attributes its class has. PyTorch may not be installed."""


GraphModule: TypeAlias = Any
"""A `torch.fx.GraphModule`."""


class FxNode(Protocol):
    """A `torch.fx.Node`, as far as it is looked at."""

    op: str
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, object]
    meta: dict[str, Any]


CustomConverters: TypeAlias = "Mapping[str, Callable[[FxNode, Translator], Result]]"
"""Converters of the user, by names as in `FUNCTIONS` and `MODULES`."""

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
        self, builder: BlockBuilder, custom: CustomConverters | None = None,
        keep_params: bool = False,
    ) -> None:  # fmt: skip
        self.block_builder = builder
        self.custom = custom or {}
        self.keep_params = keep_params
        self.env: dict[FxNode, Result] = {}
        self.params: list[E.Var] = []
        self.param_data: list[ArrayData] = []
        self._weights: dict[int, tuple[ArrayData, E.Expr]] = {}
        self._same: dict[FxNode, list[FxNode]] = {}  # nodes that are one tensor, by each of them

    # Values

    def emit(self, value: E.Expr) -> E.Expr:
        return self.block_builder.emit(value)

    def weight(self, tensor: ArrayData, name: str = "param", keep: bool = True) -> E.Expr:
        """A parameter or buffer as a constant, or if `keep` and the weights are kept, as a
        parameter of the function."""
        if id(tensor) not in self._weights:
            dense: Any = tensor
            if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
                dense = dense.to_dense()
            data = host_array(dense, dtype_name(tensor.dtype))
            value: E.Constant | E.Var = E.Constant(data)
            if keep and self.keep_params and len(data.shape) > 0:
                unique = self.block_builder.get_unique_name(name.replace(".", "_"))
                value = E.Var(unique, value.struct_info)
                self.params.append(value)
                self.param_data.append(data)
            # The tensor is kept, so that no other one gets its id.
            self._weights[id(tensor)] = tensor, value
        return self._weights[id(tensor)][1]

    def optional_weight(self, tensor: ArrayData | None, name: str = "param") -> E.Expr | None:
        return None if tensor is None else self.weight(tensor, name)

    def const(self, value: Number | Sequence[Number], dtype: str) -> E.Constant:
        return E.const(value, dtype)

    def shape(self, value: E.Expr) -> list[Extent]:
        """The extents of a tensor: integers, and expressions where they are symbolic."""
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.values is None:
            raise TorchError(f"The shape of {value} is not known: it is {info}")
        return as_extents(info.values)

    def ndim(self, value: E.Expr) -> int:
        """The number of axes of a tensor."""
        info = value.struct_info
        if not isinstance(info, TensorStructInfo) or info.ndim == -1:
            raise TorchError(f"The number of axes of {value} is not known: it is {info}")
        return info.ndim

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

    def shape_of(self, value: E.Expr) -> E.Expr | None:
        """The shape of a tensor, for converters of the user."""
        info = value.struct_info
        return info.shape if isinstance(info, TensorStructInfo) else None

    def retrieve_args(self, node: FxNode) -> Any:
        """The arguments of a node by position, resolved, for converters of the user."""
        return self.resolved(node.args)

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
            result = self.env[value]
            if result is NOT_IMPORTED:
                source, index = value.args
                raise TorchError(
                    f'Result {index} of the node "{source.name}" ({source.target}), which the node '
                    f'"{value.name}" takes, cannot be imported; result 0 can'
                )
            return result
        return value

    # Nodes

    def run(self, graph_module: GraphModule, extents: Extents | None = None) -> Any:
        """Import the nodes of an exported graph; gives what it gives. With `extents`, shapes that
        PyTorch knows better are taken, and checked when the program runs."""
        for node in graph_module.graph.nodes:
            if node.op == "output":
                return self.resolved(node.args[0])
            if node.op == "call_function":
                value = self.call(node, target_name(node))
                shape = None if extents is None else extents.shape(node.meta.get("val"))
                self.env[node] = value if shape is None else self._cast(value, shape)
            elif node.op == "get_attr":
                value = getattr(graph_module, node.target)
                graph = hasattr(value, "graph")
                self.env[node] = value if graph else self.weight(value, node.target, keep=False)
        raise TorchError("The graph has no output")

    def _cast(self, value: Result, shape: Sequence[Extent]) -> Result:
        """A tensor with its shape said in other words, where it is not seen to be the same."""
        if not isinstance(value, E.Expr):
            return value
        info = value.struct_info
        if not isinstance(info, TensorStructInfo):
            return value
        target = TensorStructInfo(shape, info.dtype)
        if info.values is not None and all(
            map(dims.equal, info.values, target.values or ())
        ):  # fmt: skip
            return value
        return self.block_builder.match_cast(value, target)

    def refuse_unknown(self, calls: Sequence[tuple[FxNode, Sequence[str], bool]], way: str) -> None:
        """Refuses a graph with nodes that nothing converts.

        Args:
            calls: the nodes, the names by each of which a converter may be known, and whether they
                call layers.
            way: what else may import them.
        """
        unknown: dict[str, FxNode] = {}
        similar: list[str] = []
        for node, names, layer in calls:
            table = MODULES if layer else FUNCTIONS
            if not any(name in self.custom or _converter(name, table) for name in names):
                if names[0] not in unknown:
                    similar += get_close_matches(base_name(names[0]), table, 2, 0.7)
                unknown.setdefault(names[0], node)
        if unknown:
            first, *more = unknown
            raise TorchError(
                f'The node "{unknown[first].name}" calls {first}, which cannot be imported'
                + (f", and other nodes {', '.join(more)}" if more else "")
                + (f"; there is {' and '.join(dict.fromkeys(similar))}" if similar else "")
                + f". {way}custom_convert_map={{{first!r}: converter}} imports it by a function "
                "of yours, which is called with the node and the translator and gives an expression"
            )

    def call(self, node: FxNode, name: str) -> Result:
        """What a node that calls a function or method gives."""
        if name in self.custom:
            return self.custom[name](node, self)
        convert = _converter(name, FUNCTIONS)
        assert convert is not None, name
        args, kwargs = self.resolved(tuple(node.args)), self.resolved(dict(node.kwargs))
        value = self._converted(node, convert, args, kwargs)
        if _in_place(name) or kwargs.get("inplace"):
            self._write(node, value)
        return value

    def call_module(self, node: FxNode, layer: Layer) -> Result:
        """What a node that calls a layer gives."""
        names = class_names(layer)
        for name in names:
            if name in self.custom:
                return self.custom[name](node, self)
        convert = next(MODULES[name] for name in names if name in MODULES)
        args, kwargs = self.resolved(tuple(node.args)), self.resolved(dict(node.kwargs))
        value = self._converted(node, convert, (layer, *args), kwargs)
        if getattr(layer, "inplace", False):
            self._write(node, value)
        return value

    def _write(self, node: FxNode, value: Result) -> None:
        """What a node gives is written to its first argument: all that follows sees it there."""
        target = node.args[0]
        if not isinstance(self.env.get(target), E.Expr):
            return
        same = self._same.setdefault(target, [target])
        views = [user for each in same for user in getattr(each, "users", ()) if _is_view(user)]
        later = [view for view in views if any(user not in self.env for user in view.users)]
        if _is_view(target) or any(view in self.env and view is not node for view in later):
            raise TorchError(
                f'The node "{node.name}" ({node.target}) writes to a tensor of which another is a '
                "view. torch.export.export(model, args) and from_exported_program(program), which "
                "decomposes it, import that"
            )
        same.append(node)
        self._same[node] = same
        for each in same:
            self.env[each] = value

    def _converted(
        self,
        node: FxNode,
        convert: FunctionConverter,
        args: Sequence[object],
        kwargs: Mapping[str, object],
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

    def as_tuple(self, value: Any) -> E.Expr:
        """What a graph gives, as one expression."""
        if isinstance(value, (list, tuple)):
            return E.Tuple([self.as_tuple(item) for item in value])
        if isinstance(value, dict):
            return self.as_tuple(list(value.values()))
        if value is None:
            return op.null_value()
        if value is NOT_IMPORTED:
            raise TorchError("The graph gives a result of an operator that cannot be imported")
        return value if isinstance(value, E.Expr) else E.PrimValue(value)

    def finish(
        self, inputs: Sequence[E.Var], body: Callable[[], Result], unwrap: bool, unbound: bool,
        attrs: Mapping[str, object] | None = None, dataflow: bool = True, pure: bool = True,
    ) -> IRModule:  # fmt: skip
        """The module with the function `main`, of which `body` imports the nodes and gives the
        result; without a dataflow block where it branches, or is not `pure`."""
        attrs = dict(attrs or {})
        if self.keep_params:
            attrs["num_input"] = len(inputs)
        with self.block_builder.function("main", attrs=attrs, pure=pure):
            with self.block_builder.dataflow() if dataflow else nullcontext():
                output = body()
                if unwrap and isinstance(output, (list, tuple)) and len(output) == 1:
                    output = output[0]
                bind = self.block_builder.emit_output
                if unbound and isinstance(output, (list, tuple)):
                    result = E.Tuple([bind(self.as_tuple(item)) for item in output])
                else:
                    result = bind(self.as_tuple(output))
            self.block_builder.emit_func_output(result, [*inputs, *self.params])
        mod = self.block_builder.get()
        if self.keep_params:
            mod["main"] = mod["main"].with_attr("params", self.param_data)
        return mod


def target_name(node: FxNode) -> str:
    """The name of the function or method that a node calls."""
    return (
        node.target
        if isinstance(node.target, str)
        else getattr(node.target, "__name__", str(node.target))
    )


def class_names(layer: Layer) -> list[str]:
    """The names of the class of a layer and of those that it is derived from."""
    return [kind.__name__ for kind in type(layer).__mro__]


def _converter(name: str, table: Mapping[str, FunctionConverter]) -> FunctionConverter | None:
    """That of a function; an overload tells ATen's operators from the functions of
    torch.nn.functional."""
    aten = table.get(f"aten.{base_name(name)}") if "." in name else None
    return aten or table.get(base_name(name))


_OPERATORS_IN_PLACE = {
    f"i{name}" for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
        "rshift", "matmul",
    )
}  # fmt: skip

_VIEWS = {
    "alias", "as_strided", "broadcast_to", "chunk", "contiguous", "detach", "diagonal", "expand",
    "expand_as", "flatten", "getitem", "narrow", "permute", "reshape", "reshape_as", "select",
    "slice", "split", "split_with_sizes", "squeeze", "swapaxes", "t", "to", "transpose", "type",
    "unbind", "unflatten", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""What may give a tensor that shares its elements with the first argument."""


def _in_place(name: str) -> bool:
    name = name.split(".")[0]
    if name.strip("_") in _OPERATORS_IN_PLACE:
        return True
    return name.endswith("_") and not name.endswith("__") and name not in ("and_", "or_", "not_")


def _is_view(node: FxNode) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    return base_name(target_name(node)) in _VIEWS


def base_name(name: str) -> str:
    """The name of a function without the overload of ATen and the mark of one that is in place:
    `add_.Tensor` is `add`."""
    name = name.split(".")[0]
    return name.rstrip("_") if not name.startswith("__") else name.strip("_")


def dtype_name(dtype: object) -> str:
    """`torch.float32`, or a name, as the name of an element type."""
    return str(dtype).removeprefix("torch.")
