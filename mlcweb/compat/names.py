"""Names under which TVM's users know our modules and functions.

TVM's API has been spelled in three ways: ``tvm.tir``, ``tvm.nd``, ``tvm.build`` until 2025,
then ``tvm.runtime.tensor`` and ``tvm.compile``, and ``tvm.s_tir``, ``tvm.tirx`` and ``sblock``
since 2026. The package itself uses the first; these tables add the others. They are read while
the compatibility layer is installed, and hold names relative to the root package.
"""

_REFERENCES = (
    "batch_matmul batch_norm conv1d_ncw_python conv2d_hwcn_python conv2d_nchw_python "
    "conv2d_nhwc_python dense dilate_python gather_nd_python gather_python group_norm_python "
    "instance_norm_python l2_normalize_python layer_norm_python lrn_python matrix_set_diag "
    "nll_loss one_hot poolnd_python rms_norm_python slice_axis_python softmax_python "
    "strided_slice_python "
)
"""Files of `topi.testing` that are called like the function in them."""

MODULES: dict[str, str] = {
    "nd": "runtime.nd",
    "ndarray": "runtime.nd",
    "transform": "ir.transform",
    "instrument": "ir.instrument",
    "error": "ir.errors",
    "target": "runtime.target",
    "runtime.target.codegen": "runtime.target_codegen",
    "sym": "arith",
    "support": "compat.support",
    "contrib.utils": "compat.tempdir",
    "support.utils": "compat.tempdir",
    "compat.support.utils": "compat.tempdir",
    **{
        f"{package}.{compiler}": "compat.compilers"
        for package in ("contrib", "support", "compat.support")
        for compiler in ("cc", "clang")
    },
    "contrib.pickle_memoize": "compat.memoize",
    "relax.testing": "testing.relax",
    "ffi": "compat.ffi",
    "_ffi": "compat.ffi",
    "topi.tag": "topi.tags",
    "ir.supply": "ir.names",
    "ir.analysis": "relax.transform.dead_code",
    "runtime.object_path": "ir.access_path",
    "s_tir": "tir",
    "s_tir.meta_schedule": "meta_schedule",
    "tir.meta_schedule": "meta_schedule",
    "tir.dlight": "dlight",
    "s_tir.dlight": "dlight",
    "dlight.analysis.common_analysis": "dlight.analysis",
    "tirx": "tir",
    "tir.stmt": "tir",
    "tir.function": "tir",
    "script.tirx": "script.tir",
    "script.ir_builder.tirx": "script.ir_builder.tir",
    "tir.script.builder": "script.ir_builder.tir",
    "tir.ir_builder": "script.ir_builder.nested",
    "relax.script.builder": "script.ir_builder.relax",
    "relax.vm": "relax_vm",
    "relax.frontend.nn.llm": "llm",
    **{
        f"relax.backend.{name}": "relax.backend.pipelines"
        for machine in ("cpu_generic", "gpu_generic", "cuda", "rocm")
        for name in (machine, f"{machine}.pipeline")
    },
    **{
        f"relax.backend.dispatch_{name}": "relax.backend.dispatch"
        for name in ("sort_scan", "sampling")
    },
    "relax.exec_builder": "relax_vm.exec_builder",
    "relax.vm_build": "relax_vm.vm_build",
    "relax.base_py_module": "relax_vm.base_py_module",
    "runtime.vm": "relax_vm",
    "runtime.relax_vm": "relax_vm",
    "relax.expr_rewrite": "relax.binding",
    "driver.build_module": "runtime.build",
    "tir.tensor_intrin.cuda": "tensor_intrin.cuda",
    "tir.tensor_intrin.rocm": "tensor_intrin.rocm",
    **{
        f"tir.tensor_intrin.{machine}": "tensor_intrin.dot_products"
        for machine in ("x86", "arm_cpu", "dot_product_common", "hexagon")
    },
    "schedule.testing": "testing",
    "topi.nn.utils": "topi.utils",
    "topi.testing": "testing.topi_reference",
    **{f"topi.testing.{file}": "testing.topi_reference" for file in _REFERENCES.split()},
    **{
        f"meta_schedule.testing.{name}": f"testing.{name}"
        for name in ("te_workload", "space_generation", "dummy_object")
    },
    **{
        f"{tir}.{name}": package
        for tir in ("tir", "s_tir", "tirx")
        for name, package in {
            "schedule": "schedule",
            "analysis": "analysis",
            "transform": "lower.transform",
        }.items()
    },
}
"""A module's other name -> its name. A submodule of a renamed module follows it."""

