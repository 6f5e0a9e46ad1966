"""RealizeVDevice and UpdateVDevice: the virtual devices that tensors are annotated with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mlcweb.ir.global_info import VDevice
from mlcweb.ir.module import GlobalVar, IRModule
from mlcweb.ir.node import replace
from mlcweb.ir.op import Op
from mlcweb.ir.transform import Pass
from mlcweb.relax import expr as E
from mlcweb.relax.attrs import Attrs
from mlcweb.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from mlcweb.relax.op.device import to_vdevice
from mlcweb.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform.registration import functionwise, map_functions, pass_of

_HINT, _MOVE = Op.get("relax.hint_on_device"), Op.get("relax.to_vdevice")


def RealizeVDevice() -> Pass:
    """Annotate parameters with the virtual devices that follow from the annotations of other
    tensors and of results, and then from `R.hint_on_device`.

    What an operator reads and gives is on one device. A hint becomes `R.to_vdevice` where its
    tensor is elsewhere, and disappears where it is there already.
    """
    return functionwise("RealizeVDevice", realize_devices)


def realize_devices(func: E.Function) -> E.Function:
    placement = _Placement()
    placement.visit_expr(func)
    placement.place_results(func.body.body, func.ret_struct_info)
    return _Realizing(placement.devices()).visit_expr(func)


@visitor
class _Placement(PyExprVisitor):
    """Which device each variable is on, by what the function says."""

    def __init__(self) -> None:
        self.annotated: dict[E.Var, VDevice] = {}
        self.hinted: dict[E.Var, VDevice] = {}
        self.beside: dict[E.Var, dict[E.Var, None]] = {}
        """Variables on the same device, whichever it is."""
        self.values: dict[E.Var, E.Value] = {}
        self.bound: E.Var | None = None

    def visit_var_def_(self, var: E.Var) -> None:
        info = var.struct_info
        if isinstance(info, TensorStructInfo) and isinstance(info.vdevice, VDevice):
            self.annotated[var] = info.vdevice

    visit_dataflow_var_def_ = visit_var_def_

    def visit_var_binding_(self, binding: E.VarBinding) -> None:
        self.bind(binding, binding.value)

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        self.bind(binding, binding.value)

    def bind(self, binding: E.Binding, value: E.Value) -> None:
        self.values[binding.var] = value
        outer, self.bound = self.bound, binding.var
        self.visit_expr(value)
        self.bound = outer
        self.visit_var_def(binding.var)
        if isinstance(value, E.Call) and value.op == _HINT:
            device = _destination(value)
            self.annotated[binding.var] = device
            if isinstance(argument := value.args[0], E.Var):
                self.hinted.setdefault(argument, device)

    def visit_call_(self, call: E.Call) -> None:
        if call.op not in (_HINT, _MOVE):
            super().visit_call_(call)

    def visit_var_(self, var: E.Var) -> None:
        if self.bound is not None:
            self.beside.setdefault(var, {})[self.bound] = None
            self.beside.setdefault(self.bound, {})[var] = None

    visit_dataflow_var_ = visit_var_

    def place_results(self, result: object, info: StructInfo | None) -> None:
        """The devices that a function says its results are on."""
        if isinstance(info, TensorStructInfo):
            if isinstance(result, E.Var) and isinstance(info.vdevice, VDevice):
                self.annotated.setdefault(result, info.vdevice)
        elif isinstance(info, TupleStructInfo):
            while isinstance(result, E.Var) and result in self.values:
                result = self.values[result]
            if isinstance(result, E.Tuple):
                for field, part in zip(result.fields, info.fields, strict=True):
                    self.place_results(field, part)

    def devices(self) -> dict[E.Var, VDevice]:
        devices: dict[E.Var, VDevice] = {}
        for certain in (self.annotated, self.hinted):
            reached = {var: device for var, device in certain.items() if var not in devices}
            devices |= reached
            queue = list(reached)
            for var in queue:
                new = [other for other in self.beside.get(var, ()) if other not in devices]
                devices.update((other, devices[var]) for other in new)
                queue += new
        return devices


@mutator
class _Realizing(PyExprMutator):
    """Annotates parameters, from which the devices of all else are deduced."""

    def __init__(self, devices: Mapping[E.Var, VDevice]) -> None:
        super().__init__()
        self.devices = devices

    def visit_function_(self, func: E.Function) -> E.Value:
        _annotate_params(self, func.params, self.annotated)
        return super().visit_function_(func)

    def annotated(self, param: E.Var) -> StructInfo:
        info, device = param.struct_info, self.devices.get(param)
        if device is None or not isinstance(info, TensorStructInfo):
            return info
        return replace(info, vdevice=device)

    def visit_var_def_(self, var: E.Var) -> E.Var:
        return self.get_var_remap(var)

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if not isinstance(new, E.Call) or new.op != _HINT:
            return new
        value, device = new.args[0], _destination(new)
        assert isinstance(value, E.Expr)
        info = value.struct_info
        if isinstance(info, TensorStructInfo) and info.vdevice == device:
            return value
        return to_vdevice(value, device)


def _destination(call: E.Call) -> VDevice:
    assert call.attrs is not None
    return call.attrs["dst_vdevice"]


def _annotate_params(
    visiting: PyExprMutator, params: Iterable[E.Var], annotated: Callable[[E.Var], StructInfo]
) -> None:
    """Let new variables stand for parameters whose struct info is another now."""
    for param in params:
        new = visiting.with_struct_info(param, annotated(param))
        if new is not param:
            visiting.set_var_remap(param, new)


def UpdateVDevice(new_vdevice: VDevice, index: int) -> Pass:
    """Put another virtual device in the place `index` of the module's list; all that was annotated
    with the old one is annotated with it.

    Raises: IndexError: the module has no device `index`.
    """

    def transform(mod: IRModule) -> IRModule:
        devices = list(mod.global_infos.get("vdevice", ()))
        if not 0 <= index < len(devices):
            raise IndexError(
                f"UpdateVDevice: the module has no virtual device {index}; it has {len(devices)}"
            )
        updating = _Updating(devices[index], new_vdevice)
        devices[index] = new_vdevice

        def change(var: GlobalVar, func: E.Function) -> E.Function:
            return updating.visit_expr(func)

        changed = map_functions(mod, change).copy()
        changed.update_global_info("vdevice", devices)
        return changed

    return pass_of("UpdateVDevice", transform)


@mutator
class _Updating(PyExprMutator):
    def __init__(self, old: VDevice, new: VDevice) -> None:
        super().__init__()
        self.old = old
        self.new = new

    def updated(self, info: StructInfo) -> StructInfo:
        if isinstance(info, TensorStructInfo) and info.vdevice == self.old:
            return replace(info, vdevice=self.new)
        if isinstance(info, TupleStructInfo):
            fields = [self.updated(field) for field in info.fields]
            same = all(a is b for a, b in zip(fields, info.fields, strict=True))
            return info if same else TupleStructInfo(fields)
        return info

    def visit_function_(self, func: E.Function) -> E.Value:
        _annotate_params(self, func.params, lambda param: self.updated(param.struct_info))
        return super().visit_function_(func)

    def visit_var_def_(self, var: E.Var) -> E.Var:
        return self.get_var_remap(var)

    def visit_match_cast_(self, binding: E.MatchCast) -> None:
        info = self.updated(binding.struct_info)
        if info is binding.struct_info:
            super().visit_match_cast_(binding)
            return
        value = self.builder_.normalize_argument(self.visit_expr(binding.value))
        new = self.with_struct_info(binding.var, info)
        self.set_var_remap(binding.var, new)
        self.builder_.emit_normalized(E.MatchCast(new, value, info))

    def visit_call_(self, call: E.Call) -> E.Value:
        new = super().visit_call_(call)
        if not isinstance(new, E.Call):
            return new
        infos = tuple(map(self.updated, new.sinfo_args))
        attrs = new.attrs
        if attrs is not None and attrs.get("dst_vdevice") == self.old:
            attrs = Attrs({**attrs, "dst_vdevice": self.new})
        if attrs is new.attrs and all(a is b for a, b in zip(infos, new.sinfo_args, strict=True)):
            return new
        return E.Call(new.op, new.args, attrs, infos, span=new.span)
