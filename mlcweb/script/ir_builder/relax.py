"""`tvm.script.ir_builder.relax`: the `R` of TVMScript as calls that build at once.

A name that is not here is that of `R` in scripts, which gives expressions; `R.emit` binds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlcweb.ir.dialect import also_named, takes_newer_keywords
from mlcweb.relax import expr as E
from mlcweb.relax.binding import Substitution
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.struct_info import StructInfo
from mlcweb.script.ir_builder.base import BuilderError, Frame, IRBuilder, innermost
from mlcweb.script.ir_builder.relax_branches import OpenBranches, branch_calls
from mlcweb.script.namespace.relax import to_struct_info
from mlcweb.script.relax import NAMES


class FunctionBuilder:
    """A function of the graph level that is being built."""

    def __init__(self, pure: bool) -> None:
        self.block_builder = BlockBuilder()
        self.pure = pure
        self.name = ""
        self.params: list[E.Var] = []
        self.attrs: dict[str, Any] = {}
        self.ret: StructInfo | None = None
        self.result: Any = None
        self.dataflow: DataflowBlock | None = None
        self.branches = OpenBranches(self.block_builder)


class DataflowBlock:
    """A dataflow block that is being built; afterwards it has `output_vars`."""

    def __init__(self) -> None:
        self.outputs: tuple[E.Var, ...] = ()
        self.output_vars: list[E.Var] = []


def _function(call: str) -> FunctionBuilder:
    return innermost(FunctionBuilder, call, "R.function()")


def function(is_pure: bool = True, is_private: bool = False) -> Frame:
    """A function: what is called inside is its name, its parameters and its bindings."""

    @contextmanager
    def build() -> Iterator[FunctionBuilder]:
        builder, own = IRBuilder.current(), FunctionBuilder(is_pure)
        blocks = own.block_builder
        if builder.module is not None:  # what is called may be a function of the module
            blocks._module.functions.update(builder.module.functions)
        builder.functions.append(own)
        try:
            with blocks.function("", None, private=True, pure=is_pure) as _:
                yield own
                if own.result is None:
                    raise BuilderError("The function has no result: R.func_ret_value(value)")
                blocks._func.attrs.update(own.attrs)
                if own.name and not is_private:
                    blocks._func.attrs.setdefault("global_symbol", own.name)
                var = blocks.emit_func_output(own.result, own.params)
        finally:
            builder.functions.pop()
        func: Any = blocks.get().functions[var]
        if own.ret is not None:
            func = E.Function(func.params, func.body, own.ret, func.is_pure, func.attrs)
        builder.add(func, own.name)

    return Frame("R.function()", build)


def func_name(name: str) -> None:
    """The name of the function."""
    _function("R.func_name").name = name


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    _function("R.func_attr").attrs.update(attrs)


@takes_newer_keywords
def arg(name: str, struct_info: Any) -> E.Var:
    """A parameter of a type."""
    var = E.Var(name, to_struct_info(struct_info))
    _function("R.arg").params.append(var)
    return var


@also_named(ret_ty="ret_sinfo")
def func_ret_struct_info(ret_sinfo: Any) -> None:
    """The type of the result."""
    _function("R.func_ret_struct_info").ret = to_struct_info(ret_sinfo)


def func_ret_value(value: Any) -> None:
    """The result of the function."""
    own = _function("R.func_ret_value")
    if own.result is not None:
        raise BuilderError("The function has a result already: R.func_ret_value is called once")
    own.result = value


@also_named(annotate_ty="annotate_struct_info")
def emit(value: Any, annotate_struct_info: Any = None) -> E.Var:
    """Bind an expression to a new variable."""
    blocks = _function("R.emit").block_builder
    if annotate_struct_info is None:
        return blocks.emit(value)
    expr = blocks.normalize(value)
    kind = E.DataflowVar if blocks.current_block_is_dataflow() else E.Var
    var = kind(blocks.get_unique_name("lv"), to_struct_info(annotate_struct_info))
    blocks.emit_normalized(E.VarBinding(var, expr))
    return var


@takes_newer_keywords
def emit_match_cast(value: Any, struct_info: Any) -> E.Var:
    """A variable for a value, checked at run time to be what a type says."""
    return _function("R.emit_match_cast").block_builder.match_cast(
        value, to_struct_info(struct_info)
    )


def emit_var_binding(value: E.VarBinding) -> E.Var:
    """Add a binding that was made otherwise."""
    _function("R.emit_var_binding").block_builder.emit_normalized(value)
    return value.var


def emit_te(func: Any, *args: Any, **options: Any) -> E.Call:
    """A call of the function that a tensor expression makes, which the module gets."""
    builder, own = IRBuilder.current(), _function("R.emit_te")
    if builder.module is None:
        raise BuilderError("R.emit_te adds a function: build inside `with I.ir_module():`")
    call = own.block_builder.call_te(func, *args, **options)
    var: Any = call.args[0]
    builder.module.update_func(var, own.block_builder.get().functions[var])
    return call


def dataflow() -> Frame:
    """Bindings without side effects."""

    @contextmanager
    def build() -> Iterator[DataflowBlock]:
        own, block = _function("R.dataflow"), DataflowBlock()
        blocks = own.block_builder
        blocks._close_block()
        blocks._begin_dataflow_block()
        own.dataflow = block
        yield block
        own.dataflow = None
        done = blocks._end_block()
        names = {var: E.Var(var.name_hint, var.struct_info) for var in block.outputs}
        block.output_vars = list(names.values())
        renamed = Substitution(names).rewrite(done)
        for binding in renamed.bindings:
            blocks._values[binding.var] = binding.value
        if renamed.bindings:
            blocks._func.blocks.append(renamed)
        blocks._begin_binding_block()

    return Frame("R.dataflow()", build)


def output(*variables: E.Var) -> None:
    """The variables of the dataflow block that are seen outside of it."""
    block = _function("R.output").dataflow
    if block is None:
        raise BuilderError("R.output belongs inside `with R.dataflow():`")
    block.outputs = variables


func_ret_type = func_ret_ty = func_ret_struct_info
If, Then, Else = branch_calls(lambda call: _function(call).branches)
emit_with_sinfo = emit_with_type = emit_with_ty = emit


def __getattr__(name: str) -> Any:
    if name == "tensor":
        return NAMES["Tensor"]
    if name not in NAMES:
        raise AttributeError(f"R has no {name} for builders")
    return NAMES[name]
