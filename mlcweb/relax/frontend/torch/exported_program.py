"""`from_exported_program`: a model exported by torch.export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcweb.ir.module import IRModule
from mlcweb.relax import expr as E
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.frontend.torch.translator import (
    WHERE_PYTORCH_IS,
    TorchError,
    Translator,
    dtype_name,
)
from mlcweb.relax.struct_info import TensorStructInfo
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


def from_exported_program(
    exported_program: Any, *, keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False, no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    run_ep_decomposition: bool = True,
) -> IRModule:  # fmt: skip
    """Import a `torch.export.ExportedProgram`.

    The arguments are those of `from_fx`; names for `custom_convert_map` are those of ATen
    operators with their overload, as in "relu.default". Extents that the program keeps dynamic are
    symbolic. `run_ep_decomposition` is accepted: operators are read as they are, decomposed or not.

    Returns:
        A module whose function `main` takes the inputs by their names and gives a tuple of the
        outputs.

    Raises:
        TorchError: no exported program, or one that cannot be imported.
    """
    signature = getattr(exported_program, "graph_signature", None)
    if signature is None:
        raise TorchError(
            "from_exported_program takes a torch.export.ExportedProgram, not "
            f"{type(exported_program).__name__}; torch.export.export(model, args) makes one. "
            f"{WHERE_PYTORCH_IS}"
        )
    translator = Translator(BlockBuilder(), custom_convert_map, keep_params_as_input)
    nodes = list(exported_program.graph.nodes)
    specs = {spec.arg.name: spec for spec in signature.input_specs}
    extents: dict[str, PrimVar] = {}
    inputs: list[E.Var] = []
    for node in nodes:
        if node.op == "placeholder":
            translator.env[node] = _holder(translator, exported_program, node, specs, extents)
            if specs[node.name].kind.name == "USER_INPUT":
                inputs.append(translator.env[node])
    results = {spec.arg.name for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"}

    def body() -> tuple[E.Expr, ...]:
        for node in nodes:
            if node.op == "output":
                chosen = [item for item in node.args[0] if getattr(item, "name", None) in results]
                return tuple(translator.resolved(item) for item in chosen)
            if node.op == "call_function":
                translator.env[node] = translator.call(node, _name(node.target))
            elif node.op == "get_attr":
                value = getattr(exported_program.graph_module, node.target)
                translator.env[node] = translator.weight(value, node.target)
        raise TorchError("The graph has no output")

    return translator.finish(inputs, body, unwrap_unit_return_tuple, no_bind_return_tuple)


def _name(target: Any) -> str:
    return getattr(target, "__name__", str(target))


def _holder(
    translator: Translator, program: Any, node: Any, specs: Mapping[str, Any],
    extents: dict[str, PrimVar],
) -> E.Expr:  # fmt: skip
    spec = specs[node.name]
    if spec.kind.name == "USER_INPUT":
        value = node.meta["val"]
        shape = [_extent(extent, extents) for extent in value.shape]
        return E.Var(node.name, TensorStructInfo(shape, dtype_name(value.dtype)))
    if spec.target in program.state_dict:
        return translator.weight(program.state_dict[spec.target], spec.target)
    return translator.weight(program.constants[spec.target], spec.target)


def _extent(extent: Any, extents: dict[str, PrimVar]) -> PrimExpr | int:
    if isinstance(extent, int):
        return extent
    name = str(extent)
    if not name.isidentifier():
        raise TorchError(f"The extent {name} of an input is not a number or a name")
    return extents.setdefault(name, PrimVar(name, "int64"))
