"""Building functions of the graph level, binding by binding.

    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.add(x, x))
            gv = bb.emit_output(relax.op.nn.relu(lv))
        bb.emit_func_output(gv)
    mod = bb.get()

Whatever is emitted is brought into normal form first (normalize.py). Variables are called lv, lv1,
… inside dataflow blocks and gv, gv1, … elsewhere, as TVM calls them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mlcweb.ir.class_names import NamedClass
from mlcweb.ir.dialect import takes_newer_keywords
from mlcweb.ir.errors import TVMError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.op import Op
from mlcweb.ir.structural import structural_equal, structural_hash
from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.deduction import Context, function_struct_info
from mlcweb.relax.errors import DTypeError
from mlcweb.relax.normalize import Normalizer, merged
from mlcweb.relax.struct_info import StructInfo, TupleStructInfo
from mlcweb.tir.expr import Var as PrimVar

if TYPE_CHECKING:
    from mlcweb.relax.emit_te import Formula

_current: ContextVar[tuple[BlockBuilder, ...]] = ContextVar("block_builder", default=())


class BuilderError(TVMError):
    """A call of a builder at the wrong place."""


class NameSupply:
    """Names that are not taken: `lv`, `lv1`, `lv2`, …"""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = set(taken)
        self._count: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        name = hint
        while name in self._taken:
            count = self._count[hint] = self._count.get(hint, 0) + 1
            name = f"{hint}{count}"
        self._taken.add(name)
        return name


class _OpenBlock:
    """A block being built."""

    def __init__(self, dataflow: bool) -> None:
        self.dataflow = dataflow
        self.bindings: list[E.Binding] = []
        self.arguments: dict[E.RelaxExpr, E.Var] = {}
        """What stands for the arguments that have been bound: one that is used again is computed
        once."""


class FunctionScope:
    """`with bb.function(…):`."""

    def __init__(
        self,
        builder: BlockBuilder,
        name: str,
        params: Sequence[E.Var] | None,
        attrs: Mapping[str, object],
        is_pure: bool,
    ) -> None:
        self.builder = builder
        self.name = name
        self.params = params
        self.attrs = dict(attrs)
        self.is_pure = is_pure
        self.blocks: list[E.BindingBlock] = []
        self.finished = False

    def __enter__(self) -> None:
        builder = self.builder
        _current.set((*_current.get(), builder))
        builder._functions.append(self)
        self.depth = len(builder._open)
        builder.begin_scope(self.params)
        builder._begin_binding_block()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        builder = self.builder
        builder._functions.pop()
        del builder._open[self.depth :]
        _current.set(_current.get()[:-1])
        if kind is None and not self.finished:
            raise BuilderError(
                f'The function "{self.name}" has no result: call emit_func_output inside of it'
            )


class DataflowScope:
    """`with bb.dataflow():`."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder

    def __enter__(self) -> None:
        self.builder._close_block()
        self.builder._begin_dataflow_block()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None and not self.builder._func.finished:
            self.builder._close_block()
            self.builder._begin_binding_block()


