"""Wrong code is refused with a reason, and by the same rules as in an engine."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcweb.codegen.wasm.binary import encode
from mlcweb.codegen.wasm.instructions import Instruction
from mlcweb.codegen.wasm.module import (
    Export,
    Function,
    FunctionType,
    Global,
    GlobalType,
    Import,
    Memory,
    Module,
    WasmError,
)
from tests.codegen.wasm.every_instruction import UNARY, every_instruction
from tests.codegen.wasm.validate import validate
from tests.strategies import examples


def module_of(*body: Instruction, sources: tuple[object, ...] = ()) -> Module:
    """A function f(i32 n, f32 x) -> i32 with a v128 local, next to a helper and two globals."""
    f = Function("f", FunctionType(("i32", "f32"), ("i32",)), ("v128",), body, sources=sources)
    helper = Function("helper", UNARY, (), (("local.get", 0),))
    globals_ = (
        Global("fixed", GlobalType("i32"), ("i32.const", 1)),
        Global("moving", GlobalType("f32", mutable=True), ("f32.const", 1.0)),
    )
    return Module((f, helper), memory=Memory(1), globals=globals_)


def test_everything_is_valid() -> None:
    validate(every_instruction())


def test_an_engine_finds_everything_valid() -> None:
    wasmtime = pytest.importorskip("wasmtime")
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.wasm_threads = True
    config.shared_memory = True
    wasmtime.Module.validate(wasmtime.Engine(config), encode(every_instruction()))


RESULT = ("i32.const", 0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ([("f32x4.fma",)], "instruction 0, f32x4.fma: there is no such instruction"),
        ([("i32.add", 1)], r"it takes the immediates \(\)"),
        ([("local.get",)], r"it takes the immediates \(local\)"),
        ([("i32.add",)], "instruction 0, i32.add: it needs i32 i32, found nothing"),
        (
            [("local.get", 0), ("local.get", 1), ("i32.add",)],
            "instruction 2, i32.add: it needs i32 i32, found i32 f32; on the stack: i32 f32",
        ),
        ([("local.get", 3)], "there are only 3 locals"),
        ([("local.get", 1), ("local.set", 0)], "it needs i32, found f32"),
        ([("local.get", 1), ("local.tee", 0)], "it needs i32, found f32"),
        ([], "instruction 0, end: it needs i32, found nothing"),
        ([RESULT, RESULT], "instruction 2, end: the function would leave i32"),
        ([("block", None), RESULT, ("end",), RESULT], "the block would leave i32"),
        ([("block", "i32"), ("end",)], "instruction 1, end: it needs i32, found nothing"),
        ([RESULT, ("block", "i32"), ("end",)], "it needs i32, found nothing"),
        ([RESULT, ("if", "i32"), RESULT, ("end",)], "an if with a result needs an else"),
        ([("block", "i32"), RESULT, ("else",)], "it stands in a block, not in an if"),
        ([RESULT, ("block", None)], "instruction 2, end: a block has no end"),
        ([RESULT, ("end",), ("nop",)], "it stands after the end of the function"),
        ([("br", 1)], "there are only 1 enclosing blocks"),
        ([RESULT, ("local.get", 1), RESULT, ("select",)], "it chooses between i32 and f32"),
        ([("call", "nobody")], 'there is no function "nobody"'),
        ([("local.get", 1), ("call", "helper")], "it needs i32, found f32"),
        ([("global.get", "nothing")], 'there is no global "nothing"'),
        ([RESULT, ("global.set", "fixed")], "it is constant"),
        ([RESULT, ("global.set", "moving")], "it needs f32, found i32"),
        ([RESULT, ("i32.load", 2**32)], "the offset is not within 32 bits"),
        ([("local.get", 2), ("f32x4.extract_lane", 4)], "there are only 4 lanes"),
        ([RESULT, ("local.get", 2), ("v128.load16_lane", 0, 8)], "there are only 8 lanes"),
        (
            [("local.get", 2), ("local.get", 2), ("i8x16.shuffle", (32,) * 16)],
            "a shuffle picks from 32 bytes",
        ),
        ([("unreachable",), ("f32.const", 0.0)], "it needs i32, found f32"),
    ],
)
def test_what_is_wrong_is_said(body: list[Instruction], reason: str) -> None:
    with pytest.raises(WasmError, match=reason) as caught:
        validate(module_of(*body))
    assert str(caught.value).startswith("Function f")


def test_the_source_of_the_instruction_is_named() -> None:
    module = module_of(RESULT, ("drop",), ("f32.abs",), sources=(None, None, "line 12"))
    with pytest.raises(WasmError, match=r"instruction 2, f32.abs \(from line 12\): it needs f32"):
        validate(module)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"memory": Memory(1, shared=True)}, "A shared memory needs a maximum"),
        ({"imports": (Import("e", "m", Memory(1)),), "memory": Memory(1)}, "more than one memory"),
        ({"exports": (Export("f", "function", "g"),)}, 'there is no function "g"'),
        (
            {"globals": (Global("g", GlobalType("f32"), ("i32.const", 0)),)},
            "Global g starts as no constant f32",
        ),
        (
            {
                "functions": (
                    Function(
                        "f", FunctionType(), (), (("i32.const", 0), ("i32.load", 0), ("drop",))
                    ),
                )
            },
            "the module has no memory",
        ),
        (
            {"functions": (Function("f", FunctionType(), (), ()),) * 2},
            'Two functions of a module are called "f"',
        ),
    ],
)
def test_modules_are_checked_too(parts: dict[str, Any], reason: str) -> None:
    with pytest.raises(WasmError, match=reason):
        validate(Module(**parts))


SOME_INSTRUCTIONS: list[Instruction] = [
    RESULT,
    ("f32.const", 0.5),
    ("local.get", 0),
    ("local.get", 2),
    ("local.set", 0),
    ("local.tee", 1),
    ("i32.add",),
    ("i32.eqz",),
    ("f32x4.extract_lane", 3),
    ("f32x4.splat",),
    ("f32.load", 4),
    ("i32.store", 0),
    ("block", None),
    ("block", "i32"),
    ("loop", None),
    ("loop", "f32"),
    ("if", None),
    ("if", "i32"),
    ("else",),
    ("end",),
    ("end",),
    ("br", 0),
    ("br_if", 0),
    ("br_if", 1),
    ("return",),
    ("unreachable",),
    ("drop",),
    ("select",),
    ("call", "helper"),
    ("global.get", "fixed"),
    ("global.set", "moving"),
]


def is_valid(module: Module) -> bool:
    try:
        validate(module)
    except WasmError:
        return False
    return True


@examples(2000)
@given(st.lists(st.sampled_from(SOME_INSTRUCTIONS), max_size=10))
def test_the_verdict_is_that_of_an_engine(body: list[Instruction]) -> None:
    wasmtime = pytest.importorskip("wasmtime")
    module = module_of(*body)
    try:
        wasmtime.Module.validate(wasmtime.Engine(), encode(module))
        accepted = True
    except wasmtime.WasmtimeError:
        accepted = False
    assert is_valid(module) == accepted
