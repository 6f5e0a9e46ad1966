"""The builder turns labels into depths and hands out locals."""

import pytest

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import FunctionType, WasmError


def test_labels_become_depths() -> None:
    f = FunctionBuilder("f")
    with f.block("out") as out, f.loop("again") as again:
        f.emit("i32.const", 1)
        with f.branch() as inner:
            f.jump(out)
            f.otherwise()
            f.jump(again)
            f.jump(inner)
        f.emit("i32.const", 0)
        f.jump_if(out)
        f.emit("i32.const", 0)
        f.jump_if(again)
    function = f.build()
    assert [i for i in function.body if i[0].startswith("br")] == [
        ("br", 2),
        ("br", 1),
        ("br", 0),
        ("br_if", 1),
        ("br_if", 0),
    ]
    assert function.label_names == ("out", "again", "")
    assert [i[0] for i in function.body[:4]] == ["block", "loop", "i32.const", "if"]
    assert [i[0] for i in function.body[-2:]] == ["end", "end"]


def test_parameters_and_locals() -> None:
    f = FunctionBuilder("f", [("A", "i32"), ("x", "f32")], ["f32"])
    assert (f.parameter("A"), f.parameter("x")) == (0, 1)
    first, second = f.local("v128", "acc"), f.local("i32")
    assert (first, second) == (2, 3)
    f.release(first)
    assert f.local("i32") == 4
    assert f.local("v128", "again") == first
    assert f.local("v128") == 5
    function = f.build()
    assert function.type == FunctionType(("i32", "f32"), ("f32",))
    assert function.locals == ("v128", "i32", "i32", "v128")
    assert function.local_names == ("A", "x", "acc", "", "", "")


def test_code_names_locals_and_labels() -> None:
    f = FunctionBuilder("f", [("n", "i32")], ["i32"])
    total = f.local("f32", "total")
    with f.block("out"), f.loop("again"):
        f.code("""
            local.get n  i32.const 0x10  i32.lt_s  br_if again  ;; a comment: br out
            f32.const 0.5  local.set total  local.get 1  drop  i32.const -1  br_if out""")
    f.code("local.get n  call half")
    assert f.build().body == (
        ("block", None), ("loop", None),
        ("local.get", 0), ("i32.const", 16), ("i32.lt_s",), ("br_if", 0),
        ("f32.const", 0.5), ("local.set", total), ("local.get", total), ("drop",),
        ("i32.const", -1), ("br_if", 1),
        ("end",), ("end",), ("local.get", 0), ("call", "half"),
    )  # fmt: skip


def test_instructions_carry_their_source() -> None:
    f = FunctionBuilder("f")
    f.emit("nop")
    f.source = 3
    with f.block():
        f.emit("nop")
        f.source = 4
    assert f.build().sources == (None, 3, 3, 4)


def test_names_may_be_missing() -> None:
    f = FunctionBuilder("f")
    f.local("i32")
    with f.block():
        pass
    assert (f.build().local_names, f.build().label_names) == ((), ())


def test_a_jump_from_outside_is_refused() -> None:
    f = FunctionBuilder("f")
    with f.block("closed") as closed:
        pass
    with pytest.raises(WasmError, match="Function f: a jump to 'closed' from outside of it"):
        f.jump(closed)


def test_a_function_with_open_blocks_is_not_built() -> None:
    f = FunctionBuilder("f")
    with f.block(), pytest.raises(WasmError, match="Function f: 1 blocks are still open"):
        f.build()
