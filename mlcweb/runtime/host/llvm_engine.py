"""LLVM, by way of llvmlite: what processors there are, and machine code from the text of modules.

Kernels run in the process itself, on any memory of it. They do not look at where a pointer goes:
what they are called with has to be checked before.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from mlcweb.codegen.llvm.machine import Processor
from mlcweb.ir.errors import TVMError
from mlcweb.lower.expand_instructions import INSTRUCTIONS
from mlcweb.runtime.host.clock import timer_of

C_TYPES: dict[str, Any] = {
    "ptr": ctypes.c_void_p, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip

_WIDE = "sse2"
"""What processors of 64 bits have. LLVM ends the process where another shall run their code, and
takes one that it does not know for one that has nothing."""

_NARROW = ("pentium-m", "pentium4", "pentium4m", "prescott", "yonah")
"""Models that have it, too, and only 32 bits."""

_X86_FEATURES = ("avx", "avx512f", "fma", "f16c")

_INSTRUCTIONS = frozenset(
    instruction.feature for name, instruction in INSTRUCTIONS.items() if name.startswith("llvm.x86")
)


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """The binding, with all processors that it knows."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    return llvm


@lru_cache(maxsize=64)
def processor(triple: str = "", cpu: str = "", features: str = "") -> Processor:
    """A processor by LLVM's names: this one if none is said.

    Raises:
        TVMError: LLVM knows no such processor.
    """
    llvm = _llvm()
    own = llvm.get_default_triple()
    if not (triple or cpu) or cpu in ("host", "native"):
        cpu = llvm.get_host_cpu_name()
        features = ",".join(
            part for part in (llvm.get_host_cpu_features().flatten(), features) if part
        )
    triple, cpu = triple or own, "" if cpu == "generic" else cpu
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise TVMError(f"{error}; this machine's triple is {own}") from None
    if _is_x86(triple):
        has = _including(cpu or _generic(triple), features, (_WIDE, *_X86_FEATURES, *_INSTRUCTIONS))
        wide = _WIDE in has and cpu not in _NARROW
        if not wide and triple.startswith(("x86_64", "amd64")):
            raise TVMError(
                f'LLVM knows no processor "{cpu}" for code of {triple}; examples are '
                "x86-64-v3, skylake-avx512, znver4, and host for this one"
            )
        length = 64 if "avx512f" in has else 32 if "avx" in has else 16
        registers = 32 if length == 64 else 16
        instructions = _INSTRUCTIONS & has
        return Processor(
            triple, cpu, features, length, registers, "fma" in has, "f16c" in has, instructions
        )
    arm = triple.startswith(("aarch64", "arm64"))
    return Processor(triple, cpu, features, 16, 32 if arm else 16, arm, arm)


def _including(cpu: str, features: str, asked: Sequence[str]) -> set[str]:
    """Which of some features a processor of the family x86 has.

    LLVM tells by what it does: it puts a function into its caller only if that may use all that the
    function may. It is asked for code of 32 bits, which all models run.
    """
    caller = f'"target-cpu"="{cpu}" "target-features"="{features}"'
    callees = {name: f'"target-cpu"="i386" "target-features"="+{name}"' for name in asked}
    return _inlined("i686-unknown-linux-gnu", caller, callees)


def _generic(triple: str) -> str:
    return "x86-64" if triple.startswith(("x86_64", "amd64")) else "generic"


def _inlined(triple: str, caller: str, callees: dict[str, str]) -> set[str]:
    """The functions, with the attributes of `callees`, that become part of one with others."""
    llvm = _llvm()
    lines: list[str] = []
    for number, (name, attributes) in enumerate(callees.items()):
        lines.append(
            f'define internal i32 @"{name}"(i32 %x) {attributes} {{\n'
            f"  %y = mul i32 %x, {number + 3}\n  ret i32 %y\n}}\n"
            f'define i32 @"calls {name}"(i32 %x) {caller} {{\n'
            f'  %y = call i32 @"{name}"(i32 %x)\n  ret i32 %y\n}}\n'
        )
    module = llvm.parse_assembly("".join(lines))
    module.triple = triple
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
    _optimize(module, machine, 2)
    calls = {
        str(instruction).split('@"')[-1].split('"')[0].split("@")[-1].split("(")[0]
        for function in module.functions
        for block in function.blocks
        for instruction in block.instructions
        if instruction.opcode == "call"
    }
    return set(callees) - calls


def _unused(triple: str) -> list[str]:
    """What models of processors have and code of arithmetic never uses: a machine that lacks it, or
    hides it from its guests, runs their code."""
    if not _is_x86(triple):
        return []
    names = "pku rtm sgx clflushopt clwb fsgsbase invpcid xsave xsavec xsaveopt xsaves ptwrite"
    names += " wbnoinvd cldemote movdiri movdir64b waitpkg pconfig serialize tsxldtrk uintr shstk"
    names += " enqcmd prfchw rdpid clzero mwaitx rdpru sse4a amx-tile amx-int8 amx-bf16"
    names += " ermsb fsrm fast-7bytenop"  # says what is fast, not what there is
    return [f"+{name}" for name in names.split()]


def _is_x86(triple: str) -> bool:
    return triple.split("-")[0].startswith(("x86", "i386", "i486", "i586", "i686", "amd64"))