NAMES: dict[str, str] = {
    "analysis": "tir.analysis",
    "compat.ffi": "ffi",
    "ir.transform": "transform",
    "lower.transform": "tir.transform",
    "relax_vm": "relax.vm",
    "runtime.build": "driver.build_module",
    "runtime.target": "target",
    "runtime.target_codegen": "target.codegen",
    "schedule": "tir.schedule",
    "tensor_intrin.dot_products": "tir.tensor_intrin",
    "tensor_intrin.cuda": "tir.tensor_intrin.cuda",
    "tensor_intrin.rocm": "tir.tensor_intrin.rocm",
    "testing.relax": "relax.testing",
    "testing.topi_reference": "topi.testing",
}
"""What messages call a module that TVM has by another name."""

_NODES = ("ir", "tir", "relax")

_FILES: dict[tuple[str, ...], str] = {
    _NODES: "ir ir.base ir.expr ir.function ir.type ir.attrs ir.op ir.prim ir.prim.expr",
    ("ir", "compat.containers"): ("ir.container ir.diagnostics ir.module ir.global_info container"),
    ("ir.errors", "compat.ffi", "compat.containers"): (
        "base _ffi.base _ffi.registry _ffi.runtime_ctypes _ffi.object _ffi.ndarray"
    ),
    ("runtime", "compat.containers"): (
        "runtime.object runtime.container runtime.packed_func runtime.object_generic "
        "runtime.params runtime.script_printer runtime.device runtime.module "
        "runtime.ndarray runtime._tensor"
    ),
    ("tir", "ir"): (
        "tir.op tir.expr tir.stmt tir.buffer tir.function tir.generic tir.type tir.build "
        "tir.data_layout ir.prim.op prim"
    ),
    ("tir.data_layout",): "tir.layout",
    ("schedule",): "schedule.state schedule.trace schedule.analysis schedule.transform "
    "schedule.instruction",
    ("lower.transform",): "lower.transform.transform lower.transform.function_pass",
    ("analysis",): "analysis.analysis",
    ("schedule", "schedule.references"): "tir.block_scope tir.sblock_scope",
    ("arith",): "arith.analyzer arith.bound arith.int_set arith.int_solver "
    "arith.iter_affine_map arith.pattern",
    ("te",): "te.tensor te.operation te.autodiff",
    ("topi",): "topi.transform topi.math topi.generic topi.x86 topi.sort "
    "topi.tensor topi.signal topi.unique topi.cpp topi.scatter_elements "
    "topi.broadcast topi.reduction topi.index_put topi.scan topi.einsum topi.scatter",
    ("topi.nn",): "topi.nn.conv1d topi.nn.conv2d topi.nn.conv3d topi.nn.depthwise_conv2d "
    "topi.nn.batch_matmul topi.nn.batch_norm topi.nn.layer_norm topi.nn.group_norm "
    "topi.nn.instance_norm topi.nn.rms_norm topi.nn.elemwise topi.nn.mapping topi.nn.dilate "
    "topi.nn.flatten topi.nn.conv1d_transpose topi.nn.conv2d_transpose topi.nn.upsampling "
    "topi.nn.local_response_norm topi.nn.loss topi.nn.dense topi.nn.softmax topi.nn.pooling "
    "topi.nn.pad topi.nn.utils topi.nn.space_to_depth topi.nn.depth_to_space "
    "topi.nn.space_to_batch_nd topi.nn.batch_to_space_nd topi.nn.bitserial_util "
    "topi.nn.bitserial_conv2d topi.nn.bitserial_dense topi.nn.bnn",
    ("relax", "ir"): "relax.utils relax.type relax.ty relax.struct_info relax.expr "
    "relax.expr_functor relax.block_builder relax.global_info relax.pipeline",
    ("relax.analysis",): "relax.analysis.analysis relax.analysis.estimate_memory_usage",
    ("relax.transform",): "relax.transform.transform relax.transform.fast_math "
    "relax.transform.legalize_ops relax.transform.attach_external_modules "
    "relax.transform.fold_batch_norm_to_conv2d_for_inference "
    "relax.transform.ipc_allreduce_rewrite relax.transform.lazy_transform_params "
    "relax.transform.lower_gpu_ipc_alloc_storage relax.transform.optimize_layout_transform "
    "relax.transform.remove_redundant_reshape",
    ("relax.transform.legalize_ops",): "relax.transform.legalize_ops.common",
    ("relax.op", "relax.op.nn", "relax.op.image"): (
        "relax.op.binary relax.op.unary relax.op.ternary relax.op.datatype relax.op.base "
        "relax.op.manipulate "
        "relax.op.mask relax.op.op_attrs relax.op.nn.nn relax.op.image.image relax.op.sampling"
    ),
    ("relax.op.builtin",): "relax.op.builtin.builtin",
    ("relax.op.grad",): "relax.op.grad.grad",
    ("relax.op.memory",): "relax.op.memory.memory relax.op.memory.view",
    ("relax.op.vm",): "relax.op.vm.vm",
    ("meta_schedule",): (
        "meta_schedule.logging meta_schedule.profiler "
        "meta_schedule.default_config meta_schedule.tune_utils"
    ),
    ("meta_schedule.tune_context",): "meta_schedule.extracted_task",
    ("meta_schedule.utils", "ir", "compat.containers"): "ir.utils runtime.support",
    **{
        (f"meta_schedule.{package}",): " ".join(
            f"meta_schedule.{package}.{file}" for file in files.split()
        )
        for package, files in {
            "builder": "builder local_builder",
            "cost_model": "random_model xgb_model mlp_model",
            "database": "ordered_union_database schedule_fn_database union_database",
            "feature_extractor": ("feature_extractor per_store_feature random_feature_extractor"),
            "measure_callback": (
                "measure_callback add_to_database remove_build_artifact update_cost_model"
            ),
            "mutator": (
                "mutator mutate_compute_location mutate_parallel mutate_thread_binding "
                "mutate_tile_size mutate_unroll"
            ),
            "postproc": (
                "postproc disallow_async_strided_mem_copy disallow_dynamic_loop "
                "rewrite_cooperative_fetch rewrite_layout rewrite_parallel_vectorize_unroll "
                "rewrite_reduction_block rewrite_tensorize rewrite_unbound_block verify_gpu_code "
                "verify_vtcm_limit"
            ),
            "runner": "config local_runner runner utils",
            "schedule_rule": (
                "schedule_rule add_rfactor apply_custom_rule auto_bind auto_inline "
                "cross_thread_reduction multi_level_tiling parallel_vectorize_unroll "
                "random_compute_location"
            ),
            "search_strategy": ("search_strategy evolutionary_search replay_func replay_trace"),
            "space_generator": (
                "space_generator post_order_apply schedule_fn space_generator_union"
            ),
            "task_scheduler": "task_scheduler gradient_based round_robin",
        }.items()
    },
    ("script", "script.parser"): (
        "script.parser.core script.parser.core.entry script.parser.core.parser "
        "script.parser.core.utils script.parser.core.error script.parser.core.diagnostics "
        "script.parser.core.doc script.parser.core.dispatch script.parser.core.evaluator "
        "script.parser.core.doc_core script.registry"
    ),
    ("script.ir",): "script.parser.ir script.parser.ir.entry script.parser.ir.parser",
    ("script.tir",): (
        "script.parser.tir script.parser.tir.entry script.parser.tir.parser script.parser.tirx "
        "tir.script tir.script.parser tir.script.parser.entry"
    ),
    ("script.relax",): (
        "script.parser.relax script.parser.relax.entry script.parser.relax.parser relax.script "
        "relax.script.parser relax.script.parser.entry"
    ),
    ("testing.relax",): "relax.testing.matmul relax.testing.attention",
    ("relax.frontend.torch",): (
        "relax.frontend.torch.fx_translator relax.frontend.torch.exported_program_translator "
        "relax.frontend.torch.base_fx_graph_translator relax.frontend.torch.dynamo"
    ),
    ("relax.frontend.onnx",): "relax.frontend.onnx.onnx_frontend",
    ("relax_vm.profiling", "relax_vm"): "runtime.profiling",
    ("relax.instrument",): "relax.ir.instrument relax.ir",
    ("driver.tvmc",): (
        "driver.tvmc.model driver.tvmc.frontends driver.tvmc.compiler driver.tvmc.runner "
        "driver.tvmc.autotuner driver.tvmc.main driver.tvmc.result_utils"
    ),
    ("dlight.analysis",): "dlight.base.analysis",
    ("compat.local_session",): "rpc rpc.client",
    ("compat.support",): "support.libinfo",
    ("testing.marks",): "testing.locking",
    ("compat.ffi",): "compat.ffi.core",
    ("testing.te_workload",): "meta_schedule.testing",
    ("script.ir_builder",): "script.ir_builder.base",
    ("script.ir_builder.ir",): "script.ir_builder.ir.ir script.ir_builder.ir.frame",
    ("script.ir_builder.tir",): (
        "script.ir_builder.tir.ir script.ir_builder.tir.frame script.ir_builder.tir.utils "
        "script.ir_builder.tir.tirx"
    ),
    ("script.ir_builder.relax",): ("script.ir_builder.relax.ir script.ir_builder.relax.frame"),
    ("relax.frontend.nn",): (
        "relax.frontend.nn.core relax.frontend.nn.modules relax.frontend.nn.extern "
        "relax.frontend.nn.subroutine relax.frontend.nn._tensor_op"
    ),
    ("dlight.base",): "dlight.base.utils",
    ("tensor_intrin.dot_products", "tensor_intrin.cuda"): "tir.tensor_intrin",
    ("topi.vision",): (
        "topi.vision.multibox_transform_loc topi.vision.nms topi.vision.roi_align "
        "topi.vision.roi_pool"
    ),
    ("relax.op.vision",): (
        "relax.op.vision.multibox_transform_loc relax.op.vision.nms relax.op.vision.roi_align "
        "relax.op.vision.roi_pool"
    ),
    ("topi.image",): "topi.image.dilation2d topi.image.grid_sample topi.image.resize",
    ("script.printer",): "script.highlight",
    ("runtime.target", "runtime"): "runtime.target.target target.target target.tag",
    ("runtime.target",): (
        "runtime.target.tag runtime.target.detect_target runtime.target.tag_registry "
        "runtime.target.tag_registry.registry runtime.target.tag_registry.arm_cpu "
        "runtime.target.tag_registry.aws_cpu runtime.target.tag_registry.riscv_cpu"
    ),
    ("runtime.build", "runtime"): "driver runtime.build",
    ("testing",): "testing.utils testing.aot testing.runner testing.auto_scheduler",
    (): "contrib",
}

