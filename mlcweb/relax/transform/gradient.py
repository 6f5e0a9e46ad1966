"""Gradient: a function that computes the gradients of another, by reverse accumulation."""

from __future__ import annotations

from collections.abc import Sequence

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.analysis import bound_vars, remove_all_unused
from mlcweb.relax.binding import Substitution
from mlcweb.relax.block_builder import BlockBuilder
from mlcweb.relax.op import gradients, window_gradients  # noqa: F401  (registers them)
from mlcweb.relax.op.create import ones, zeros
from mlcweb.relax.op.grad import GRADIENT
from mlcweb.relax.op.te_grad import without_gradient
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.checkpoints import Recomputation, without_marks
from mlcweb.relax.transform.registration import pass_of
from mlcweb.relax.utils import copy_with_new_vars

_NO_GRAD = Op.get("relax.grad.no_grad")
_WITH_GRAD = Op.get("relax.call_tir_with_grad")


def Gradient(
    func_name: str, require_grads: E.Var | Sequence[E.Var] | None = None, target_index: int = 0
) -> Pass:
    """Add `{func_name}_adjoint`, which gives what the function gives, and the gradients of it.

    The function has one dataflow block; its result (or the one at `target_index`, of several) is a
    tensor without dimensions. The new function gives a tuple: the results, and a tuple of the
    gradients of `require_grads`, variables of the function: by default its parameters. Operators
    tell their gradients by `relax.op.register_gradient`. What lies between marks of checkpoints
    (`R.grad.start_checkpoint`) is computed again for gradients.

    Raises:
        DiagnosticError: the function is of another form, or an operator has no gradient.
    """

    def transform(mod: IRModule) -> IRModule:
        func = mod[func_name]
        if not isinstance(func, E.Function):
            raise DiagnosticError(f'Gradient: "{func_name}" is no function of the graph level')
        if require_grads is None:
            places = list(range(len(func.params)))
        else:
            required = [require_grads] if isinstance(require_grads, E.Var) else require_grads
            places = _places(func, required, func_name)
        name = f"{func_name}_adjoint"
        reverse = _Reverse(mod, copy_with_new_vars(func), func_name)
        adjoint = reverse.adjoint(places, target_index)
        if "global_symbol" in func.attrs:
            adjoint = adjoint.with_attr("global_symbol", name)
        new = reverse.builder.get()  # with the functions that gradients have added
        new[name] = adjoint
        return new

    return pass_of("Gradient", transform)


def _places(func: E.Function, required: Sequence[E.Var], name: str) -> list[int]:
    """Where variables are among those that a function defines, its parameters first."""
    bound = {var: place for place, var in enumerate(bound_vars(func))}
    for var in required:
        if var not in bound:
            raise DiagnosticError(
                f'Gradient: "{var.name_hint}" is no variable of "{name}", which takes '
                f"{', '.join(each.name_hint for each in func.params)}"
            )
        if not _is_differentiable(var.struct_info):
            raise DiagnosticError(
                f'Gradient: "{var.name_hint}" has no gradient, since it is {var.struct_info}; '
                "float tensors and tuples of them have: name those in require_grads"
            )
    if len(set(required)) < len(required):
        names = ", ".join(var.name_hint for var in required)
        raise DiagnosticError(f"Gradient: a variable is named twice in require_grads: {names}")
    return [bound[var] for var in required]


def _is_differentiable(info: StructInfo | None) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(map(_is_differentiable, info.fields))
    return isinstance(info, TensorStructInfo) and "float" in info.dtype


def _forward(binding: E.Binding) -> E.Binding:
    """A binding as the adjoint computes it, which needs to know no gradient."""
    value = binding.value
    if isinstance(value, E.Call) and value.op is _WITH_GRAD:
        return replace(binding, value=without_gradient(value))
    return binding


