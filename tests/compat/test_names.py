"""The tables of names: each row leads somewhere, and TVM's spellings of 2022 to 2026 resolve."""

import gc
import importlib
import os

import numpy as np
import pytest

import mlcweb
from mlcweb import compat
from mlcweb.compat.absent import Absent, AbsentError
from mlcweb.compat.names import ATTRIBUTES, MODULES, VIEWS
from mlcweb.compat.replaced import ABSENT


@pytest.fixture(autouse=True)
def tvm():
    compat.install()
    yield importlib.import_module("tvm")
    compat.uninstall()


@pytest.mark.parametrize("name", sorted({*MODULES, *VIEWS}))
def test_modules(name):
    assert not isinstance(importlib.import_module(f"tvm.{name}"), Absent)


@pytest.mark.parametrize("name", sorted(ATTRIBUTES))
def test_attributes(name):
    owner, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(f"tvm.{owner}".rstrip(".")), attribute)


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_is_absent_says_what_is_used_instead(tvm, name):
    for ours, theirs in (("compat.tempdir", "support.utils"), ("compat.compilers", "support.cc")):
        name = name.replace(ours, theirs)
    owner, _, attribute = name.removeprefix("compat.").rpartition(".")
    value = getattr(importlib.import_module(f"tvm.{owner}".rstrip(".")), attribute)
    assert isinstance(value, Absent)
    with pytest.raises(AbsentError, match=" is not here: "):
        value.something()


