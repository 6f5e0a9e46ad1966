"""A kernel that the machine stopped: one error, whatever the engine calls it."""

from __future__ import annotations

import re

from mlcweb.ir.errors import TVMError


class KernelTrap(TVMError):
    """A kernel was stopped by the machine. `reason` is wasmtime's word for it; `offset` the place
    in the module's bytes, and `address` the place in memory, where they are known."""

    def __init__(
        self, name: str | None, reason: str, offset: int | None = None, address: int | None = None
    ) -> None:
        label = f'The kernel "{name}"' if name else "The kernel"
        meaning = REASONS.get(reason, reason.lower().replace("_", " "))
        super().__init__(f"{label} was stopped: {meaning}")
        self.name = name
        self.reason = reason
        self.offset = offset
        self.address = address

    def __reduce__(self) -> tuple[type[KernelTrap], tuple[str | int | None, ...]]:
        """Traps travel from the processes in which kernels are tried out."""
        return KernelTrap, (self.name, self.reason, self.offset, self.address)


REASONS = {
    "MEMORY_OUT_OF_BOUNDS": "it touched memory that does not exist",
    "INTEGER_DIVISION_BY_ZERO": "it divided an integer by zero",
    "INTEGER_OVERFLOW": "an integer division overflowed",
    "BAD_CONVERSION_TO_INTEGER": "a number fits no integer",
    "UNREACHABLE": "a check failed",
    "STACK_OVERFLOW": "its stack overflowed",
}


_MESSAGES = (
    (r"stack size|too much recursion", "STACK_OVERFLOW"),
    (r"out of bounds", "MEMORY_OUT_OF_BOUNDS"),
    (r"(divi\w+|remainder) by zero", "INTEGER_DIVISION_BY_ZERO"),
    (r"divide result unrepresentable|integer overflow", "INTEGER_OVERFLOW"),
    (r"float unrepresentable|invalid conversion to integer", "BAD_CONVERSION_TO_INTEGER"),
    (r"unreachable", "UNREACHABLE"),
)
"""What V8, SpiderMonkey and JavaScriptCore say when a kernel is stopped."""


def trap_in_browser(kind: str, message: str, stack: str) -> TVMError:
    """The error for what a browser threw: its name, its message, and the calls that led there."""
    for pattern, reason in _MESSAGES:
        if re.search(pattern, message, re.IGNORECASE):
            place = re.search(r"wasm-function\[\d+\]:0x([0-9a-f]+)", stack)
            name = re.search(r"^\s*(?:at )?([^\s@(:]+)(?:@| \()[^\n]*wasm-function", stack, re.M)
            offset = int(place[1], 16) if place else None
            return KernelTrap(name[1] if name else None, reason, offset)
    return TVMError(f"The browser could not run the kernel: {kind}: {message}")