class _Reverse:
    """Goes backwards through the bindings of a function, and adds up the gradient of each
    variable."""

    def __init__(self, mod: IRModule, func: E.Function, name: str) -> None:
        self.func = func
        self.name = name
        self.builder = BlockBuilder(mod)
        self.adjoints: dict[E.Var, E.Var] = {}
        blocks = func.body.blocks
        if len(blocks) != 1 or not isinstance(blocks[0], E.DataflowBlock):
            raise self.error("it needs a body of one dataflow block")
        bindings, replaced, kept = without_marks(func.params, blocks[0].bindings)
        self.variables = [replaced.get(var, var) for var in bound_vars(func)]
        self.bindings = bindings
        self.result = Substitution(replaced).rewrite(func.body.body)
        self.again = Recomputation(self.builder, bindings, kept)

    def error(self, message: str) -> DiagnosticError:
        return DiagnosticError(f'Gradient of "{self.name}": {message}')

    def target(self, index: int) -> E.Var:
        result = self.result
        if isinstance(result, E.Tuple):
            if not 0 <= index < len(result):
                raise self.error(f"there is no result {index} of {len(result)}")
            result = result[index]
        elif index:
            raise self.error(f"there is one result, none at {index}")
        info = result.struct_info if isinstance(result, E.Var) else None
        if isinstance(result, E.Var) and isinstance(info, TensorStructInfo):
            if info.ndim == 0 and "float" in info.dtype:
                return result
        raise self.error(
            f"the target is a float tensor without dimensions, as R.sum gives; it is {info}"
        )

    def adjoint(self, places: list[int], target_index: int) -> E.Function:
        builder, target = self.builder, self.target(target_index)
        builder._begin_dataflow_block()
        for binding in self.bindings:
            builder.emit_normalized(_forward(binding))
        self.update(target, ones(E.ShapeExpr(()), getattr(target.struct_info, "dtype", "")))
        for binding in reversed(self.bindings):
            if binding.var in self.adjoints:
                self.visit(binding)
        outputs = [self.output(self.variables[place]) for place in places]
        block = builder._end_block()
        body = E.Tuple((self.result, E.Tuple(outputs)))
        return remove_all_unused(E.Function(self.func.params, E.SeqExpr([block], body)))

    def output(self, var: E.Var) -> E.Var:
        if var not in self.adjoints:
            zero = self.zero(var.struct_info)
            self.adjoints[var] = self.builder.emit(zero, f"{var.name_hint}_adjoint")
        adjoint = self.adjoints[var]
        return self.builder.emit_output(adjoint, f"{var.name_hint}_adjoint_out")

    # Bindings, from the last to the first

    def visit(self, binding: E.Binding) -> None:
        var, value, adjoint = binding.var, binding.value, self.adjoints[binding.var]
        if isinstance(binding, E.MatchCast):
            raise self.error(f'R.match_cast, of "{var.name_hint}", has no gradient')
        if isinstance(value, E.Call):
            self.call(var, value, adjoint)
        elif isinstance(value, E.TupleGetItem):
            self.update_field(value.tuple_value, value.index, adjoint)
        elif isinstance(value, (E.Var, E.Tuple)):
            self.update(value, adjoint)
        elif not isinstance(value, E.Constant):
            raise self.error(f'{type(value).__name__}, of "{var.name_hint}", has no gradient')

    def call(self, var: E.Var, call: E.Call, adjoint: E.Var) -> None:
        gradient = call.op.get_attr(GRADIENT) if isinstance(call.op, Op) else None
        if gradient is None:
            name = call.op.name if isinstance(call.op, Op) else "a call of a function"
            how = f'; register one: relax.op.register_gradient("{name}", fgradient)'
            raise self.error(
                f'{name}, of "{var.name_hint}", has no gradient'
                f"{how if isinstance(call.op, Op) else ': inline it first'}"
            )
        again = self.again.value(call)
        partials = gradient(self.again.variable(var), again, adjoint, self.builder)
        for arg, partial in zip(call.args, partials, strict=False):
            self.update(arg, partial)

    # Gradients of values

    def update(self, value: E.RelaxExpr, partial: E.RelaxExpr) -> None:
        """Add to the gradient of a value."""
        if isinstance(partial, E.Call) and partial.op is _NO_GRAD:
            return
        assert isinstance(partial, E.Expr)
        if isinstance(value, E.Tuple):
            whole = self.variable(partial)
            for index, field in enumerate(value.fields):
                if isinstance(field, (E.Var, E.Tuple)):
                    self.update(field, self.builder.normalize(E.TupleGetItem(whole, index)))
        elif isinstance(value, E.Var):
            before = self.adjoints.get(value)
            total = partial if before is None else self.sum(before, partial)
            self.adjoints[value] = self.builder.emit(total, f"{value.name_hint}_adjoint")

    def variable(self, value: E.Expr) -> E.Var | E.Tuple:
        return value if isinstance(value, (E.Var, E.Tuple)) else self.builder.emit(value)

    def sum(self, a: E.Expr, b: E.Expr) -> E.Expr:
        info = a.struct_info
        if not isinstance(info, TupleStructInfo):
            return a + b
        a, b = self.variable(a), self.variable(b)
        fields = range(len(info.fields))
        sums = (self.sum(self.field(a, i), self.field(b, i)) for i in fields)
        return E.Tuple([self.variable(each) for each in sums])

    def field(self, value: E.Expr, index: int) -> E.Var:
        return self.builder.emit(E.TupleGetItem(value, index))

    def update_field(self, whole: E.RelaxExpr, index: int, partial: E.Var) -> None:
        """Add to the gradient of one field of a tuple."""
        if not isinstance(whole, E.Var):
            assert isinstance(whole, E.Tuple)
            self.update(whole.fields[index], partial)
            return
        before = self.adjoints.get(whole)
        fields: list[E.Expr] = []
        whole_info = whole.struct_info
        assert isinstance(whole_info, TupleStructInfo)
        for place, info in enumerate(whole_info.fields):
            if before is None:
                fields.append(partial if place == index else self.variable(self.zero(info)))
            else:
                field = self.field(before, place)
                added = place == index
                fields.append(self.variable(self.sum(field, partial)) if added else field)
        self.adjoints[whole] = self.builder.emit(E.Tuple(fields), f"{whole.name_hint}_adjoint")

    def zero(self, info: StructInfo | None) -> E.Expr:
        if isinstance(info, TupleStructInfo):
            return E.Tuple([self.variable(self.zero(each)) for each in info.fields])
        if not isinstance(info, TensorStructInfo) or info.values is None:
            raise self.error(f"nothing is known of the shape of {info}")
        return zeros(E.ShapeExpr(info.values), info.dtype)
