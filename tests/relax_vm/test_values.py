"""What functions take and give: tuples, shapes, numbers, functions; branches and calls."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.array import Array
from mlcweb.relax_vm import ShapeTuple
from mlcweb.script import relax as R
from mlcweb.script import tir as T
from tests.relax_vm.programs import vm_of


@tvm.script.ir_module
class Values:
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = A[vi] + B[vi]

    @T.prim_func
    def sum_and_difference(
        A: T.Buffer((4,), "float32"),
        B: T.Buffer((4,), "float32"),
        S: T.Buffer((4,), "float32"),
        D: T.Buffer((4,), "float32"),
    ):
        for i in range(4):
            with T.block("S"):
                vi = T.axis.spatial(4, i)
                S[vi] = A[vi] + B[vi]
                D[vi] = A[vi] - B[vi]

    @T.prim_func
    def scaled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), k: T.int64):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.Cast("float32", k)

    @R.function
    def both(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        cls = Values
        pair = R.call_tir(
            cls.sum_and_difference,
            (x, y),
            [R.Tensor((4,), "float32"), R.Tensor((4,), "float32")],
        )
        return (pair[1], (x, pair))

    @R.function
    def of_tuple(p: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))):
        cls = Values
        pair = R.call_tir(cls.add, p, R.Tensor((4,), "float32"))
        return pair

    @R.function
    def times(x: R.Tensor((4,), "float32"), s: R.Shape(["k"])):
        k = T.int64()
        cls = Values
        y = R.call_tir(cls.scaled, (x,), R.Tensor((4,), "float32"), tir_vars=R.shape([k + 1]))
        return y

    @R.function
    def of_prim(x: R.Tensor((4,), "float32"), s: R.Prim(value="k")):
        k = T.int64()
        cls = Values
        y = R.call_tir(cls.scaled, (x,), R.Tensor((4,), "float32"), tir_vars=R.shape([k * 2]))
        return y

    @R.function
    def chosen(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        cls = Values
        a = R.call_tir(cls.add, (x, x), R.Tensor((4,), "float32"))
        if c:
            b = R.call_tir(cls.add, (a, x), R.Tensor((4,), "float32"))
            r = b
        else:
            d = R.call_tir(cls.add, (a, a), R.Tensor((4,), "float32"))
            e = R.call_tir(cls.add, (d, a), R.Tensor((4,), "float32"))
            r = e
        f = R.call_tir(cls.add, (r, x), R.Tensor((4,), "float32"))
        return f

    @R.function
    def doubled(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Values
        y = R.call_tir(cls.add, (x, x), R.Tensor((n,), "float32"))
        return y

    @R.function
    def nested(x: R.Tensor(("n",), "float32")):
        cls = Values
        y = cls.doubled(x)
        z = cls.doubled(y)
        return (y, z)

    @R.function
    def shape(x: R.Tensor(("n", 3), "float32")):
        n = T.int64()
        return R.shape([n * 2, 3])


VM = vm_of(Values)
X = np.arange(4, dtype="float32")
Y = np.array([1, 5, 2, 8], "float32")
x, y = tvm.nd.array(X), tvm.nd.array(Y)


def equal(result, expected):
    np.testing.assert_array_equal(result.numpy(), expected)


def test_several_results_and_nested_tuples():
    difference, (same, pair) = VM["both"](x, y)
    equal(difference, X - Y)
    assert same is x
    equal(pair[0], X + Y)
    # Programs tell tuples from single tensors by TVM's class, and pass them on.
    result = VM["both"](x, y)
    assert isinstance(result, Array)
    assert isinstance(result[1], Array)
    equal(VM["of_tuple"](Array((x, result[0]))), 2 * X - Y)


def test_tuples_as_arguments():
    equal(VM["of_tuple"]((x, y)), X + Y)
    equal(VM["of_tuple"]([y, y]), 2 * Y)


def test_shapes_and_numbers():
    equal(VM["times"](x, (3,)), X * 4)
    equal(VM["times"](x, ShapeTuple((0,))), X)
    equal(VM["of_prim"](x, 5), X * 10)
    result = VM["shape"](tvm.nd.empty((5, 3)))
    assert result == (10, 3)
    assert isinstance(result, ShapeTuple)


def test_branches():
    for condition, factor in [(True, 4), (False, 7), (True, 4)]:
        equal(VM["chosen"](tvm.nd.array(np.array(condition)), x), X * factor)


def test_calls_of_other_functions_at_several_sizes():
    for size in (4, 1, 9, 0, 4):
        values = np.arange(size, dtype="float32")
        two, four = VM["nested"](tvm.nd.array(values))
        equal(two, 2 * values)
        equal(four, 4 * values)


def test_compiled_functions_can_be_called_alone():
    out = tvm.nd.empty((4,))
    VM["add"](x, y, out)
    equal(out, X + Y)
    assert "add" in VM
    assert "chosen" in VM
    assert "no" not in VM


def test_a_returned_tensor_is_never_overwritten():
    first = VM["doubled"](x)
    second = VM["doubled"](y)
    third, fourth = VM["nested"](y)
    equal(first, 2 * X)
    equal(second, 2 * Y)
    equal(third, 2 * Y)


def test_constants_are_uploaded_once_and_shared():
    bb = relax.BlockBuilder(Values)
    v = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    weight = relax.const(Y)
    with bb.function("plus", [v]):
        with bb.dataflow():
            add = Values.get_global_var("add")
            a = bb.emit(relax.call_tir(add, (v, weight), relax.TensorStructInfo((4,), "float32")))
            b = bb.emit_output(
                relax.call_tir(add, (a, weight), relax.TensorStructInfo((4,), "float32"))
            )
        bb.emit_func_output(b)
    vm = vm_of(bb.get())
    equal(vm["plus"](x), X + 2 * Y)
    assert vm.constant(weight) is vm.constant(weight)
    uploaded = vm.constant(weight)
    equal(vm["plus"](y), 3 * Y)
    assert vm.constant(weight) is uploaded


def test_constants_that_were_folded_lie_where_kernels_read_them():
    bb = relax.BlockBuilder()
    v = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [v]):
        with bb.dataflow():
            total = bb.emit(relax.op.add(relax.const(X), relax.const(Y)))
            result = bb.emit_output(relax.op.multiply(v, total))
        bb.emit_func_output(result)
    folded = relax.transform.FoldConstant()(bb.get())
    (product,) = [binding.value for binding in folded["main"].body.blocks[0].bindings]
    constant = product.args[1]
    equal(constant.data, X + Y)
    vm = vm_of(folded)
    assert vm.constant(constant) is constant.data
    equal(vm["main"](x), X * (X + Y))


def test_recursion_uses_memory_of_its_own():
    @tvm.script.ir_module
    class Recursive:
        @T.prim_func
        def minus_one(A: T.Buffer((), "int32"), B: T.Buffer((), "int32")):
            with T.block("B"):
                B[()] = A[()] - 1

        @T.prim_func
        def positive(A: T.Buffer((), "int32"), B: T.Buffer((), "bool")):
            with T.block("B"):
                B[()] = A[()] > 0

        @T.prim_func
        def plus(A: T.Buffer((), "int32"), B: T.Buffer((), "int32"), C: T.Buffer((), "int32")):
            with T.block("C"):
                C[()] = A[()] + B[()]

        @R.function
        def total(n: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            cls = Recursive
            more = R.call_tir(cls.positive, (n,), R.Tensor((), "bool"))
            less = R.call_tir(cls.minus_one, (n,), R.Tensor((), "int32"))
            if more:
                rest: R.Tensor((), "int32") = cls.total(less)
                sum = R.call_tir(cls.plus, (rest, n), R.Tensor((), "int32"))
                r = sum
            else:
                zero = R.const(0, "int32")
                r = zero
            return r

    vm = vm_of(Recursive)
    for n in (5, 0, 10):
        assert vm["total"](tvm.nd.array(np.array(n, "int32"))).numpy() == n * (n + 1) // 2


def test_local_functions_keep_what_they_use():
    bb = relax.BlockBuilder(Values)
    info = relax.TensorStructInfo((4,), "float32")
    v, w, z = (relax.Var(name, info) for name in ("x", "w", "z"))
    add = Values.get_global_var("add")
    inner_value = relax.Var("s", info)
    body = relax.SeqExpr(
        [relax.BindingBlock([relax.VarBinding(inner_value, relax.call_tir(add, (z, w), info))])],
        inner_value,
    )
    inner = relax.Function([z], body, info)
    name = relax.Var("inner", inner.struct_info)
    result = relax.Var("r", info)
    outer = relax.Function(
        [v, w],
        relax.SeqExpr(
            [
                relax.BindingBlock(
                    [relax.VarBinding(name, inner), relax.VarBinding(result, relax.Call(name, [v]))]
                )
            ],
            relax.Tuple([result, name]),
        ),
    )
    mod = bb.get()
    mod["outer"] = outer
    vm = vm_of(mod)
    called, closure = vm["outer"](x, y)
    equal(called, X + Y)
    equal(vm.invoke_closure(closure, y), 2 * Y)
    equal(closure(x), X + Y)


def test_extents_learnt_from_a_match_cast():
    @tvm.register_func("test.positive", override=True)
    def positive(tensor):
        values = tensor.numpy()
        return tvm.nd.array(values[values > 0])

    @tvm.script.ir_module
    class Dynamic:
        @T.prim_func
        def twice(a: T.handle, b: T.handle):
            n = T.int64()
            A = T.match_buffer(a, (n,), "float32")
            B = T.match_buffer(b, (n,), "float32")
            for i in range(n):
                with T.block("B"):
                    vi = T.axis.spatial(n, i)
                    B[vi] = A[vi] * T.float32(2)

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            k = T.int64()
            cls = Dynamic
            some = R.call_packed("test.positive", x, sinfo_args=R.Tensor(ndim=1, dtype="float32"))
            there = R.match_cast(some, R.Tensor((k,), "float32"))
            y = R.call_tir(cls.twice, (there,), R.Tensor((k,), "float32"))
            z = R.call_tir(cls.twice, (y,), R.Tensor((k,), "float32"))
            return (z, R.shape([k + 1]))

    vm = vm_of(Dynamic)
    for values in ([1, -1, 2, 3], [1, 1, 1, 1], [-1, -1, -1, 7]):
        array = np.array(values, "float32")
        result, shape = vm["main"](tvm.nd.array(array))
        equal(result, 4 * array[array > 0])
        assert shape == ((array > 0).sum() + 1,)
    tvm.runtime.remove_global_func("test.positive")


def test_stateful_calls():
    VM.set_input("both", y=Y, x=X)
    VM.invoke_stateful("both")
    equal(VM.get_outputs("both")[0], X - Y)
    VM.save_function("doubled", "saved", x)
    equal(VM["saved"](), 2 * X)
    for error in (tvm.TVMError, ValueError):
        with pytest.raises(error, match="set_input"):
            VM.invoke_stateful("doubled")
        with pytest.raises(error, match="invoke_stateful"):
            VM.get_outputs("doubled")
    assert len(VM.time_evaluator("invoke_stateful", repeat=2)("both").results) == 2


@tvm.script.ir_module
class WithKernel:
    @T.prim_func
    def plus_one(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = WithKernel
        return R.call_pure_packed(
            "test.apply", x, (R.str("kernel"), cls.plus_one), R.ExternFunc("test.registered"),
            sinfo_args=R.Tensor((4,), "float32"),
        )  # fmt: skip


@pytest.mark.parametrize("kind", ["llvm", "webgpu"])
def test_a_function_of_tensorir_is_a_value(kind):
    def apply(x, named, registered):
        name, kernel = named
        assert name == "kernel" and registered() == 3
        out = tvm.nd.empty((4,), "float32", x.device)
        kernel(x, x_plus_one := tvm.nd.empty((4,), "float32", x.device))
        kernel(x_plus_one, out)
        return out

    device = tvm.cpu() if kind == "llvm" else tvm.device(kind)
    tvm.register_func("test.apply", apply, override=True)
    tvm.register_func("test.registered", lambda: 3, override=True)
    x = np.arange(4, dtype="float32")
    executable = relax.build(WithKernel, kind)
    assert 'function "plus_one"' in executable.as_text()
    result = relax.VirtualMachine(executable, device)["main"](tvm.nd.array(x, device))
    np.testing.assert_array_equal(result.numpy(), x + 2)
