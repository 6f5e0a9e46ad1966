"""Layouts that follow from those of results: `relax.analysis.suggest_layout_transforms`."""

import pytest

from mlcweb.arith.index_map import IndexMap
from mlcweb.ir.errors import TVMError
from mlcweb.relax.analysis import suggest_layout_transforms
from mlcweb.script import from_source
from mlcweb.tir.stmt import Block


def one_block(a: str, b: str, loops: str, kinds: str, store: str):
    """A function of one block, called "block", over the iterations vi, vj, …"""
    names = "ijkl"[: len(kinds)]
    iterations, values = ", ".join(names), ", ".join(f"v{name}" for name in names)
    return from_source(f"""
@T.prim_func(private=True)
def f(a: T.Buffer({a}, "float32"), b: T.Buffer({b}, "float32")):
    for {iterations} in T.grid({loops}):
        with T.block("block"):
            {values} = T.axis.remap("{kinds}", [{iterations}])
            {store}
""")


def names(suggestions) -> dict[str, str]:
    """The maps of a single block, by the names of the block and of buffers."""
    return {
        part.name_hint if isinstance(part, Block) else part.name: str(layout)
        for suggestion in suggestions.values()
        for part, layout in suggestion.items()
    }


def described(block: str, b: str, a: str | None) -> dict[str, str]:
    maps = {"block": block, "b": b} | ({} if a is None else {"a": a})
    return {name: f"T.index_map(lambda {text})" for name, text in maps.items()}


def packed(x, y):
    return x // 4, y // 8, x % 4, y % 8


