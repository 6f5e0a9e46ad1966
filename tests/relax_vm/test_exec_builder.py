"""Executables that are built instruction by instruction."""

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.ir.errors import TVMError
from mlcweb.relax_vm.exec_builder import SpecialReg, VMFuncKind
from mlcweb.runtime.module import FunctionNotFound
from mlcweb.runtime.registry import register_func, remove_global_func
from mlcweb.tir.dtype import DataType

NUMBERS = np.arange(4, dtype="float32")
THREES = np.full(4, 3, "float32")


@pytest.fixture(autouse=True)
def functions():
    """Functions that programs call; `seen` has the arguments of `test.see`."""
    seen = []
    registered = {
        "test.add": lambda a, b: (
            a + b if isinstance(a, int) else tvm.nd.array(a.numpy() + b.numpy())
        ),
        "test.multiply": lambda a, b: tvm.nd.array(a.numpy() * b.numpy()),
        "test.equal": lambda a, b: bool(np.all(a.numpy() == b.numpy())),
        "test.less": lambda a, b: a < b,
        "test.pair": lambda a, b: [a, b],
        "test.see": lambda *args: seen.append(args),
    }
    for name, function in registered.items():
        register_func(name, function, override=True)
    yield seen
    for name in registered:
        remove_global_func(name)


