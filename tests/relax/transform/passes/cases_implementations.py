"""Functions of TensorIR that AlterOpImpl replaces by such that lie in another layout."""

CASES: dict[str, tuple[str, str]] = {}


def _scaled(name: str, shape: str, attrs: str = "", private: str = "private=True") -> str:
    """A function that multiplies a tensor by 2."""
    axes = ", ".join("ijkl"[: shape.count(",")])
    values = ", ".join(f"v{axis}" for axis in axes.split(", "))
    return f"""
    @T.prim_func({private}, s_tir=True)
    def {name}(a: T.Buffer({shape}, "float32"), b: T.Buffer({shape}, "float32")):
        T.func_attr({{{attrs}}})
        for {axes} in T.grid{shape.replace(",)", ")")}:
            with T.sblock("b"):
                {values} = T.axis.remap("{"S" * shape.count(",")}", [{axes}])
                b[{values}] = a[{values}] * T.float32(2)
"""


def _program(functions: str, body: str, shape: str) -> str:
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    return f"""
@I.ir_module
class Module:{functions}
    @R.function
    def main(x: R.Tensor({shape}, "float32"), w: R.Tensor({shape}, "float32")):
        cls = Module
        with R.dataflow():
{lines}
            R.output(gv)
        return gv
"""


def _case(name: str, maps: str, program: str, kind: str = "relax.scale") -> None:
    transform = f'relax.transform.AlterOpImpl({{"{kind}": module["other"]}}, {{"{kind}": {maps}}})'
    CASES[f"implementation_{name}"] = (f"lambda module: {transform}(module)", program)
    undone = f"relax.transform.OptimizeLayoutTransform()({transform}(module))"
    CASES[f"undone_{name}"] = (f"lambda module: {undone}", program)


_KIND = '"operator_name": "relax.scale"'


def _calls(shape: str, *args: str) -> str:
    return "\n".join(
        f"{'gv' if n == len(args) - 1 else f'y{n}'} = R.call_tir(cls.scale, ({arg},), "
        f'out_ty=R.Tensor({shape}, "float32"))'
        for n, arg in enumerate(args)
    )


_EVEN = "[lambda i: (i // 4, i % 4), lambda i: (i // 4, i % 4)]"
_FUNCTIONS = _scaled("scale", "(16,)", _KIND) + _scaled("other", "(4, 4,)")
_CHAIN = _calls("(16,)", "x", "y0")
_case("even", _EVEN, _program(_FUNCTIONS, _CHAIN, "(16,)"))
_case(
    "even_public",
    _EVEN,
    _program(
        _scaled("scale", "(16,)", _KIND) + _scaled("other", "(4, 4,)", private="private=False"),
        _CHAIN,
        "(16,)",
    ),
)
_case("other_operator", _EVEN, _program(_FUNCTIONS, _CHAIN, "(16,)"), "relax.other")
_case(
    "padded",
    _EVEN,
    _program(
        _scaled("scale", "(14,)", _KIND) + _scaled("other", "(4, 4,)"),
        _calls("(14,)", "x", "y0"),
        "(14,)",
    ),
)
_case(
    "transposed",
    "[lambda i, j: (j, i), lambda i, j: (j, i)]",
    _program(
        _scaled("scale", "(2, 8,)", _KIND) + _scaled("other", "(8, 2,)"),
        _calls("(2, 8,)", "x"),
        "(2, 8)",
    ),
)
_case(
    "padded_twice",
    "[lambda i, j: (i // 4, j, i % 4), lambda i, j: (i // 4, j, i % 4)]",
    _program(
        _scaled("scale", "(6, 3,)", _KIND) + _scaled("other", "(2, 3, 4,)"),
        _calls("(6, 3,)", "x", "y0"),
        "(6, 3)",
    ),
)
_case(
    "only_result",
    "[lambda i: (i,), lambda i: (i // 4, i % 4)]",
    _program(
        _scaled("scale", "(16,)", _KIND)
        + """
    @T.prim_func(private=True, s_tir=True)
    def other(a: T.Buffer((16,), "float32"), b: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi * 4 + vj] * T.float32(2)
""",
        _CHAIN,
        "(16,)",
    ),
)
_SEVERAL = """
    @T.prim_func(private=True, s_tir=True)
    def scale(
        a: T.Buffer((16,), "float32"), w: T.Buffer((16,), "float32"),
        b: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32"),
    ):
        T.func_attr({"operator_name": "relax.scale"})
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                b[vi] = a[vi] + w[vi]
                c[vi] = a[vi] - w[vi]

    @T.prim_func(private=True, s_tir=True)
    def other(
        a: T.Buffer((4, 4), "float32"), w: T.Buffer((16,), "float32"),
        b: T.Buffer((4, 4), "float32"), c: T.Buffer((2, 8), "float32"),
    ):
        for i in range(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                b[vi // 4, vi % 4] = a[vi // 4, vi % 4] + w[vi]
                c[vi // 8, vi % 8] = a[vi // 4, vi % 4] - w[vi]
"""
_case(
    "several",
    (
        "[lambda i: (i // 4, i % 4), lambda i: (i,), lambda i: (i // 4, i % 4), "
        "lambda i: (i // 8, i % 8)]"
    ),
    _program(
        _SEVERAL,
        """
y = R.call_tir(cls.scale, (x, w), out_ty=[R.Tensor((16,), "float32"), R.Tensor((16,), "float32")])
gv = R.add(y[0], y[1])
""",
        "(16,)",
    ),
)
_case(
    "arity",
    _EVEN,
    _program(
        _scaled("scale", "(16,)", _KIND)
        + """
    @T.prim_func(private=True, s_tir=True)
    def other(a: T.Buffer((4, 4), "float32")):
        T.evaluate(0)
""",
        _CHAIN,
        "(16,)",
    ),
)


def _sum(name: str, shape: str, attrs: str = "") -> str:
    """A function that adds two tensors."""
    axes = ", ".join("ij"[: shape.count(",")])
    values = ", ".join(f"v{axis}" for axis in axes.split(", "))
    return f"""
    @T.prim_func(private=True, s_tir=True)
    def {name}(
        a: T.Buffer({shape}, "float32"), b: T.Buffer({shape}, "float32"),
        c: T.Buffer({shape}, "float32"),
    ):
        T.func_attr({{{attrs}}})
        for {axes} in T.grid{shape.replace(",)", ")")}:
            with T.sblock("c"):
                {values} = T.axis.remap("{"S" * shape.count(",")}", [{axes}])
                c[{values}] = a[{values}] + b[{values}]
"""


_case(
    "sums",
    "[lambda i: (i // 4, i % 4)] * 3",
    _program(
        _sum("scale", "(16,)", _KIND) + _sum("other", "(4, 4,)"),
        """
y0 = R.call_tir(cls.scale, (x, w), out_ty=R.Tensor((16,), "float32"))
gv = R.call_tir(cls.scale, (w, y0), out_ty=R.Tensor((16,), "float32"))
""",
        "(16,)",
    ),
)
