"""The text format, against the assembler of wasmtime where there is one."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.module import Export, Function, FunctionType, Memory, Module
from mlcweb.codegen.wasm.text import format_float, print_text
from tests.codegen.wasm.decode import decode
from tests.codegen.wasm.every_instruction import every_instruction


def assembled(text: str) -> Module:
    wasmtime = pytest.importorskip("wasmtime")
    return decode(bytes(wasmtime.wat2wasm(text)), names=False)


def test_printed_as_people_read_it() -> None:
    f = FunctionBuilder("sum up", [("A", "i32"), ("n", "i32")], ["f32"])
    total = f.local("f32", "total")
    f.source = 7
    with f.loop("i") as again:
        f.source = 8
        f.emit("local.get", total)
        f.emit("local.get", f.parameter("A"))
        f.emit("f32.load", 4)
        f.emit("f32.const", 0.1)
        f.emit("f32.mul")
        f.emit("f32.add")
        f.emit("local.set", total)
        f.source = 7
        f.emit("local.get", f.parameter("n"))
        f.jump_if(again)
    f.source = None
    f.emit("local.get", total)
    printed = print_text(Module((f.build(),), memory=Memory(1), exports=(Export('"ÿ', "memory"),)))
    assert printed.text == (
        "(module\n"
        "  (memory 1)\n"
        "  (func $sum_up (param $A i32) (param $n i32) (result f32)\n"
        "    (local $total f32)\n"
        "    loop $i\n"
        "      local.get $total\n"
        "      local.get $A\n"
        "      f32.load offset=4\n"
        "      f32.const 0.1\n"
        "      f32.mul\n"
        "      f32.add\n"
        "      local.set $total\n"
        "      local.get $n\n"
        "      br_if $i\n"
        "    end\n"
        "    local.get $total\n"
        "  )\n"
        '  (export "\\22\\c3\\bf" (memory 0))\n'
        ")\n"
    )
    tags = (*[None] * 4, 7, *[8] * 7, 7, 7, 7, None, None, None, None)
    assert printed.sources == tags
    assert len(tags) == printed.text.count("\n")


def test_everything_assembles_to_what_was_encoded() -> None:
    module = every_instruction()
    assert assembled(print_text(module).text) == decode(encode(module), names=False)


def test_a_module_without_names_assembles_too() -> None:
    module = decode(encode(every_instruction()), names=False)
    assert assembled(print_text(module).text) == module


def test_like_names_are_told_apart() -> None:
    body = (
        ("block", None),
        ("block", None),
        ("br", 1),
        ("end",),
        ("end",),
        ("local.get", 0),
        ("local.set", 1),
        ("call", "f x"),
    )
    names = (("x", "x", "x_1"), ("L", "L"))
    module = Module(
        (
            Function("f x", FunctionType(("i32",)), ("i32", "v128"), body, *names),
            Function("f_x", FunctionType(("i32",)), (), (("local.get", 0), ("call", "f x"))),
        )
    )
    text = print_text(module).text
    assert "br $L\n" in text
    assert "block $L_1" in text
    assert "(func $f_x_1" in text
    assert assembled(text) == decode(encode(module), names=False)


@given(st.floats(width=32, allow_nan=False))
def test_short_decimals_give_the_same_float(value: float) -> None:
    assert struct.pack("<f", float(format_float(value, 32))) == struct.pack("<f", value)


@pytest.mark.parametrize(
    ("value", "bits", "text"),
    [
        (0.1, 64, "0.1"),
        (0.10000000149011612, 32, "0.1"),
        (1e10, 32, "1e+10"),
        (-0.0, 32, "-0"),
        (3.4028234663852886e38, 32, "3.4028235e+38"),
        (1e-45, 32, "1e-45"),
        (math.inf, 32, "inf"),
        (-math.inf, 64, "-inf"),
        (math.nan, 32, "nan"),
        (-math.nan, 64, "-nan"),
        (struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0], 64, "nan:0x8000000000001"),
    ],
)
def test_floats_in_text(value: float, bits: int, text: str) -> None:
    assert format_float(value, bits) == text


@given(st.lists(st.floats(), min_size=1), st.lists(st.floats(width=32), min_size=1))
def test_floats_assemble_to_the_same_bits(doubles: list[float], singles: list[float]) -> None:
    constants = [("f64.const", value) for value in doubles]
    constants += [("f32.const", value) for value in singles]
    body = tuple(instruction for constant in constants for instruction in (constant, ("drop",)))
    module = decode(encode(Module((Function("f", FunctionType(), (), body),))))
    unnamed = decode(encode(module), names=False)
    assert encode(assembled(print_text(module).text)) == encode(unnamed)
