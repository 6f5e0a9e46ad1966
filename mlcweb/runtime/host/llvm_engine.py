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
from mlcweb.runtime.host.llvm_processors import (
    attributes,
    binding,
    family,
    generic_model,
    has_feature,
    including,
    inlined,
    is_x86,
)

C_TYPES: dict[str, Any] = {
    "ptr": ctypes.c_void_p, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "float": ctypes.c_float, "double": ctypes.c_double,
}  # fmt: skip

_WIDE = "sse2"
"""What processors of 64 bits have. LLVM ends the process where another shall run their code, and
takes one that it does not know for one that has nothing."""

_NARROW = ("pentium-m", "pentium4", "pentium4m", "prescott", "yonah")
"""Models that have it, too, and only 32 bits."""

_RISCV_LENGTHS = {f"zvl{8 * length}b": length for length in (16, 32, 64, 128)}
"""Features that say of how many bytes vectors are at least."""

_X86_FEATURES = ("avx", "avx512f", "fma", "f16c")

_INSTRUCTIONS = frozenset(
    instruction.feature for name, instruction in INSTRUCTIONS.items() if name.startswith("llvm.x86")
)


@lru_cache(maxsize=64)
def processor(triple: str = "", cpu: str = "", features: str = "") -> Processor:
    """A processor by LLVM's names: this one if none is said.

    Raises:
        TVMError: LLVM knows no such processor.
    """
    llvm = binding()
    own = llvm.get_default_triple()
    named = bool(cpu or features) and cpu not in ("host", "native")
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
    if is_x86(triple):
        has = including(triple, cpu, features, (_WIDE, *_X86_FEATURES, *_INSTRUCTIONS))
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
    if named:
        family(triple, cpu, features)
    arm = triple.startswith(("aarch64", "arm64"))
    length = 16
    if triple.startswith("riscv") and has_feature(triple, cpu, features, "v"):
        has = including(triple, cpu, features, _RISCV_LENGTHS)
        length = max(_RISCV_LENGTHS[name] for name in has)
    return Processor(triple, cpu, features, length, 32 if arm else 16, arm, arm)


def _unused(triple: str) -> list[str]:
    """What models of processors have and code of arithmetic never uses: a machine that lacks it, or
    hides it from its guests, runs their code."""
    if not is_x86(triple):
        return []
    names = "pku rtm sgx clflushopt clwb fsgsbase invpcid xsave xsavec xsaveopt xsaves ptwrite"
    names += " wbnoinvd cldemote movdiri movdir64b waitpkg pconfig serialize tsxldtrk uintr shstk"
    names += " enqcmd prfchw rdpid clzero mwaitx rdpru sse4a amx-tile amx-int8 amx-bf16"
    names += " ermsb fsrm fast-7bytenop"  # says what is fast, not what there is
    return [f"+{name}" for name in names.split()]


@lru_cache(maxsize=64)
def runs_here(target: Processor) -> bool:
    """Whether code for a processor runs on this one."""
    own = processor()
    if target.triple.split("-")[0] != own.triple.split("-")[0]:
        return False
    features = ",".join(part for part in (own.features, *_unused(target.triple)) if part)
    caller = attributes(own.cpu, features)
    callee = attributes(target.cpu or generic_model(target.triple), target.features)
    return bool(inlined(own.triple, caller, {"code": callee}))


def _machine(target: Processor, level: int, **options: Any) -> Any:
    return (
        binding()
        .Target.from_triple(target.triple)
        .create_target_machine(cpu=target.cpu, features=target.features, opt=level, **options)
    )


def _jit_machine(target: Processor, level: int) -> Any:
    return _machine(target, level, jit=True, codemodel="jitdefault")


def _optimize(module: Any, machine: Any, level: int) -> None:
    llvm = binding()
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
    llvm = binding()
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
    llvm = binding()
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
