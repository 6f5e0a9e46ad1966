"""FuseOps: group the calls of a function that are worth computing together."""

from __future__ import annotations

from mlcweb.ir.module import IRModule
from mlcweb.ir.transform import ModulePass, Pass, PassContext, PassInfo, register_option
from mlcweb.relax import expr as E
from mlcweb.relax.transform.dataflow_graph import DataflowGraph
from mlcweb.relax.transform.grouping import Unit, with_grouped_functions
from mlcweb.relax.transform.partition import MAX_DEPTH, Group, partition
from mlcweb.relax.transform.registration import is_primitive

DEPTH_OPTION = register_option("relax.FuseOps.max_depth", int)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group bindings of dataflow blocks into new functions with the attribute "Primitive".

    Which calls go together follows from their functions' attribute "op_pattern", which
    `AnnotateTIROpPattern` gives them. `FuseTIR` makes one function of TensorIR of each group.

    Args:
        fuse_opt_level: 0 fuses nothing; -1 is the level of the current PassContext.
    """

    def transform(mod: IRModule, ctx: PassContext) -> IRModule:
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        return fuse_ops(mod, level, ctx.config.get(DEPTH_OPTION, MAX_DEPTH))

    return ModulePass(transform, PassInfo(0, "FuseOps"))


def fuse_ops(mod: IRModule, opt_level: int = 2, max_depth: int = MAX_DEPTH) -> IRModule:
    units: dict[E.Var, Unit] = {}
    for func in mod.functions.values():
        if isinstance(func, E.Function) and not is_primitive(func):
            graph = DataflowGraph(mod, func)
            by_group: dict[Group, Unit] = {}
            for vertex, group in partition(graph, opt_level, max_depth).items():
                if group.size > 1 and isinstance(vertex.value, E.Var):
                    units[vertex.value] = by_group.setdefault(group, Unit())
    return with_grouped_functions(mod, units)