STATEMENTS = """
from tvm.relax.testing import matmul; matmul.get_relax_matmul_module.__call__
from tvm._ffi import registry; registry.register_func.__call__
from tvm.topi.vision.nms import get_valid_counts, non_max_suppression; get_valid_counts.__call__
from tvm.relax.op.vision.nms import get_valid_counts; get_valid_counts.__call__
from tvm.te import extern_primfunc; extern_primfunc.__call__
from tvm.tirx import get_vscale_expr; assert str(get_vscale_expr("int8", 256)) == "32 * T.vscale()"
from tvm.s_tir.schedule import testing; testing.verify_trace_roundtrip.__call__
from tvm.s_tir.analysis import verify_gpu_code; verify_gpu_code.__call__
from tvm import ir, tir, te, topi, relax, arith, target, support, error, testing, script
from tvm import meta_schedule as ms, DataType, IRModule, TVMError, relay, autotvm
from tvm.ir import PrimExpr, RelayExpr, BaseExpr, Range, Array, Map, PointerType, PrimType
from tvm.ir.base import assert_structural_equal, structural_hash
from tvm.ir.module import IRModule
from tvm.ir.expr import PrimExpr
from tvm.ir.transform import PassContext, Sequential, module_pass
from tvm.ir.instrument import PassTimingInstrument
from tvm.runtime import Object, ShapeTuple, Device, Module, const, convert
from tvm.runtime.container import Array
from tvm.runtime.ndarray import NDArray
from tvm.target import Target
from tvm.target.target import Target
from tvm.tir import Schedule, PrimFunc, SBlock, stmt_functor
from tvm.tir.expr import Var, IntImm, Add, BufferLoad
from tvm.tir.stmt import For, Block, SeqStmt
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc, TensorIntrin
from tvm.tir.op import exp, if_then_else
from tvm.tir.schedule import Schedule, BlockRV, LoopRV, ScheduleError
from tvm.tir.schedule.schedule import Schedule
from tvm.tir.schedule.trace import Trace
from tvm.tir.schedule.testing import verify_trace_roundtrip
from tvm.tir.stmt_functor import post_order_visit, ir_transform, substitute
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV
from tvm.tirx import Var, PrimFunc
from tvm.tirx.stmt_functor import post_order_visit
from tvm.script import tir as T, relax as R, ir as I, from_source
from tvm.script.parser import tir as T, ir as I, relax as R
from tvm.script.parser.tir import prim_func
from tvm.script.parser import ir_module
from tvm.script.parser.core.entry import parse
from tvm.te.operation import compute, placeholder
from tvm.topi.nn.conv2d import conv2d_nchw
from tvm.topi.nn.utils import get_pad_tuple
from tvm.topi.utils import get_const_tuple
from tvm.topi.math import exp
from tvm.relax import TensorType, DynTensorType, ShapeType
from tvm.relax.expr import Var, Function, Call
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.transform.transform import LegalizeOps
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.meta_schedule.database import JSONDatabase
from tvm.meta_schedule.runner.local_runner import LocalRunner
from tvm.meta_schedule.schedule_rule.auto_inline import AutoInline
from tvm.meta_schedule.space_generator.post_order_apply import PostOrderApply
from tvm.meta_schedule.search_strategy.evolutionary_search import EvolutionarySearch
from tvm.meta_schedule.mutator.mutate_tile_size import MutateTileSize
from tvm.meta_schedule.extracted_task import ExtractedTask
from tvm.meta_schedule.runner import Runner, PyRunner, RunnerResult, EvaluatorConfig
from tvm.meta_schedule.builder import LocalBuilder, BuilderInput, PyBuilder
from tvm.contrib import utils, cc, graph_executor
from tvm.contrib.cutlass.build import is_shape_valid_for_cutlass_matmul
from tvm.relax.backend.contrib.cutlass import partition_for_cutlass
from tvm.relax.backend.cuda.cublas import partition_for_cublas
from tvm.relax.backend.cuda import get_default_pipeline
from tvm.relax.backend.cpu_generic.pipeline import finalize_passes
from tvm.relax.backend.dispatch_sort_scan import DispatchSortScan
from tvm.relax.backend.pattern_registry import register_patterns
from tvm.relax.pipeline import legalize_passes
from tvm.relax.exec_builder import ExecBuilder
from tvm.arith.analyzer import Analyzer
from tvm.tir.transform.transform import Simplify
from tvm.tirx.transform.function_pass import Simplify
from tvm.tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN, AVX512_DOT_16x4_INTRIN
from tvm.tir.tensor_intrin.arm_cpu import ARM_DOT_4x4_i8_NEON_INTRIN, ARM_DOT_4x4_i8_SDOT_INTRIN
from tvm.tir.tensor_intrin.rocm import AMDGPU_SDOT4_INTRIN, ROCM_MFMA_s8s8s32_INTRIN
from tvm.tir.tensor_intrin.cuda import WMMA_SYNC_16x16x16_f16f16f32_INTRIN, MMA_i8i8i32_INTRIN
from tvm.s_tir.tensor_intrin.hexagon import VRMPY_u8u8i32_INTRIN
from tvm.tir.tensor_intrin.dot_product_common import DP4A_INTRIN
from tvm.driver.build_module import build
from tvm.script.ir_builder import IRBuilder, tir as Tb
from tvm.meta_schedule.testing.te_workload import create_te_workload
from tvm.meta_schedule.testing import te_workload; te_workload.matmul(4, 4, 4)
from tvm.meta_schedule.testing.space_generation import check_sketches
from tvm.s_tir.meta_schedule.testing.te_workload import matmul_relu
from tvm.error import OpError, RPCError, InternalError, DiagnosticError
from tvm.target.codegen import target_has_features
import tvm_ffi; tvm_ffi.core.String("llvm").startswith("llvm")
from tvm.ir import Call, Constant, TupleGetItem, StringImm
from tvm.s_tir import meta_schedule as ms; ms.TuneContext
from tvm.support import cc, utils; utils.tempdir
import tvm.relay.testing, tvm.contrib.cblas, tvm.topi.testing
import tvm_ffi; from tvm_ffi import register_global_func, get_global_func, Array, Tensor
import tvm; tvm.ffi.container.Map, tvm.ffi.container.Array; from tvm_ffi.container import Map
from tvm._ffi import register_func, get_global_func, register_object
from tvm._ffi.base import TVMError, py_str
from tvm.base import TVMError; raise_nothing = [error for error in () if error is TVMError]
from tvm.testing import check_numerical_grads, requires_package, env, parameter, fixture
from tvm.testing.locking import run_with_gpu_lock
from tvm.relax.testing.matmul import get_relax_matmul_module
from tvm.relax.testing.attention import get_relax_stacked_attention_module
from tvm.relax.testing.lib_comparator import LibCompareVMInstrument
from tvm.relax.pipeline import get_default_pipeline, PIPELINE_MAP; PIPELINE_MAP["default_build"]
from tvm.relax.ir.instrument import WellFormedInstrument
from tvm.relax.frontend.torch.fx_translator import from_fx
from tvm.relax.frontend.torch.exported_program_translator import from_exported_program
from tvm.runtime.profiling import Report
from tvm.ir.supply import UniqueNameSupply, NameSupply
from tvm.ir.instrument import DumpIR
from tvm.tir.block_scope import StmtSRef, DepKind
from tvm.script.highlight import cprint
from tvm.meta_schedule.logging import get_logger, get_loggers_from_work_dir
from tvm import rpc; from tvm.rpc import LocalSession, connect, Server
from tvm.dlight.base import normalize_prim_func
from tvm.driver.tvmc.model import TVMCModel; from tvm.driver.tvmc.frontends import load_model
from tvm.topi.utils import prod, ravel_index; from tvm.topi.tag import is_injective
from tvm.support.libinfo import libinfo; libinfo()
import tvm; tvm.support.libinfo(); tvm.target.create("llvm")
"""

