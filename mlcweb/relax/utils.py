"""What passes of users take from `tvm.relax.utils`."""

from __future__ import annotations

from mlcweb.ir.node import replace
from mlcweb.relax import expr as E
from mlcweb.relax.analysis.variables import bound_vars, defined_symbolic_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.emit_te import gen_call_tir_inputs
from mlcweb.relax.expr import convert_to_expr
from mlcweb.tir.expr import Var as PrimVar

__all__ = ["convert_to_expr", "copy_with_new_vars", "gen_call_tir_inputs", "metadata_partitioner"]


def copy_with_new_vars(func: E.Function) -> E.Function:
    """The function with variables and symbolic extents of its own, of the same names."""
    extents = {var: PrimVar(var.name, var.dtype) for var in defined_symbolic_vars(func)}
    infos = Substitution({}, extents)
    renamed = {
        var: replace(var, struct_info=infos.rewrite(var.struct_info)) if var.struct_info else
        replace(var)
        for var in bound_vars(func)
    }  # fmt: skip
    return Substitution(renamed, extents).rewrite(func)


def with_own_extents(func: E.Function) -> E.Function:
    """The function with symbolic extents of its own, of the same names."""
    renewed = {var: PrimVar(var.name, var.dtype) for var in defined_symbolic_vars(func)}
    return Substitution({}, renewed).rewrite(func) if renewed else func


def metadata_partitioner(rx_txt: str) -> list[str]:
    """The parts of a printed program: the functions, and the `metadata` after them."""
    marker = rx_txt.find("# Metadata")
    if marker < 0:
        marker = rx_txt.find("metadata = ")
    return [rx_txt] if marker < 0 else [rx_txt[:marker], rx_txt[marker:]]
