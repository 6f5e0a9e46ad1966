"""Calls of TVM's operators, as text: of `topi` on tensors, and of `relax.op` on variables.

In the text `t(n, m)` is a new float32 input, `t(n, m, d="int8")` one of another type.
"""

from __future__ import annotations

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp fast_erf fast_exp fast_tanh "
    "floor identity isfinite isinf isnan log log10 log2 negative round rsqrt sigmoid sign sin "
    "sinh sqrt tan tanh trunc"
)

BINARY = (
    "add atan2 divide equal floor_divide floor_mod greater greater_equal less less_equal "
    "log_add_exp maximum minimum mod multiply not_equal power subtract"
)

INTEGER_BINARY = "bitwise_and bitwise_or bitwise_xor left_shift right_shift"

REDUCTIONS = "sum max min prod argmax argmin"

TOPI = (
    *(f"topi.{name}(t(16, 32))" for name in UNARY.split()),
    *(
        f'topi.{name}(t(4, 8, 8, d="float16"))'
        for name in UNARY.split()
        if not name.startswith("fast_")
    ),
    *(f'topi.{name}(t("n", 8, d="float64"))' for name in ("exp", "tanh", "sqrt", "abs")),
    *(f'topi.{name}(t(16, d="int32"))' for name in ("abs", "negative", "sign", "identity")),
    *(f"topi.{name}(t(16, 32), t(16, 32))" for name in BINARY.split()),
    *(f"topi.{name}(t(4, 1, 8), t(3, 1))" for name in BINARY.split()),
    *(
        f'topi.{name}(t(8, d="{dtype}"), t(8, d="{dtype}"))'
        for name in BINARY.split()
        if name not in ("atan2", "log_add_exp", "power")
        for dtype in ("int32", "int64", "uint8")
    ),
    *(f'topi.{name}(t(8, 8, d="int32"), t(8, d="int32"))' for name in INTEGER_BINARY.split()),
    *(
        f'topi.{name}(t(4, 4, d="bool"), t(4, 4, d="bool"))'
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    'topi.logical_not(t(8, d="bool"))',
    'topi.bitwise_not(t(8, d="int32"))',
    *(f"topi.{name}(t(8, 16, 4), axis={axis})" for name in REDUCTIONS.split() for axis in (0, -1)),
    *(f"topi.{name}(t(8, 16), axis=1, keepdims=True)" for name in REDUCTIONS.split()),
    *(f'topi.{name}(t(8, 16, d="float16"), axis=[0, 1])' for name in ("sum", "max", "min", "prod")),
    *(f'topi.{name}(t(8, "m"), axis=1)' for name in REDUCTIONS.split()),
    *(f'topi.{name}(t(8, 16, d="bool"), axis=1)' for name in ("all", "any")),
    "topi.collapse_sum(t(4, 8), (1, 8))",
    *(
        f'topi.cast(t(8, 8, d="{a}"), "{b}")'
        for a, b in (
            ("float32", "int32"),
            ("int8", "float32"),
            ("float32", "float16"),
            ("float32", "bfloat16"),
            ("bfloat16", "float32"),
            ("bool", "float32"),
            ("float32", "bool"),
            ("int64", "int32"),
            ("uint8", "int32"),
            ("float16", "float8_e4m3fn"),
            ("float8_e4m3fn", "float16"),
            ("float8_e5m2", "float32"),
        )
    ),
    'topi.reinterpret(t(8), "uint32")',
    'topi.reinterpret(t(8, d="int32"), "float32")',
    "topi.clip(t(8, 8), 0.0, 6.0)",
    'topi.clip(t(8, d="int32"), -3, 4)',
    'topi.fixed_point_multiply(t(8, d="int32"), 1073741824, 1)',
    'topi.full((4, 4), "float32", 1.5)',
    "topi.full_like(t(4, 4), 2.0)",
    'topi.arange(0, 16, 2, "int32")',
    'topi.arange(0, 1, 0.25, "float32")',
    "topi.broadcast_to(t(1, 8), (4, 8))",
    "topi.expand_dims(t(4, 8), 1)",
    "topi.expand_like(t(4), t(4, 8), [1])",
    "topi.flip(t(4, 8), 1)",
    'topi.gather(t(4, 8), 1, t(4, 2, d="int64"))',
    'topi.gather_nd(t(4, 8), t(2, 3, d="int64"))',
    'topi.take(t(16, 8), t(4, d="int32"), axis=0)',
    'topi.take(t(16, 8), t(4, d="int64"), axis=1, mode="clip")',
    'topi.take(t(16, 8), t(4, 2, d="int32"), mode="wrap")',
    'topi.layout_transform(t(1, 16, 8, 8), "NCHW", "NCHW4c")',
    'topi.layout_transform(t(1, 4, 8, 8, 4), "NCHW4c", "NHWC")',
    "topi.matrix_set_diag(t(4, 4), t(4))",
    'topi.one_hot(t(4, d="int32"), 1.0, 0.0, 8, -1, "float32")',
    "topi.repeat(t(4, 8), 2, 0)",
    "topi.reshape(t(4, 8), (2, 16))",
    'topi.reshape(t("n", 8), (t.n * 8,))',
    "topi.nn.flatten(t(4, 8, 2))",
    'topi.reverse_sequence(t(4, 8), t(4, d="int32"), 1, 0)',
    'topi.sequence_mask(t(8, 4), t(4, d="int32"), 0.0, 0)',
    "topi.sliding_window(t(4, 8), 0, (2, 3), (1, 2))",
    'topi.sparse_to_dense(t(3, d="int32"), [8], t(3), t(d="float32"))',
    "topi.split(t(4, 8), 2, 1)",
    "topi.split(t(4, 9), [2, 5], 1)",
    "topi.squeeze(t(4, 1, 8, 1))",
    "topi.stack((t(4, 8), t(4, 8)), 1)",
    "topi.concatenate((t(4, 8), t(4, 2)), 1)",
    "topi.strided_slice(t(8, 16), [1, 2], [7, 14], [2, 3])",
    "topi.strided_slice(t(8, 16), [7, 15], [0, 0], [-1, -2])",
    "topi.strided_set(t(8), t(2), t(1, d='int32'), t(1, d='int32'), t(1, d='int32'))",
    "topi.tensordot(t(4, 8), t(8, 5), 1)",
    "topi.tile(t(4, 8), (2, 1))",
    "topi.transpose(t(4, 8, 2), (2, 0, 1))",
    "topi.trilu(t(8, 8), te.const(0, 'int32'), True)",
    "topi.trilu(t(2, 8, 8), te.const(-1, 'int32'), False)",
    "topi.unravel_index(t(4, d='int32'), t(2, d='int32'))",
    'topi.where(t(4, 8, d="bool"), t(4, 8), t(8))',
    "topi.meshgrid((t(4), t(8)), 'ij')",
    "topi.adv_index(t(8, 8), [t(3, d='int64'), t(3, d='int64')])",
    "topi.dynamic_strided_slice(t(8), t(1, d='int64'), t(1, d='int64'), t(1, d='int64'), [4])",
    "topi.einsum('ij,jk->ik', t(8, 4), t(4, 8))",
    "topi.einsum('bij,bjk->bik', t(2, 8, 4), t(2, 4, 8))",
    "topi.cumsum(t(4, 8), axis=1)",
    "topi.cumprod(t(16), exclusive=True)",
    "topi.sort(t(4, 8), axis=1)",
    "topi.argsort(t(4, 8), axis=0, is_ascend=False)",
    "topi.topk(t(4, 16), k=3, axis=1)",
    "topi.searchsorted(t(16), t(4))",
    "topi.scatter_elements(t(8, 4), t(2, 4, d='int64'), t(2, 4), 0, 'add')",
    "topi.scatter_nd(t(8, 4), t(1, 3, d='int64'), t(3, 4), 'update')",
    "topi.index_put(t(8, 8), [t(3, d='int64'), t(3, d='int64')], t(3), True)",
    "topi.slice_scatter(t(8, 8), t(2, 8), 0, 4, 2, 0)",
    "topi.hamming_window(16, True, 0.54, 0.46, 'float32')",
    "topi.signal.dft(t(2, 8), t(2, 8), tvm.tirx.IntImm('int32', 0))",
    "topi.matmul(t(16, 8), t(8, 16))",
    "topi.matmul(t(16, 8), t(16, 8), False, True)",
    *(f"topi.nn.{name}(t(4, 16))" for name in ("relu", "softmax", "log_softmax", "fast_softmax")),
    'topi.nn.softmax(t(4, "n", d="float16"))',
    "topi.nn.softmax(t(2, 4, 8), 1)",
    "topi.nn.leaky_relu(t(4, 16), 0.1)",
    "topi.nn.prelu(t(1, 4, 8, 8), t(4))",
    "topi.nn.softplus(t(8))",
    "topi.nn.matmul(t(32, 64), t(64, 32))",
    'topi.nn.matmul(t(32, 64, d="int8"), t(64, 32, d="int8"), out_dtype="int32")',
    'topi.nn.matmul(t("n", 64, d="float16"), t(64, 32, d="float16"), out_dtype="float32")',
    "topi.nn.matmul(t(32, 64), t(32, 64), transpose_b=True)",
    "topi.nn.dense(t(8, 64), t(32, 64), t(32))",
    "topi.nn.batch_matmul(t(4, 16, 8), t(4, 32, 8))",
    'topi.nn.batch_matmul(t(1, 16, 8, d="int8"), t(4, 32, 8, d="int8"), out_dtype="int32")',
    "topi.nn.batch_norm(t(2, 4, 8, 8), t(4), t(4), t(4), t(4))",
    "topi.nn.layer_norm(t(4, 16), t(16), t(16), [1])",
    'topi.nn.layer_norm(t(4, 16, d="float16"), t(16, d="float16"), t(16, d="float16"), [1])',
    "topi.nn.rms_norm(t(4, 16), t(16), [1])",
    "topi.nn.group_norm(t(2, 8, 4, 4), t(8), t(8), 2, 1, [2, 3])",
    "topi.nn.instance_norm(t(2, 8, 4, 4), t(8), t(8), 1, [2, 3])",
    "topi.nn.lrn(t(1, 8, 4, 4), 3)",
    "topi.nn.nll_loss(t(8, 4), t(8, d='int32'), t(4), 'mean', -100)",
    "topi.nn.conv1d_ncw(t(1, 4, 16), t(8, 4, 3), 1, 1)",
    "topi.nn.conv1d_nwc(t(1, 16, 4), t(3, 4, 8), 2, 'SAME')",
    "topi.nn.conv1d_transpose_ncw(t(1, 4, 8), t(4, 8, 3), 2, 1, 'float32', 0)",
    "topi.nn.conv2d_nchw(t(1, 3, 16, 16), t(8, 3, 3, 3), 1, 1, 1)",
    "topi.nn.conv2d_nchw(t(1, 3, 17, 17), t(8, 3, 3, 3), 2, 0, 2)",
    "topi.nn.conv2d_nhwc(t(1, 16, 16, 4), t(3, 3, 4, 8), 1, 1, 1)",
    "topi.nn.conv2d_hwcn(t(8, 8, 4, 2), t(3, 3, 4, 8), 1, 1, 1)",
    "topi.nn.conv2d_transpose_nchw(t(1, 4, 8, 8), t(4, 8, 3, 3), (2, 2), (1, 1), "
    "'float32', (0, 0))",
    "topi.nn.conv2d_winograd_nhwc(t(1, 8, 8, 4), t(3, 3, 4, 8), 1, 1, 1, 'float32')",
    "topi.nn.conv2d_winograd_nchw(t(1, 4, 8, 8), t(8, 4, 3, 3), 1, 1, 1, 'float32')",
    "topi.nn.conv3d_ncdhw(t(1, 2, 6, 6, 6), t(4, 2, 3, 3, 3), 1, 1, 1, 1)",
    "topi.nn.conv3d_ndhwc(t(1, 6, 6, 6, 2), t(3, 3, 3, 2, 4), 1, 1, 1, 1)",
    "topi.nn.conv3d_transpose_ncdhw(t(1, 2, 4, 4, 4), t(2, 4, 3, 3, 3), (1, 1, 1), (1, 1, 1), "
    "'float32', (0, 0, 0))",
    "topi.nn.group_conv2d_nchw(t(1, 8, 8, 8), t(8, 4, 3, 3), 1, 1, 1, 2)",
    "topi.nn.group_conv2d_nhwc(t(1, 8, 8, 8), t(3, 3, 4, 8), 1, 1, 1, 2)",
    "topi.nn.group_conv1d_ncw(t(1, 8, 8), t(8, 4, 3), 1, 1, 1, 2)",
    "topi.nn.depthwise_conv2d_nchw(t(1, 8, 8, 8), t(8, 1, 3, 3), 1, 1, 1)",
    "topi.nn.depthwise_conv2d_nhwc(t(1, 8, 8, 8), t(3, 3, 8, 1), 1, 1, 1)",
    "topi.nn.deformable_conv2d_nchw(t(1, 4, 8, 8), t(1, 18, 6, 6), t(4, 4, 3, 3), 1, 0, 1, 1, 1, "
    "'float32')",
    "topi.nn.correlation_nchw(t(1, 2, 8, 8), t(1, 2, 8, 8), 1, 2, 1, 1, 2, True)",
    "topi.nn.pool1d(t(1, 4, 16), [2], [2], [1], [0, 0], 'max')",
    "topi.nn.pool2d(t(1, 4, 8, 8), [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], 'max')",
    "topi.nn.pool2d(t(1, 4, 9, 9), [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], 'avg', True)",
    "topi.nn.pool2d(t(1, 4, 8, 8), [3, 3], [1, 1], [1, 1], [1, 1, 1, 1], 'avg', "
    "count_include_pad=False)",
    "topi.nn.pool3d(t(1, 2, 6, 6, 6), [2, 2, 2], [2, 2, 2], [1, 1, 1], [0] * 6, 'max')",
    "topi.nn.pool_grad(t(1, 2, 4, 4), t(1, 2, 8, 8), [2, 2], [2, 2], [0, 0, 0, 0], 'max')",
    "topi.nn.global_pool(t(1, 8, 7, 7), 'avg')",
    "topi.nn.global_pool(t(1, 8, 7, 7), 'max')",
    "topi.nn.adaptive_pool(t(1, 4, 9, 9), (3, 3), 'avg')",
    "topi.nn.adaptive_pool3d(t(1, 2, 6, 6, 6), (2, 2, 2), 'avg')",
    "topi.nn.pad(t(4, 8), [1, 0], [2, 3], 1.5)",
    "topi.nn.mirror_pad(t(4, 8), [1, 1], [1, 2], 'REFLECT')",
    "topi.nn.reflect_pad(t(4, 8), [1, 1])",
    "topi.nn.replicate_pad(t(4, 8), [1, 1])",
    "topi.nn.circular_pad(t(4, 8), [1, 1])",
    "topi.nn.dilate(t(4, 8), [2, 1])",
    "topi.nn.fifo_buffer(t(4, 2), t(4, 8), 1)",
    "topi.nn.space_to_depth(t(1, 4, 8, 8), 2)",
    "topi.nn.depth_to_space(t(1, 8, 4, 4), 2)",
    "topi.nn.space_to_batch_nd(t(1, 8, 8, 2), [2, 2], [0, 0], [0, 0])",
    "topi.nn.scale_shift_nchw(t(1, 4, 8, 8), t(4), t(4))",
    "topi.nn.upsampling(t(1, 4, 8, 8), 2.0, 2.0)",
    "topi.nn.upsampling(t(1, 4, 8, 8), 2.0, 2.0, method='bilinear')",
    "topi.nn.upsampling3d(t(1, 2, 4, 4, 4), 2.0, 2.0, 2.0)",
    "topi.nn.binarize_pack(t(4, 64))",
    "topi.nn.binary_dense(t(4, 2, d='uint32'), t(8, 2, d='uint32'))",
    "topi.nn.bitpack(t(1, 8, 8, 32, d='uint8'), 1, 3, 3, 'uint32')",
    "topi.nn.bitserial_dense(t(4, 64, d='uint8'), t(8, 64, d='uint8'), 1, 1)",
    "topi.image.resize1d(t(1, 2, 8), [0.0, 0.0], (16,))",
    *(
        f"topi.image.resize2d(t(1, 2, 8, 8), [0.0] * 4, (12, 16), method='{method}', "
        f"coordinate_transformation_mode='{mode}')"
        for method in ("nearest_neighbor", "linear", "cubic")
        for mode in ("half_pixel", "align_corners", "asymmetric")
    ),
    "topi.image.resize3d(t(1, 2, 4, 4, 4), [0.0] * 6, (8, 8, 8))",
    "topi.image.affine_grid(t(1, 2, 3), (4, 4))",
    "topi.image.grid_sample(t(1, 2, 8, 8), t(1, 2, 4, 4))",
    "topi.image.grid_sample(t(1, 2, 8, 8), t(1, 2, 4, 4), 'nearest', padding_mode='reflection')",
    "topi.image.grid_sample(t(1, 2, 8, 8), t(1, 2, 4, 4), 'bicubic', padding_mode='border')",
    "topi.image.dilation2d_nchw(t(1, 2, 8, 8), t(2, 3, 3), 1, 1, 1)",
    "topi.vision.roi_align(t(1, 2, 8, 8), t(3, 5), (2, 2), 1.0)",
    "topi.vision.roi_align(t(1, 2, 8, 8), t(3, 5), (2, 2), 1.0, mode='max', sample_ratio=2)",
    "topi.vision.roi_pool(t(1, 2, 8, 8), t(3, 5), (2, 2), 1.0)",
    "topi.vision.get_valid_counts(t(1, 8, 6), 0.5)",
    "topi.vision.multibox_transform_loc(t(1, 3, 8), t(1, 32), t(1, 8, 4), (0.1, 0.1, 0.2, 0.2))",
    "topi.vision.all_class_non_max_suppression(t(1, 8, 4), t(1, 2, 8), 4, 0.5, 0.1)",
)

RELAX_UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isfinite isinf isnan log "
    "negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc"
)