class BlockBuilder(metaclass=NamedClass):
    """Builds functions, and the module that they and the functions they call make up."""

    normalizes_operators = True
    """Whether calls get the form that their operators ask for, FNormalize; those of scripts do
    not."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self._module = IRModule() if mod is None else mod.copy()
        self._names = NameSupply()
        self._global_names = NameSupply([var.name_hint for var in self._module.functions])
        self._by_kind: dict[tuple[type, int], list[GlobalVar]] = {}
        self._hashes: dict[BaseFunc, int] = {}
        self._functions: list[FunctionScope] = []
        self._open: list[_OpenBlock] = []
        self._values: dict[E.Var, E.Value] = {}
        self._normalize = Normalizer(self)
        self.context = Context(self.function_struct_info, self.lookup_binding)
        for var, func in self._module.functions.items():
            self._by_kind.setdefault(_kind(func), []).append(var)

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose `function` scope is open innermost."""
        builders = _current.get()
        return builders[-1] if builders else None

    def function_struct_info(self, var: GlobalVar) -> StructInfo | None:
        """What is known of a function of the module that is being built."""
        func = self._module.functions.get(var)
        return None if func is None else function_struct_info(func)

    # Scopes

    def function(
        self,
        name: str,
        params: E.Var | E.Tuple | Sequence[E.Var] | None = None,
        attrs: Mapping[str, object] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> FunctionScope:
        """A scope in which a function is built. `params` may wait until `emit_func_output`."""
        parameters = None if params is None else _parameters(params)
        if not private:
            attrs = {**(attrs or {}), "global_symbol": name}
        return FunctionScope(self, name, parameters, attrs or {}, pure)

    def dataflow(self) -> DataflowScope:
        """A scope for bindings without side effects."""
        return DataflowScope(self)

    @contextmanager
    def testing_scope(self, def_vars: Sequence[PrimVar]) -> Iterator[None]:
        """A dataflow block outside of any function, whose bindings are dropped at its end: to look
        at what `emit` and `normalize` make of expressions over the symbolic extents `def_vars`."""
        for var in def_vars:
            if not isinstance(var, PrimVar):
                raise ValueError(f"def_vars has symbolic extents, tir.Var, not {var!r}")
        depth = len(self._open)
        self._begin_dataflow_block()
        try:
            yield
        finally:
            del self._open[depth:]

    def begin_scope(self, params: Sequence[E.Var] | None = None) -> None:
        """Begin a scope of variables. Nothing is to be done: variables are known by identity."""

    def end_scope(self) -> None:
        """End a scope of variables."""

    @property
    def _func(self) -> FunctionScope:
        if not self._functions:
            raise BuilderError("There is no function being built: use `with bb.function(name):`")
        return self._functions[-1]

    def _begin_dataflow_block(self) -> None:
        self._open.append(_OpenBlock(True))

    def _begin_binding_block(self) -> None:
        self._open.append(_OpenBlock(False))

    def _end_block(self) -> E.BindingBlock:
        done = self._block.bindings
        dataflow = self._open.pop().dataflow
        return E.DataflowBlock(done) if dataflow else E.BindingBlock(done)

    def _close_block(self) -> None:
        block = self._end_block()
        if block.bindings:
            self._func.blocks.append(block)

    @property
    def _block(self) -> _OpenBlock:
        if not self._open:
            raise BuilderError(
                "There is no block being built: emit inside of `with bb.function(name):`"
            )
        return self._open[-1]

    def current_block_is_dataflow(self) -> bool:
        return self._block.dataflow

    # Bindings

    def emit(self, expr: E.ExprLike | None, name_hint: str = "") -> E.Var:
        """Bind an expression to a new variable, which is returned."""
        return self._bind(self.normalize(expr), name_hint, self._block.dataflow)

    def emit_output(self, output: E.ExprLike | None, name_hint: str = "") -> E.Var:
        """Bind an expression to a variable that is seen outside of the dataflow block."""
        return self._bind(self.normalize(output), name_hint, False)

    @takes_newer_keywords
    def match_cast(self, value: E.ExprLike, struct_info: StructInfo, name_hint: str = "") -> E.Var:
        """A variable for `value`, checked at run time to be what `struct_info` says."""
        inside = self.normalize_argument(value)
        var = self._new_var(name_hint, struct_info, self._block.dataflow)
        self.emit_normalized(E.MatchCast(var, inside, struct_info))
        return var

    def emit_normalized(self, binding: E.Binding) -> None:
        """Add a binding that is in normal form already."""
        self._block.bindings.append(binding)
        self._values[binding.var] = binding.value

    def lookup_binding(self, var: E.Var) -> E.Value | None:
        """The value that was bound to a variable; None for parameters."""
        return self._values.get(var)

    def normalize(self, expr: E.ExprLike | None) -> E.Value:
        """The expression in normal form, with its struct info deduced."""
        return self._normalize(_expression(expr))

    def normalize_argument(self, expr: E.ExprLike) -> E.Value:
        """What stands for an expression where only variables and constants are allowed."""
        return self._normalize.argument(_expression(expr))

    def _bind(self, value: E.Value, name_hint: str, dataflow: bool) -> E.Var:
        var = self._new_var(name_hint, self.context.struct_info(value), dataflow)
        self.emit_normalized(E.VarBinding(var, value))
        return var

    def _new_var(self, name_hint: str, info: StructInfo, dataflow: bool) -> E.Var:
        name = self._names.fresh(name_hint or ("lv" if dataflow else "gv"))
        return E.DataflowVar(name, info) if dataflow else E.Var(name, info)

    # Calls of tensor expressions

    def call_te(
        self,
        func: Formula,
        *args: object,
        primfunc_name_hint: str | None = None,
        primfunc_attrs: Mapping[str, object] | None = None,
        sinfo_args: StructInfo | Sequence[StructInfo] | None = None,
        **kwargs: object,
    ) -> E.Call:
        """A call of the TensorIR function that the tensor expression `func` makes of the arguments.

        `primfunc_name_hint` names the function (default: as `func` is called), `primfunc_attrs`
        are attributes for it, and `sinfo_args` the struct info of the result.
        """
        from mlcweb.relax.emit_te import gen_call_tir_inputs

        name = primfunc_name_hint or getattr(func, "__name__", "te_func")
        prim_func, call_args, infos, tir_vars = gen_call_tir_inputs(
            func, *args, primfunc_attrs=primfunc_attrs, sinfo_args=sinfo_args, **kwargs
        )
        var = self.add_func(prim_func, name)
        last = () if tir_vars is None else (tir_vars,)
        info = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
        return E.Call(Op.get("relax.call_tir"), (var, E.Tuple(call_args), *last), None, (info,))

    def call_te_with_grad(
        self,
        func: Formula,
        *args: object,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> E.Call:
        """As `call_te`, with a gradient: what `relax.training.utils.register_te_gradient` has
        registered as `te_grad_name`, which takes `te_grad_kwargs`, too."""
        call = self.call_te(func, *args, **kwargs)
        attrs = {"te_grad_name": te_grad_name, "te_grad_kwargs": dict(te_grad_kwargs or {})}
        op = Op.get("relax.call_tir_with_grad")
        return E.Call(op, call.args, Attrs(attrs), call.sinfo_args)

    def emit_te(self, func: Formula, *args: object, name_hint: str = "", **kwargs: Any) -> E.Var:
        """Bind what `call_te` gives to a new variable."""
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    # Functions

    def emit_func_output(
        self, output: E.ExprLike, params: E.Var | Sequence[E.Var] | None = None
    ) -> GlobalVar:
        """End the function with its result, and add it to the module."""
        scope = self._func
        if scope.finished:
            raise BuilderError(f'emit_func_output was called twice in "{scope.name}"')
        if (scope.params is None) == (params is None):
            state = "neither given" if params is None else "given twice"
            raise BuilderError(
                f'The parameters of "{scope.name}" are {state}: pass them either to bb.function or '
                "to emit_func_output"
            )
        own = scope.params if params is None else _parameters(params)
        assert own is not None
        if self._block.dataflow:  # a result from inside of the dataflow block ends it
            self._close_block()
            self._begin_binding_block()
        scope.finished = True
        body = self._normalize.argument(self._visible(_expression(output), scope.blocks))
        self._close_block()
        seq = E.SeqExpr(merged(scope.blocks), body)
        return self.add_func(E.Function(own, seq, None, scope.is_pure, scope.attrs), scope.name)

    def _visible(self, output: E.Value, blocks: Sequence[E.BindingBlock]) -> E.Value:
        """`output` with variables of dataflow blocks replaced by those that carry them outside."""
        if isinstance(output, E.Tuple):
            fields = output.fields
            return E.Tuple([
                self._visible(field, blocks) if isinstance(field, E.Expr) else field
                for field in fields
            ])  # fmt: skip
        if not isinstance(output, E.DataflowVar):
            return output
        for block in blocks:
            for binding in block.bindings:
                var, value = binding.var, binding.value
                if value is output and not isinstance(var, E.DataflowVar):
                    return var
        return output

    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function under a name made unique. One that is there already is not added again."""
        alike = self._by_kind.setdefault(_kind(func), [])
        for var in alike:
            existing = self._module.functions.get(var)
            if existing is not None and self._hash(existing) == self._hash(func):
                if structural_equal(existing, func):
                    return var
        var = GlobalVar(self._global_names.fresh(func_name))
        alike.append(var)
        self._module.update_func(var, func)
        return var

    def _hash(self, func: BaseFunc) -> int:
        """The structural hash of a function, which takes long for a model with its weights."""
        if func not in self._hashes:
            self._hashes[func] = structural_hash(func)
        return self._hashes[func]

    def update_func(self, gv: GlobalVar, updated_func: BaseFunc) -> None:
        """Replace a function of the module."""
        if gv not in self._module.functions:
            self._global_names.fresh(gv.name_hint)
        self._module.update_func(gv, updated_func)

    def reserve(self, names: Iterable[str]) -> None:
        """Give these names to no function that `add_func` adds."""
        for name in names:
            self._global_names.fresh(name)

    def unique_function_name(self, name_prefix: str) -> str:
        """A name for a function that is not taken."""
        return self._global_names.fresh(name_prefix)

    def get_unique_name(self, name_prefix: str) -> str:
        """A name for a variable that is not taken."""
        return self._names.fresh(name_prefix)

    def get(self) -> IRModule:
        """The module as it is now."""
        return self._module.copy()

    def finalize(self) -> IRModule:
        """The finished module, in which public functions are called as their global symbol says."""
        return self.get()


def _kind(func: BaseFunc) -> tuple[type, int]:
    """What functions have in common if they are equal."""
    return type(func), len(getattr(func, "params", ()))


def _parameters(params: E.Var | E.Tuple | Sequence[E.Var]) -> tuple[E.Var, ...]:
    own: list[E.Var] = []
    for param in (params,) if isinstance(params, E.Var) else params:
        if not isinstance(param, E.Var):
            raise BuilderError(f"A parameter is a relax.Var, not {param!r}")
        own.append(param)
    return tuple(own)


def _expression(value: E.ExprLike | None) -> E.Value:
    if value is None:
        return E.Call(Op.get("relax.null_value"), ())
    expr = E.convert_to_expr(value)
    if not isinstance(expr, (E.Expr, GlobalVar)):
        raise DTypeError(f"{expr} is no value: bind what a call of it gives")
    return expr
