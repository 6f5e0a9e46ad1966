"""What TVM has, or had, and this package has not, and what to use instead."""

_ROWS: dict[str, str] = {
    "relay was replaced by relax in TVM 0.20; write models with tvm.relax (lesson 9)": (
        "relay parser ir.adt ir.affine_type ir.type_relation ir.tensor_type ir.type_functor "
        "ir.TypeCall ir.Constructor ir.TypeData ir.TensorAffineType ir.TupleAffineType "
        "ir.TensorType testing.relax.relay_translator contrib.relay_viz"
    ),
    "schedules of tensor expressions were removed in TVM 0.20; "
    "tvm.tir.Schedule(te.create_prim_func([...])) schedules the same program (lesson 2)": (
        "create_schedule te.create_schedule te.Schedule te.Stage te.schedule te.hybrid "
        "te.decl_tensor_intrin te.thread_axis te.SpecializedCondition "
        "topi.generic.schedule_injective topi.x86.schedule_dense"
    ),
    "it was replaced by tvm.meta_schedule: ms.tune_tir(mod, target, ...) searches schedules "
    "(lesson 5)": "autotvm auto_scheduler",
    'microTVM was removed in TVM 0.20; tvm.build(mod, target="wasm") makes small modules': "micro",
    "programs run in this process; call what tvm.build gives, or measure it with "
    "lib.time_evaluator": "rpc",
    "it ran relay's programs; relax.build and relax.VirtualMachine run models (lesson 9)": (
        "contrib.graph_executor contrib.graph_runtime contrib.debugger runtime.profiler_vm "
        "contrib.pipeline_executor runtime.executor"
    ),
    "it is a library of other hardware, which cannot be called from here; relax.build compiles "
    "its operators itself": (
        "relax.backend contrib.cublas contrib.cublaslt contrib.cudnn contrib.cutlass "
        "contrib.cblas contrib.mkl contrib.dnnl contrib.nnpack contrib.rocblas contrib.hipblas "
        "contrib.thrust contrib.miopen contrib.coreml_runtime contrib.tflite_runtime "
        "contrib.ethosu contrib.tensorrt contrib.hexagon contrib.sparse contrib.random "
        "contrib.vllm"
    ),
    "there is no other compiler here; tvm.build makes the machine code itself": (
        "contrib.emcc contrib.ndk contrib.nvcc contrib.rocm "
        "contrib.xcode contrib.spirv contrib.tar contrib.tvmjs "
        "compat.support.emcc compat.support.ndk compat.support.nvcc "
        "compat.support.rocm compat.support.xcode compat.support.tar"
    ),
    "use concurrent.futures of Python": "contrib.popen_pool compat.support.popen_pool",
    "a page reads files with pyodide.http.open_url, Python with urllib.request": (
        "contrib.download"
    ),
    "keep results in a variable, or in a file with pickle": "contrib.pickle_memoize",
    "arrays speak DLPack themselves: numpy.from_dlpack(x), tvm.nd.from_dlpack(x)": (
        "contrib.dlpack"
    ),
    "there is one device here; a native TVM runs a program on several": (
        "runtime.disco relax.distributed"
    ),
    "it schedules for GPUs; write a tvm.tir.Schedule (lesson 7), or use ms.tune_tir": (
        "tir.tensor_intrin.metal topi.cuda topi.gpu tir.backend"
    ),
    "it was removed in TVM 0.22; write a function with @T.prim_func": "tir.ir_builder",
    "hybrid script was replaced by TVMScript; write a function with @T.prim_func": "tir.hybrid",
    "programs are written here with @T.prim_func, @R.function and @I.ir_module (lesson 2), or made "
    "by te.create_prim_func and relax.BlockBuilder": ("relax.exec_builder"),
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
    "Python functions are called from models by R.call_packed and tvm.register_func": (
        "relax.base_py_module relax.BasePyModule"
    ),
    "tiles and layouts of tirx are for GPUs; write T.block and a tvm.tir.Schedule": (
        "tir.tile_primitive tir.layout tir.exec_scope tir.exec_context tir.script.tile tir.lang"
    ),
    "it asks LLVM, which is not here; tvm.build makes the machine code itself": (
        "runtime.target.codegen runtime.target.intrin tir.tensor_intrin.riscv_cpu"
    ),
    "it is an operator of topi that is not here; write it with te.compute": (
        "topi.nn.bitserial_conv2d topi.nn.bitserial_dense topi.nn.bnn topi.nn.correlation "
        "topi.nn.deformable_conv2d topi.nn.fifo_buffer topi.nn.lstm topi.nn.qnn "
        "topi.nn.winograd_util topi.vision.nms topi.vision.roi_align topi.sparse"
    ),
    "the instructions of one kind of GPU or accelerator are not offered by name; "
    'tvm.build(mod, target="cuda") writes its source (lesson 7)': "backend dlight.adreno",
    "caches of language models are not here; keep the state in tensors that methods take and give "
    "back": "relax.frontend.nn.llm",
    "save the model as ONNX: relax.frontend.onnx.from_onnx reads it": "relax.frontend.tflite",
    "operators are lowered by relax.transform.LegalizeOps(customize_legalize_map={...})": (
        "relax.transform.legalize_ops.adreno relax.transform.legalize_ops.binary "
        "relax.transform.legalize_ops.ccl relax.transform.legalize_ops.common "
        "relax.transform.legalize_ops.create relax.transform.legalize_ops.datatype "
        "relax.transform.legalize_ops.distributed relax.transform.legalize_ops.grad "
        "relax.transform.legalize_ops.image relax.transform.legalize_ops.index "
        "relax.transform.legalize_ops.inspect_op relax.transform.legalize_ops.linear_algebra "
        "relax.transform.legalize_ops.manipulate relax.transform.legalize_ops.nn "
        "relax.transform.legalize_ops.qdq relax.transform.legalize_ops.search "
        "relax.transform.legalize_ops.statistical relax.transform.legalize_ops.unary "
        "relax.transform.legalize_ops.vision"
    ),
    "it is an operator of relax that is not here; relax.op.call_tir calls a function of yours": (
        "relax.op.ccl relax.op.distributed relax.op.vision"
    ),
    "run a program with python -m mlcweb run": "exec",
    "mlcweb is Python; tvm.register_func and tvm.get_global_func reach its registry": (
        "libinfo _ffi ir.json_compact"
    ),
}

