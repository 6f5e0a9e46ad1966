"""Programs whose graphs compute numbers from symbolic extents."""

_COMPUTE = "relax.transform.ComputePrimValue()"

CASES: dict[str, tuple[str, str]] = {
    "numbers_arguments": (_COMPUTE, """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        a = R.prim_value(n * m)
        c = R.call_packed("f", R.prim_value(n * m + 1), R.prim_value(T.int64(3)), ty_args=R.Any)
        d = R.call_packed("g", R.prim_value(n * m), R.shape([n * 2]), ty_args=R.Any)
        return a
"""),
    "numbers_condition": (_COMPUTE, """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        if R.prim_value(n % 2 == 0):
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        return y

    @R.function
    def other(x: R.Tensor(("n",), "float32")):
        return x
"""),
    "numbers_returned": (_COMPUTE, """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        a = (R.prim_value(n * n), R.prim_value(n + 1))
        return a
"""),
}  # fmt: skip
