"""What a browser says when it stops a kernel becomes one error."""

import pytest

from mlcweb.runtime.host.traps import KernelTrap, trap_in_browser

V8 = """RuntimeError: memory access out of bounds
    at matmul (wasm://wasm/7a1c:wasm-function[0]:0x1e4)
    at matmul_repeat (wasm://wasm/7a1c:wasm-function[1]:0x2b0)
    at f (http://localhost/worker.js:1:20)"""
SPIDERMONKEY = """matmul@http://localhost/w.js line 3 > WebAssembly.Module:wasm-function[0]:0x1e4
f@http://localhost/worker.js:1:20"""
JAVASCRIPTCORE = "<?>.wasm-function[matmul]@[wasm code]"


@pytest.mark.parametrize(
    ("message", "stack", "name", "offset"),
    [
        ("memory access out of bounds", V8, "matmul", 0x1E4),
        ("index out of bounds", SPIDERMONKEY, "matmul", 0x1E4),
        ("Out of bounds memory access", JAVASCRIPTCORE, None, None),
    ],
    ids=["V8", "SpiderMonkey", "JavaScriptCore"],
)
def test_name_and_place_are_found(message, stack, name, offset):
    trap = trap_in_browser("RuntimeError", message, stack)
    assert isinstance(trap, KernelTrap)
    assert trap.offset == offset
    label = f'The kernel "{name}"' if name else "The kernel"
    assert str(trap) == f"{label} was stopped: it touched memory that does not exist"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("divide by zero", "INTEGER_DIVISION_BY_ZERO"),
        ("remainder by zero", "INTEGER_DIVISION_BY_ZERO"),
        ("integer divide by zero", "INTEGER_DIVISION_BY_ZERO"),
        ("Division by zero", "INTEGER_DIVISION_BY_ZERO"),
        ("divide result unrepresentable", "INTEGER_OVERFLOW"),
        ("float unrepresentable in integer range", "BAD_CONVERSION_TO_INTEGER"),
        ("Unreachable code should not be executed", "UNREACHABLE"),
        ("unreachable executed", "UNREACHABLE"),
        ("Maximum call stack size exceeded", "STACK_OVERFLOW"),
    ],
)
def test_reasons(message, reason):
    trap = trap_in_browser("RuntimeError", message, "")
    assert isinstance(trap, KernelTrap)
    assert trap.reason == reason


def test_other_failures_keep_their_words():
    error = trap_in_browser("TypeError", "Cannot convert 5 to a BigInt", "")
    assert not isinstance(error, KernelTrap)
    assert str(error).endswith("TypeError: Cannot convert 5 to a BigInt")
