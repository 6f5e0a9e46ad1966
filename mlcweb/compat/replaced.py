"""What TVM has, or had, and this package has not, and what to use instead."""

_PACKAGES = (
    "ir ir.prim relax relax.analysis relax.op relax.op.builtin relax.op.grad relax.op.image "
    "relax.op.memory relax.op.nn relax.op.vm relax.training relax.transform runtime tir "
    "tir.transform schedule lower.transform analysis arith te topi meta_schedule script.ir_builder "
    "script.ir_builder.ir script.ir_builder.tir script.ir_builder.relax script.printer "
    "runtime.target testing driver"
)
"""Packages of TVM, each with a module of functions in C++."""

_ROWS: dict[str, str] = {
    "relay was replaced by relax in TVM 0.20; write models with tvm.relax (lesson 9)": (
        "relay parser ir.adt ir.affine_type ir.type_relation ir.tensor_type ir.type_functor "
        "ir.TypeCall ir.Constructor ir.TypeData ir.TensorAffineType ir.TupleAffineType "
        "ir.TensorType testing.relax.relay_translator contrib.relay_viz "
        "meta_schedule.relay_integration target.virtual_device relax.frontend.relay_translator "
        "contrib.msc contrib.torch contrib.tedd contrib.ethosn contrib.peak contrib.stackvm "
        "contrib.clml"
    ),
    "schedules of tensor expressions were removed in TVM 0.20; "
    "tvm.tir.Schedule(te.create_prim_func([...])) schedules the same program (lesson 2)": (
        "create_schedule te.create_schedule te.Schedule te.Stage te.schedule "
        "te.decl_tensor_intrin te.SpecializedCondition "
        "topi.generic.schedule_injective topi.x86.schedule_dense topi.utils.traverse_inline "
        "te.create_relax_prim_func te.operation.BaseComputeOp te.tensor.BaseComputeOp "
        "te.tensor.TensorOpBase te.BaseComputeOp te.TensorComputeOp te.trace"
    ),
    "kernels are scheduled here by ms.tune_tir or dlight.ApplyDefaultSchedule": (
        "topi.arm_cpu topi.bifrost topi.mali topi.rocm topi.hexagon topi.adreno "
        "topi.intel_graphics topi.x86.tensor_intrin topi.x86.utils topi.x86.injective "
        "topi.generic.default topi.generic.injective"
    ),
    "it was replaced by tvm.meta_schedule in TVM 0.15: relax.transform.MetaScheduleTuneIRMod tunes "
    "a model, and tir.Schedule has the decisions": "relax.transform.tuning_api",
    "it was removed from TVM in 0.15: a schedule of your own, or relax.transform.FuseOpsByPattern, "
    "takes its place": "relax.backend_tir",
    "it planned the memory of microcontrollers, and was removed in TVM 0.20; "
    "relax.transform.StaticPlanBlockMemory plans that of models": (
        "tir.usmp ir.memory_pools testing.usmp"
    ),
    "kernels for devices are functions whose loops are bound to threads; tvm.build(mod, target) "
    "writes CUDA, OpenCL, Metal and WGSL (lesson 7)": (
        "tir.contrib tir.adreno tir.hexagon tir.trn tir.cuda tir.metal tir.opencl tir.rocm "
        "tir.vulkan tir.webgpu tir.operator tir._buffer_view "
        "script.ir_builder.tir.external_kernel testing.aot.AOTTestModel"
    ),
    "the target says itself what it compiles for: tvm.target.Target(target, host)": (
        "runtime.target.compilation_config runtime.target.generic_func "
        "runtime.target.override_native_generic_func "
        "runtime.target.x86 runtime.target.virtual_device"
    ),
    "names are kept as they are; C names are made when a library is written": (
        "runtime.name_transforms"
    ),
    "the virtual machine reuses memory by itself, as relax.transform.StaticPlanBlockMemory plans": (
        "testing.relax.transform.dataflow_alias_analysis "
        "testing.relax.transform.dataflow_inplace_analysis "
        "testing.relax.transform.dataflow_liveness_analysis "
        "testing.relax.transform.dataflow_single_inplace_call"
    ),
    "the virtual machine works out shapes itself": "testing.relax.runtime_builtin",
    "a search prints how good its model is": "meta_schedule.cost_model.metric",
    "functions are timed by time_evaluator, and models by vm.profile(name, *args)": (
        "dlight.benchmark runtime.profiling.MetricCollector runtime.profiling.Duration "
        "runtime.profiling.Count runtime.profiling.Percent runtime.profiling.Ratio "
        "runtime.profiling.DeviceWrapper runtime.profiling.profile_function "
        "runtime.profiling.PAPIMetricCollector runtime.profiling.Timer"
    ),
    "scripts are read by @T.prim_func and tvm.script.from_source alone": (
        "script._parser script.parser_v1 script.ty script.tir.ty script.tir.node "
        "script.tir.special_stmt script.tir.intrin script.tir.scope_handler "
        "script.context_maintainer"
    ),
    "export a model by torch.export, and read it with relax.frontend.torch.from_exported_program": (
        "relax.frontend.torch.relax_dynamo relax.frontend.torch.dynamo_capture_subgraphs "
        "relax.frontend.torch.BaseFXGraphImporter relax.frontend.torch.TorchFXImporter "
        "relax.frontend.torch.ExportedProgramImporter relax.frontend.nn.torch "
        "relax.frontend.nn.TorchModule"
    ),
    "run the module with relax.VirtualMachine(relax.build(mod), dev), and compare with what "
    "PyTorch computes; classes below relax.BasePyModule mix both": (
        "relax.relax_to_pyfunc_converter"
    ),
    "mark the parameters: pytest.param(..., marks=pytest.mark.skip)": (
        "testing.skip_parameterizations testing.xfail_parameterizations testing.plugin"
    ),
    "they test the other side of TVM's registry; here all is Python": (
        "testing.popen_pool testing.echo testing.nop testing.object_use_count "
        "testing.test_raise_error testing.test_raise_error_callback testing.ErrorTest "
        "testing.FrontendTestModule testing.test_check_eq_callback testing.test_wrap_callback "
        "testing.install_request_hook testing.is_ampere_or_newer compat.support.FrontendTestModule"
    ),
    "it was replaced by tvm.meta_schedule: ms.tune_tir(mod, target, ...) searches schedules "
    "(lesson 5)": "autotvm auto_scheduler",
    'microTVM was removed in TVM 0.20; tvm.build(mod, target="wasm") makes small modules': "micro",
    "programs run in this process; call what tvm.build gives, or measure it with "
    "lib.time_evaluator": (
        "rpc.* rpc.connect rpc.connect_tracker rpc.Server rpc.RPCSession rpc.TrackerSession "
        "rpc.PopenSession rpc.with_minrpc testing.local_run testing.rpc_run vpi runtime.vpi "
        "sdaccel "
        "meta_schedule.testing.custom_builder_runner runtime.RPC_SESS_MASK "
        "relax_vm.RPC_SESS_MASK"
    ),
    "it ran relay's programs; relax.build and relax.VirtualMachine run models (lesson 9)": (
        "contrib.graph_executor contrib.graph_runtime contrib.debugger runtime.profiler_vm "
        "contrib.pipeline_executor runtime.executor"
    ),
    "it is a library of other hardware, which cannot be called from here; relax.build compiles "
    "its operators itself": (
        "relax.backend.contrib relax.backend.metal relax.backend.adreno "
        "contrib.cublas contrib.cublaslt contrib.cudnn contrib.cutlass "
        "contrib.cblas contrib.mkl contrib.dnnl contrib.nnpack contrib.rocblas contrib.hipblas "
        "contrib.thrust contrib.miopen contrib.coreml_runtime contrib.tflite_runtime "
        "contrib.ethosu contrib.tensorrt contrib.hexagon contrib.sparse contrib.random "
        "contrib.vllm"
    ),
    "compilers are not called by name; tvm.build(mod, target) calls what a target needs": (
        "contrib.emcc contrib.ndk contrib.nvcc contrib.rocm "
        "contrib.xcode contrib.spirv contrib.tar contrib.tvmjs "
        "compat.support.emcc compat.support.ndk compat.support.nvcc "
        "compat.support.rocm compat.support.xcode compat.support.tar"
    ),
    "use concurrent.futures of Python": "contrib.popen_pool compat.support.popen_pool",
    "a page reads files with pyodide.http.open_url, Python with urllib.request": (
        "contrib.download"
    ),
    "arrays speak DLPack themselves: numpy.from_dlpack(x), tvm.nd.from_dlpack(x)": (
        "contrib.dlpack"
    ),
    "there is one device here; a native TVM runs a program on several": (
        "runtime.disco relax.distributed relax.op.ccl relax.op.distributed "
        "script.ir_builder.relax.distributed script.relax.dist relax.script.parser.dist "
        "script.parser.relax.dist"
    ),
    "it schedules for GPUs; dlight.ApplyDefaultSchedule and ms.tune_tir do, too, or write a "
    "tvm.tir.Schedule (lesson 7)": ("tir.tensor_intrin.metal topi.cuda topi.gpu tir.backend"),
    "hybrid script was replaced by TVMScript; write a function with @T.prim_func": (
        "hybrid te.hybrid tir.hybrid"
    ),
    "it moved to tvm.te in TVM 0.7": (
        "var size_var placeholder compute scan extern thread_axis reduce_axis sum"
    ),
    "it moved to tvm.tir in TVM 0.7": (
        "const decl_buffer ir_builder if_then_else select all any expr stmt make api intrin"
    ),
    "passes moved to tvm.tir.transform in TVM 0.7": "ir_pass",
    'it is tvm.device("llvm", 0), or tvm.cpu(0), since TVM 0.8': "context",
    "write the workload with te.create_prim_func, and look at the spaces that "
    "ms.space_generator makes": (
        "meta_schedule.testing.local_rpc meta_schedule.testing.relay_workload "
        "meta_schedule.testing.tune_utils meta_schedule.schedule"
    ),
    "ms.tune_tir searches on after its best schedule by itself": (
        "meta_schedule.post_optimization"
    ),
    "schedules are measured here by ms.runner.LocalRunner, or on other machines with Dask": (
        "meta_schedule.runner.rpc_runner"
    ),
    "tiles and layouts of tirx are for GPUs; write T.block and a tvm.tir.Schedule": (
        "tir.tile_primitive tir.exec_scope tir.exec_context tir.script.tile tir.lang"
    ),
    "it asks the LLVM of TVM itself; tvm.build makes the machine code": (
        "runtime.target.intrin tir.tensor_intrin.riscv_cpu"
    ),
    "it is an operator of topi that is not here; write it with te.compute": (
        "topi.nn.lstm topi.nn.winograd_util topi.sparse"
    ),
    "it is for one kind of GPU; the rules of dlight.gpu are for all": "dlight.adreno",
    "tiles of tirx are for one kind of GPU or accelerator; instructions of CUDA are in "
    "tvm.tir.tensor_intrin.cuda": "backend",
    "save the model as ONNX: relax.frontend.onnx.from_onnx reads it": (
        "relax.frontend.tflite relax.frontend.stablehlo"
    ),
    "operators are lowered by relax.transform.LegalizeOps(customize_legalize_map={...})": (
        "relax.transform.legalize_ops.adreno relax.transform.legalize_ops.binary "
        "relax.transform.legalize_ops.ccl "
        "relax.transform.legalize_ops.create relax.transform.legalize_ops.datatype "
        "relax.transform.legalize_ops.distributed relax.transform.legalize_ops.grad "
        "relax.transform.legalize_ops.image relax.transform.legalize_ops.index "
        "relax.transform.legalize_ops.inspect_op relax.transform.legalize_ops.linear_algebra "
        "relax.transform.legalize_ops.manipulate relax.transform.legalize_ops.nn "
        "relax.transform.legalize_ops.qdq relax.transform.legalize_ops.search "
        "relax.transform.legalize_ops.statistical relax.transform.legalize_ops.unary "
        "relax.transform.legalize_ops.vision"
    ),
    "run a program with python -m mlcweb run": "exec",
    "mlcweb is Python; tvm.register_func and tvm.get_global_func reach its registry": (
        "libinfo ir.json_compact "
        + " ".join(f"{package}._ffi_api".lstrip(".") for package in _PACKAGES.split())
    ),
}

