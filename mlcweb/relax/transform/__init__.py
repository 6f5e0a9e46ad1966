"""Passes over modules of the graph level, under TVM's names: `relax.transform.FuseTIR()(mod)`.

Fusing goes AnnotateTIROpPattern (op_pattern.py), FuseOps (fuse_ops.py: dataflow_graph.py,
partition.py, grouping.py), FuseTIR (fuse_tir.py); FuseOpsByPattern (fuse_by_pattern.py) groups by
patterns of `relax.dpl`. A pass is made of a plain function by registration.py.

Functions that were tuned get their schedules by MetaScheduleApplyDatabase (apply_database.py).
"""

from mlcweb.ir.lazy_attributes import lazy_attributes
from mlcweb.relax.transform.alter_op_impl import AlterOpImpl
from mlcweb.relax.transform.apply_database import MetaScheduleApplyDatabase
from mlcweb.relax.transform.attach_extern_modules import AttachExternModules
from mlcweb.relax.transform.bind import BindParams, BindSymbolicVars
from mlcweb.relax.transform.call_tir_rewrite import CallTIRRewrite
from mlcweb.relax.transform.canonicalize import CanonicalizeBindings
from mlcweb.relax.transform.combine_matmul import CombineParallelMatmul
from mlcweb.relax.transform.common_subexpr import EliminateCommonSubexpr
from mlcweb.relax.transform.compute_prim_value import ComputePrimValue
from mlcweb.relax.transform.dataflow_blocks import ConvertToDataflow, ToNonDataflow
from mlcweb.relax.transform.dataflow_reshape import RewriteDataflowReshape
from mlcweb.relax.transform.dead_code import DeadCodeElimination
from mlcweb.relax.transform.decompose_ops import DecomposeOpsForInference, DecomposeOpsForTraining
from mlcweb.relax.transform.expand_tuples import ExpandTupleArguments
from mlcweb.relax.transform.fast_math import FastMathTransform
from mlcweb.relax.transform.fold_batch_norm import FoldBatchnormToConv2D
from mlcweb.relax.transform.fold_constant import FoldConstant
from mlcweb.relax.transform.fuse_by_pattern import (
    FuseOpsByPattern, FusionPattern, PatternCheckContext,
)  # fmt: skip
from mlcweb.relax.transform.fuse_ops import FuseOps
from mlcweb.relax.transform.fuse_tir import FuseTIR
from mlcweb.relax.transform.fuse_transpose_matmul import FuseTransposeMatmul
from mlcweb.relax.transform.gradient import Gradient
from mlcweb.relax.transform.inline_functions import InlinePrivateFunctions
from mlcweb.relax.transform.inplace_calls import DataflowUseInplaceCalls
from mlcweb.relax.transform.kill_after_last_use import KillAfterLastUse
from mlcweb.relax.transform.lambda_lift import LambdaLift
from mlcweb.relax.transform.layout import ConvertLayout
from mlcweb.relax.transform.layout_free import AttachAttrLayoutFreeBuffers
from mlcweb.relax.transform.lazy_params import LazyGetInput, LazySetOutput, LazyTransformParams
from mlcweb.relax.transform.legalize_ops import LegalizeOps
from mlcweb.relax.transform.lift_params import LiftTransformParams
from mlcweb.relax.transform.lower_alloc_tensor import LowerAllocTensor
from mlcweb.relax.transform.machine_passes import (
    AllocateWorkspace, IPCAllReduceRewrite, LowerGPUIPCAllocStorage,
    LowerRuntimeBuiltin, RewriteCUDAGraph, VMBuiltinLower, VMShapeLower,
)  # fmt: skip
from mlcweb.relax.transform.matmul_rules import (
    AdjustMatmulOrder, ExpandMatmulOfSum, ReorderPermuteDimsAfterConcat, ReorderTakeAfterMatmul,
)  # fmt: skip
from mlcweb.relax.transform.merge_composites import MergeCompositeFunctions
from mlcweb.relax.transform.mixed_precision import ToMixedPrecision
from mlcweb.relax.transform.normalize import AttachGlobalSymbol, Normalize, NormalizeGlobalVar
from mlcweb.relax.transform.op_pattern import AnnotateTIROpPattern
from mlcweb.relax.transform.optimize_layout_transform import OptimizeLayoutTransform
from mlcweb.relax.transform.parameters import (
    BundleModelParams, UpdateParamStructInfo, UpdateParamType,
)  # fmt: skip
from mlcweb.relax.transform.plan_memory import StaticPlanBlockMemory
from mlcweb.relax.transform.purity import RemovePurityChecking
from mlcweb.relax.transform.redundant_reshape import RemoveRedundantReshape
from mlcweb.relax.transform.registration import (
    DataflowBlockPass, FunctionPass, dataflowblock_pass, function_pass,
)  # fmt: skip
from mlcweb.relax.transform.split_layout_rewrite import SplitLayoutRewritePreproc
from mlcweb.relax.transform.topological_sort import TopologicalSort
from mlcweb.relax.transform.unused_values import RemoveUnusedOutputs, RemoveUnusedParameters
from mlcweb.relax.transform.virtual_devices import RealizeVDevice, UpdateVDevice

__getattr__ = lazy_attributes(__name__)  # passes that search, of a layer above
