"""`from_onnx`: a model as an IRModule with one function of the graph level, `main`."""

from __future__ import annotations

import ast
import operator
import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.ir.names import unique_name
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.onnx.errors import OnnxError, importing
from mlcweb.relax.frontend.onnx.graph import Graph
from mlcweb.relax.frontend.onnx.node import Weight
from mlcweb.relax.frontend.onnx.schema import DECODER, Proto
from mlcweb.relax.frontend.onnx.tensors import dtype_name
from mlcweb.relax.frontend.onnx.wire import WireError
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.arithmetic import floordiv
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


def load(model: Any) -> tuple[Proto, Path | None]:
    """The messages of a model, and the folder of its file.

    `model`: the contents of a file as bytes, its path, or an `onnx.ModelProto`. Raises: OnnxError.
    """
    folder = None
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        folder = path.parent
        model = path.read_bytes()
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    elif isinstance(model, (bytearray, memoryview)):
        model = bytes(model)
    elif not isinstance(model, bytes):
        raise OnnxError(
            f"A model is given as a path, bytes or onnx.ModelProto, not {type(model).__name__}"
        )
    try:
        proto = DECODER.decode("ModelProto", model)
    except (WireError, struct.error, RecursionError) as error:
        raise OnnxError(f"This is not an ONNX model: {error}") from None
    if proto.graph is None:
        raise OnnxError("This is not an ONNX model: it has no graph")
    return proto, folder


def from_onnx(
    model: Any,
    shape_dict: Mapping[str, Sequence[int | str | PrimExpr]] | None = None,
    dtype_dict: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
) -> IRModule:
    """Import an ONNX model.

    Args:
        model: the contents of a file as bytes, its path, or an `onnx.ModelProto`.
        shape_dict: shapes of inputs, by name, in place of those that the model says. An extent that
            is a name, here or there, is symbolic: the same name is the same extent. So are
            formulas of them, as "n + 1"; "?" is another extent each time.
        dtype_dict: element types of inputs by name in place of those of the model; or the type of
            inputs of which the model says none.
        opset: read the operators as this version of the operator set has them, whatever the model
            says.
        keep_params_in_input: make the weights parameters of `main`, behind the inputs. They are in
            its attribute "params"; `relax.frontend.detach_params` takes them out. Those that only
            operators read that need their elements here, as the scales of Resize, stay in the
            model. Without it all are constants.
        sanitize_input_names: make the names of inputs names that a script can have.

    Returns:
        A module whose `main` takes the inputs and gives the output, or a tuple of several. Its
        attribute "num_input" says how many parameters are inputs.

    Raises:
        OnnxError: not a model, or one that is wrong; OpNotImplemented: an operator, or a form of
        one, that is not supported; ConstantNeeded: a shape that depends on the values of inputs.
    """
    proto, folder = load(model)
    with importing(lambda: "The model cannot be imported"):
        inputs = _Inputs(shape_dict or {}, dtype_dict, sanitize_input_names)
        return _imported(proto, folder, inputs, opset, keep_params_in_input)


def _imported(
    proto: Proto, folder: Path | None, inputs: _Inputs, opset: int | None, keep_params: bool
) -> IRModule:
    graph = proto.graph
    builder = BlockBuilder()
    functions = {(function.domain, function.name): function for function in proto.functions}
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    importer = Graph(
        builder, opset or versions.get("", versions.get("ai.onnx", 1)), functions, folder
    )
    importer.initializers(graph.initializer)
    weights = list(importer.values)[1:]
    fed = [value_info for value_info in graph.input if value_info.name not in importer.values]
    params = inputs.variables(fed)
    importer.values.update(zip((value_info.name for value_info in fed), params, strict=True))
    inputs.check_names([value_info.name for value_info in graph.input])
    attrs = {"num_input": len(params)}
    if keep_params:
        for name in weights:
            constant = importer.values[name]
            if isinstance(constant, E.Constant) and _is_weight(constant):
                var = E.Var(inputs.name_of(name), constant.struct_info)
                importer.values[name] = Weight(var, constant)
    with builder.function("main", attrs=attrs):
        with builder.dataflow():
            importer.nodes(graph.node)
            outputs = [importer.expression(output.name) for output in graph.output]
            result = builder.emit_output(outputs[0] if len(outputs) == 1 else E.Tuple(outputs))
        kept = [value for value in importer.values.values() if isinstance(value, Weight)]
        kept = [weight for weight in dict.fromkeys(kept) if weight.used or not weight.read]
        builder.emit_func_output(result, [*params, *(weight.var for weight in kept)])
    module = builder.get()
    if keep_params:
        arrays = [weight.constant.data for weight in kept]
        module["main"] = module["main"].with_attr("params", arrays)
    return module


