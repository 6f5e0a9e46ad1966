"""PrimFunc: a function of TensorIR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mlcweb.ir.array import ArrayOf
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.module import BaseFunc, IRModule
from mlcweb.ir.node import attribute, definition, node, replace
from mlcweb.ir.op import Op
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import Call, PrimExpr, Var
from mlcweb.tir.stmt import Block, BlockRealize, Evaluate, Stmt, declared_buffers, statements_in

SCHEDULED = "tir.is_scheduled"
"""The attribute of functions that have the schedule that they shall have."""


@node
class PrimFunc(BaseFunc):
    """A function on buffers and scalars.

    `params` are handles, each with its buffer in `buffer_map`, or scalars. The body of a function
    that can be scheduled is a single realize of the block named "root".
    """

    params: ArrayOf[Var] = definition()
    body: Stmt
    ret_type: str | None = attribute(default=None)
    buffer_map: Mapping[Var, Buffer] = definition(default_factory=dict)

    is_typed_by_name: ClassVar[bool] = False

    structural_order: ClassVar[tuple[str, ...]] = (
        "params",
        "buffer_map",
        "ret_type",
        "body",
        "attrs",
    )

    @property
    def parameter_buffers(self) -> tuple[Buffer, ...]:
        """The buffers of the parameters that have one, in order."""
        return tuple(self.buffer_map[p] for p in self.params if p in self.buffer_map)

    def buffers_by_data(self) -> dict[Var, Buffer]:
        """All buffers of the function by their data; of several with one, the first."""
        inside = (buffer for part in statements_in(self.body) for buffer in declared_buffers(part))
        buffers: dict[Var, Buffer] = {}
        for buffer in (*self.parameter_buffers, *inside):
            buffers.setdefault(buffer.data, buffer)
        return buffers

    def with_body(self, new_body: Stmt, span: Any = None) -> PrimFunc:
        """The function with another body; the same object where it has that body."""
        return self if new_body is self.body else replace(self, body=new_body)

    def specialize(self, param_map: Mapping[Var, Any]) -> PrimFunc:
        """The function with values for some of its scalar parameters, which leave the signature,
        or with buffers for its handles, whose extents give symbolic ones their values.

        Raises:
            ValueError: what is named is no such parameter, or does not fit it.
        """
        return provided(__name__, "specialize_params")(self, param_map)

    @property
    def struct_info(self) -> Any:
        """What models know of the function: a `relax.FuncStructInfo` with tensors for buffers."""
        return provided(__name__, "prim_func_struct_info")(self)

    @property
    def ty(self) -> Any:
        """`struct_info`, under its name since 2026."""
        return self.struct_info

    @property
    def root_block(self) -> Block | None:
        """The root block, where the body has one."""
        return self.body.block if isinstance(self.body, BlockRealize) else None

    @property
    def returned(self) -> PrimExpr | None:
        """What a function of numbers gives that does nothing else; None of other functions."""
        value = self.body.value if isinstance(self.body, Evaluate) else None
        if self.buffer_map or not (isinstance(value, Call) and value.op == Op.get("tir.ret")):
            return None
        (result,) = value.args
        return result if isinstance(result, PrimExpr) else None


def prim_funcs(module: IRModule) -> dict[str, PrimFunc]:
    """The functions of TensorIR of a module, by name."""
    named = ((var.name_hint, func) for var, func in module.functions.items())
    return {name: func for name, func in named if isinstance(func, PrimFunc)}
