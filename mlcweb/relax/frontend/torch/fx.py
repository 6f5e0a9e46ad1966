"""`from_fx`: a model traced by torch.fx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.common import Extent
from mlcweb.relax.frontend.torch.translator import (
    WHERE_PYTORCH_IS,
    CustomConverters,
    FxNode,
    Layer,
    Result,
    TorchError,
    Translator,
    class_names,
    dtype_name,
    target_name,
)
from mlcweb.relax.struct_info import TensorStructInfo


def from_fx(
    model: Layer, input_info: Sequence[tuple[Sequence[Extent], object]], *,
    keep_params_as_input: bool = False, unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: CustomConverters | None = None,
    default_image_layout: str = "NCHW",
) -> IRModule:  # fmt: skip
    """Import a `torch.fx.GraphModule`.

    Args:
        model: what `torch.fx.symbolic_trace` gives. Put the model in `eval()` mode first.
        input_info: shape and element type of each input.
        keep_params_as_input: make the weights parameters of `main`, behind the inputs, with their
            values in its attribute "params" (see `relax.frontend.detach_params`), not constants.
        unwrap_unit_return_tuple: give the only element of a tuple of one.
        no_bind_return_tuple: give a tuple of outputs without a variable for it.
        custom_convert_map: own converters by the name of a function, method or class of layers;
            each is called with the fx node and the translator, whose `env` has the values of nodes,
            and gives an expression.
        default_image_layout: "NCHW", which PyTorch's models are in.

    Returns:
        A module whose function `main` takes `inp_0`, `inp_1`, …

    Raises:
        TorchError: no traced model, or one that cannot be imported.
    """
    if default_image_layout != "NCHW":
        raise TorchError(
            f'Models are imported in the layout "NCHW" that PyTorch gives them, not in '
            f'"{default_image_layout}"'
        )
    graph = getattr(model, "graph", None)
    if graph is None or not hasattr(graph, "nodes"):
        raise TorchError(
            f"from_fx takes a torch.fx.GraphModule, not {type(model).__name__}; "
            f"torch.fx.symbolic_trace(model) makes one. {WHERE_PYTORCH_IS}"
        )
    translator = Translator(BlockBuilder(), custom_convert_map, keep_params_as_input)
    layers = dict(model.named_modules())
    translator.refuse_unknown(
        [
            (node, class_names(layers[node.target]), True)
            if node.op == "call_module"
            else (node, [target_name(node)], False)
            for node in graph.nodes
            if node.op.startswith("call_")
        ],
        "torch.export.export(model, args) and from_exported_program, which decomposes, may import "
        "it; ",
    )
    holders = [node for node in graph.nodes if node.op == "placeholder"]
    needed = [node for node in holders if not node.args]
    if not len(needed) <= len(input_info) <= len(holders):
        names = ", ".join(node.name for node in holders)
        raise TorchError(f"The model has the inputs {names}; input_info is about {len(input_info)}")
    inputs = [
        E.Var(f"inp_{index}", TensorStructInfo(shape, dtype_name(dtype)))
        for index, (shape, dtype) in enumerate(input_info)
    ]
    for index, node in enumerate(holders):
        translator.env[node] = inputs[index] if index < len(inputs) else node.args[0]

    def body() -> Result:
        for node in graph.nodes:
            if node.op == "output":
                return translator.resolved(node.args[0])
            if node.op != "placeholder":
                translator.env[node] = _value(translator, model, layers, node)
        raise TorchError("The graph has no output")

    return translator.finish(inputs, body, unwrap_unit_return_tuple, no_bind_return_tuple)


def _value(
    translator: Translator, model: Layer, layers: Mapping[str, Layer], node: FxNode
) -> Result:
    if node.op == "get_attr":
        value = model
        for part in node.target.split("."):
            value = getattr(value, part)
        return translator.weight(value, node.target) if hasattr(value, "detach") else value
    if node.op == "call_module":
        return translator.call_module(node, layers[node.target])
    return translator.call(node, target_name(node))
