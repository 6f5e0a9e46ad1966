"""A module that uses every instruction of the table, made from the stack effects in it."""

from mlcweb.codegen.wasm.builder import FunctionBuilder
from mlcweb.codegen.wasm.instructions import OPERATIONS, Operation
from mlcweb.codegen.wasm.module import (
    Export,
    Function,
    FunctionType,
    Global,
    GlobalType,
    Import,
    Memory,
    Module,
)

UNARY = FunctionType(("i32",), ("i32",))

SAMPLES = {
    "i32": -1234567,
    "i64": -(1 << 63),
    "f32": 0.10000000149011612,
    "f64": -1e-300,
    "v128": bytes(range(0xF0, 0x100)),
    "memory": 70000,
    "lane": 1,
    "lanes": (*range(0, 32, 3), 31, 0, 1, 2, 3),
}
"""For each kind of immediate, a value."""


def simple_function(operation: Operation) -> Function:
    """A function that does just one instruction, on its parameters."""
    assert operation.effect is not None
    operands, results = operation.effect
    body = [("local.get", index) for index in range(len(operands))]
    body.append((operation.mnemonic, *(SAMPLES[kind] for kind in operation.immediates)))
    return Function(operation.mnemonic, FunctionType(operands, results), (), tuple(body))


def control_function() -> Function:
    """A function with every instruction whose stack effect depends on its surroundings."""
    f = FunctionBuilder("control", [("n", "i32"), ("x", "f32")], ["i32"])
    n = f.parameter("n")
    total = f.local("i32", "total")
    unnamed = f.local("v128")
    with f.block("done") as done:
        with f.loop("i") as again:
            f.emit("local.get", n)
            f.emit("i32.eqz")
            f.jump_if(done)
            f.emit("local.get", n)
            with f.branch("i"):  # the name of an enclosing label: printed as another one
                f.jump(done)
                f.otherwise()
                f.emit("unreachable")
            f.emit("local.get", n)
            f.emit("i32.const", 1)
            f.emit("i32.sub")
            f.emit("local.tee", n)
            f.emit("call", "twice")
            f.emit("local.set", total)
            f.jump(again)
        f.emit("local.get", unnamed)
        f.emit("local.get", unnamed)
        f.emit("local.get", total)
        f.emit("select")
        f.emit("drop")
    f.emit("global.get", "counter")
    f.emit("global.set", "counter")
    with f.block(result="i32"):
        f.emit("local.get", total)
        f.emit("local.get", n)
        f.emit("br_if", 0)
    f.emit("return")
    return f.build()


def twice_function() -> Function:
    """A function to call."""
    body = (("local.get", 0), ("local.get", 0), ("i32.add",))
    return Function("twice", UNARY, (), body, ("x",))


def every_instruction() -> Module:
    """A module with every instruction, and with everything else that modules can have."""
    simple = [simple_function(op) for op in OPERATIONS.values() if op.effect is not None]
    return Module(
        name="every instruction",
        imports=(
            Import("env", "memory", Memory(2, 100, shared=True)),
            Import("env", "log", FunctionType(("f64",)), "log"),
            Import("env", "base", GlobalType("i32"), "base"),
        ),
        functions=(*simple, twice_function(), control_function()),
        globals=(
            Global("counter", GlobalType("i64", mutable=True), ("i64.const", -5)),
            Global("start", GlobalType("f32"), ("f32.const", 0.5)),
        ),
        exports=(
            Export("run", "function", "control"),
            Export("count", "global", "counter"),
            Export("memory", "memory"),
        ),
    )