RELAX_BINARY = (
    "add divide equal floor_divide floor_mod greater greater_equal less less_equal maximum "
    "minimum mod multiply not_equal power subtract log_add_exp atan2"
)

RELAX = (
    *(f"op.{name}(t(8, 16))" for name in RELAX_UNARY.split()),
    *(f'op.{name}(t("n", 16))' for name in ("exp", "tanh", "negative")),
    *(f"op.{name}(t(8, 16), t(16))" for name in RELAX_BINARY.split()),
    *(f'op.{name}(t("n", 4), t("n", 4))' for name in ("add", "multiply", "maximum")),
    *(f"op.add(t(8), relax.const({value}))" for value in ('1.0, "float32"', '2.0, "float32"')),
    *(
        f'op.{name}(t(8, d="int32"), t(8, d="int32"))'
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    ),
    *(
        f'op.{name}(t(8, d="bool"), t(8, d="bool"))'
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    *(
        f"op.{name}(t(4, 8, 2), axis={axis}, keepdims={keep})"
        for name in ("sum", "mean", "max", "min", "prod", "std", "variance", "median")
        for axis, keep in ((1, False), (-1, True))
    ),
    "op.argmax(t(4, 8), 1)",
    "op.argmin(t(4, 8), keepdims=True)",
    "op.argsort(t(4, 8), descending=True)",
    "op.sort(t(4, 8))",
    "op.topk(t(4, 8), 3)",
    "op.cumsum(t(4, 8), 1)",
    "op.cumprod(t(4, 8), 1, exclusive=True)",
    'op.arange(0, 10, 2, "int64")',
    'op.astype(t(4, 8), "float16")',
    "op.broadcast_to(t(1, 8), (4, 8))",
    "op.bucketize(t(8), t(4))",
    "op.clip(t(4), 0, 6)",
    "op.collapse_sum_to(t(4, 8), (1, 8))",
    "op.concat([t(4, 8), t(4, 2)], 1)",
    'op.dequantize(t(4, 8, d="int8"), t(8), t(8, d="int8"), 1)',
    'op.quantize(t(4, 8), t(8), t(8, d="int8"), 1)',
    'op.einsum((t(4, 8), t(8, 2)), "ij,jk->ik")',
    "op.expand_dims(t(4, 8), [0, 2])",
    'op.eye(4, 5, 1, "float32")',
    "op.flatten(t(4, 8))",
    "op.flip(t(4, 8), 1)",
    'op.full((4, 8), relax.const(1.5, "float32"))',
    'op.full_like(t(4, 8), relax.const(1.5, "float32"))',
    'op.gather_elements(t(4, 8), t(4, 2, d="int64"), 1)',
    'op.gather_nd(t(4, 8), t(3, 2, d="int64"))',
    "op.layout_transform(t(16, 16), lambda i, j: (i // 4, j, i % 4))",
    "op.linear(t(4, 8), t(16, 8), t(16))",
    "op.matmul(t(4, 8), t(8, 16))",
    'op.matmul(t(2, "n", 8), t(2, 8, "m"))',
    'op.matmul(t(4, 8, d="float16"), t(8, 16, d="float16"), "float32")',
    "op.meshgrid([t(4), t(8)])",
    'op.multinomial_from_uniform(t(3, 5), t(6, 1), t(6, 1, d="int64"))',
    'op.one_hot(t(4, d="int64"), relax.prim_value(1), relax.prim_value(0), 8)',
    'op.ones((4, "float32")[:1], "float32")',
    "op.ones_like(t(4, 8))",
    'op.zeros((2, 3), "int32")',
    "op.outer(t(4), t(8))",
    "op.permute_dims(t(4, 8, 2), [2, 0, 1])",
    "op.repeat(t(4, 8), 2, 0)",
    "op.reshape(t(4, 8), (2, -1))",
    'op.reshape(t("n", 8), (t.n * 8,))',
    'op.reverse_sequence(t(4, 8), t(4, d="int64"))',
    'op.scatter_elements(t(8, 4), t(2, 4, d="int64"), t(2, 4), 0, "add")',
    'op.scatter_nd(t(8, 4), t(3, 1, d="int64"), t(3, 4))',
    'op.index_put(t(8, 8), (t(3, d="int64"), t(3, d="int64")), t(3))',
    'op.index_tensor(t(8, 8), [t(3, d="int64"), t(3, d="int64")])',
    "op.slice_scatter(t(8, 8), t(4, 8), 0, 4, 1, 0)",
    "op.split(t(4, 8), 2, 1)",
    "op.split(t(4, 9), [2, 5], 1)",
    "op.squeeze(t(4, 1, 8), 1)",
    "op.stack([t(4), t(4)], 0)",
    "op.strided_slice(t(8, 16), [0, 1], [1, 2], [7, 14], [2, 3])",
    'op.dynamic_strided_slice(t(8, 8), *(t(2, d="int64") for _ in range(3)))',
    'op.take(t(16, 8), t(4, d="int32"), 0)',
    "op.tile(t(4, 8), (2, 1))",
    "op.tril(t(8, 8))",
    "op.triu(t(8, 8), 1)",
    "op.unique(t(16), return_counts=True)",
    "op.nonzero(t(4, 8))",
    'op.where(t(4, 8, d="bool"), t(4, 8), t(8))',
    "op.ewise_fma(t(8), t(8), t(8))",
    "op.shape_of(t(4, 8))",
    "op.size(t(4, 8))",
    "op.hamming_window(16, True, 0.54, 0.46, 'float32')",
    *(
        f"op.nn.{name}(t(4, 16))"
        for name in (
            "relu",
            "relu6",
            "gelu",
            "gelu_tanh",
            "selu",
            "silu",
            "softmax",
            "log_softmax",
            "leakyrelu",
            "softplus",
            "dropout",
        )
    ),
    "op.nn.prelu(t(1, 4, 8), t(4))",
    "op.nn.attention(t(2, 8, 4, 8), t(2, 8, 4, 8), t(2, 8, 4, 8))",
    "op.nn.attention(t(2, 8, 4, 8), t(2, 8, 4, 8), t(2, 8, 4, 8), causal_mask='TopLeft')",
    "op.nn.avg_pool1d(t(1, 4, 8), 2, 2)",
    "op.nn.avg_pool2d(t(1, 4, 8, 8), (2, 2), (2, 2))",
    "op.nn.avg_pool3d(t(1, 2, 4, 4, 4), (2, 2, 2), (2, 2, 2))",
    "op.nn.adaptive_avg_pool2d(t(1, 4, 8, 8), (1, 1))",
    "op.nn.adaptive_avg_pool1d(t(1, 4, 8), 2)",
    "op.nn.max_pool1d(t(1, 4, 8), 2, 2)",
    "op.nn.max_pool2d(t(1, 4, 9, 9), (3, 3), (2, 2), (1, 1), ceil_mode=True)",
    "op.nn.max_pool3d(t(1, 2, 4, 4, 4), (2, 2, 2), (2, 2, 2))",
    "op.nn.batch_norm(t(2, 4, 8, 8), t(4), t(4), t(4), t(4), 1)",
    "op.nn.layer_norm(t(4, 16), t(16), t(16), [-1])",
    'op.nn.layer_norm(t("n", 16), t(16), t(16), -1)',
    "op.nn.rms_norm(t(4, 16), t(16), [-1])",
    "op.nn.group_norm(t(2, 8, 4, 4), t(8), t(8), 2, 1, [2, 3])",
    "op.nn.instance_norm(t(2, 8, 4, 4), t(8), t(8), 1, [2, 3])",
    "op.nn.conv1d(t(1, 4, 16), t(8, 4, 3), padding=1)",
    "op.nn.conv2d(t(1, 3, 16, 16), t(8, 3, 3, 3), padding=1)",
    "op.nn.conv2d(t(1, 16, 16, 4), t(8, 3, 3, 4), (2, 2), data_layout='NHWC', "
    "kernel_layout='OHWI')",
    "op.nn.conv2d(t(1, 8, 8, 8), t(8, 1, 3, 3), groups=8)",
    "op.nn.conv2d(t('n', 3, 16, 16), t(8, 3, 3, 3))",
    "op.nn.conv3d(t(1, 2, 6, 6, 6), t(4, 2, 3, 3, 3))",
    "op.nn.conv1d_transpose(t(1, 4, 8), t(4, 8, 3))",
    "op.nn.conv2d_transpose(t(1, 4, 8, 8), t(4, 8, 3, 3), (2, 2))",
    "op.nn.cross_entropy_with_logits(t(4, 8), t(4, 8))",
    "op.nn.nll_loss(t(8, 4), t(8, d='int64'), t(4))",
    "op.nn.pad(t(4, 8), [1, 2, 0, 3])",
    "op.nn.pad(t(4, 8), [1, 1, 1, 1], 'reflect')",
    "op.image.resize2d(t(1, 2, 8, 8), (16, 16))",
    "op.image.resize2d(t(1, 2, 8, 8), (16, 16), method='nearest_neighbor')",
    "op.image.resize3d(t(1, 2, 4, 4, 4), (8, 8, 8))",
    "op.image.affine_grid(t(1, 2, 3), (4, 4))",
    "op.image.grid_sample(t(1, 2, 8, 8), t(1, 2, 4, 4))",
    "op.vision.roi_align(t(1, 2, 8, 8), t(3, 5), (2, 2), 1.0)",
    "op.vision.get_valid_counts(t(1, 8, 6), 0.5)",
    "op.all_class_non_max_suppression(t(1, 8, 4), t(1, 2, 8), relax.const(4, 'int64'), "
    "relax.const(0.5, 'float32'), relax.const(0.1, 'float32'))",
    "op.memory.view(t(4, 8), (8, 4))",
    "op.print(t(4, 8), format='{}')",
    "op.assert_op(relax.const(True), format='never')",
    "op.call_dps_packed('f', (t(4, 8),), relax.TensorType((4, 8), 'float32'))",
    "op.call_pure_packed('g', t(4, 8), ty_args=relax.TensorType((4, 8), 'float32'))",
)
