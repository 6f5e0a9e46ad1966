"""ConvertToDataflow and ToNonDataflow: making dataflow blocks, and taking them away."""

from __future__ import annotations

from collections.abc import Container, Sequence

from mlcweb.ir.module import IRModule
from mlcweb.ir.node import Node, replace
from mlcweb.ir.transform import Pass
from mlcweb.ir.visitor import Mutator, on
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import contains_impure_call, used_vars
from mlcweb.relax.binding import Substitution
from mlcweb.relax.normalize import merged
from mlcweb.relax.transform.registration import map_bodies, pass_of


def ConvertToDataflow(min_size: int = 2) -> Pass:
    """Put bindings without side effects and branches into dataflow blocks, where at least
    `min_size` follow one another or there is such a block beside them."""
    return pass_of("ConvertToDataflow", lambda mod: convert_to_dataflow(mod, min_size))


def convert_to_dataflow(mod: IRModule, min_size: int = 2) -> IRModule:
    return map_bodies(mod, lambda body: _Converting(mod, min_size).rewrite(body))


class _Converting(Mutator):
    def __init__(self, mod: IRModule, min_size: int) -> None:
        self.mod = mod
        self.min_size = min_size

    def fits(self, binding: E.Binding) -> bool:
        value = binding.value
        if isinstance(value, E.Function):
            return True  # to define a function has no side effects
        branches = isinstance(value, (E.If, E.SeqExpr))
        return not branches and not contains_impure_call(value, functions=self.mod)

    @on(E.SeqExpr)
    def sequence(self, seq: E.SeqExpr) -> Node:
        inside: E.SeqExpr = self.rewrite_children(seq)
        blocks = merged(self.runs(inside.blocks))
        if E.DataflowBlock not in map(type, blocks):
            return inside
        return with_local_variables(E.SeqExpr(blocks, inside.body, span=seq.span))

    def runs(self, blocks: Sequence[E.BindingBlock]) -> list[E.BindingBlock]:
        """Blocks of the bindings that fit and of those that do not, in turns. Bindings that fit
        join dataflow blocks beside them."""
        new: list[E.BindingBlock] = []
        run: list[E.BindingBlock] = []

        def end_run() -> None:
            bindings = [binding for block in run for binding in block.bindings]
            beside = any(isinstance(block, E.DataflowBlock) for block in run)
            kind = E.DataflowBlock if beside or len(bindings) >= self.min_size else E.BindingBlock
            new.append(kind(bindings))
            run.clear()

        for block in blocks:
            if isinstance(block, E.DataflowBlock):
                run.append(block)
                continue
            for binding in block.bindings:
                if self.fits(binding):
                    run.append(E.BindingBlock([binding]))
                else:
                    end_run()
                    new.append(E.BindingBlock([binding]))
        end_run()
        return new


def with_local_variables(seq: E.SeqExpr, kept: Container[E.Var] = ()) -> E.SeqExpr:
    """A sequence in which variables that only their own dataflow block uses are DataflowVars, but
    for those that are `kept`."""
    local: dict[E.Var, E.Var] = {}
    for block in seq.blocks:
        if isinstance(block, E.DataflowBlock):
            rest = [other for other in seq.blocks if other is not block]
            outside = set(used_vars(E.SeqExpr(rest, seq.body)))
            for binding in block.bindings:
                var = binding.var
                if var not in outside and var not in kept and not isinstance(var, E.DataflowVar):
                    local[var] = E.DataflowVar(var.name_hint, var.struct_info, span=var.span)
    return _Renamed(local).rewrite(seq) if local else seq


class _Renamed(Substitution):
    """Replaces variables where they are defined as well."""

    def __init__(self, renamed: dict[E.Var, E.Var]) -> None:
        super().__init__(renamed)
        self.renamed = renamed

    def definition(self, var: E.Var) -> E.Var:
        return self.renamed.get(var, var)


def ToNonDataflow() -> Pass:
    """Make plain blocks of dataflow blocks, and plain variables of theirs."""
    return pass_of("ToNonDataflow", to_non_dataflow)


def to_non_dataflow(mod: IRModule) -> IRModule:
    return map_bodies(mod, lambda body: _Plain({}).rewrite(body))


class _Plain(_Renamed):
    def definition(self, var: E.Var) -> E.Var:
        if isinstance(var, E.DataflowVar) and var not in self.renamed:
            self.renamed[var] = E.Var(var.name_hint, var.struct_info, span=var.span)
            self.variables[var] = self.renamed[var]
        return super().definition(var)

    @on(E.DataflowBlock)
    def block(self, block: E.DataflowBlock) -> Node:
        return E.BindingBlock(self.rewrite_tuple(block.bindings), span=block.span)

    @on(E.SeqExpr)
    def sequence(self, seq: E.SeqExpr) -> Node:
        new: E.SeqExpr = self.rewrite_children(seq)
        return new if new is seq else replace(new, blocks=tuple(merged(new.blocks)))