REFUSED = """
tvm.script.parser.core.diagnostics.Source: scripts are read by @T.prim_func
tvm.script.parser.core.evaluator.ExprEvaluator: scripts are read by @T.prim_func
tvm.script.ir_builder.base.IRBuilderFrame: frames are entered by with
tvm.relax.transform.tuning_api.Trace: relax.transform.MetaScheduleTuneIRMod tunes a model
tvm.relax.backend_tir.get_tir_pattern: a schedule of your own
tvm.tir.usmp.utils.BufferInfo: StaticPlanBlockMemory
tvm.runtime.profiling.profile_function: time_evaluator
tvm.relax.testing.transform.dataflow_inplace_analysis: reuses memory by itself
tvm.testing.rpc_run: programs run in this process
tvm.rpc.connect: programs run in this process
tvm.rpc.server.Server: programs run in this process
tvm.relax.relax_to_pyfunc_converter.RelaxToPyFuncConverter: relax.VirtualMachine
tvm.tirx.cuda.op.ptx: functions whose loops are bound to threads
tvm.tirx.BitwiseAnd: tvm.tir.bitwise_and
tvm.relax.frontend.nn.Exporter: module.export_tvm
"""
"""Names that are imported, and refused where they are used -> part of what is said then."""


@pytest.mark.parametrize("statement", STATEMENTS.strip().splitlines())
def test_imports(statement):
    exec(statement, {})


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("relax.transform", "LegalizeOps FuseOps MetaScheduleTuneTIR MetaScheduleApplyDatabase"),
        ("tir.transform", "Simplify UnrollLoop LowerInitBlock ThreadSync RemoveNoOp"),
        ("tir", "Var exp Schedule PrimFunc"),
        ("te", "compute placeholder create_prim_func"),
        ("runtime", "NDArray load_module"),
        ("relax", "VirtualMachine build BlockBuilder"),
        ("tir.stmt_functor", "post_order_visit ir_transform"),
        ("tir.tensor_intrin.cuda", "WMMA_SYNC_16x16x16_f16f16f32_INTRIN get_mma_intrin"),
        ("tir.tensor_intrin.rocm", "AMDGPU_SDOT4_INTRIN ROCM_MFMA_f32f32f32_INTRIN WARP_SIZE"),
    ],
)
def test_all_public_names_of_a_module_are_imported_by_a_star(tvm, module, names):
    namespace: dict[str, object] = {}
    exec(f"from tvm.{module} import *", namespace)
    assert set(names.split()) <= set(namespace)


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_what_is_refused_is_imported(row):
    name, _, message = row.partition(": ")
    module, _, attribute = name.rpartition(".")
    exec(f"from {module} import {attribute} as value", names := {})
    with pytest.raises(AbsentError, match=f"is not here: .*{message}"):
        names["value"]()