def _is_weight(constant: E.Constant) -> bool:
    """Whether a constant is to be a parameter: integers are shapes and indices, which must stay."""
    return str(constant.data.dtype) in ("float32", "float16", "float64", "bfloat16")


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: floordiv, ast.Div: floordiv,
}  # fmt: skip
"""Of extents, which are whole numbers."""


class _Inputs:
    """Makes parameters of the inputs of a graph."""

    def __init__(
        self,
        shapes: Mapping[str, Sequence[int | str | PrimExpr]],
        dtypes: str | Mapping[str, str] | None,
        sanitize: bool,
    ) -> None:
        self.shapes = shapes
        self.dtypes = dtypes
        self.sanitize = sanitize
        self.extents: dict[str, PrimVar] = {}
        self.names: set[str] = set()
        self.taken: set[str] = set()

    def check_names(self, names: Sequence[str]) -> None:
        for by_name in (self.shapes, self.dtypes):
            for name in by_name if isinstance(by_name, Mapping) else ():
                if name not in names:
                    raise OnnxError(f'The model has no input "{name}"; it has {", ".join(names)}')

    def variables(self, value_infos: Sequence[Proto]) -> list[E.Var]:
        shapes = [self.shapes.get(info.name, _said_shape(info)) for info in value_infos]
        self.names = {extent for shape in shapes for extent in shape if isinstance(extent, str)}
        return [self._variable(info) for info in value_infos]

    def _variable(self, value_info: Proto) -> E.Var:
        tensor = value_info.type.tensor_type if value_info.type else None
        if tensor is None and value_info.type is not None:
            raise OnnxError(f'The input "{value_info.name}" is not a tensor')
        dtype = self.dtypes if isinstance(self.dtypes, str) else None
        if tensor is not None and tensor.elem_type:
            dtype = dtype_name(tensor.elem_type, f'The input "{value_info.name}"')
        if isinstance(self.dtypes, Mapping):
            dtype = self.dtypes.get(value_info.name, dtype)
        if value_info.name in self.shapes:
            shape = self.shapes[value_info.name]
        elif tensor is None or tensor.shape is None:
            raise OnnxError(
                f'The model does not say the shape of the input "{value_info.name}": '
                f'pass shape_dict={{"{value_info.name}": (…)}}'
            )
        else:
            shape = _said_shape(value_info)
        extents = [self._extent(extent, value_info.name, axis) for axis, extent in enumerate(shape)]
        return E.Var(self.name_of(value_info.name), TensorStructInfo(extents, dtype or "float32"))

    def _extent(self, extent: int | str | PrimExpr, name: str, axis: int) -> Extent:
        if isinstance(extent, PrimExpr) or (isinstance(extent, int) and extent >= 0):
            return extent
        if isinstance(extent, str) and extent.strip("?"):
            formula = self._formula(extent)
            if formula is not None:
                return formula
            key = _plain(extent)
        else:  # no number and no name: an extent of its own
            key = f"{_plain(name)}_{axis}"
        if not key.isidentifier():
            key = f"n_{key}"
        return self.extents.setdefault(key, PrimVar(key, "int64"))

    def _formula(self, text: str) -> PrimExpr | None:
        """What "a + b" computes of extents that inputs have; None where it is a name."""
        try:
            return self._computed(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, LookupError):
            return None

    def _computed(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.BinOp):
            return _OPERATORS[type(tree.op)](self._computed(tree.left), self._computed(tree.right))
        if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
            return tree.value
        if not isinstance(tree, ast.Name) or tree.id not in self.names:
            raise LookupError
        return self.extents.setdefault(tree.id, PrimVar(tree.id, "int64"))

    def name_of(self, name: str) -> str:
        if not self.sanitize:
            return name
        plain = _plain(name)
        if not plain.isidentifier():
            plain = f"input_{plain}"
        return unique_name(plain, self.taken)


def _said_shape(value_info: Proto) -> Sequence[int | str]:
    tensor = value_info.type.tensor_type if value_info.type else None
    if tensor is None or tensor.shape is None:
        return ()
    return [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]


def _plain(name: str) -> str:
    """A name with only such characters as variables may have."""
    return re.sub(r"\W", "_", name)
