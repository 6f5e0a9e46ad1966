# ruff: noqa: E501
"""Programs for passes over functions of a module: closures, signatures, purity, order."""

CASES: dict[str, tuple[str, str]] = {}
"""Name -> the pass, as Python, and the program in TVM's spelling of 2026."""

CASES["lift_capturing"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        @R.function
        def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            w = R.add(y, z)
            return w
        r = inner(x)
        return r
''')  # fmt: skip

CASES["lift_plain"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        @R.function
        def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            w = R.multiply(z, z)
            return w
        r = inner(x)
        s = inner(r)
        return s
''')  # fmt: skip

CASES["lift_nested"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        @R.function
        def outer(c: R.Tensor((2, 3), "float32")):
            @R.function
            def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                w = R.add(c, z)
                return w
            return inner
        f = outer(x)
        r = f(y)
        return r
''')  # fmt: skip

CASES["lift_two"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        @R.function
        def one(z: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            w = R.subtract(z, a)
            return w
        @R.function
        def two(z: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            w = R.subtract(z, b)
            v = R.add(w, a)
            return v
        p = one(b)
        q = two(p)
        return q
''')  # fmt: skip

CASES["lift_recursive"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def count(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            cond: R.Tensor((), "bool") = R.greater(i, R.const(10, "int32"))
            if cond:
                r: R.Tensor((), "int32") = i
            else:
                n = R.add(i, R.const(1, "int32"))
                r: R.Tensor((), "int32") = count(n)
            return r
        g = count(x)
        return g
''')  # fmt: skip

CASES["lift_recursive_capturing"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int32"), k: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def count(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            cond: R.Tensor((), "bool") = R.greater(i, R.const(10, "int32"))
            if cond:
                r: R.Tensor((), "int32") = i
            else:
                n = R.add(i, k)
                r: R.Tensor((), "int32") = count(n)
            return r
        g = count(x)
        return g
''')  # fmt: skip

CASES["lift_impure"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function(pure=False)
        def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            R.print(format="inner")
            w = R.add(y, z)
            return w
        r = inner(x)
        return r
''')  # fmt: skip

CASES["lift_returned"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        @R.function
        def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            w = R.add(z, z)
            return w
        return inner
''')  # fmt: skip

CASES["lift_given"] = ("relax.transform.LambdaLift()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        with R.dataflow():
            @R.function
            def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                w = R.add(z, y)
                return w
            r = inner(x)
            R.output(r)
        return r
''')  # fmt: skip

CASES["inline"] = ("relax.transform.InlinePrivateFunctions()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        c: R.Tensor((4, 4), "float32") = Module.subroutine(a, b)
        d: R.Tensor((4, 4), "float32") = Module.subroutine(b, c)
        return d

    @R.function(private=True)
    def subroutine(a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        c = R.add(a, b)
        d = R.multiply(c, b)
        return d
''')  # fmt: skip

CASES["inline_dataflow"] = ("relax.transform.InlinePrivateFunctions()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            b = R.add(a, a)
            c: R.Tensor((4, 4), "float32") = Module.subroutine(b)
            d = R.multiply(c, b)
            R.output(d)
        return d

    @R.function(private=True)
    def subroutine(a: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            c = R.add(a, a)
            d = R.multiply(c, c)
            R.output(d)
        return d
''')  # fmt: skip

CASES["inline_symbolic"] = ("relax.transform.InlinePrivateFunctions()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        c: R.Tensor((4, 8), "float32") = Module.subroutine(a)
        return c

    @R.function(private=True)
    def subroutine(a: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n = T.int64()
        m = T.int64()
        c: R.Tensor((n, m), "float32") = R.add(a, a)
        return c
''')  # fmt: skip

CASES["inline_twice"] = ("relax.transform.InlinePrivateFunctions()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        c: R.Tensor((4,), "float32") = Module.outer(a)
        return c

    @R.function(private=True)
    def outer(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        b: R.Tensor((4,), "float32") = Module.inner(a)
        c = R.add(b, a)
        return c

    @R.function(private=True)
    def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        b = R.exp(a)
        return b
''')  # fmt: skip

CASES["inline_tuple"] = ("relax.transform.InlinePrivateFunctions()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        pair = Module.both(a, b)
        total = pair[0]
        first = pair[1]
        d = R.multiply(total, first)
        return d

    @R.function(private=True)
    def both(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        c = R.add(a, b)
        d = R.negative(a)
        return (c, d)
''')  # fmt: skip

CASES["expand_tuple"] = ("relax.transform.ExpandTupleArguments()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        c: R.Tensor((2,), "float32") = Module.func((a, b))
        return c

    @R.function(private=True)
    def func(args: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
        p = args[0]
        q = args[1]
        r = R.add(p, q)
        return r
''')  # fmt: skip

_UNUSED = """
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            b = R.add(a, a)
            c = b
            unused = R.exp(c)
            d = R.multiply(c, b)
            R.output(d)
        return d
"""
for _pass in ("ExpandTupleArguments", "RemoveUnusedOutputs", "FoldConstant"):
    CASES[f"unused_in_{_pass}"] = (f"relax.transform.{_pass}()", _UNUSED)

CASES["expand_tuple_nested"] = ("relax.transform.ExpandTupleArguments()", '''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        c: R.Tensor((2,), "float32") = Module.func(((a,), b), a)
        return c

    @R.function(private=True)
    def func(args: R.Tuple(R.Tuple(R.Tensor((2,), "float32")), R.Tensor((2,), "float32")), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        p = args[0]
        pp = p[0]
        q = args[1]
        r = R.add(pp, q)
        s = R.add(r, x)
        return s
''')  # fmt: skip

_MODEL = '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 16), "float32"), w: R.Tensor((16, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor((4, 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.nn.relu(w)
            lv = R.matmul(x, wt)
            out = R.add(lv, b)
            R.output(out)
        return out
'''  # fmt: skip

CASES["bundle"] = ("relax.transform.BundleModelParams()", _MODEL)
CASES["bundle_named"] = ('relax.transform.BundleModelParams("weights")', _MODEL)

CASES["remove_purity"] = ("relax.transform.RemovePurityChecking()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        z = R.call_pure_packed("some.function", y, ty_args=(R.Tensor((4,), "float32"),))
        return z

    @R.function(pure=False)
    def effect(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.print(x, format="{}")
        return x
''')  # fmt: skip

CASES["remove_purity_inside"] = ("relax.transform.RemovePurityChecking()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        @R.function
        def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            b: R.Tensor((4,), "float32") = R.add(a, x)
            return b
        y: R.Tensor((4,), "float32") = inner(x)
        return y

    @R.function(pure=False)
    def effect(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        @R.function
        def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            b: R.Tensor((4,), "float32") = R.add(a, x)
            return b
        R.print(x, format="{}")
        y = R.call_pure_packed("some.function", x, ty_args=(R.Tensor((4,), "float32"),))
        z: R.Tensor((4,), "float32") = inner(y)
        return z
''')  # fmt: skip

_DIAMOND = """
@I.ir_module
class Module:
    @R.function
    def main(A: R.Tensor((4,), "float32")):
        with R.dataflow():
            B1 = R.add(A, R.const(1.0, "float32"))
            C1 = R.add(A, R.const(2.0, "float32"))
            B2 = R.multiply(B1, B1)
            C2 = R.multiply(C1, C1)
            D = R.add(B2, C2)
            E = R.exp(C1)
            R.output(D, E)
        return (D, E)
"""
for order in ("depth-first", "breadth-first"):
    for direction in ("from-inputs", "from-outputs"):
        CASES[f"sort_{order}_{direction}"] = (
            f'relax.transform.TopologicalSort(order="{order}", direction="{direction}")',
            _DIAMOND,
        )

CASES["lift_params"] = ("relax.transform.LiftTransformParams()", _MODEL)
CASES["lift_params_stopped"] = ("relax.transform.LiftTransformParams()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            a = R.add(w, R.const(1.0, "float32"))
            b = R.builtin.stop_lift_params(a)
            c = R.multiply(b, b)
            d = R.add(c, x)
            R.output(d)
        return d
''')  # fmt: skip
CASES["lift_params_two"] = ("relax.transform.LiftTransformParams()", '''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 16), "float32"), w1: R.Tensor((8, 16), "float32"), w2: R.Tensor((8,), "float32"), w3: R.Tensor((8,), "float32")) -> R.Tensor((4, 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w1_t = R.permute_dims(w1, axes=[1, 0])
            lv = R.matmul(x, w1_t)
            s = R.add(w2, w3)
            t = R.exp(s)
            lv1 = R.add(lv, t)
            out = R.add(lv1, w3)
            R.output(out)
        return out
''')  # fmt: skip

_TWO_MODELS = """
@I.ir_module
class Module:
    @R.function
    def prefill(x: R.Tensor(("n", 4), "float32"), w1: R.Tensor((8, 4), "float32"), w2: R.Tensor((8,), "float32"), w3: R.Tensor((8,), "float32")):
        R.func_attr({"num_input": 1})
        n = T.int64()
        with R.dataflow():
            w1_t = R.permute_dims(w1)
            only_here = R.exp(w3)
            y = R.matmul(x, w1_t)
            b = R.add(w2, w3)
            z = R.add(y, b)
            u = R.multiply(z, only_here)
            out = R.add(u, w2)
            R.output(out)
        return out

    @R.function
    def decode(x: R.Tensor((1, 4), "float32"), state: R.Tensor((1, 8), "float32"), v1: R.Tensor((8, 4), "float32"), v2: R.Tensor((8,), "float32"), v3: R.Tensor((8,), "float32")):
        R.func_attr({"num_input": 2})
        with R.dataflow():
            bias = R.add(v2, v3)
            v1_t = R.permute_dims(v1)
            y = R.matmul(x, v1_t)
            z = R.add(y, bias)
            u = R.add(z, state)
            out = R.add(u, y)
            R.output(out)
        return out

    @R.function
    def plain(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y
"""
for _name, _shared in (("all", True), ("named", ["prefill", "decode"]), ("one", ["decode"])):
    CASES[f"lift_shared_{_name}"] = (f"relax.transform.LiftTransformParams({_shared})", _TWO_MODELS)
CASES["lift_shared_others"] = (
    "relax.transform.LiftTransformParams(True)",
    _TWO_MODELS.replace("v3: R.Tensor((8,)", "v3: R.Tensor((1,)"),
)
EXTENT_OF_WEIGHT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor(("m", 4), "float32")):
        R.func_attr({"num_input": 1})
        m = T.int64()
        with R.dataflow():
            s = R.sum(w, axis=[0])
            y = R.add(x, s)
            z = R.full(R.shape([m]), R.const(1.0, "float32"), dtype="float32")
            out = (y, z)
            R.output(out)
        return out
"""
for _shared in (True, False):
    CASES[f"lift_extent_{_shared}"] = (
        f"relax.transform.LiftTransformParams({_shared})", EXTENT_OF_WEIGHT,
    )  # fmt: skip
CASES["lift_shared_empty"] = ("relax.transform.LiftTransformParams([])", _TWO_MODELS)
CASES["lift_shared_unknown"] = ('relax.transform.LiftTransformParams(["plain"])', _TWO_MODELS)

CASES["reshape_dataflow"] = ("relax.transform.RewriteDataflowReshape()", '''
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def reshape(A: T.Buffer((T.int64(2), T.int64(3)), "float32"), B: T.Buffer((T.int64(6),), "float32")):
        for i in range(T.int64(6)):
            with T.sblock("B"):
                v = T.axis.spatial(T.int64(6), i)
                B[v] = A[v // T.int64(3), v % T.int64(3)]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        with R.dataflow():
            y = R.add(x, x)
            z = R.call_tir(cls.reshape, (y,), out_ty=R.Tensor((6,), "float32"))
            w = R.exp(z)
            R.output(w)
        return w
''')  # fmt: skip

_DATAFLOW = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def beside(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        a = R.add(x, y)
        with R.dataflow():
            b = R.add(a, y)
            c = R.multiply(b, y)
            R.output(c)
        d = R.add(c, x)
        R.print(d, format="{}")
        e = R.add(d, d)
        return e

    @R.function
    def alone(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.add(a, a)
            R.output(a, b)
        return b

    @R.function(pure=False)
    def local(x: R.Tensor((2,), "float32")):
        @R.function(pure=False)
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            z = R.add(y, y)
            w = R.multiply(z, z)
            R.print(w, format="{}")
            return w

        a = R.multiply(x, x)
        b = inner(a)
        c = R.add(b, b)
        d = R.add(c, c)
        return d
"""
for _size in (1, 2, 3):
    CASES[f"to_dataflow_{_size}"] = (f"relax.transform.ConvertToDataflow({_size})", _DATAFLOW)