@pytest.mark.parametrize("module", ["tvm.relax.transform.transform", "tvm.runtime.container"])
def test_the_message_about_a_name_that_a_view_lacks_is_shown(module):
    with pytest.raises(ImportError, match=f"^There is no {module}.no_such_name here: "):
        exec(f"from {module} import no_such_name")


def test_what_was_a_base_class_there_has_the_instances(tvm):
    x = tvm.tir.Var("x", "int32")
    assert isinstance(x < 1, tvm.tir.CmpExpr) and not isinstance(x + 1, tvm.tir.CmpExpr)
    assert isinstance(x + 1, tvm.tir.BinaryOpExpr) and isinstance(x + 1, tvm.tir.ExprOp)
    assert isinstance(tvm.tir.all(x < 1, x > 3), tvm.tir.LogicalExpr)


def test_results_are_kept_by_arguments_and_what_is_around(tvm):
    from tvm.contrib.pickle_memoize import memoize

    calls = {}

    def reference(size):
        @memoize("test_names.reference")
        def data(a):
            calls[size, a] = calls.get((size, a), 0) + 1
            return size * a

        return data

    assert [reference(2)(3), reference(2)(3), reference(4)(3), reference(2)(5)] == [6, 6, 12, 10]
    assert calls == {(2, 3): 1, (4, 3): 1, (2, 5): 1}


def test_numbers_with_names(tvm):
    assert tvm.tir.CallEffectKind.Opaque == tvm.tir.CallEffectKind.UpdateState == 3
    assert tvm.ir.CallingConv.DEVICE_KERNEL_LAUNCH == 2 and tvm.DataTypeCode.BFLOAT == 4
    assert str(tvm.device_from_target("llvm")) == "cpu:0"
    assert tvm.register_object("a.B")(int) is tvm.error.register_error(int) is int
    assert issubclass(tvm.error.OpAttributeUnImplemented, NotImplementedError)
    assert issubclass(tvm.error.RPCSessionTimeoutError, TimeoutError)


def test_a_view_gives_the_same_objects(tvm):
    names = {}
    exec("from tvm.ir.base import structural_equal\nfrom tvm.tir.stmt import Block", names)
    assert names["structural_equal"] is mlcweb.ir.structural_equal
    assert names["Block"] is mlcweb.tir.Block is tvm.s_tir.SBlock


def test_an_unknown_name_of_tvm_says_so_without_a_list(tvm):
    with pytest.raises(AttributeError, match=r"^tvm.tir has no Shedule here: dir"):
        tvm.tir.Shedule
    with pytest.raises(
        ModuleNotFoundError, match=r"^There is no tvm.tirr here; did you mean tvm.tir"
    ):
        importlib.import_module("tvm.tirr")


def test_data_types(tvm):
    dtype = tvm.DataType("float16x4")
    assert dtype == "float16x4" and (dtype.bits, dtype.lanes, dtype.itemsize) == (16, 4, 8)


def test_devices_and_errors(tvm):
    assert str(tvm.cuda(1)) == "cuda:1" and tvm.rocm().device_type == 10
    assert not tvm.rocm().exist
    assert tvm.runtime.enabled("cpu")
    assert tvm.runtime.enabled("gpu") == tvm.runtime.enabled("cuda")
    with pytest.raises(ValueError, match="fpga"):
        tvm.runtime.enabled("fpga")
    assert issubclass(tvm.error.OpNotImplemented, (tvm.error.OpError, tvm.TVMError))


def test_a_folder_for_a_while(tvm):
    from tvm.contrib import utils

    with utils.tempdir() as folder:
        path = folder.relpath("a.txt")
        with open(path, "w") as file:
            file.write("a")
        assert folder.listdir() == ["a.txt"]
    with pytest.raises(FileNotFoundError):
        os.stat(path)
    folder = utils.tempdir()
    path = folder.temp_dir
    assert os.path.isdir(path)
    del folder
    gc.collect()
    assert not os.path.exists(path)


