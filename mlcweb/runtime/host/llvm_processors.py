"""What LLVM, by way of llvmlite, says of processors: their models, and what a model has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mlcweb.ir.errors import TVMError

_FAMILIES = (
    "arm", "armeb", "aarch64", "aarch64_be", "avr", "bpfel", "bpfeb", "hexagon", "loongarch32",
    "loongarch64", "mips", "mipsel", "mips64", "mips64el", "msp430", "nvptx", "nvptx64", "powerpc",
    "powerpc64", "powerpc64le", "riscv32", "riscv64", "s390x", "sparc", "sparcv9", "thumb",
    "thumbeb", "wasm32", "wasm64", "i386", "x86_64", "amdgcn", "r600", "spirv32", "spirv64",
)  # fmt: skip
"""Families of processors by LLVM's names, of which a build of LLVM has some."""

_DESCRIBE = """
import sys
import llvmlite.binding as llvm

triple, cpu, features = sys.argv[1:]
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
module = llvm.parse_assembly("define i32 @f(i32 %x) {\\n  ret i32 %x\\n}")
module.triple = triple
target = llvm.Target.from_triple(triple)
target.create_target_machine(cpu=cpu, features=features).emit_object(module)
target.create_target_machine(cpu="help")
"""


@lru_cache(maxsize=1)
def binding() -> Any:
    """The binding, with all processors that it knows."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    return llvm


@dataclass(frozen=True, slots=True)
class Family:
    """The models of a family of processors, and the features that they may have."""

    models: tuple[str, ...]
    features: tuple[str, ...]


@lru_cache(maxsize=64)
def family(triple: str, cpu: str = "", features: str = "") -> Family:
    """The processors of a triple; one of them is a model with features, for which LLVM makes code.

    LLVM is asked in a process of its own: it prints the names, and where a model cannot run code of
    the triple it ends the process.

    Raises:
        TVMError: LLVM makes no such code, or does not know the model.
    """
    if cpu and cpu not in family(triple).models:
        raise TVMError(
            f'LLVM knows no processor "{cpu}" for code of {triple}; there are '
            f"{', '.join(family(triple).models)}"
        )
    command = [sys.executable, "-c", _DESCRIBE, triple, cpu, features]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.removeprefix("LLVM ERROR: ") for line in done.stderr.splitlines() if line]
        reason = lines[-1] if lines else "LLVM stopped"
        raise TVMError(f'{reason}: there is no code of "{triple}" for -mcpu={cpu} {features}')
    models, options = done.stderr.partition("Available features")[::2]
    names = re.compile(r"^  (\S+) +- ", re.MULTILINE)
    # Modes are the triple's, not a model's.
    listed = (name for name in names.findall(options) if not name.endswith("bit-mode"))
    return Family(tuple(names.findall(models)), tuple(listed))


@lru_cache(maxsize=1)
def families() -> tuple[str, ...]:
    """The families of processors that this LLVM makes code for."""
    llvm, there = binding(), list[str]()
    for name in _FAMILIES:
        try:
            llvm.Target.from_triple(f"{name}--")
        except RuntimeError:
            continue
        there.append(name)
    return tuple(there)


def has_feature(triple: str, cpu: str, features: str, name: str) -> bool:
    """Whether a processor has a feature; False where LLVM knows none of that name.

    Raises:
        TVMError: LLVM knows no such processor.
    """
    if name not in family(triple, cpu, features).features:
        return False
    if not _may_have_any(triple):
        try:
            family(triple, cpu, _joined(features, name))
        except TVMError:
            return False
    return bool(including(triple, cpu, features, [name]) - _ignored(triple))


def features_of(triple: str, cpu: str, features: str) -> set[str]:
    """All features of a processor.

    Raises:
        TVMError: LLVM knows no such processor, or has to be asked for each of its features.
    """
    names = family(triple, cpu, features).features
    if not _may_have_any(triple):
        raise TVMError(
            f'LLVM does not list what processors of "{triple}" have; '
            "target_has_features(name) asks it for one"
        )
    return including(triple, cpu, features, names) - _ignored(triple)


def _may_have_any(triple: str) -> bool:
    """Whether LLVM takes any feature for any model, and does not end the process."""
    return is_x86(triple) or triple.startswith(("aarch64", "arm64"))


@lru_cache(maxsize=1)
def _ignored_on_x86() -> frozenset[str]:
    """What `including` finds on a processor that has nothing: what only says which code is fast."""
    names = family("i686--").features
    nothing = ",".join(f"-{name}" for name in names)
    return frozenset(including("i686--", "i386", nothing, names))


def _ignored(triple: str) -> frozenset[str]:
    return _ignored_on_x86() if is_x86(triple) else frozenset()


def _joined(features: str, name: str) -> str:
    return f"{features},+{name}" if features else f"+{name}"


def is_x86(triple: str) -> bool:
    """Whether a triple names processors of the family x86, of 32 or 64 bits."""
    return triple.split("-")[0].startswith(("x86", "i386", "i486", "i586", "i686", "amd64"))


def generic_model(triple: str) -> str:
    """The model that code is for where none is named."""
    return "x86-64" if triple.startswith(("x86_64", "amd64")) else "generic"


def attributes(cpu: str, features: str) -> str:
    """What a function of LLVM says of the processor that it is for."""
    return f'"target-cpu"="{cpu}" "target-features"="{features}"'


def including(triple: str, cpu: str, features: str, asked: Iterable[str]) -> set[str]:
    """Which of some features a processor has with others switched on and off.

    LLVM tells by what it does: it puts a function into its caller only if that may use all that the
    function may. A function that may use one feature more than its caller is put there if the
    caller may use it anyhow. What only says which code is fast does not count.
    """
    cpu = cpu or generic_model(triple)
    # All models of the family run code of 32 bits.
    triple = "i686-unknown-linux-gnu" if is_x86(triple) else triple
    callees = {name: attributes(cpu, _joined(features, name)) for name in asked}
    return inlined(triple, attributes(cpu, features), callees)


def inlined(triple: str, caller: str, callees: dict[str, str]) -> set[str]:
    """The functions, with the attributes of `callees`, that become part of one with others."""
    llvm = binding()
    lines: list[str] = []
    for number, (name, callee) in enumerate(callees.items()):
        lines.append(
            f'define internal i32 @"{name}"(i32 %x) {callee} {{\n'
            f"  %y = mul i32 %x, {number + 3}\n  ret i32 %y\n}}\n"
            f'define i32 @"calls {name}"(i32 %x) {caller} {{\n'
            f'  %y = call i32 @"{name}"(i32 %x)\n  ret i32 %y\n}}\n'
        )
    module = llvm.parse_assembly("".join(lines))
    module.triple = triple
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    calls = {
        str(instruction).split('@"')[-1].split('"')[0].split("@")[-1].split("(")[0]
        for function in module.functions
        for block in function.blocks
        for instruction in block.instructions
        if instruction.opcode == "call"
    }
    return set(callees) - calls
