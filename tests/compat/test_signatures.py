"""What both TVM and we offer takes the same arguments: names, order, which are optional, defaults.

`record_signatures.py` has written down TVM's parameters. A name that we lack is not looked at here.
"""

import importlib
import inspect
import json
import lzma
from collections.abc import Iterator
from fnmatch import fnmatchcase
from inspect import Parameter
from pathlib import Path
from typing import Any

import pytest

from mlcweb import compat
from mlcweb.compat.absent import Absent

EMPTY = Parameter.empty
BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
VERSIONS = ("0.26", "0.27")

_ROWS = {
    "spans come from the source text; nodes are made by position without one": "*:span",
    "what a subclass defines is called by position": "*.visit_*_:*",
    "nodes that TVM's users get from functions (te.compute, tir.decl_buffer) and look at": (
        "tvm.ir.ExprWithOp:* tvm.ir.*Expr:* *.relax.*.Expr:ty *.relax.Expr:ty tvm.tirx.Expr:ty "
        "tvm.ir.BaseFunc:* tvm.ir.FuncType:* "
        "tvm.ir.Op:name *.Span:* *.Call:ret_ty *.relax.*Var:name *.relax.*Var:name_hint "
        "tvm.ir.Constant:data *.Buffer:* "
        "*.PrimFunc:attrs tvm.te.*Op:* tvm.te.Reduce:* tvm.te.Tensor:ty "
        "tvm.relax.Binding:* tvm.*.ExprRV:ty *.StmtSRef:* *.SBlockScope:* *.InstructionKind:* "
        "*Executable:* tvm.target.TargetKind:* *Pass:pass_info *Pass:transform *Pass:info"
    ),
    "base classes, of which the subclasses are made": (
        "tvm.relax.training.optimizer.Optimizer:* tvm.relax.training.loss.Loss:*"
    ),
    "Python's own enumeration": "*.CallEffectKind:value",
    "Python's own containers": "tvm.ir.Array:* tvm.ir.Map.get:* tvm.runtime.ShapeTuple:*",
    "kernels of tirx (grids of a type, tiles, layouts, attributes of calls) are not here": (
        "tvm.script.tirx.*:dtype tvm.script.tirx.serial:unroll tvm.script.tirx.sblock:no_realize "
        "tvm.script.tirx.sblock:exec_scope tvm.tirx.decl_buffer:layout *call_intrin:attrs "
        "tvm.script.tirx.inline:* tvm.script.tirx.call_ffi_kernel:*"
    ),
    "it takes a value here, which the builder emits": "tvm.script.ir_builder.relax.emit_with_ty*:*",
    "`convert` takes its argument by position": "tvm.tirx.convert:*",
    "a constant of a Python number has its type": "tvm.te.const:dtype",
    "positions outside of a symbolic extent are kept to it": (
        "tvm.topi.strided_slice:assume_inbound"
    ),
    "layouts of weights are rewritten by the search, without a mark in the operator": (
        "tvm.topi.*:auto_scheduler_rewritten_layout tvm.topi.*:meta_schedule_original_shape "
        "tvm.topi.*:meta_schedule_origin_shape "
        "tvm.topi.layout_transform:schedule_rule"
    ),
    "the default is the type of the data": (
        "tvm.topi.nn.conv2d_nhwc:out_dtype tvm.topi.nn.conv3d_ndhwc:out_dtype"
    ),
    "TVM's own method lacks an argument of the one that it overrides": (
        "tvm.s_tir.meta_schedule.task_scheduler.PyTaskScheduler.tune:*"
    ),
    "the default follows from the number of dimensions": (
        "tvm.topi.nn.pool?d:layout tvm.relax.op.nn.*_pool?d:* "
        "tvm.relax.frontend.nn.Conv?D:data_layout"
    ),
    "layouts are made of their names, by tvm.tir.layout and bijective_layout": (
        "tvm.tirx.Layout:name tvm.s_tir.SLayout:axes tvm.s_tir.SBijectiveLayout:*"
    ),
    "scalars are int64 or float64, or T.int32(1)": "tvm.relax.prim_value:dtype",
    "a constraint of patterns is added by the context they are in": (
        "tvm.relax.dpl.CallPattern:add_constraint *:allow_reshape"
    ),
    "`config` of 2022 may be the third argument, and so may be `work_dir`": (
        "*.tune_tir:work_dir *.tune_tir:max_trials_global"
    ),
    "the default cost model learns with NumPy alone": "*.tune_tasks:cost_model",
    "candidates are built and measured in this process, and the defaults are for its kernels": (
        "*.LocalRunner:* *.EvaluatorConfig:* *.RandomModel:* *.XGBModel:* *.EvolutionarySearch:*"
    ),
}