_MACHINE = (
    "the virtual machine plans and frees memory itself; relax.build(mod) runs all that is needed"
)
_HARDWARE = "it is for libraries of other hardware; relax.build compiles every function itself"

_ROWS_IN: dict[str, dict[str, str]] = {
    "dlight.gpu": {
        "rules for devices here are Matmul, GEMV, LowBatchGEMV, Reduction, GeneralReduction, "
        "Transpose, RMSNorm and Fallback; or write a tvm.tir.Schedule (lesson 7)": "*"
    },
    "dlight.cpu": {"rules for processors here are Matmul, Reduction and Elementwise": "*"},
    "relax.transform": {
        _MACHINE: (
            "LowerRuntimeBuiltin "
            "VMBuiltinLower VMShapeLower ComputePrimValue "
            "DataflowUseInplaceCalls"
        ),
        _HARDWARE: (
            "AllocateWorkspace AttachExternModules MergeCompositeFunctions RunCodegen "
            "RewriteCUDAGraph IPCAllReduceRewrite LowerGPUIPCAllocStorage SplitCallTIRByPattern"
        ),
        "there is one device here": "RealizeVDevice UpdateVDevice",
        "it gives buffers the memory of virtual devices, and there is one device here": (
            "SpecializePrimFuncBasedOnCallSite"
        ),
        "give a function of TensorIR in its place, by LegalizeOps(customize_legalize_map={...})": (
            "AlterOpImpl FastMathTransform"
        ),
        "write the model in the layout that it is to run in": (
            "OptimizeLayoutTransform AttachAttrLayoutFreeBuffers SplitLayoutRewritePreproc"
        ),
    },
    "relax.op.op_attrs": {
        "attributes are a mapping here, of any operator: call.attrs": "*",
    },
    "script.parser.core.doc": {"scripts are read with Python's own module ast": "*"},
    "script.parser.core.doc_core": {"scripts are read with Python's own module ast": "*"},
    "script.printer.doc": {"change what mod.script() prints": "*"},
    "relax.analysis": {
        "relax.transform.ConvertLayout chooses layouts": "suggest_layout_transforms",
        "an expression's struct info says what is known of it: x.struct_info": "get_static_type",
    },
    "relax.frontend.nn": {
        "keep the state in tensors that methods take and give back": "KVCache",
        "relax.op.call_dps_packed, or nn.op.extern, calls a registered function": (
            "ExternModule ObjectModule SourceModule"
        ),
        "a module is traced into the function that calls it": "SubroutineMixin",
    },
    "relax.op": {
        "it is an operator that is not here; relax.op.call_tir calls a function of yours": (
            "all_class_non_max_suppression get_valid_counts non_max_suppression roi_align roi_pool "
            "multibox_transform_loc dynamic_strided_slice hamming_window median "
            "multinomial_from_uniform"
        ),
        "register the function by tvm.register_func, and call it by relax.op.call_packed": (
            "call_py_func"
        ),
    },
    "relax": {
        "write the model as @I.ir_module, and Python around it": "BasePyModule",
        "relax.build makes the instructions": "ExecBuilder",
    },
    "arith": {
        "sets are intervals here, IntervalSet; an infinite end is None": (
            "PresburgerSet pos_inf neg_inf"
        ),
        "kernels share common parts when they are made": "detect_common_subexpr",
    },
    "analysis": {
        "no target here has limits of a GPU; the postproc VerifyRegisters checks": (
            "verify_gpu_code"
        ),
        "there is no Hexagon target here": "get_vtcm_compaction_passes",
        "memory is not constrained here": (
            "apply_prim_func_arg_and_result_memory_constraints "
            "get_prim_func_arg_and_result_memory_constraints"
        ),
    },
    "lower.transform": {
        "threads stay where they are until they are made serial": ("LiftThreadBinding"),
        "reductions across threads run in sch.rfactor's order": (
            "LowerThreadAllreduce LowerCrossThreadReduction"
        ),
        "virtual threads are loops here": "InjectVirtualThread",
        "the annotation is kept, and nothing is made of it": (
            "InjectSoftwarePipeline InjectDoubleBuffer"
        ),
        "padded blocks are made by sch.decompose_padding": "ReduceBranchingThroughOvercompute",
        "T.assume is only kept": "UseAssumeToReduceBranches",
        'PassContext(config={"mlcweb.bounds_check": True}) checks accesses': (
            "InstrumentBoundCheckers"
        ),
        "kernels are timed whole, by time_evaluator": "InstrumentProfileIntrinsics",
        'build(mod, target="cuda") lowers for GPUs by a pipeline of its own': (
            "InferFragment LowerWarpMemory LowerDeviceStorageAccessInfo "
            "MergeSharedMemoryAllocations DefaultGPUSchedule DecorateDeviceScope SplitHostDevice "
            "InjectPTXAsyncCopy InjectPTXLDG32 LowerAsyncDMA LowerAutoCopy TextureFlatten"
        ),
        "kernels take arrays here, not packed arguments": (
            "MakePackedAPI MakeUnpackedAPI LowerTVMBuiltin"
        ),
        "a code generator writes out intrinsics itself": "LowerIntrin",
        "there are no custom data types here": "LowerCustomDatatypes",
        "no target computes with float8": "FP8ComputeLegalize FP8StorageLegalize",
        "FlattenBuffer took its place in TVM 0.9": "StorageFlatten",
        "write the pass with @tvm.tir.transform.prim_func_pass": "*",
    },
    "tensor_intrin.tensor_cores": {
        "the matrix instructions of PTX are not here; those of wmma are (WMMA_SYNC_…_INTRIN)": "*",
    },
    "tensor_intrin.dot_products": {
        "describe the instruction with @T.prim_func and tvm.tir.TensorIntrin.register": "*",
    },
    "topi": {"it is an operator of topi that is not here; write it with te.compute": "*"},
    "topi.nn": {"it is an operator of topi that is not here; write it with te.compute": "*"},
    "testing.topi_reference": {"compute the expected numbers with NumPy": "*"},
    "te": {
        "loops over the elements of a tensor are written with @T.prim_func": "scan ScanOp",
        "call the function with tvm.tir.call_extern": "extern_primfunc",
    },
    "tir": {
        "tiles and layouts of tirx are for GPUs; write T.block and a tvm.tir.Schedule": (
            "TileLayout ComposeLayout Layout ScopeIdDef ScopeIdDefStmt ExecScope DispatchContext "
            "TilePrimitiveCall TensorMapType tensormap_encode_tiled TensorMapEncodeTiledAttr "
            "CallFFIKernelAttr BufferAccessKind buffer_data_pointer_type"
        ),
        "layouts are maps of indices here: tvm.tir.IndexMap": (
            "bijective_layout BijectiveLayout SLayout SBijectiveLayout slayout sbijective_layout"
        ),
        "it was removed from TVM; write the value with T.alloc_buffer and stores": "AllocateConst",
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
        "sch.get_consumers": "SBlockDependenceInfo BlockDependenceInfo sblock_dependence_info",
    },
    "ir": {
        "a code generator writes out intrinsics itself": "register_intrin_lowering",
        "functions of other modules are called by name: T.call_extern, T.call_packed": "EnvFunc",
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
}
"""A module -> what to use instead of a name that it has not."""