def test_relay_names_its_successor(tvm):
    with pytest.raises(AbsentError) as caught:
        tvm.relay.var("x", shape=(1, 3))
    assert str(caught.value) == (
        "tvm.relay.var is not here: relay was replaced by relax in TVM 0.20; "
        "write models with tvm.relax (lesson 9)"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("te.hybrid.script", "hybrid script was replaced by TVMScript; write a function with"),
        ("hybrid.script", "hybrid script was replaced by TVMScript; write a function with"),
        ("thread_axis", r"it moved to tvm\.te in TVM 0\.7"),
        ("ir_builder.create", r"it moved to tvm\.tir in TVM 0\.7"),
        ("context", r'it is tvm\.device\("llvm", 0\), or tvm\.cpu\(0\), since TVM 0\.8'),
        ("tir.transform.LowerIntrin", "a code generator writes out intrinsics"),
        ("arith.PresburgerSet", "sets are intervals here"),
    ],
)
def test_a_function_that_is_absent_names_what_there_is(tvm, name, message):
    value = tvm
    for part in name.split("."):
        value = getattr(value, part)
    with pytest.raises(AbsentError, match=rf"\.{name.rpartition('.')[2]} is not here: {message}"):
        value()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("from tvm._ffi import other", "There is no tvm.ffi.other here"),
        ("from tvm.relax.testing import other", "There is no tvm.relax.testing.other here: "),
        ("import tvm.dlight.gpu.Matmul", "is no module: from tvm.dlight.gpu import Matmul"),
    ],
)
def test_modules_that_are_missing_have_the_names_of_tvm(tvm, statement, message):
    with pytest.raises(ModuleNotFoundError) as caught:
        exec(statement, {})
    assert message in str(caught.value)
    assert isinstance(tvm.dlight.gpu.Matmul, type)


def test_loggers_of_tasks(tvm):
    ms = tvm.meta_schedule
    first, second = ms.logging.get_loggers_from_work_dir("logs", ["add", "add"])
    assert first is not second
    assert "add" in first.name
    x = tvm.te.placeholder((2,))
    func = tvm.te.create_prim_func([x, tvm.te.compute((2,), lambda i: x[i] + 1)])
    context = ms.TuneContext(mod=tvm.IRModule({"main": func}), logger=first)
    assert context.logger is first


def test_names_of_2022(tvm):
    from tvm.tir.tensor_intrin import DP4A_INTRIN, VNNI_DOT_16x4_INTRIN

    assert (DP4A_INTRIN, VNNI_DOT_16x4_INTRIN) == ("dp4a", "dot_16x4_vnni")
    normalize = tvm.meta_schedule.tir_integration._normalize_mod
    x = tvm.te.placeholder((2,))
    mod = normalize(tvm.te.create_prim_func([x, tvm.te.compute((2,), lambda i: x[i] + 1)]))
    assert mod.astext() == mod.script() and mod["main"].attrs["global_symbol"] == "main"
    assert tvm.tirx.Expr is tvm.tir.PrimExpr


def test_variables_as_they_were_made_until_2023(tvm):
    n = tvm.tir.Var("n", "int64")
    x = tvm.relax.Var("x", (n, 4), tvm.relax.DynTensorType(2, "float16"))
    assert x.struct_info.dtype == "float16" and x.struct_info.shape.values[0] is n
    y = tvm.relax.DataflowVar("y", [2, 3])
    assert y.struct_info.ndim == 2 and y.struct_info.dtype == ""
    assert isinstance(tvm.relax.DynTensorType(ndim=3), tvm.relax.DynTensorType)
    with pytest.raises(tvm.error.DiagnosticError, match="does not have 3 dimension"):
        tvm.relax.Var("x", (n, 4), tvm.relax.DynTensorType(3, "float32"))
    with pytest.raises(tvm.error.DiagnosticError, match="no type of a variable"):
        tvm.relax.Var("x", 3)