_PACKED = "x, y: (x // 4, y // 8, x % 4, y % 8)"
_SUM = "b[vi, vj] = b[vi, vj] + a[vi, vj, vk]"
_TURNED = "x, y: (y, x)"
CASES = {
    "elementwise": (
        ("(32, 64)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi, vj]"),
        packed, described(_PACKED, _PACKED, _PACKED),
    ),
    "one iteration": (
        ("(32, 64)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi, vj]"),
        lambda x, y: (x * 64 + y,), described(*["x, y: (x * 64 + y,)"] * 3),
    ),
    "not bijective": (
        ("(32, 64)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi, vj]"),
        lambda x, y: (x // 5, y, x % 5), {},
    ),
    "transposed read": (
        ("(32, 64)", "(64, 32)", "64, 32", "SS", "b[vi, vj] = a[vj, vi]"),
        lambda x, y: (x // 4, y, x % 4), described(*["x, y: (x // 4, y, x % 4)"] * 2, None),
    ),
    "transposed write": (
        ("(32, 64)", "(64, 32)", "32, 64", "SS", "b[vj, vi] = a[vi, vj]"),
        lambda x, y: (x // 4, y, x % 4), {},
    ),
    "last reduction": (
        ("(32, 64, 8)", "(32, 64)", "32, 64, 8", "SSR", _SUM),
        lambda x, y: (x // 4, y, x % 4),
        described(
            "x, y, d: (x // 4, y, d, x % 4)", "x, y: (x // 4, y, x % 4)",
            "x, y, d: (x // 4, y, d, x % 4)",
        ),
    ),
    "middle reduction": (
        ("(32, 16, 64)", "(32, 64)", "32, 16, 64", "SRS", "b[vi, vk] = b[vi, vk] + a[vi, vj, vk]"),
        lambda x, y: (y // 4, x, y % 4),
        described(
            "x, d, y: (y // 4, d, x, y % 4)", "x, y: (y // 4, x, y % 4)",
            "x, d, y: (y // 4, d, x, y % 4)",
        ),
    ),
    "first reduction": (
        ("(16, 32, 64)", "(32, 64)", "16, 32, 64", "RSS", "b[vj, vk] = b[vj, vk] + a[vi, vj, vk]"),
        lambda x, y: (y // 4, x, y % 4),
        described(
            "d, x, y: (d, y // 4, x, y % 4)", "x, y: (y // 4, x, y % 4)",
            "d, x, y: (d, y // 4, x, y % 4)",
        ),
    ),
    "two reductions": (
        (
            "(32, 64, 7, 9)", "(32, 64)", "32, 64, 7, 9", "SSRR",
            "b[vi, vj] = b[vi, vj] + a[vi, vj, vk, vl]",
        ),
        lambda x, y: (x // 4, y, x % 4),
        described(
            "x, y, d, d_1: (x // 4, y, d, d_1, x % 4)", "x, y: (x // 4, y, x % 4)",
            "x, y, d, d_1: (x // 4, y, d, d_1, x % 4)",
        ),
    ),
    "broadcast": (
        ("(64,)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vj]"),
        packed, described(_PACKED, _PACKED, "y: (y // 8, y % 8)"),
    ),
    "axis of one": (
        ("(32, 1)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi, 0]"),
        packed, described(_PACKED, _PACKED, "x, d: (x // 4, d, x % 4)"),
    ),
    "mixed with an axis that is not there": (
        ("(32,)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi]"),
        lambda x, y: (x * 64 + y,), described(*["x, y: (x * 64 + y,)"] * 2, None),
    ),
    "strided read": (
        ("(64, 64)", "(32, 64)", "32, 64", "SS", "b[vi, vj] = a[vi * 2, vj]"),
        lambda x, y: (y, x), described(*[_TURNED] * 3),
    ),
    "window": (
        ("(66, 64)", "(64, 64)", "64, 64, 3", "SSR", "b[vi, vj] = b[vi, vj] + a[vi + vk, vj]"),
        lambda x, y: (y, x), described("x, y, d: (y, x, d)", _TURNED, _TURNED),
    ),
    "parts of one iteration": (
        ("(32, 64)", "(2048,)", "2048", "S", "b[vi] = a[vi // 64, vi % 64]"),
        lambda x: (x // 4, x % 4), described(*["x: (x // 4, x % 4)"] * 2, None),
    ),
    "two positions": (
        ("(64, 64)", "(64, 64)", "64, 64", "SS", "b[vi, vj] = a[vi, vj] + a[vj, vi]"),
        lambda x, y: (y, x), described(*[_TURNED] * 2, None),
    ),
}  # fmt: skip
"""Functions of one block, a layout of the result, and what TVM 0.27 suggests."""


@pytest.mark.parametrize("name", CASES)
def test_suggests_what_tvm_suggests(name: str) -> None:
    function, layout, expected = CASES[name]
    assert names(suggest_layout_transforms(one_block(*function), [layout])) == expected


def test_layouts_go_from_block_to_block() -> None:
    func = from_source("""
@T.prim_func(private=True)
def f(a: T.Buffer((32, 64), "float32"), w: T.Buffer((64,), "float32"),
      c: T.Buffer((32, 64), "float32")):
    b = T.alloc_buffer((32, 64))
    for i, j in T.grid(32, 64):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj] + w[vj]
    for i, j in T.grid(32, 64):
        with T.block("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            c[vi, vj] = b[vi, vj] * T.float32(2)
""")
    suggestions = suggest_layout_transforms(func, [IndexMap.from_func(packed, index_dtype="int32")])
    whole = f"T.index_map(lambda {_PACKED})"
    assert names(suggestions) == {
        **dict.fromkeys(("first", "second", "a", "b", "c"), whole),
        "w": "T.index_map(lambda y: (y // 8, y % 8))",
    }


def test_refuses_maps_that_do_not_fit() -> None:
    func = one_block("(4,)", "(4,)", "4", "S", "b[vi] = a[vi]")
    with pytest.raises(TVMError, match="takes 2 indices, but b has 1"):
        suggest_layout_transforms(func, [lambda x, y: (x, y)])
    with pytest.raises(TVMError, match=r"3 layouts are given, but the function has 2 buffer"):
        suggest_layout_transforms(func, [lambda x: x] * 3)