EXCEPTIONS = {pattern: why for why, patterns in _ROWS.items() for pattern in patterns.split()}
"""Where we differ -> why, by `module.name:parameter`; `*` is any text."""


@pytest.fixture(autouse=True)
def tvm():
    compat.install()
    yield
    compat.uninstall()


def recorded(version: str) -> dict[str, dict[str, str]]:
    path = Path(__file__).with_name(f"signatures-{version}.json.xz")
    return json.loads(lzma.decompress(path.read_bytes()))


def ours(module: Any, name: str) -> Any:
    """What we have under a name, or None."""
    found = module
    for part in name.split("."):
        try:
            found = getattr(found, part, None)
        except Exception:  # a name that is refused with a reason, as T.undef_name is
            return None
    return None if isinstance(found, Absent) or not callable(found) else found


def namespace(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, last = name.rpartition(".")
        return getattr(importlib.import_module(parent), last, None)


def parameters(value: Any, bound: bool) -> list[Parameter] | None:
    try:
        return list(inspect.signature(value).parameters.values())[bound:]
    except (TypeError, ValueError):
        return None


def differences(theirs: list[Parameter], own: list[Parameter], value: Any) -> Iterator[str]:
    """The names of parameters that mean something else, or nothing, here."""
    named = {p.name: (i, p) for i, p in enumerate(own)}
    kinds = {p.kind for p in own}
    takes_any = Parameter.VAR_KEYWORD in kinds
    called = value.__init__ if inspect.isclass(value) else value
    spellings: dict[str, str] = getattr(called, "also_named", {})
    for place, parameter in enumerate(theirs):
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        found = named.get(spellings.get(parameter.name, parameter.name))
        if found is None:
            if not takes_any and not parameter.name.startswith("_"):
                yield f"{parameter.name} is not taken"
            continue
        index, mine = found
        if mine.kind is Parameter.POSITIONAL_ONLY is not parameter.kind:
            yield f"{parameter.name} is taken by position alone"
        if parameter.kind in BY_POSITION and Parameter.VAR_POSITIONAL not in kinds:
            if index != place or mine.kind not in BY_POSITION:
                yield f"{parameter.name} is argument {index}, not {place}"
        if parameter.default is not EMPTY and mine.default is EMPTY:
            yield f"{parameter.name} is needed"
        elif not _same_default(parameter.default, mine.default):
            yield f"{parameter.name} is {mine.default!r}, not {parameter.default!r}"
    yield from _needed(theirs, own, spellings)


def _same_default(theirs: Any, mine: Any) -> bool:
    """TVM's None is whatever is the default; `...` is a value that was not written down."""
    if theirs in (EMPTY, None, ...) or mine is EMPTY:
        return True
    return theirs == mine


def _needed(
    theirs: list[Parameter], own: list[Parameter], spellings: dict[str, str]
) -> Iterator[str]:
    known = {spellings.get(parameter.name, parameter.name) for parameter in theirs}
    for parameter in own:
        variadic = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if parameter.name not in known and parameter.default is EMPTY and not variadic:
            yield f"{parameter.name} is needed, and not TVM's"


def all_differences(version: str) -> Iterator[tuple[str, str]]:
    for module_name, rows in recorded(version).items():
        module = namespace(module_name)
        for name, text in rows.items():
            value = ours(module, name)
            owner = ours(module, name.partition(".")[0])
            bound = "." in name and _is_method(owner, name.partition(".")[2])
            own = None if value is None else parameters(value, bound)
            if own is None:
                continue
            theirs = list(inspect.signature(eval(f"lambda {text}: 0")).parameters.values())
            for problem in differences(theirs, own, value):
                yield f"{module_name}.{name}:{problem.partition(' ')[0]}", problem


def _is_method(owner: Any, member: str) -> bool:
    return inspect.isfunction(inspect.getattr_static(owner, member, None))


@pytest.mark.parametrize("version", VERSIONS)
def test_arguments_are_as_in_tvm(version):
    unexplained = [
        f"{key} -- {problem}"
        for key, problem in all_differences(version)
        if not any(fnmatchcase(key, pattern) for pattern in EXCEPTIONS)
    ]
    assert not unexplained, "\n".join(unexplained)


@pytest.mark.parametrize("name", sorted({name for v in VERSIONS for name in recorded(v)} - {"tvm"}))
def test_modules_are_imported_from_their_packages(name):
    package, _, last = name.rpartition(".")
    exec(f"from {package} import {last}", {})


def test_each_exception_is_one():
    keys = {key for version in VERSIONS for key, _ in all_differences(version)}
    unused = [p for p in EXCEPTIONS if not any(fnmatchcase(key, p) for key in keys)]
    assert not unused
