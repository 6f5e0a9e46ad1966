"""Default schedules compute what the functions computed before."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import dlight, relax, te, topi
from mlcweb.lower import outline_parallel
from mlcweb.relax import BlockBuilder, TensorStructInfo, Var, op
from mlcweb.runtime.thread_pool import POOL
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.expr import Var as PrimVar

TARGETS = ("llvm", "wasm")
RULES = (dlight.cpu.Matmul(), dlight.cpu.Reduction(), dlight.cpu.Elementwise())


def scheduled(func, target="llvm", rules=RULES):
    mod = tvm.IRModule({"main": func})
    with tvm.target.Target(target):
        return dlight.ApplyDefaultSchedule(*rules)(mod)


def run(mod, target, inputs, shape, dtype):
    result = tvm.nd.array(np.zeros(shape, dtype))
    tvm.build(mod, target=target)["main"](*map(tvm.nd.array, inputs), result)
    return result.numpy()


def matmul(n, m, k, dtype="float32"):
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    return te.create_prim_func([a, b, topi.nn.relu(topi.matmul(a, b))])


def numbers(*shape, dtype="float32"):
    generator = np.random.default_rng(sum(shape))
    if dtype == "float32":
        return generator.standard_normal(shape, dtype)
    return generator.integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("n", "m", "k"), [(1, 1, 1), (7, 13, 11), (1, 37, 5), (33, 17, 1), (29, 64, 31)]
)
def test_products_of_any_size(n, m, k, target):
    a, b = numbers(n, k), numbers(k, m)
    got = run(scheduled(matmul(n, m, k), target), target, (a, b), (n, m), "float32")
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_integer_sums_are_exact(target):
    a, b = numbers(29, 31, dtype="int32"), numbers(31, 37, dtype="int32")
    mod = scheduled(matmul(29, 37, 31, "int32"), target)
    assert "tir.is_scheduled" in mod["main"].attrs
    got = run(mod, target, (a, b), (29, 37), "int32")
    np.testing.assert_array_equal(got, np.maximum(a @ b, 0))


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_symbolic_size(target):
    n = te.var("n")
    mod = scheduled(matmul(n, 37, 11), target)
    assert "T.vectorized" in mod.script()  # tiles of registers
    library = tvm.build(mod, target=target)
    for size in (1, 7, 13, 24):
        a, b = numbers(size, 11), numbers(11, 37)
        result = tvm.nd.array(np.zeros((size, 37), "float32"))
        library["main"](tvm.nd.array(a), tvm.nd.array(b), result)
        np.testing.assert_allclose(result.numpy(), np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (3, 1), (1, 67), (5, 32)])
def test_rows_of_any_size(shape, target):
    a = te.placeholder(shape, "float32", "A")
    mod = scheduled(te.create_prim_func([a, topi.nn.softmax(a, axis=-1)]), target)
    assert mod["main"].attrs["mlcweb.reassociate"]
    x = numbers(*shape)
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=-1, keepdims=True)
    got = run(mod, target, (x,), shape, "float32")
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "together"),
    [((6, 37), True), ((1, 4, 64), True), ((7, 37), False), ((1, 37), False), ((2, 1), True)],
)
def test_rows_that_read_the_same_are_computed_together(shape, together, target):
    a = te.placeholder(shape, "float32", "A")
    scale, shift = (te.placeholder(shape[-1:], "float32", name) for name in "GS")
    result = topi.nn.layer_norm(a, scale, shift, [len(shape) - 1], 1e-5)
    func = te.create_prim_func([a, scale, shift, result])
    mod = scheduled(func, target)
    assert ("T.unroll(2)" in mod.script()) == together
    inputs = numbers(*shape), numbers(shape[-1]), numbers(shape[-1]) + 1
    plain = run(tvm.IRModule({"main": func}), "interpreter", inputs, shape, "float32")
    got = run(mod, target, inputs, shape, "float32")
    np.testing.assert_allclose(got, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1,), (7, 13), (1, 1, 31)])
def test_elementwise_blocks_become_one(shape):
    a = te.placeholder(shape, "float32", "A")
    result = topi.nn.relu(topi.add(topi.multiply(a, a), topi.negative(a)))
    mod = scheduled(te.create_prim_func([a, result]))
    sch = tvm.tir.Schedule(mod)
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 1
    x = numbers(*shape)
    expected = np.maximum(x * x - x, 0)
    np.testing.assert_array_equal(run(mod, "wasm", (x,), shape, "float32"), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "channels", "stride"), [(7, 5, 1), (13, 17, 2), (1, 3, 1)])
def test_convolutions(size, channels, stride, target):
    a = te.placeholder((1, 3, size, size), "float32", "A")
    w = te.placeholder((channels, 3, 3, 3), "float32", "W")
    func = te.create_prim_func([a, w, topi.nn.conv2d_nchw(a, w, stride, 1, 1)])
    inputs = numbers(1, 3, size, size), numbers(channels, 3, 3, 3)
    side = (size - 1) // stride + 1
    shape = (1, channels, side, side)
    plain = run(tvm.IRModule({"main": func}), "interpreter", inputs, shape, "float32")
    got = run(scheduled(func, target), target, inputs, shape, "float32")
    np.testing.assert_allclose(got, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize(("window", "stride", "padding"), [(3, 2, 1), (2, 2, 0), (3, 1, 1)])
def test_pooled_windows_of_a_row_lie_in_lanes(window, stride, padding, kind, target):
    a = te.placeholder((2, 3, 41, 43), "float32", "A")
    sides = [window, window], [stride, stride], [1, 1], [padding] * 4
    pooled = topi.nn.pool2d(a, *sides, kind, count_include_pad=False)
    func = te.create_prim_func([a, pooled])
    shape = tuple(int(extent) for extent in pooled.shape)
    image = numbers(2, 3, 41, 43)
    image[0, 1, 7, 9] = np.nan
    mod = scheduled(func, target)
    plain = run(tvm.IRModule({"main": func}), "interpreter", (image,), shape, "float32")
    np.testing.assert_array_equal(run(mod, target, (image,), shape, "float32"), plain)
    source = tvm.build(mod, target).get_source()
    lanes = {"wasm": "i8x16.shuffle", "llvm": "shufflevector"}[target] if stride == 2 else ""
    assert lanes in source


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("size", "stride", "added", "together"),
    [
        ((5, 7), 1, (2, 24, 5, 7), True),
        ((9, 4), 1, (1, 24, 1, 1), True),
        ((8, 12), 1, (2, 24, 8, 12), True),
        ((5, 7), 2, (2, 24, 3, 4), True),
        ((9, 13), 3, (1, 24, 1, 1), True),
        ((5, 7), 1, (1, 24, 5, 1), False),
        ((35, 1), 1, (2, 24, 35, 1), False),
    ],
)
def test_filters_of_one_pixel_take_lanes_across_the_ends_of_rows(
    size, stride, added, together, target
):
    shapes = (2, 11, *size), (24, 11, 1, 1), added
    a, w, b = (
        te.placeholder(one, "float32", name) for one, name in zip(shapes, "AWB", strict=True)
    )
    result = topi.nn.relu(topi.add(topi.nn.conv2d_nchw(a, w, stride, 0, 1), b))
    func = te.create_prim_func([a, w, b, result])
    mod = scheduled(func, target)
    # The sums lie in local memory in the order in which vectors take them.
    allocated = mod["main"].root_block.alloc_buffers
    [sums] = [buffer for buffer in allocated if buffer.scope() == "local"]
    assert (len(sums.shape) == 3) == together
    # What lies apart in the image is copied first.
    assert ("A_reindex" in mod.script()) == (stride > 1)
    taken = [constant_shape(buffer) for buffer in mod["main"].parameter_buffers]
    assert taken[:3] == [*shapes]
    shape = (2, 24, *((n - 1) // stride + 1 for n in size))
    inputs = [numbers(*one) for one in shapes]
    plain = run(tvm.IRModule({"main": func}), "interpreter", inputs, shape, "float32")
    got = run(mod, target, inputs, shape, "float32")
    np.testing.assert_allclose(got, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("channels", "steps"), [(24, [8, 3]), (23, [23])])
def test_rows_take_long_sums_in_parts_that_stay_in_the_cache(channels, steps, target, monkeypatch):
    a = te.placeholder((1, channels, 5, 5), "float32", "A")
    w = te.placeholder((128, channels, 3, 3), "float32", "W")
    func = te.create_prim_func([a, w, topi.nn.relu(topi.nn.conv2d_nchw(a, w, 1, 1, 1))])

    def extents(mod):
        sch = tvm.tir.Schedule(mod)
        return [sch.get(loop).extent.value for loop in sch.get_loops("conv2d_nchw_update")]

    monkeypatch.setattr(dlight.cpu.matmul, "PART_BYTES", 1 << 30)
    whole = extents(scheduled(func, target))
    assert channels in whole
    # Three channels of filters of nine pixels for the lanes of a tile.
    bytes_of_part = 3 * 9 * whole[-1] * whole[-2] * 4
    monkeypatch.setattr(dlight.cpu.matmul, "PART_BYTES", bytes_of_part)
    mod = scheduled(func, target)
    assert [extent for extent in extents(mod) if extent in steps][: len(steps)] == steps
    inputs, shape = [numbers(1, channels, 5, 5), numbers(128, channels, 3, 3)], (1, 128, 5, 5)
    plain = run(tvm.IRModule({"main": func}), "interpreter", inputs, shape, "float32")
    got = run(mod, target, inputs, shape, "float32")
    np.testing.assert_allclose(got, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "tile"),
    # All tiles are whole; or have a row to spare; or that costs more than a step's loads do.
    [(48, [4, 2]), (50, [2, 4]), (49, [4, 2]), (35, [4, 2]), (7, [7, 1]), (5, [5, 1])],
)
def test_rows_of_a_tile_keep_products_busy(rows, tile):
    mod = scheduled(matmul(rows, 64, 31), "wasm")
    sch = tvm.tir.Schedule(mod)
    loops = [sch.get(loop) for loop in sch.get_loops("T_matmul_update")]
    assert [loop.extent.value for loop in loops[-3:]] == [*tile, 4]
    a, b = numbers(rows, 31), numbers(31, 64)
    got = run(mod, "wasm", (a, b), (rows, 64), "float32")
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


def convolution(channels, size):
    a = te.placeholder((1, 3, size, size), "float32", "A")
    w = te.placeholder((channels, 3, 3, 3), "float32", "W")
    return te.create_prim_func([a, w, topi.nn.conv2d_nchw(a, w, 1, 1, 1)])


def row_by_row(operator, *shape):
    a = te.placeholder(shape, "float32", "A")
    return te.create_prim_func([a, operator(a)])


SHARED = {
    "columns": (matmul(29, 96, 31), ((29, 31), (31, 96)), (29, 96)),
    "lines": (convolution(17, 13), ((1, 3, 13, 13), (17, 3, 3, 3)), (1, 17, 13, 13)),
    "softmax": (row_by_row(topi.nn.softmax, 3, 7, 33), ((3, 7, 33),), (3, 7, 33)),
    "tanh": (row_by_row(topi.tanh, 3, 7, 33), ((3, 7, 33),), (3, 7, 33)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SHARED)
def test_threads_share_the_outer_loops(name, target, monkeypatch):
    func, shapes, shape = SHARED[name]
    mod = scheduled(func, target)
    assert "T.parallel" in mod.script()
    inputs = [numbers(*one) for one in shapes]
    plain = run(tvm.IRModule({"main": func}), "interpreter", inputs, shape, "float32")
    monkeypatch.setattr(outline_parallel, "MIN_OPERATIONS", 0)
    launches = []
    pool_run = POOL.run
    monkeypatch.setattr(POOL, "run", lambda tasks: (launches.append(len(tasks)), pool_run(tasks)))
    tvm.runtime.config_threadpool(1, 3)
    try:
        got = run(mod, target, inputs, shape, "float32")
    finally:
        tvm.runtime.config_threadpool()
    assert max(launches) > 1
    np.testing.assert_allclose(got, plain, rtol=1e-4, atol=1e-5)


def machine(mod):
    """A virtual machine for a model with default schedules."""
    with tvm.target.Target("llvm"):
        ready = dlight.ApplyDefaultSchedule(*RULES)(relax.get_pipeline()(mod))
    return relax.VirtualMachine(relax.build(ready, target="llvm"), tvm.cpu())


def test_models_of_symbolic_length():
    n = PrimVar("n", "int64")
    builder = BlockBuilder()
    x = Var("x", TensorStructInfo((n, 33), "float32"))
    w = Var("w", TensorStructInfo((33, 29), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(op.nn.softmax(op.matmul(x, w), axis=-1))
        builder.emit_func_output(result)
    vm = machine(builder.get())
    for size in (1, 5, 17):
        a, b = numbers(size, 33), numbers(33, 29)
        exponentials = np.exp(a @ b)
        expected = exponentials / exponentials.sum(axis=-1, keepdims=True)
        got = vm["main"](tvm.nd.array(a), tvm.nd.array(b)).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["resnet", "bert"])
def test_models_like_onnxruntime(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    from mlcweb.relax.frontend.onnx import from_onnx
    from tests.dlight.onnx_models import bert, resnet

    if name == "resnet":
        model, inputs = resnet((1,), 8, 17, 10), {"x": numbers(1, 3, 17, 17)}
    else:
        model = bert(1, 24, 3, 11, 50)
        inputs = {"ids": np.arange(11, dtype="int64").reshape(1, 11)}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    vm = machine(from_onnx(model))
    got = vm["main"](*map(tvm.nd.array, inputs.values())).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_models_get_schedules_for_what_nobody_wrote():
    large, small = matmul(64, 64, 64), matmul(16, 16, 16)
    sch = tvm.tir.Schedule(large.without_attr("global_symbol"))
    sch.split(sch.get_loops("compute")[-1], [None, 8])
    functions = {
        "generated": large.without_attr("global_symbol"),
        "small": small.without_attr("global_symbol"),
        "written": large.with_attr("global_symbol", "written"),
        "scheduled": sch.mod["main"],
    }
    ready = relax.build(tvm.IRModule(functions), "wasm", relax_pipeline=None).module
    assert [name for name in functions if "tir.is_scheduled" in ready[name].attrs] == ["generated"]


def test_a_target_is_needed():
    with pytest.raises(tvm.TVMError, match="with target"):
        dlight.ApplyDefaultSchedule(*RULES)(tvm.IRModule({"main": matmul(3, 5, 7)}))


def convolution_model(channels, filters, size, kernel, stride):
    """A model of a convolution with constant weights."""
    weights = numbers(filters, channels, kernel, kernel)
    x = Var("x", TensorStructInfo((1, channels, size, size), "float32"))
    builder = BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            padding = kernel // 2
            value = op.nn.conv2d(x, relax.const(weights), strides=stride, padding=padding)
            result = builder.emit_output(op.nn.relu(value))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "shape", [(16, 64, 7, 3, 1), (8, 32, 14, 3, 1), (16, 64, 28, 1, 2), (16, 48, 10, 1, 1)]
)
def test_constant_weights_are_packed_when_models_are_built(shape, target):
    channels, filters, size, kernel, _ = shape
    mod = convolution_model(*shape)
    executable = relax.build(mod, target)
    (name,) = executable.kernel_names
    assert name.endswith("_prepacked")
    buffers = executable.module[name].parameter_buffers
    packed = [extent.value for extent in buffers[1].shape]
    assert packed[0] < filters and np.prod(packed) == filters * channels * kernel**2
    x = tvm.nd.array(numbers(1, channels, size, size))
    plain = relax.VirtualMachine(relax.build(mod, "interpreter"), tvm.cpu())["main"](x)
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](x)
    np.testing.assert_allclose(got.numpy(), plain.numpy(), rtol=1e-4, atol=1e-4)


def test_weights_that_callers_give_stay_as_they_are():
    x = Var("x", TensorStructInfo((64, 64), "float32"))
    w = Var("w", TensorStructInfo((64, 64), "float32"))
    constant = relax.const(numbers(64, 64))
    builder = BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(op.matmul(op.matmul(x, w), constant))
        builder.emit_func_output(result)
    # Both calls are of one function, of which one call gives no constant.
    executable = relax.build(builder.get(), "llvm")
    assert executable.kernel_names == ["matmul"]
    assert "layout_free_buffers" not in executable.module["matmul"].attrs


@pytest.mark.parametrize("target", TARGETS)
def test_strided_convolutions_are_tiled_where_columns_do_not_fill_their_last_tile(target):
    a = te.placeholder((1, 8, 56, 56), "float32", "A")
    w = te.placeholder((12, 8, 1, 1), "float32", "W")
    func = te.create_prim_func([a, w, topi.nn.conv2d_nchw(a, w, 2, 0, 1)])
    mod = scheduled(func, target, (dlight.cpu.Matmul(),))
    assert "T.parallel" in mod.script() and "T.vectorized" in mod.script()
    inputs = numbers(1, 8, 56, 56), numbers(12, 8, 1, 1)
    expected = np.einsum("nchw,oc->nohw", inputs[0][..., ::2, ::2], inputs[1][..., 0, 0])
    got = run(mod, target, inputs, (1, 12, 28, 28), "float32")
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
