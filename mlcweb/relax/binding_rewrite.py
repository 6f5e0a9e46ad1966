"""Changing the bindings of one dataflow block: `relax.DataflowBlockRewrite`."""

from __future__ import annotations

from collections.abc import Callable

from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import used_vars
from mlcweb.relax.binding import Substitution


class DataflowBlockRewrite:
    """A dataflow block of a function that is changed step by step; what it was made of stays.

    Raises:
        TVMError: the block is not one of the function's.
    """

    def __init__(self, dfb: E.DataflowBlock, root_fn: E.Function) -> None:
        if not any(block is dfb for block in root_fn.body.blocks):
            raise TVMError("The dataflow block is not one of the function's")
        self._block: E.BindingBlock = dfb
        self._func = root_fn

    def mutated_dfb(self) -> E.BindingBlock:
        """The block as it is now."""
        return self._block

    def mutated_root_fn(self) -> E.Function:
        """The function with the block as it is now."""
        return self._func

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """A module with the function as it is now, under its name."""
        name = self._func.attrs.get("global_symbol") if self._func.attrs else None
        if name is None or name not in irmodule:
            raise TVMError(f'The module has no function "{name}"')
        functions = {
            var: self._func if var.name_hint == name else func
            for var, func in irmodule.functions.items()
        }
        return irmodule.with_functions(functions)

    def add_binding(self, binding: E.Binding) -> None:
        """Put a binding at the end of the block."""
        self._set((*self._block.bindings, binding))

    def add(self, expr: E.Expr, name: str | None = None, is_dfvar: bool = False) -> None:
        """Bind an expression to a new variable at the end of the block, which outside of the block
        can be used unless `is_dfvar`. Without a name it gets one that is free.

        Raises:
            TVMError: the name is taken.
        """
        blocks = self._func.body.blocks
        taken = {binding.var.name_hint for block in blocks for binding in block.bindings}
        taken |= {param.name_hint for param in self._func.params}
        if name in taken:
            raise TVMError(f'There is a variable "{name}" already')
        prefix, number = "lv" if is_dfvar else "gv", 0
        while name is None or name in taken:
            name, number = f"{prefix}{number or ''}", number + 1
        cls = E.DataflowVar if is_dfvar else E.Var
        self.add_binding(E.VarBinding(cls(name, expr.struct_info), expr))

    def replace_all_uses(self, old_var: E.Var, new_var: E.Var) -> None:
        """Use another variable wherever one is used, but to compute the other one; the binding of
        `old_var` stays."""
        used = Substitution({old_var: new_var})

        def renamed(binding: E.Binding) -> E.Binding:
            if binding.var is new_var:
                return binding
            return replace(binding, value=used.rewrite(binding.value))

        body = self._func.body
        blocks = tuple(
            replace(block, bindings=tuple(map(renamed, block.bindings))) for block in body.blocks
        )
        at = next(i for i, block in enumerate(body.blocks) if block is self._block)
        self._func = replace(
            self._func, body=replace(body, blocks=blocks, body=used.rewrite(body.body))
        )
        self._block = blocks[at]

    def remove_unused(self, var: E.Var, allow_undef: bool = False) -> None:
        """Drop the binding of a variable.

        Raises:
            TVMError: the variable is used, or (unless `allow_undef`) not bound in the block.
        """
        if all(binding.var is not var for binding in self._block.bindings):
            if allow_undef:
                return
            raise TVMError(f'"{var.name_hint}" is not bound in the dataflow block')
        if var in self._used():
            raise TVMError(f'"{var.name_hint}" is used, and cannot be removed')
        self._keep(lambda binding: binding.var is not var)

    def remove_all_unused(self) -> None:
        """Drop all bindings of the block that nothing uses."""
        before = None
        while before is not self._block:
            before = self._block
            used = self._used()
            self._keep(lambda binding, used=used: binding.var in used)

    def _used(self) -> set[E.Var]:
        body = self._func.body
        values = [binding.value for block in body.blocks for binding in block.bindings]
        return {var for value in (*values, body.body) for var in used_vars(value)}

    def _keep(self, condition: Callable[[E.Binding], bool]) -> None:
        kept = tuple(filter(condition, self._block.bindings))
        if len(kept) != len(self._block.bindings):
            self._set(kept)

    def _set(self, bindings: tuple[E.Binding, ...]) -> None:
        """Change the block, and the function around it; a block without bindings is dropped."""
        new = replace(self._block, bindings=bindings)
        blocks = [new if block is self._block else block for block in self._func.body.blocks]
        kept = tuple(block for block in blocks if block is not new or bindings)
        self._block = new
        self._func = replace(self._func, body=replace(self._func.body, blocks=kept))
