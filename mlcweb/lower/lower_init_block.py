"""The pass that turns the init of a reduction block into a conditional statement of its body."""

from __future__ import annotations

from mlcweb.arith import conjunction
from mlcweb.ir.node import replace
from mlcweb.ir.visitor import Mutator, on
from mlcweb.lower.lowering_pass import lowering_pass
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import equal
from mlcweb.tir.function import PrimFunc


@lowering_pass("LowerInitBlock", needed=True, removes=("T.init()",))
def lower_init_block(func: PrimFunc) -> PrimFunc:
    """Initialise where all reduction iterators are at the start of their domains."""
    return func.with_body(_InitLowering().rewrite(func.body))


class _InitLowering(Mutator):
    @on(S.Block)
    def block(self, block: S.Block) -> S.Block:
        block = self.rewrite_children(block)
        if block.init is None:
            return block
        condition = conjunction(
            equal(axis.var, axis.domain.min)
            for axis in block.iter_vars
            if axis.iter_type == S.IterType.COMM_REDUCE
        )
        always = isinstance(condition, E.IntImm)
        init = block.init if always else S.IfThenElse(condition, block.init, span=block.init.span)
        return replace(block, init=None, body=S.sequence(init, block.body))
