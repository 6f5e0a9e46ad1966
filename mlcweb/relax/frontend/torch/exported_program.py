"""`from_exported_program`: a model exported by torch.export."""

from __future__ import annotations

from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.torch.extents import Extents
from mlcweb.relax.frontend.torch.functions.control import EFFECTS
from mlcweb.relax.frontend.torch.translator import (
    WHERE_PYTORCH_IS,
    CustomConverters,
    Result,
    TorchError,
    Translator,
    base_name,
    dtype_name,
    target_name,
)
from mlcweb.relax.struct_info import TensorStructInfo


def from_exported_program(
    exported_program: Any, *, keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False, no_bind_return_tuple: bool = False,
    custom_convert_map: CustomConverters | None = None,
    run_ep_decomposition: bool = True,
) -> IRModule:  # fmt: skip
    """Import a `torch.export.ExportedProgram`.

    The arguments are those of `from_fx`; names for `custom_convert_map` are those of ATen
    operators with their overload, as in "relu.default". Extents that the program keeps dynamic are
    symbolic. What it writes to buffers is no result.

    Args:
        run_ep_decomposition: say operators by simpler ones first, with `run_decompositions()`,
            unless there are sparse weights. Without it, they are read as they are.

    Returns:
        A module whose function `main` takes the inputs by their names and gives a tuple of the
        outputs.

    Raises:
        TorchError: no exported program, or one that cannot be imported.
    """
    if getattr(exported_program, "graph_signature", None) is None:
        raise TorchError(
            "from_exported_program takes a torch.export.ExportedProgram, not "
            f"{type(exported_program).__name__}; torch.export.export(model, args) makes one. "
            f"{WHERE_PYTORCH_IS}"
        )
    if run_ep_decomposition and not _has_sparse(exported_program):
        exported_program = exported_program.run_decompositions()
    signature = exported_program.graph_signature
    translator = Translator(BlockBuilder(), custom_convert_map, keep_params_as_input)
    graph_module = exported_program.graph_module
    calls = [
        node
        for module in graph_module.modules()
        if hasattr(module, "graph")
        for node in module.graph.nodes
        if node.op == "call_function"
    ]
    translator.refuse_unknown(
        [(node, [target_name(node)], False) for node in calls],
        "" if run_ep_decomposition else "run_ep_decomposition=True may say it by simpler ones; ",
    )
    extents = Extents()
    inputs: list[E.Var] = []
    holders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(holders, signature.input_specs, strict=True):
        if spec.kind.name == "USER_INPUT":
            value = node.meta.get("val")
            if not hasattr(value, "shape"):
                if not isinstance(value, (int, float, bool, str, type(None))):
                    raise TorchError(f"The input {node.name} is no tensor; it is {value}")
                translator.env[node] = value  # of which the program was exported
                continue
            shape = [extents.of(extent) for extent in value.shape]
            var = E.Var(node.name, TensorStructInfo(shape, dtype_name(value.dtype)))
            inputs.append(var)
            translator.env[node] = var
        else:
            held = exported_program.state_dict
            held = held if spec.target in held else exported_program.constants
            keep = spec.kind.name == "PARAMETER"
            translator.env[node] = translator.weight(held[spec.target], node.name, keep)

    effects = {base_name(target_name(node)) for node in calls}.intersection(EFFECTS)

    def body() -> Result:
        specs = zip(translator.run(graph_module, extents), signature.output_specs, strict=True)
        return tuple(item for item, spec in specs if spec.kind.name.endswith("_OUTPUT"))

    return translator.finish(
        inputs, body, unwrap_unit_return_tuple, no_bind_return_tuple,
        extents.bounds(getattr(exported_program, "range_constraints", {})),
        dataflow=not effects, pure="_assert_async" not in effects,
    )  # fmt: skip


def _has_sparse(program: Any) -> bool:
    tensors = [*program.state_dict.values(), *program.constants.values()]
    return any(str(getattr(tensor, "layout", "torch.strided")) != "torch.strided"
               for tensor in tensors)  # fmt: skip