VIEWS: dict[str, tuple[str, ...]] = {
    view: homes for homes, views in _FILES.items() for view in views.split()
}
"""A module of TVM -> the modules where names are found that it has not itself. Mostly TVM keeps in
a file what the package offers as well."""

_PRIM_EXPRESSIONS = {
    f"ir.{name}": f"tir.{name}" for name in ("PrimExpr", "PointerType", "IntImm", "FloatImm")
}

_DEVICES = ("cuda", "metal", "vulkan", "webgpu", "rocm", "opencl", "hexagon", "ext_dev")
_ERRORS = (
    "OpError", "OpNotImplemented", "OpAttributeInvalid", "OpAttributeRequired", "RPCError",
    "OpAttributeUnImplemented", "RPCSessionTimeoutError", "register_error",
)  # fmt: skip

ATTRIBUTES: dict[str, str] = {
    "gpu": "runtime.device.cuda",
    **{name: f"runtime.device.{name}" for name in _DEVICES},
    **{f"runtime.{name}": f"runtime.device.{name}" for name in _DEVICES[4:]},
    **{f"ir.errors.{name}": f"compat.errors.{name}" for name in _ERRORS},
    **{f"ir.{name}": f"relax.{name}" for name in ("Call", "Constant", "Tuple", "TupleGetItem")},
    **{
        f"ir.{name}": f"compat.ir_json.{name}"
        for name in ("save_json", "load_json", "make_node", "DictAttrs")
    },
    **{
        f"{module}.{name}".lstrip("."): f"compat.{file}.{name}"
        for file, modules, names in (
            ("enums", " runtime", "DataTypeCode"),
            ("enums", "ir", "CallingConv"),
            ("enums", "tir", "CallEffectKind"),
            ("containers", "tir", "CmpExpr LogicalExpr BinaryOpExpr"),
            ("containers", "runtime tir", "ObjectConvertible"),
            ("ffi", " runtime", "register_object device_from_target"),
        )
        for module in modules.split(" ")
        for name in names.split()
    },
    "runtime.Scriptable": "ir.printing.Scriptable",
    "ir.Scriptable": "ir.printing.Scriptable",
    "ir.UniqueNameSupply": "ir.names.UniqueNameSupply",
    "ir.NameSupply": "ir.names.UniqueNameSupply",
    "ir.names.NameSupply": "ir.names.UniqueNameSupply",
    "script.highlight.cprint": "ir.printing.cprint",
    "runtime.target.create": "runtime.target.Target",
    **{
        f"runtime.target.{name}": f"runtime.target_codegen.{name}"
        for name in ("llvm_version_major", "llvm_get_targets", "llvm_get_cpu_features")
    },
    **{
        f"driver.tvmc.{name}": f"driver.tvmc.{own}"
        for name, own in {
            "TVMCModel": "Model",
            "TVMCPackage": "Package",
            "load_model": "load",
            "tune_model": "tune",
            "compile_model": "compile",
            "run_module": "run",
        }.items()
    },
    "meta_schedule.logging.get_logger": "meta_schedule.utils.get_logger",
    "meta_schedule.logging.get_loggers_from_work_dir": (
        "meta_schedule.utils.get_loggers_from_work_dir"
    ),
    **{
        f"topi.{name}": f"topi.utils.{name}"
        for name in ("InvalidShapeError", "const_vector", "make_idx", "within_index")
    },
    **{
        f"testing.relax.{name}": f"relax.op.grad.{name}"
        for name in ("start_checkpoint", "end_checkpoint")
    },
    "tir.Expr": "tir.PrimExpr",
    "tir.ExprOp": "tir.expr.Arithmetic",
    "ir.ExprOperand": "tir.expr.Arithmetic",
    "ir.ExprWithOp": "tir.expr.PrimExpr",
    "tir.ExprWithOp": "tir.expr.PrimExpr",
    "ir.expr_deep_equal": "analysis.expr_deep_equal",
    "relax.pipeline.PIPELINE_MAP": "relax.pipeline.PIPELINES",
    **{
        f"relax.pipeline.{name}": f"relax.backend.pipelines.{name}"
        for name in (
            "library_dispatch_passes",
            "legalize_passes",
            "dataflow_lower_passes",
            "finalize_passes",
        )
    },
    "relax.pipeline.BackendDispatcher": "relax.backend.utils.BackendDispatcher",
    "relax.pipeline.default_build_pipeline": "relax.pipeline.default_pipeline",
    "relax.get_default_pipeline": "relax.pipeline.get_default_pipeline",
    "relax.dpl.TypePattern": "relax.dpl.StructInfoPattern",
    "dlight.base.normalize_prim_func": "dlight.analysis.normalize_prim_func",
    "ir.GlobalInfo": "ir.global_info.GlobalInfo",
    "ir.StringImm": "tir.StringImm",
    "ir.TensorLoad": "tir.BufferLoad",
    "ir.TensorRegion": "tir.BufferRegion",
    "compile": "runtime.build.compile",
    "driver.compile": "runtime.build.compile",
    "tir.build": "runtime.build.build",
    "DataType": "tir.dtype.DataType",
    "Object": "ir.Node",
    "register_global_func": "register_func",
    "runtime.tensor": "runtime.array",
    "runtime.Tensor": "runtime.NDArray",
    "runtime.DataType": "tir.dtype.DataType",
    "runtime.ShapeTuple": "relax_vm.sizes.ShapeTuple",
    "runtime.Object": "ir.Node",
    **{
        f"runtime.{name}": f"runtime.params.{name}"
        for name in (
            "save_param_dict",
            "load_param_dict",
            "save_param_dict_to_file",
            "load_param_dict_from_file",
        )
    },
    "runtime.Executable": "runtime.executable.Executable",
    "runtime.String": "compat.containers.String",
    "runtime.const": "tir.const",
    "runtime.ObjectPath": "ir.access_path.ObjectPath",
    "runtime.enabled": "testing.marks.enabled",
    "runtime.convert": "compat.containers.convert",
    "ir.BaseExpr": "tir.PrimExpr",
    "ir.is_prim_expr": "compat.containers.is_prim_expr",
    "ir.is_prim_var": "compat.containers.is_prim_var",
    "ir.RelayExpr": "relax.Expr",
    "ir.RelaxExpr": "relax.Expr",
    "ir.Type": "relax.StructInfo",
    "ir.TupleType": "relax.TupleStructInfo",
    "ir.FuncType": "relax.FuncStructInfo",
    "ir.PrimType": "relax.PrimStructInfo",
    "ir.Array": "compat.containers.Array",
    "ir.Map": "compat.containers.Map",
    "ir.Object": "ir.Node",
    "ir.Range": "compat.containers.Range",
    **_PRIM_EXPRESSIONS,
    **{
        f"meta_schedule.{file}._normalize_mod": "meta_schedule.tune_context.normalized"
        for file in ("tune_context", "tir_integration")
    },
    "meta_schedule.ExtractedTask": "meta_schedule.tune_context.ExtractedTask",
    "meta_schedule.Runner": "meta_schedule.runner.Runner",
    "meta_schedule.runner.local_runner.default_alloc_argument": (
        "meta_schedule.runner.allocate_arguments"
    ),
    "relax.TensorType": "relax.TensorStructInfo",
    "relax.DynTensorType": "compat.containers.DynTensorType",
    "relax.ShapeType": "relax.ShapeStructInfo",
    "relax.ObjectType": "relax.ObjectStructInfo",
    "relax.AnyType": "relax.ObjectStructInfo",
    "relax.dpl.pattern.TypePattern": "relax.dpl.pattern.StructInfoPattern",
    "relax.PrimType": "relax.PrimStructInfo",
    "relax.TupleType": "relax.TupleStructInfo",
    "relax.FuncType": "relax.FuncStructInfo",
    "relax.Type": "relax.StructInfo",
    "relax.prim_value": "relax.PrimValue",
    "relax.expr.make_shape": "relax.ShapeExpr",
    "relax.VDevice": "ir.global_info.VDevice",
    "relax.DummyGlobalInfo": "ir.global_info.DummyGlobalInfo",
    "relax.get_shape_of": "relax.op.base.get_shape_of",
    "relax.analysis.type_lca": "relax.analysis.struct_info_lca",
    "relax.analysis.type_base_check": "relax.analysis.struct_info_base_check",
    "relax.analysis.tir_vars_in_type": "relax.analysis.tir_vars_in_struct_info",
    "relax.analysis.definable_tir_vars_in_type": (
        "relax.analysis.definable_tir_vars_in_struct_info"
    ),
    "relax.analysis.derive_call_ret_type": "relax.analysis.derive_call_ret_struct_info",
    **{f"relax.{name}": f"script.relax.{name}" for name in ("dataflow", "output", "match_cast")},
    **{
        f"relax.op.{name}": f"relax.op.nn.{name}"
        for name in ("relu", "gelu", "silu", "softmax", "conv2d", "max_pool2d", "layer_norm")
    },
    "relax.op.transpose": "relax.op.permute_dims",
    "tir.Function": "tir.PrimFunc",
    "dlight.analysis.normalize_function": "dlight.analysis.normalize_prim_func",
    "tir.ProducerLoad": "te.ProducerLoad",
    "tir.renew_defs": "tir.stmt_functor.renew_defs",
    "tir.SLayout": "tir.Layout",
    "tir.SBijectiveLayout": "tir.BijectiveLayout",
    "tir.slayout": "tir.data_layout.layout",
    "tir.sbijective_layout": "tir.data_layout.bijective_layout",
    "tir.SBlock": "tir.Block",
    "tir.SBlockRealize": "tir.BlockRealize",
    "tir.ScheduleState": "schedule.ScheduleState",
    "schedule.SBlockRV": "schedule.BlockRV",
    "schedule.StmtSRef": "schedule.references.StmtSRef",
    "schedule.state.CachedFlags": "schedule.references.CachedFlags",
    "schedule.SBlockScope": "schedule.references.BlockScope",
    **{
        f"schedule.{name}": f"schedule.references.{name}"
        for name in ("DepKind", "Dependency", "BlockScope")
    },
    **{
        f"schedule.analysis.{name}": f"schedule.analysis.tensorize.{name}"
        for name in (
            "AutoTensorizeMappingInfo",
            "TensorizeInfo",
            "get_auto_tensorize_mapping_info",
            "get_tensorize_loop_mapping",
            "has_block",
            "is_output_block",
            "suggest_index_map",
        )
    },
    "tir.StmtSRef": "schedule.references.StmtSRef",
    "tir.BlockScope": "schedule.references.BlockScope",
}
"""The other name of a function, class or method -> its name."""
