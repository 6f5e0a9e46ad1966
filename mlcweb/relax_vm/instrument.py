"""`vm.set_instrument(f)`: a function that sees each call that a program makes."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlcweb.relax_vm.frame import Steps

from mlcweb.relax_vm import instructions as vm


class VMInstrumentReturnKind(IntEnum):
    """What an instrument gives before a call: whether to leave the call out."""

    NO_OP = 0
    SKIP_RUN = 1


class Instrument:
    """Observes the steps of frames. `function(func, name, before_run, ret_value, *args)` is called
    before and after each call of a kernel, a registered function or a builtin."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def run(self, steps: Steps) -> None:
        registers, machine = steps.frame.registers, steps.frame.machine
        for position, step in enumerate(steps.steps):
            item = steps.instructions[position]
            try:
                if isinstance(item, vm.CallKernel):
                    called: tuple[str, object] = item.kernel, machine.kernel(item.kernel)
                elif isinstance(item, vm.CallPacked):
                    called = item.name, machine.packed(item.name)
                elif isinstance(item, vm.CallBuiltin):
                    called = item.name, None
                else:
                    step()
                    continue
                name, function = called
                args = [registers[register] for register in item.args]
                kind = self.function(function, name, True, None, *args)
                if kind != VMInstrumentReturnKind.SKIP_RUN:
                    step()
                dst = getattr(item, "dst", None)
                result = None if dst is None else registers[dst]
                self.function(function, name, False, result, *args)
            except Exception as error:
                steps.fail(error, position)
