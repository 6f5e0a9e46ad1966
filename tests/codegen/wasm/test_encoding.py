"""Modules to bytes and back."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.codegen.wasm.binary import encode, signed, unsigned
from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction
from mlcweb.codegen.wasm.module import Export, Function, FunctionType, Memory, Module, WasmError
from tests.codegen.wasm.decode import decode
from tests.codegen.wasm.every_instruction import (
    SAMPLES,
    control_function,
    every_instruction,
    simple_function,
)


def module_of(*body: Instruction, result: str | None = None) -> Module:
    type = FunctionType((), (result,) if result else ())
    return Module((Function("f", type, (), body),), memory=Memory(1))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16383, b"\xff\x7f"),
        (16384, b"\x80\x80\x01"),
        (624485, b"\xe5\x8e\x26"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_unsigned(value: int, code: bytes) -> None:
    assert unsigned(value) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, b"\x00"),
        (63, b"\x3f"),
        (64, b"\xc0\x00"),
        (-1, b"\x7f"),
        (-64, b"\x40"),
        (-65, b"\xbf\x7f"),
        (-123456, b"\xc0\xbb\x78"),
        (2**31 - 1, b"\xff\xff\xff\xff\x07"),
        (-(2**31), b"\x80\x80\x80\x80\x78"),
        (2**63 - 1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"),
        (-(2**63), b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f"),
    ],
)
def test_signed(value: int, code: bytes) -> None:
    assert signed(value) == code


def test_negative_is_not_unsigned() -> None:
    with pytest.raises(ValueError, match="-1 is negative"):
        unsigned(-1)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integer_constants_survive(small: int, large: int) -> None:
    module = module_of(("i32.const", small), ("drop",), ("i64.const", large), ("drop",))
    assert decode(encode(module)) == module


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
def test_float_constants_survive(single: float, double: float) -> None:
    module = module_of(("f32.const", single), ("f64.const", double), ("drop",), ("drop",))
    body = decode(encode(module)).functions[0].body
    for read, written in zip(body, module.functions[0].body, strict=True):
        assert read == written
        if len(read) > 1:
            assert math.copysign(1, read[1]) == math.copysign(1, written[1])


def test_both_zeros_are_kept_apart() -> None:
    body = decode(encode(module_of(("f32.const", 0.0), ("f32.const", -0.0)))).functions[0].body
    assert [math.copysign(1, instruction[1]) for instruction in body] == [1, -1]


def test_nan() -> None:
    body = decode(encode(module_of(("f32.const", math.nan)))).functions[0].body
    assert math.isnan(body[0][1])


@pytest.mark.parametrize("mnemonic", [name for name, op in OPERATIONS.items() if op.effect])
def test_round_trip_of_each_instruction(mnemonic: str) -> None:
    module = Module((simple_function(OPERATIONS[mnemonic]),))
    assert decode(encode(module)) == module


def test_round_trip_of_everything() -> None:
    module = every_instruction()
    assert decode(encode(module)) == module
    used = {instruction[0] for f in module.functions for instruction in f.body}
    assert used == OPERATIONS.keys()


def test_decoding_without_names() -> None:
    module = decode(encode(every_instruction()), names=False)
    assert module.name == ""
    assert [i.name for i in module.imports] == ["", "function0", "global0"]
    control = module.functions[-1]
    assert control.local_names == control.label_names == ()
    assert (control.name, module.exports[0]) == (
        f"function{len(module.functions)}",
        Export("run", "function", f"function{len(module.functions)}"),
    )


def test_names_of_locals_and_labels_survive() -> None:
    function = decode(encode(every_instruction())).functions[-1]
    assert function.local_names == ("n", "x", "total", "")
    assert function.label_names == ("done", "i", "i", "")


def test_the_smallest_module() -> None:
    assert encode(Module()).startswith(b"\0asm\1\0\0\0")
    assert decode(b"\0asm\1\0\0\0") == decode(encode(Module())) == Module()


def test_known_bytes() -> None:
    module = Module(
        (
            Function(
                "add",
                FunctionType(("i32", "i32"), ("i32",)),
                (),
                (("local.get", 0), ("local.get", 1), ("i32.add",)),
            ),
        ),
        exports=(Export("add", "function", "add"),),
    )
    assert encode(module) == bytes.fromhex(
        "0061736d 01000000"  # magic number, version
        "01 07 01 60 02 7f7f 01 7f"  # types
        "03 02 01 00"  # functions
        "07 07 01 03 616464 00 00"  # exports
        "0a 09 01 07 00 2000 2001 6a 0b"  # code
        "00 0d 04 6e616d65 01 06 01 00 03 616464"  # names
    )


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        (("f32x4.fma",), "f32x4.fma"),
        (("i32.const", 2**31), "2147483648 is no signed integer of 32 bits"),
        (("i64.const", -(2**63) - 1), "no signed integer of 64 bits"),
        (("i32.const",), "it takes 1 immediates"),
        (("i32.add", 1), "it takes 0 immediates"),
        (("v128.load", -4), "-4 is negative"),
        (("v128.const", b"123"), "16 bytes, not 3"),
        (("i8x16.shuffle", (0,)), "picks 16 bytes, not 1"),
        (("call", "nowhere"), "nowhere"),
        (("br", [0, 1]), "unhashable"),
        (("f32.const", "x"), "required argument is not a float"),
    ],
)
def test_what_cannot_be_encoded_is_named(instruction: Instruction, reason: str) -> None:
    with pytest.raises(WasmError, match=r"Function f, instruction 1: cannot encode .*") as caught:
        encode(module_of(("nop",), instruction))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"\0elf", "at byte 0: it ends too early"),
        (b"\0elf\1\0\0\0", "expected the magic number"),
        (b"\0asm\1\0\0\0\x0d\x00", "section 13 is not supported"),
        (b"\0asm\1\0\0\0\x01\x04\x01\x60\x01\x7f", "at byte 14"),
        (encode(module_of(("nop",))).replace(b"\x01\x0b", b"\xff\x0b"), "opcode 0xff"),
    ],
)
def test_what_cannot_be_decoded_is_explained(code: bytes, reason: str) -> None:
    with pytest.raises(WasmError, match="Not a module we can read") as caught:
        decode(code)
    assert reason in str(caught.value)


def test_a_long_kernel_is_as_long_as_its_parts() -> None:
    body = (("local.get", 0), ("v128.load", 4096), ("f32x4.splat",)) * 1000
    function = Function("f", FunctionType(("i32",)), (), body)
    code = bytes.fromhex("2000 fd00048020 fd13")
    assert code * 1000 in encode(Module((function,)))


def test_samples_cover_all_kinds_of_immediates() -> None:
    kinds = {kind for op in OPERATIONS.values() if op.effect for kind in op.immediates}
    assert kinds == SAMPLES.keys()
    assert control_function().type == FunctionType(("i32", "f32"), ("i32",))