_HARDWARE = "it is for libraries of other hardware; relax.build compiles every function itself"

_ROWS_IN: dict[str, dict[str, str]] = {
    "meta_schedule": {
        "a search prints its progress, and keeps its records in the database": (
            "logging.create_loggers logging.get_logging_func"
        ),
        "rules for a target: ms.ScheduleRule.create(kind)": "testing.schedule_rule",
        "the models are ms.cost_model.XGBModel and RandomModel": "cost_model.mlp_model.*",
        "the runner is ms.runner.LocalRunner; a subclass of PyRunner is yours": (
            "runner.local_runner.default_cleanup runner.local_runner.default_run_evaluator"
        ),
        "spaces are ms.space_generator.PostOrderApply's": "default_config.*",
    },
    "meta_schedule.runner": {
        "schedules are measured here by ms.runner.LocalRunner, or on other machines with Dask": (
            "RPCConfig RPCRunner RPCRunnerFuture"
        ),
    },
    "meta_schedule.cost_model": {
        "the model takes its options itself: ms.cost_model.XGBModel(trees=60)": (
            "PackSum XGBConfig FeatureGroup _get_custom_call_back"
        ),
    },
    "meta_schedule.postproc": {
        "there is no Hexagon target here": "DisallowAsyncStridedMemCopy VerifyVTCMLimit",
    },
    "meta_schedule.utils": {
        "ms.Profiler and the progress that a search prints tell of it": (
            "print_interactive_table _get_default_str"
        ),
    },
    "dlight.gpu": {
        "rules for devices here are Matmul, GEMV, LowBatchGEMV, Reduction, GeneralReduction, "
        "Transpose, RMSNorm and Fallback; or write a tvm.tir.Schedule (lesson 7)": "*"
    },
    "dlight.cpu": {"rules for processors here are Matmul, Reduction and Elementwise": "*"},
    "relax.backend.pipelines": {
        "it is a library of other hardware, which cannot be called from here; relax.build compiles "
        "its operators itself": "cublas cudnn cutlass flashinfer hipblas",
        "lowering asks the current target here: relax.backend.DispatchSortScan": "cumsum sampling",
    },
    "relax.backend.patterns": {
        "its rewriting is for libraries of attention; write one with relax.dpl.rewrite_call": (
            "make_attention_rewrite_pattern"
        ),
    },
    "relax.transform": {
        _HARDWARE: "SplitCallTIRByPattern",
        "it gives buffers the memory of virtual devices, and there is one device here": (
            "SpecializePrimFuncBasedOnCallSite"
        ),
    },
    "ir": {
        "functions of other modules are called by name: T.call_extern, T.call_packed": "EnvFunc",
        "a code generator writes out intrinsics itself": "register_intrin_lowering",
        "a span names its file and position: tvm.ir.Span": "SourceName SourceMap SequentialSpan",
        "relax.BlockBuilder.add_func gives functions names of their own": "GlobalVarSupply",
        "a module of the functions that a pass is for may be given to it alone": (
            "transform.ApplyPassToFunction"
        ),
        "texts are relax.StringImm, and what is no tensor is R.Object": "StringType OpaqueType",
        "options are arguments of script()": "PrinterConfig",
        "constants are relax.const(array)": "GenericConst OpaqueExpr",
        "JSON is written by tvm.ir.save_json": "to_json_graph_str from_json_graph_str",
    },
    "ir.names": {
        "relax.BlockBuilder.add_func gives functions names of their own": "GlobalVarSupply",
    },
    "runtime.target": {
        "tvm.target.Target.from_device(dev) tells of a device": (
            "detect_target_from_device register_device_target_detector SUPPORTED_DEVICE "
            "SUPPORT_DEVICE"
        ),
        "it asks the LLVM of TVM itself; tvm.build makes the machine code": (
            "llvm_lookup_intrinsic_id llvm_get_intrinsic_name"
        ),
    },
    "runtime.target_codegen": {
        "intrinsic functions of LLVM are called by their names": (
            "llvm_lookup_intrinsic_id llvm_get_intrinsic_name"
        ),
        "tvm.target.codegen.llvm_get_system_cpu() names the processor": (
            "llvm_get_system_x86_vendor"
        ),
        "tvm.build(mod, target) generates code": "build_module",
    },
    "topi.utils": {"tvm.target.Target.current() is the target in use": "is_target"},
    "dlight.gpu.matmul": {"the rule is Matmul; or write a tvm.tir.Schedule (lesson 7)": "*"},
    "dlight.gpu.low_batch_gemv": {"the rule is LowBatchGEMV": "*"},
    "dlight.gpu.rmsnorm": {"the rule is RMSNorm": "*"},
    "script.ir_builder": {
        "frames are entered by with: IRBuilder(), T.prim_func(), T.block()": (
            "IRBuilderFrame base.IRBuilderFrame"
        ),
    },
    "script.ir_builder.tir.frame": {"frames are entered by with: T.prim_func(), T.block()": "*"},
    "script.ir_builder.relax.frame": {
        "frames are entered by with: R.function(), R.dataflow()": "*"
    },
    "script.ir_builder.ir.frame": {"frames are entered by with: I.ir_module()": "*"},
    **{
        f"script.parser.core.{file}": {
            "scripts are read by @T.prim_func and tvm.script.from_source alone": "*"
        }
        for file in ("diagnostics", "evaluator", "parser", "entry", "utils", "error", "dispatch")
    },
    "compat.tempdir": {
        "a file is locked by Python's own means": "FileLock filelock DirectoryCreatedPastAtExit"
    },
    "compat.compilers": {
        "tvm.build makes the machine code itself": (
            "get_target_by_dump_machine get_global_symbol_section_map"
        )
    },
    "relax.frontend.onnx.onnx_frontend": {
        "relax.frontend.onnx.from_onnx reads a model; its operators are registered by "
        "relax.frontend.onnx.register": "*"
    },
    "relax.frontend.common": {"the importers pad by themselves": "autopad attr_converter"},
    "testing.auto_scheduler": {"ms.testing.te_workload has workloads": "*"},
    "testing.aot": {"tvm.build(mod) compiles, and lib.export_library saves it": "*"},
    "relax.op.op_attrs": {
        "attributes are a mapping here, of any operator: call.attrs": "*",
    },
    "script.parser.core.doc": {"scripts are read with Python's own module ast": "*"},
    "script.parser.core.doc_core": {"scripts are read with Python's own module ast": "*"},
    "relax.dpl": {
        "shapes of parts are compared after the match": "SameShapeConstraint DFConstraint",
        "a rewriter is a function, or a class that @R.rewriter decorates": (
            "ExprPatternRewriter OrRewriter TupleRewriter"
        ),
        "patterns are Python classes, subclasses of DFPattern": "register_df_node",
    },
    "relax.expr": {
        "relax.op.call_tir, or BlockBuilder.emit_te, takes tensors": ("te_tensor TEPlaceholderOp")
    },
    "relax.frontend.nn": {
        "relax.op.call_dps_packed, or nn.op.extern, calls a registered function": (
            "ExternModule ObjectModule SourceModule add_extern"
        ),
        "a module exports itself: module.export_tvm(spec)": "Exporter exporter.Exporter",
        "annotate with typing.Any": "OutType op.OutType",
    },
    "relax.op": {
        "it is in relax.op.vision": (
            "all_class_non_max_suppression get_valid_counts multibox_transform_loc "
            "non_max_suppression roi_align roi_pool"
        ),
        "it was replaced in 2023 by relax.op.matmul(x, relax.op.permute_dims(w))": "dense",
    },
    "relax.op.nn": {
        "it was replaced in 2023 by relax.op.matmul(x, relax.op.permute_dims(w))": "dense",
        "it was replaced in 2023 by relax.op.flatten and relax.op.reshape": "flatten",
    },
    "relax": {
        "registered functions have the type R.Callable": "PackedFuncType",
        "operators are in relax.op since 2023: relax.op.multiply(x, y)": (
            "add divide ewise_fma maximum minimum multiply subtract"
        ),
        "a builder is open by with bb.function(...)": "block_builder.TestingScope",
    },
    "arith": {
        "sets are intervals here, IntervalSet": "PresburgerSet",
        "a constraint holds inside of with analyzer.constraint_scope(condition)": (
            "ConstraintScope analyzer.ConstraintScope"
        ),
        "the analyzer proves without Z3": "Z3ContextScope analyzer.Z3ContextScope",
        "indices are signed": "allow_uint_as_index analyzer.allow_uint_as_index",
        "kernels share common parts when they are made": "detect_common_subexpr",
    },
    "analysis": {
        "there is no Hexagon target here": "get_vtcm_compaction_passes",
        "memory is not constrained here": (
            "apply_prim_func_arg_and_result_memory_constraints "
            "get_prim_func_arg_and_result_memory_constraints"
        ),
    },
    "meta_schedule.tune": {
        'the defaults of a kind of target are ScheduleRule.create("cuda"), Postproc.create("cuda") '
        'and Mutator.create("cuda")': "DefaultCUDA DefaultLLVM DefaultCUDATensorCore",
    },
    "lower.transform": {
        'PassContext(config={"mlcweb.bounds_check": True}) checks accesses': (
            "InstrumentBoundCheckers"
        ),
        "kernels are timed whole, by time_evaluator": "InstrumentProfileIntrinsics",
        "padded blocks are made by sch.decompose_padding": "ReduceBranchingThroughOvercompute",
        'build(mod, target="cuda") lowers for GPUs by a pipeline of its own': (
            "LowerDeviceStorageAccessInfo DecorateDeviceScope SplitHostDevice"
        ),
        "kernels take arrays here, not packed arguments": (
            "MakePackedAPI MakeUnpackedAPI LowerTVMBuiltin PointerValueTypeRewrite"
        ),
        "a code generator writes out intrinsics itself": "LowerIntrin",
        "there are no custom data types here": "LowerCustomDatatypes",
        "FlattenBuffer took its place in TVM 0.9": "StorageFlatten",
        "RemoveNoOp has no options here": "RemoveNoOpConfig",
        "tiles and layouts of tirx are for GPUs; write T.block and a tvm.tir.Schedule": (
            "LowerTIRx LowerTIRxOpaque TilePrimitiveDispatch"
        ),
        "write the pass with @tvm.tir.transform.prim_func_pass": "*",
    },
    "tir.layout": {
        "tiles and layouts of tirx are for GPUs; tvm.tir.layout names the axes of tensors": "*"
    },
    "tensor_intrin.cuda": {
        "describe the instruction with @T.prim_func and tvm.tir.TensorIntrin.register": "*",
    },
    "tensor_intrin.rocm": {
        "describe the instruction with @T.prim_func and tvm.tir.TensorIntrin.register": "*",
    },
    "tensor_intrin.dot_products": {
        "describe the instruction with @T.prim_func and tvm.tir.TensorIntrin.register": "*",
    },
    "topi": {"it is an operator of topi that is not here; write it with te.compute": "*"},
    "topi.nn": {"it is an operator of topi that is not here; write it with te.compute": "*"},
    "testing.topi_reference": {"compute the expected numbers with NumPy": "*"},
    "tir": {
        "tiles and layouts of tirx are for GPUs; write T.block and a tvm.tir.Schedule": (
            "TileLayout ComposeLayout ScopeIdDef ScopeIdDefStmt ExecScope DispatchContext "
            "TilePrimitiveCall LambdaExpr selector filter TensorMapType "
            "tensormap_encode_tiled TensorMapEncodeTiledAttr "
            "CallFFIKernelAttr BufferAccessKind buffer_data_pointer_type"
        ),
        "it was removed from TVM; write the value with T.alloc_buffer and stores": "AllocateConst",
        "it is a call of an operator here: tvm.tir.bitwise_and(a, b), shift_left and the like": (
            "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot LShift RShift"
        ),
        "it is a call of an operator here: T.break_loop(), T.continue_loop(), T.ret()": (
            "Break Continue Return"
        ),
        "a buffer is tvm.tir.Buffer, and its type is its dtype": (
            "BufferType BufferRegionType is_buffer_var DataProducer"
        ),
        "tvm.build splits host and device itself": (
            "split_host_device_mods codegen_build tir_to_runtime"
        ),
        "numbers are Python's": "IntImmEnum",
        "it was removed from TVM in 0.22; T.alloc_buffer allocates": "BufferRealize Prefetch",
        "it was TE's before its lowering; read an element with A[i], or tir.BufferLoad": (
            "ProducerStore ProducerRealize"
        ),
        "pipelines are lists of passes: tvm.transform.Sequential, or "
        'PassContext(config={"tir.add_lower_pass": …})': (
            "get_tir_pipeline get_default_tir_pipeline register_tir_pipeline compilation_pipeline "
            "pipeline"
        ),
        "a code generator writes out intrinsics itself": "register_intrin_lowering",
        "blocks are found by name, sch.get_block; their dependences by sch.get_producers and "
        "sch.get_consumers": "SBlockDependenceInfo BlockDependenceInfo sblock_dependence_info "
        "block_dependence_info",
    },
    "schedule": {
        "arguments are checked by the primitives themselves": "_type_checker",
    },
    "runtime": {
        "programs run in this process, by what tvm.build gives; lib.export_library saves it": (
            "load_static_library system_lib"
        ),
    },
}
"""The same for names in modules that are here."""

