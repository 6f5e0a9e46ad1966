"""From graph functions to the instructions of the virtual machine.

A function's bindings are read once, in order. Variables stand for registers, or for tuples of
them: a tuple is only made where it is needed as a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.module import BaseFunc, GlobalVar, IRModule
from mlcweb.ir.op import Op, register_op_attr
from mlcweb.relax import dims
from mlcweb.relax import expr as E
from mlcweb.relax import struct_info as S
from mlcweb.relax.analysis.struct_info import is_base_of
from mlcweb.relax.analysis.variables import free_symbolic_vars, free_vars
from mlcweb.relax_vm import instructions as vm
from mlcweb.relax_vm.builtins import BUILTIN
from mlcweb.relax_vm.explicit_memory import COMPILE
from mlcweb.relax_vm.packed import PYTHON_FUNCTIONS
from mlcweb.relax_vm.sizes import ShapeTuple, known_sizes
from mlcweb.relax_vm.text import one_line
from mlcweb.tir.arithmetic import constant_value
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.substitute import substitute

Value: TypeAlias = "int | tuple[Value, ...]"
"""What a variable stands for: a register, or a tuple of values."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """What the names in a module mean: its functions by name, and by their global symbols."""

    functions: Mapping[str, BaseFunc]
    symbols: Mapping[str, str]

    @staticmethod
    def of(mod: IRModule) -> Resolver:
        functions = {var.name_hint: func for var, func in mod.functions.items()}
        symbols = {str(f.attrs.get("global_symbol", name)): name for name, f in functions.items()}
        return Resolver(functions, symbols)

    def kernel(self, name: str) -> str | None:
        """The TensorIR function of the module that a name means."""
        symbol = name if name in self.functions else self.symbols.get(name)
        return symbol if symbol and isinstance(self.functions[symbol], PrimFunc) else None

    def parameter_count(self, kernel: str) -> int:
        """How many arguments a TensorIR function takes, those that it writes among them."""
        function = self.functions[kernel]
        assert isinstance(function, PrimFunc)
        return len(function.params)

    def returned(self, kernel: str) -> tuple[Sequence[PrimVar], PrimExpr] | None:
        """The parameters of a function of numbers and what it gives, if it does nothing else."""
        function = self.functions[kernel]
        assert isinstance(function, PrimFunc)
        return None if function.returned is None else (function.params, function.returned)

    def graph_function(self, name: str) -> str | None:
        symbol = name if name in self.functions else self.symbols.get(name)
        return symbol if symbol and isinstance(self.functions[symbol], E.Function) else None


def compile_module(mod: IRModule) -> dict[str, vm.FunctionPlan]:
    """The graph functions of a module, and the local functions in them, as instructions.

    Raises:
        DiagnosticError: a call that nothing can run: an operator that is not lowered, or a
            function that is not there.
    """
    resolver = Resolver.of(mod)
    plans: dict[str, vm.FunctionPlan] = {}
    for name, func in resolver.functions.items():
        if isinstance(func, E.Function):
            FunctionCompiler(name, func, resolver, plans).compile()
    return plans


class FunctionCompiler:
    """Compiles one function. A local function takes the values that it uses from around it, which
    are `captured`, as its first arguments, and knows itself as `itself`."""

    def __init__(
        self,
        name: str,
        func: E.Function,
        resolver: Resolver,
        plans: dict[str, vm.FunctionPlan],
        captured: Sequence[E.Var] = (),
        itself: E.Var | None = None,
    ) -> None:
        self.name = name
        self.func = func
        self.resolver = resolver
        self.plans = plans
        self.captured = captured
        self.itself = itself
        self.values: dict[E.Var, Value] = {}
        self.tensors: dict[int, tuple[E.Constant, vm.Register]] = {}
        self.plain: list[tuple[vm.Register, object]] = []
        self.count = 0
        self.out: list[vm.Instruction] = []
        self.origin: E.Binding | None = None

    def compile(self) -> None:
        """Add the plan of the function (and those of local functions) to the plans."""
        params = [*self.captured, *self.func.params]
        for param in params:
            self.values[param] = self.register()
        if self.itself is not None:
            captured = tuple(range(len(self.captured)))
            self.values[self.itself] = self.emit_to(vm.MakeFunction, self.name, captured)
        body = self.body(self.func.body)
        declared, returned = self.func.ret_struct_info, self.func.body.struct_info
        if declared is not None and not is_base_of(declared, returned):
            self.emit(vm.Match, body.result, declared, f'the return value of "{self.name}"')
            check = self.out.pop()
            body = vm.Body((*body.instructions, check), body.result)
        body = vm.Body((*self.out, *body.instructions), body.result)
        tensors = [(register, constant) for constant, register in self.tensors.values()]
        outer = (
            tuple(free_symbolic_vars(self.func)) if self.name not in self.resolver.functions else ()
        )
        infos = [param.struct_info for param in params if param.struct_info]
        entry = frozenset(var for info in infos for var in dims.prim_vars(info))
        self.plans[self.name] = vm.FunctionPlan(
            self.name,
            tuple(vm.Parameter(param.name_hint, param.struct_info) for param in params),
            self.count,
            (*tensors, *self.plain),
            _with_releases(body, entry.union(outer)),
            self.func.is_pure,
            outer,
        )

    def register(self) -> vm.Register:
        self.count += 1
        return self.count - 1

    def emit(self, kind: Callable[..., vm.Instruction], *fields: object) -> None:
        self.out.append(kind(*fields, origin=self.origin))

    def emit_to(self, kind: Callable[..., vm.Instruction], *fields: object) -> vm.Register:
        """An instruction with a new register for its result, which comes first in it."""
        register = self.register()
        self.emit(kind, register, *fields)
        return register

    def constant(self, value: object) -> vm.Register:
        """A register that always holds a plain value."""
        register = self.register()
        self.plain.append((register, value))
        return register

    # Sequences

    def body(self, seq: E.SeqExpr) -> vm.Body:
        """A sequence as instructions of its own."""
        before, origin, self.out = self.out, self.origin, []
        for block in seq.blocks:
            for binding in block.bindings:
                self.origin = binding
                self.bind(binding)
        result = self.operand(seq.body)
        done, self.out, self.origin = self.out, before, origin
        return vm.Body(tuple(done), result)

    def bind(self, binding: E.Binding) -> None:
        if isinstance(binding, E.MatchCast):
            register = self.operand(binding.value)
            place = f'the match_cast of "{binding.var.name_hint}"'
            self.emit(vm.Match, register, binding.struct_info, place)
            self.values[binding.var] = register
        elif isinstance(binding.value, E.Function):
            self.local_function(binding.var, binding.value)
        else:
            self.values[binding.var] = self.value(binding.value)

    # Values

    def operand(self, expr: E.RelaxExpr) -> vm.Register:
        """The register that holds a value."""
        return self.materialised(self.value(expr))

    def operands(self, values: Iterable[E.RelaxExpr]) -> tuple[vm.Register, ...]:
        return tuple(self.operand(value) for value in values)

    def materialised(self, value: Value) -> vm.Register:
        if isinstance(value, int):
            return value
        return self.emit_to(vm.MakeTuple, tuple(self.materialised(item) for item in value))

    def value(self, expr: E.RelaxExpr) -> Value:
        handler = _VALUES.get(type(expr))
        if handler is None:
            raise self.error(f"{type(expr).__name__} cannot be run")
        return handler(self, expr)

    def error(self, message: str) -> DiagnosticError:
        where = f": {one_line(self.origin)}" if self.origin else ""
        return DiagnosticError(f'{message}, in the function "{self.name}"{where}')

    def variable(self, var: E.Var) -> Value:
        if var not in self.values:
            raise self.error(f'The variable "{var.name_hint}" has no value here')
        return self.values[var]

    def tensor(self, constant: E.Constant) -> vm.Register:
        key = id(constant.data)
        if key not in self.tensors:
            self.tensors[key] = (constant, self.register())
        return self.tensors[key][1]

    def shape(self, shape: E.ShapeExpr) -> vm.Register:
        values = known_sizes(shape.values, {})
        if values is not None:
            return self.constant(ShapeTuple(values))
        return self.emit_to(vm.MakeShape, shape.values)

    def scalar(self, value: E.PrimValue) -> vm.Register:
        number = constant_value(value.value)
        if number is None:
            return self.emit_to(vm.MakeScalar, value.value)
        return self.constant(bool(number) if value.value.dtype == "bool" else number)

    def tuple(self, value: E.Tuple) -> Value:
        return tuple(self.value(item) for item in value.fields)

    def field(self, value: E.TupleGetItem) -> Value:
        return self.field_of(self.value(value.tuple_value), value.index)

    def field_of(self, source: Value, index: int) -> Value:
        return (
            source[index] if isinstance(source, tuple) else self.emit_to(vm.GetItem, source, index)
        )

    def branch(self, value: E.If) -> vm.Register:
        condition = self.operand(value.cond)
        # Constants may be shared by both; other values of a branch are not seen outside of it.
        return self.emit_to(
            vm.Branch, condition, self.body(value.true_branch), self.body(value.false_branch)
        )

    def global_function(self, var: GlobalVar) -> vm.Register:
        """A function of the module as a value."""
        kernel = self.resolver.kernel(var.name_hint)
        if kernel is not None:
            return self.emit_to(vm.LoadFunction, kernel, True)
        return self.emit_to(vm.MakeFunction, self.graph_function(var.name_hint))

    def registered_function(self, func: E.ExternFunc) -> vm.Register:
        return self.emit_to(vm.LoadFunction, func.global_symbol, False)

    def graph_function(self, name: str) -> str:
        resolved = self.resolver.graph_function(name)
        if resolved is None:
            there = ", ".join(f'"{other}"' for other in self.resolver.functions) or "none"
            raise self.error(f'There is no graph function "{name}"; the functions are {there}')
        return resolved

    def local_function(self, var: E.Var, func: E.Function) -> None:
        """A function inside of this one becomes a function beside it, which takes the values that
        it uses from here as its first arguments."""
        name = f"{self.name}.{var.name_hint}"
        free = free_vars(func)
        captured = [used for used in free if used is not var]
        itself = var if len(captured) < len(free) else None
        FunctionCompiler(name, func, self.resolver, self.plans, captured, itself).compile()
        self.values[var] = self.emit_to(vm.MakeFunction, name, self.operands(captured))

    # Calls

    def call(self, call: E.Call) -> Value:
        op = call.op
        if isinstance(op, Op):
            compile_call: Callable[[FunctionCompiler, E.Call], Value] | None = op.get_attr(COMPILE)
            if compile_call is not None:
                return compile_call(self, call)
            if op.has_attr(BUILTIN):
                return self.emit_to(vm.CallBuiltin, op.name, self.operands(call.args))
            raise self.error(
                f"{op.name} is not lowered to a function of TensorIR: nothing is known of how to "
                "run it"
            )
        if isinstance(op, E.ExternFunc):
            return self.packed(op, call.args)
        if isinstance(op, GlobalVar):
            kernel = self.resolver.kernel(op.name_hint)
            if kernel:
                computed = self.resolver.returned(kernel)
                if computed is not None:
                    return self.number(call, *computed)
                if len(call.args) != self.resolver.parameter_count(kernel):
                    raise self.error(
                        f'"{op.name_hint}" is a function of TensorIR: call it by R.call_tir, which '
                        "allocates what it writes"
                    )
                self.emit(vm.CallKernel, kernel, self.operands(call.args))
                return self.constant(())
            function = self.graph_function(op.name_hint)
            return self.emit_to(vm.CallFunction, function, self.operands(call.args))
        return self.emit_to(vm.CallValue, self.operand(op), self.operands(call.args))

    def number(self, call: E.Call, params: Sequence[PrimVar], value: PrimExpr) -> vm.Register:
        """What a function of extents gives, which the machine computes itself."""
        infos = [arg.struct_info for arg in call.args if isinstance(arg, E.Expr)]
        values = {
            param: info.value
            for param, info in zip(params, infos, strict=False)
            if isinstance(info, S.PrimStructInfo) and info.value is not None
        }
        if not len(values) == len(params) == len(call.args):
            raise self.error(
                f"{call.op} takes {len(params)} number(s) that follow from extents of tensors"
            )
        return self.scalar(E.PrimValue(substitute(value, values)))

    def packed(self, func: E.ExternFunc, args: Sequence[E.RelaxExpr]) -> vm.Register:
        operands = self.operands(args)
        function = self.resolver.graph_function(func.global_symbol)
        if function:
            return self.emit_to(vm.CallFunction, function, operands)
        return self.emit_to(vm.CallPacked, func.global_symbol, operands)

    @register_op_attr("relax.call_pure_packed", COMPILE)
    @register_op_attr("relax.call_inplace_packed", COMPILE)
    def pure_packed(self, call: E.Call) -> vm.Register:
        func = call.args[0]
        assert isinstance(func, E.ExternFunc)
        return self.packed(func, call.args[1:])

    @register_op_attr("relax.call_py_func", COMPILE)
    def python_function(self, call: E.Call) -> vm.Register:
        name = call.args[0]
        if not isinstance(name, E.StringImm):
            raise self.error(f"{name} is no name of a Python function")
        args = self.arguments(call.args[1])
        return self.emit_to(vm.CallPacked, PYTHON_FUNCTIONS + name.value, args)

    @register_op_attr("relax.make_closure", COMPILE)
    def closure(self, call: E.Call) -> vm.Register:
        """A function of the module whose last arguments are given."""
        function = call.args[0]
        name = getattr(function, "name_hint", "") or getattr(function, "global_symbol", "")
        captured = self.arguments(call.args[1])
        return self.emit_to(vm.MakeFunction, self.graph_function(name), captured, True)

    @register_op_attr("relax.invoke_closure", COMPILE)
    @register_op_attr("relax.invoke_pure_closure", COMPILE)
    def closure_call(self, call: E.Call) -> vm.Register:
        args = self.arguments(call.args[1])
        return self.emit_to(vm.CallValue, self.operand(call.args[0]), args)

    @register_op_attr("relax.call_tir", COMPILE)
    @register_op_attr("relax.call_tir_inplace", COMPILE)
    @register_op_attr("relax.call_dps_packed", COMPILE)
    def destination_passing(self, call: E.Call) -> Value:
        """A call that writes what it gives into its last arguments."""
        inputs = self.arguments(call.args[1])
        callee = call.args[0]
        if not isinstance(callee, (GlobalVar, E.ExternFunc)):
            raise self.error(f"{callee} is no function of TensorIR, and no registered one")
        in_module = isinstance(callee, GlobalVar)
        name = callee.name_hint if isinstance(callee, GlobalVar) else callee.global_symbol
        kernel = self.resolver.kernel(name)
        if kernel is None and in_module:
            raise self.error(f'The module has no function of TensorIR "{name}"')
        numbers = self.numbers(call.args[2]) if len(call.args) > 2 else ()
        if call.op is _IN_PLACE:
            result, written = self.in_place(call, inputs)
        else:
            result = self.allocated(call.sinfo_args[0])
            written = _registers(result)
        args = (*inputs, *written, *numbers)
        if kernel is None:
            self.emit(vm.CallPacked, None, name, args)
        else:
            self.emit(vm.CallKernel, kernel, args)
        return result

    def in_place(
        self, call: E.Call, inputs: Sequence[vm.Register]
    ) -> tuple[Value, list[vm.Register]]:
        """The results of a call that writes some of them into its inputs, and the registers of
        those that are new."""
        assert call.attrs is not None
        info = call.sinfo_args[0]
        fields = info.fields if isinstance(info, S.TupleStructInfo) else (info,)
        results: list[Value] = []
        new: list[vm.Register] = []
        for place, field in zip(call.attrs["inplace_indices"], fields, strict=True):
            results.append(self.allocated(field) if place == -1 else inputs[place])
            if place == -1:
                new.extend(_registers(results[-1]))
        return (tuple(results) if isinstance(info, S.TupleStructInfo) else results[0]), new

    def arguments(self, args: E.RelaxExpr) -> tuple[vm.Register, ...]:
        """The registers of the values in a tuple, which may be a variable."""
        value = self.value(args)
        if isinstance(value, tuple):
            return tuple(self.materialised(item) for item in value)
        info = args.struct_info if isinstance(args, E.Expr) else None
        if not isinstance(info, S.TupleStructInfo):
            return (value,)
        return tuple(self.emit_to(vm.GetItem, value, index) for index in range(len(info.fields)))

    def numbers(self, shape: E.RelaxExpr) -> tuple[vm.Register, ...]:
        """Integers that a kernel takes after its tensors."""
        if not isinstance(shape, E.ShapeExpr):
            info = shape.struct_info if isinstance(shape, E.Expr) else None
            if not isinstance(info, S.ShapeStructInfo) or info.ndim == -1:
                raise self.error(f"It must be known how many numbers {shape} has")
            source = self.operand(shape)
            return tuple(self.emit_to(vm.GetItem, source, axis) for axis in range(info.ndim))
        return tuple(self.scalar(E.PrimValue(value)) for value in shape.values)

    def allocated(self, info: S.StructInfo) -> Value:
        """New tensors, as a struct info describes them."""
        if isinstance(info, S.TupleStructInfo):
            return tuple(self.allocated(item) for item in info.fields)
        if not isinstance(info, S.TensorStructInfo) or info.known_values is None or not info.dtype:
            raise self.error(f"{one_line(info)} does not say what to allocate")
        return self.emit_to(vm.Alloc, info.known_values, info.dtype)


def _with_releases(body: vm.Body, entry: frozenset[PrimVar]) -> vm.Body:
    """The body with values let go after they are last read: those that are not in memory planned
    before the function runs, and no parameters. `entry` are the extents that are known then."""
    held: set[vm.Register] = set()
    last: dict[vm.Register, int] = {}
    for position, instruction in enumerate(body.instructions):
        dst = getattr(instruction, "dst", None)
        planned = isinstance(instruction, vm.Alloc) and entry.issuperset(
            var for extent in instruction.shape for var in dims.prim_vars(extent)
        )
        if dst is not None and not planned:
            held.add(dst)
        for inner in vm.walk(vm.Body((instruction,), 0)):
            last.update(dict.fromkeys(inner.reads, position))
            for branch in vm.bodies(inner):
                last[branch.result] = position
    ends: dict[int, list[vm.Register]] = {}
    for register in held - {body.result}:
        if register in last:
            ends.setdefault(last[register], []).append(register)
    out: list[vm.Instruction] = []
    for position, instruction in enumerate(body.instructions):
        out.append(instruction)
        if position in ends:
            out.append(vm.Release(tuple(sorted(ends[position]))))
    return vm.Body(tuple(out), body.result)


def _registers(value: Value) -> list[vm.Register]:
    if isinstance(value, int):
        return [value]
    return [register for item in value for register in _registers(item)]


_IN_PLACE = Op.get("relax.call_tir_inplace")

_VALUES: dict[type, Callable[..., Value]] = {
    E.Var: FunctionCompiler.variable,
    E.DataflowVar: FunctionCompiler.variable,
    E.Constant: FunctionCompiler.tensor,
    E.ShapeExpr: FunctionCompiler.shape,
    E.PrimValue: FunctionCompiler.scalar,
    E.StringImm: lambda self, expr: self.constant(expr.value),
    E.DataTypeImm: lambda self, expr: self.constant(expr.value),
    E.Tuple: FunctionCompiler.tuple,
    E.TupleGetItem: FunctionCompiler.field,
    E.If: FunctionCompiler.branch,
    E.Call: FunctionCompiler.call,
    GlobalVar: FunctionCompiler.global_function,
    E.ExternFunc: FunctionCompiler.registered_function,
}