def test_functions_that_are_modules_too(tvm):
    import tvm.topi.testing

    x = tvm.te.placeholder((8,), name="x")
    func = tvm.te.create_prim_func([x, tvm.te.compute((8,), lambda i: x[i] + 1, name="y")])
    assert "T.block" not in tvm.lower(func).script()
    out = tvm.nd.empty((8,))
    tvm.tir.build(func, target="numpy")["main"](tvm.nd.array(np.ones(8, "float32")), out)
    assert tvm.topi.testing.softmax_python(out.numpy().reshape(1, 8)).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("topi", "no_such_operator", "it is an operator of topi that is not here; write it with"),
        ("tir.transform", "NoSuchPass", "write the pass with @tvm.tir.transform.prim_func_pass"),
        ("tir.tensor_intrin.cuda", "MMA_bf16bf16f32_INTRIN", "describe the instruction"),
        ("tir.tensor_intrin.rocm", "ROCM_MFMA_bf16bf16f32_INTRIN", "describe the instruction"),
    ],
)
def test_any_other_name_of_a_kind_can_be_imported_and_is_refused_where_it_is_used(
    module, name, message
):
    namespace = {}
    exec(f"from tvm.{module} import {name} as value", namespace)
    with pytest.raises(AbsentError, match=f"^tvm.{module}.{name} is not here: .*{message}"):
        namespace["value"]()


@pytest.mark.parametrize("name", ["ir.utils", "driver.build_module", "tir.op", "ir.expr"])
def test_a_name_that_is_nowhere_is_not_looked_for_in_circles(name):
    module = importlib.import_module(f"tvm.{name}")
    with pytest.raises(AttributeError, match=f"^tvm.{name} has no no_such_name here"):
        module.no_such_name


def test_a_name_that_is_nowhere_says_what_there_is(tvm):
    with pytest.raises(AttributeError, match=r"tvm.arith has no foo here: tvm.arith.Analyzer"):
        tvm.arith.foo
    with pytest.raises(ImportError, match=r"no tvm.tir.analysis.foo here.*post_order_visit"):
        exec("from tvm.tir.analysis import foo")


@pytest.mark.parametrize("name", ["tvm.tir.stmt", "tvm.tirx.stmt", "tvm.tir.function"])
def test_a_file_that_another_module_answers_for_stays_where_it_is(tvm, name):
    child = name.rpartition(".")[2]
    own = importlib.import_module(f"mlcweb.tir.{child}")
    exec(f"from {name} import PrimFunc, For\nimport {name}", names := {})
    assert names["For"] is mlcweb.tir.For
    assert vars(mlcweb.tir)[child] is own
    exec(f"from mlcweb.tir import {child} as found", names)
    assert names["found"] is own


def test_packages_that_programs_use_without_importing_them(tvm):
    tvm.testing.assert_allclose([1.0], [1.0])
    assert tvm.meta_schedule.tune_tir.__name__ == "tune_tir"


def test_the_masks_of_debugging_are_where_tvm_has_them() -> None:
    from mlcweb.schedule.state import ScheduleDebugMask

    assert list(ScheduleDebugMask) == [1, 2]
    assert ScheduleDebugMask.VERIFY_SREF_TREE.name == "VERIFY_SREF_TREE"


def test_the_spellings_of_2022_of_relax(tvm):
    relax = tvm.relax
    x = relax.Var("x", (1, 4), relax.DynTensorType(2, "float32"))
    again = relax.Var("y", x.shape_, x._checked_type_)
    assert again.struct_info == x.struct_info
    assert relax.op.relu(x).op.name == "relax.nn.relu"
    with pytest.raises(AbsentError, match="permute_dims"):
        relax.op.nn.dense(x, x)
    with pytest.raises(AbsentError, match=r"since 2023: relax\.op\.multiply\(x, y\)$"):
        relax.multiply(x, x)