ABSENT: dict[str, str] = {name: why for why, names in _ROWS.items() for name in names.split()} | {
    f"{module}.{name}": why
    for module, rows in _ROWS_IN.items()
    for why, names in rows.items()
    for name in names.split()
}
"""Modules, and names in them -> what to use instead; `*` is every name that a module has not."""

PACKAGES: dict[str, str] = {
    "topi": "it moved to tvm.topi in TVM 0.7; write from tvm import topi",
    "nnvm": "relay replaced it, and relax that; write models with tvm.relax (lesson 9)",
    "vta": "it was for an accelerator of its own; describe an instruction with "
    "tvm.tir.TensorIntrin.register, and sch.tensorize by it (lesson 8)",
}
"""Packages that came with TVM beside it -> what to use instead."""

HINTS: dict[str, str] = {
    "tir": "dir(tvm.tir) lists what is here",
    "arith": "tvm.arith.Analyzer simplifies, proves and bounds integers",
    "analysis": "go through a program with tvm.tir.stmt_functor.post_order_visit",
    "schedule": "the steps of a schedule are methods of tvm.tir.Schedule",
    "script.parser": "scripts are read by @T.prim_func and tvm.script.from_source alone",
    "script.ir_builder": "statements are built by tvm.script.ir_builder.tir, or read from a script",
    "script.printer": "change what mod.script() prints",
    "meta_schedule": "what users call is in tvm.meta_schedule itself",
    "testing": "compare numbers with tvm.testing.assert_allclose, programs with "
    "tvm.ir.assert_structural_equal",
    "te": "write the elements of the tensor with te.compute",
    "ir": "nodes of programs are in tvm.tir and tvm.relax, modules are tvm.IRModule",
    "ir.transform": "a pass is written with @tvm.transform.module_pass",
    "ir.instrument": "an instrument is written with @tvm.instrument.pass_instrument",
    "runtime": "arrays are made by tvm.nd.array, programs by tvm.build",
    "runtime.target": 'a target is tvm.target.Target("llvm"), or a dict of its attributes',
    "relax": "models are written with @R.function, relax.BlockBuilder or relax.frontend.nn",
    "relax.op": "relax.op.call_tir calls a function of yours",
    "relax.transform": "write the pass with @tvm.transform.module_pass and relax.PyExprMutator",
    "relax.analysis": "go through an expression with relax.analysis.post_order_visit",
    "relax.dpl": "patterns begin with is_op and wildcard",
    "relax.frontend": "models are read by relax.frontend.torch and relax.frontend.onnx",
    "relax_vm": "models run by relax.VirtualMachine(relax.build(mod), dev)",
    "dlight": "a rule is a subclass of tvm.dlight.ScheduleRule",
    "driver": "models are compiled and run by tvm.driver.tvmc's load, tune, compile and run",
    "topi.utils": "shapes are tuples of numbers and expressions of tvm.tir",
}
"""A module -> what to use instead of a name that it has not."""