@lru_cache(maxsize=64)
def runs_here(target: Processor) -> bool:
    """Whether code for a processor runs on this one."""
    own = processor()
    if target.triple.split("-")[0] != own.triple.split("-")[0]:
        return False
    features = ",".join(part for part in (own.features, *_unused(target.triple)) if part)
    caller = f'"target-cpu"="{own.cpu}" "target-features"="{features}"'
    cpu = target.cpu or _generic(target.triple)
    callee = f'"target-cpu"="{cpu}" "target-features"="{target.features}"'
    return bool(_inlined(own.triple, caller, {"code": callee}))


def _machine(target: Processor, level: int, **options: Any) -> Any:
    return (
        _llvm()
        .Target.from_triple(target.triple)
        .create_target_machine(cpu=target.cpu, features=target.features, opt=level, **options)
    )


def _jit_machine(target: Processor, level: int) -> Any:
    return _machine(target, level, jit=True, codemodel="jitdefault")


def _optimize(module: Any, machine: Any, level: int) -> None:
    llvm = _llvm()
    # Loops are in vectors already where that is allowed.
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    # Nor is another unrolling worth the time: it doubles what has to be compiled.
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _optimized(text: str, target: Processor, level: int, machine: Any) -> Any:
    """A module, checked by LLVM's verifier, and optimised."""
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(text)
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise TVMError(f"LLVM refuses the module: {error}") from None
    _optimize(module, machine, level)
    return module


@dataclass(frozen=True, slots=True)
class Compilation:
    """A module of LLVM on its way to machine code for a processor."""

    text: str
    processor: Processor
    level: int

    def assembly(self) -> str:
        """The machine code as text."""
        machine = self._machine()
        return machine.emit_assembly(self._module(machine))

    def object_code(self) -> bytes:
        """The machine code as an object file."""
        machine = self._machine()
        return machine.emit_object(self._module(machine))

    def code(self) -> bytes:
        """The machine code as `load` takes it: an object file that may lie anywhere in memory."""
        machine = _jit_machine(self.processor, self.level)
        return machine.emit_object(self._module(machine))

    def _machine(self) -> Any:
        return _machine(self.processor, self.level, reloc="pic", codemodel="small")

    def _module(self, machine: Any) -> Any:
        return _optimized(self.text, self.processor, self.level, machine)


def load(code: bytes, target: Processor) -> Instance:
    """Code for a processor, in memory and ready to be called.

    Raises:
        TVMError: it is another processor than this one.
    """
    if not runs_here(target):
        raise TVMError(
            f'The code is for "{target.triple}" with -mcpu={target.cpu or "any"}, which this is '
            "not; get_source and export_library write it; -mcpu=host runs here"
        )
    llvm = _llvm()
    empty = llvm.parse_assembly("")
    empty.triple = target.triple
    loader = llvm.create_mcjit_compiler(empty, _jit_machine(target, 0))
    loader.remove_module(empty)
    loader.add_object_file(llvm.ObjectFileRef.from_data(code))
    return Instance(loader)


def linked(code: bytes, path: Path) -> bool:
    """Whether a shared library was made of an object file: by the C compiler of the machine."""
    compiler = which(os.environ.get("CC", "cc")) or which("gcc") or which("clang")
    if compiler is None:
        return False
    with TemporaryDirectory() as folder:
        source = Path(folder, "code.o")
        source.write_bytes(code)
        done = subprocess.run([compiler, "-shared", "-o", path, source], capture_output=True)
    return done.returncode == 0


class Stopped(TVMError):
    """A kernel came back with a status other than zero."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The kernel was stopped ({status})")
        self.status = status


class Instance:
    """Machine code in memory."""

    failure: type[BaseException] = Stopped

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._pointers: list[Any] = []
        engine.finalize_object()

    def _function(self, name: str, kinds: Sequence[str]) -> Any:
        function: Any = ctypes.CFUNCTYPE(ctypes.c_int32, *(C_TYPES[kind] for kind in kinds))(
            self._engine.get_function_address(name)
        )
        function.keeps = self._engine
        return function

    def function(self, name: str, kinds: Sequence[str]) -> Callable[..., None]:
        """A function as one of Python, which raises a `failure` where its status is not zero."""
        call = self._function(name, kinds)

        def run(*arguments: float) -> None:
            status = call(*arguments)
            if status:
                raise Stopped(status)

        return run

    def bound(self, name: str, addresses: Sequence[int]) -> Callable[[], None]:
        """The same with all its arguments, which are addresses."""
        function = self._function(name, ["ptr"] * len(addresses))
        call = partial(function, *map(ctypes.c_void_p, addresses))

        def run() -> None:
            status = call()
            if status:
                raise Stopped(status)

        return run

    def timer(self, name: str, kinds: Sequence[str]) -> Callable[..., float]:
        """For a function whose first argument says how often to repeat: one that gives the seconds
        that it took."""
        return timer_of(self.function(name, ["i64", *kinds]))

    def variable(self, name: str, kind: str) -> int:
        """The value of a variable of the module."""
        return C_TYPES[kind].from_address(self._engine.get_global_value_address(name)).value

    def set_pointer(self, name: str, function: Any) -> None:
        """Put the address of a function of ctypes into a variable, which then keeps it."""
        address = self._engine.get_global_value_address(name)
        ctypes.c_void_p.from_address(address).value = ctypes.cast(function, ctypes.c_void_p).value
        self._pointers.append(function)