def program():
    """Calls, a condition, immediates, constants, and calls of functions of the program."""
    ib = relax.ExecBuilder()
    with ib.function("linear", num_inputs=2, param_names=["x", "y"]):
        ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("test.multiply", args=[ib.r(2), ib.r(1)], dst=ib.r(3))
        text, dtype = map(ib.convert_constant, ("hi", DataType("float32")))
        tensor = tvm.nd.array(NUMBERS)
        ib.emit_call("test.see", args=[ib.imm(3), (1, 2), text, dtype, tensor, ib.void_arg()])
        ib.emit_ret(ib.r(3))
    with ib.function("condition", num_inputs=2):
        ib.emit_call("test.equal", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_if(ib.r(2), 3)
        ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
        ib.emit_goto(2)
        ib.emit_call("test.multiply", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    with ib.function("outer", num_inputs=2):
        ib.emit_call("linear", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.null_value", args=[], dst=ib.r(3))
        ib.emit_call("test.see", args=[ib.f("linear"), ib.r(3), ib.imm(-2), ib.f("test.add")])
        ib.emit_ret(ib.r(2))
    return ib.get()


TEXT = """\
@linear:
  call  test.add         in: %0, %1       dst: %2
  call  test.multiply    in: %2, %1       dst: %3
  call  test.see         in: i3, c[2], c[0], c[1], c[3], %void dst: %void
  ret   %3

@test.add packed_func;

@test.multiply packed_func;

@test.see packed_func;

@condition:
  call  test.equal       in: %0, %1       dst: %2
  If    %2, 3
  call  test.add         in: %0, %1       dst: %3
  goto  2
  call  test.multiply    in: %0, %1       dst: %3
  ret   %3

@test.equal packed_func;

@outer:
  call  linear           in: %0, %1       dst: %2
  call  vm.builtin.null_value in:              dst: %3
  call  test.see         in: f[linear], %3, i-2, f[test.add] dst: %void
  ret   %2

@vm.builtin.null_value packed_func;

"""
"""What TVM 0.27 prints of the same program."""

PYTHON = """with ib.function("linear", num_inputs=2):
    ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
    ib.emit_call("test.multiply", args=[ib.r(2), ib.r(1)], dst=ib.r(3))
    ib.emit_call("test.see", args=[ib.imm(3), ib.c(2), ib.c(0), ib.c(1), ib.c(3), \
ib.r(18014398509481984)])
    ib.emit_ret(ib.r(3))
with ib.function("condition", num_inputs=2):
    ib.emit_call("test.equal", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
    ib.emit_if(ib.r(2), 3)
    ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
    ib.emit_goto(2)
    ib.emit_call("test.multiply", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
    ib.emit_ret(ib.r(3))
with ib.function("outer", num_inputs=2):
    ib.emit_call("linear", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
    ib.emit_call("vm.builtin.null_value", args=[], dst=ib.r(3))
    ib.emit_call("test.see", args=[ib.f("linear"), ib.r(3), ib.imm(-2), ib.f("test.add")])
    ib.emit_ret(ib.r(2))
"""
"""What TVM 0.27 writes of it in Python, but for the first line."""


def build(emit):
    """The program of one function, `f`, of one parameter."""
    ib = relax.ExecBuilder()
    with ib.function("f", num_inputs=1):
        emit(ib)
    return ib.get()


def double_until_100(ib) -> None:
    ib.emit_call("test.less", args=[ib.r(0), ib.imm(100)], dst=ib.r(1))
    ib.emit_if(ib.r(1), 3)
    ib.emit_call("test.add", args=[ib.r(0), ib.r(0)], dst=ib.r(0))
    ib.emit_goto(-3)
    ib.emit_ret(ib.r(0))


def test_prints_what_tvm_prints() -> None:
    executable = program()
    assert executable.as_text() == TEXT
    assert executable.stats() == (
        "Relax VM executable statistics:\n"
        '  Constant pool (# 4): ["hi", float32, shapetuple[1, 2], [4]]\n'
        "  Globals (#8): [linear, test.add, test.multiply, test.see, condition, test.equal, outer, "
        "vm.builtin.null_value]\n"
    )


def test_as_python_builds_the_program_again() -> None:
    assert program().as_python() == f"ib = relax.ExecBuilder()\n{PYTHON}"
    executable = build(double_until_100)
    names: dict[str, object] = {"relax": relax}
    exec(executable.as_python(), names)
    assert names["ib"].get().as_text() == executable.as_text()


def test_runs_calls(functions) -> None:
    vm = relax.VirtualMachine(program(), tvm.cpu())
    x, y = tvm.nd.array(NUMBERS), tvm.nd.array(THREES)
    np.testing.assert_array_equal(vm["linear"](x, y).numpy(), (NUMBERS + THREES) * THREES)
    number, shape, text, dtype, tensor, nothing = functions[0]
    assert (number, tuple(shape), text, dtype, nothing) == (3, (1, 2), "hi", "float32", None)
    np.testing.assert_array_equal(tensor.numpy(), NUMBERS)
    np.testing.assert_array_equal(vm["outer"](x, y).numpy(), (NUMBERS + THREES) * THREES)
    function, nothing, number, packed = functions[2]
    assert (nothing, number, packed(2, 3)) == (None, -2, 5)
    np.testing.assert_array_equal(function(x, y).numpy(), (NUMBERS + THREES) * THREES)


def test_takes_one_of_two_ways() -> None:
    condition = program()["condition"]
    x, y = tvm.nd.array(NUMBERS), tvm.nd.array(THREES)
    np.testing.assert_array_equal(condition(x, x).numpy(), NUMBERS + NUMBERS)
    np.testing.assert_array_equal(condition(x, y).numpy(), NUMBERS * THREES)


def test_jumps_back() -> None:
    vm = relax.VirtualMachine(build(double_until_100), tvm.cpu())
    assert "f" in vm
    assert vm["f"](3) == 192


def test_keeps_inputs_and_outputs() -> None:
    vm = relax.VirtualMachine(program(), tvm.cpu())
    vm.set_input("linear", y=THREES, x=NUMBERS)
    vm.invoke_stateful("linear")
    result = vm.get_outputs("linear").numpy()
    np.testing.assert_array_equal(result, (NUMBERS + THREES) * THREES)


def test_tuples_are_lists_outside() -> None:
    ib = relax.ExecBuilder()
    with ib.function("pair", num_inputs=2):
        ib.emit_call("test.pair", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.tuple_getitem", args=[ib.r(2), ib.imm(1)], dst=ib.r(3))
        ib.emit_call("test.pair", args=[ib.r(2), ib.r(3)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    assert ib.get()["pair"](1, 2) == [[1, 2], 2]


def test_arguments_are_the_integers_of_tvm() -> None:
    ib = relax.ExecBuilder()
    assert (ib.r(3), ib.imm(3), ib.imm(-3)) == (3, 72057594037927939, 144115188075855869)
    assert (ib.void_arg(), ib.vm_state()) == (SpecialReg.VOID_ARG, SpecialReg.VM_STATE)
    assert ib.convert_constant(3) == ib.imm(3)
    assert [ib.convert_constant(each) for each in ("a", "b", "a")] == [ib.c(0), ib.c(1), ib.c(0)]
    ib.declare_function("later", VMFuncKind.VM_FUNC)
    assert ib.f("later") == 216172782113783808


def test_registers_are_numbered_in_the_order_in_which_they_are_set() -> None:
    def text(first: int, second: int) -> str:
        ib = relax.ExecBuilder()
        with ib.function("f", num_inputs=1):
            ib.emit_call("test.add", args=[ib.r(0), ib.r(0)], dst=ib.r(first))
            ib.emit_if(ib.r(first), 2)
            ib.emit_call("test.add", args=[ib.r(first), ib.r(0)], dst=ib.r(second))
            ib.emit_call("test.see", args=[ib.vm_state()])
            ib.emit_ret(ib.r(first))
        return ib.get().as_text()

    assert text(100, 50) == text(1, 2)
    assert "%100" not in text(100, 50)


def test_equal_constants_are_one() -> None:
    ib = relax.ExecBuilder()
    values = (THREES, NUMBERS, THREES.copy(), THREES.astype("float64"))
    numbers = [ib.convert_constant(tvm.nd.array(value)) for value in values]
    assert numbers == [ib.c(0), ib.c(1), ib.c(0), ib.c(2)]


def allocation(shape: tuple[int, ...]) -> relax.VirtualMachine:
    """A program that puts a tensor of a shape into a storage for 24 floats, from byte 32 on."""
    ib = relax.ExecBuilder()
    with ib.function("main"):
        dtype = DataType("float32")
        size = [ib.vm_state(), (24,), ib.imm(0), dtype, ib.convert_constant("global")]
        ib.emit_call("vm.builtin.alloc_storage", args=size, dst=ib.r(0))
        place = [ib.r(0), ib.imm(32), shape, dtype]
        ib.emit_call("vm.builtin.alloc_tensor", args=place, dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return relax.VirtualMachine(ib.get(), tvm.cpu())


def test_tensors_in_storages() -> None:
    tensor = allocation((4, 4))["main"]()
    assert (tensor.shape, tensor.dtype, tensor.device) == ((4, 4), "float32", tvm.cpu())
    with pytest.raises(ValueError, match="68 bytes at 32 does not fit into a storage of 96 bytes"):
        allocation((17,))["main"]()


def test_closures() -> None:
    ib = relax.ExecBuilder()
    with ib.function("pair", num_inputs=2):
        ib.emit_call("test.pair", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("bind", num_inputs=1):
        ib.emit_call("vm.builtin.make_closure", args=[ib.f("pair"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("call", num_inputs=2):
        ib.emit_call("bind", args=[ib.r(0)], dst=ib.r(2))
        args = [ib.vm_state(), ib.r(2), ib.r(1)]
        ib.emit_call("vm.builtin.invoke_closure", args=args, dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    vm = relax.VirtualMachine(ib.get(), tvm.cpu())
    assert list(vm.invoke_closure(vm["bind"](3), 4)) == list(vm["call"](3, 4)) == [4, 3]


def test_refuses_what_has_no_meaning() -> None:
    with pytest.raises(ValueError, match="emit should happen in a function scope"):
        relax.ExecBuilder().emit_ret(0)
    with pytest.raises(TVMError, match='register 2 of "f" is read by the instruction 0'):
        build(lambda ib: ib.emit_ret(ib.r(2)))
    with pytest.raises(TVMError, match='register 2 of "f" is read by the instruction 0'):
        build(lambda ib: ib.emit_call("test.add", args=[ib.r(0), ib.r(2)], dst=ib.r(2)))
    with pytest.raises(TVMError, match="jumps by 2, out of its 1 instruction"):
        build(lambda ib: ib.emit_goto(2))
    with pytest.raises(TVMError, match='"g" begins inside of "f"'):
        build(lambda ib: ib.function("g").__enter__())
    with pytest.raises(TypeError, match="A register is asked for"):
        build(lambda ib: ib.emit_ret(ib.imm(2)))
    with pytest.raises(TypeError, match="not dict"):
        build(lambda ib: ib.emit_call("test.see", args=[{}]))
    with pytest.raises(TVMError, match='There is no function "other"'):
        build(lambda ib: ib.f("other"))
    with pytest.raises(ValueError, match="too few"):
        build(lambda ib: ib.imm(1 << 60))
    with pytest.raises(TVMError, match="takes the constant 4; there are 0"):
        build(lambda ib: ib.emit_call("test.see", args=[ib.c(4)]))
    with pytest.raises(TVMError, match="ends without a return"):
        build(lambda ib: ib.emit_call("test.see"))["f"](1)
    with pytest.raises(TypeError, match=r'"f" takes 1 argument\(s\) \(param_0\) but got 2'):
        build(lambda ib: ib.emit_ret(ib.r(0)))["f"](1, 2)
    with pytest.raises(FunctionNotFound, match=r"not\.there"):
        relax.VirtualMachine(build(lambda ib: ib.emit_call("not.there")), tvm.cpu())
