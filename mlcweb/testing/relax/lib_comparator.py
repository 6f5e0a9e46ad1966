"""`LibCompareVMInstrument`: another library's kernels beside those of a model that runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlcweb.runtime import nd
from mlcweb.testing import assert_allclose


class LibCompareVMInstrument:
    """An instrument of a virtual machine. After each call of a kernel that `mod` has, too, it calls
    that one on the same values and compares what comes out. `device` is where `mod` runs.

    Example: `vm.set_instrument(LibCompareVMInstrument(lib, tvm.cpu()))`.
    """

    def __init__(
        self, mod: Any, device: Any, verbose: bool = True, rtol: float = 1e-5, atol: float = 1e-5
    ) -> None:
        self.mod = mod
        self.device = device
        self.verbose = verbose
        self.counter = 0
        self.rtol = rtol
        self.atol = atol

    def compare(
        self,
        name: str,
        ref_args: Sequence[Any],
        new_args: Sequence[Any],
        ret_indices: Iterable[int],
    ) -> None:
        """Call the other kernel on `new_args`, and compare what it wrote with `ref_args`.

        Raises: AssertionError: they differ.
        """
        self.mod.get_function(name, query_imports=True)(*new_args)
        for index in ret_indices:
            assert_allclose(new_args[index], ref_args[index], rtol=self.rtol, atol=self.atol)
        if self.verbose:
            print(f"[{self.counter}] Validating {name}, passed.")
        self.counter += 1

    def skip_instrument(
        self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any
    ) -> bool:
        """Whether to leave out a call; subclasses say so."""
        return False

    def __call__(self, func: Any, name: str, before_run: bool, ret_val: Any, *args: Any) -> None:
        if before_run or not all(isinstance(arg, nd.NDArray) for arg in args):
            return
        try:
            self.mod.get_function(name, query_imports=True)
        except AttributeError:
            if self.verbose:
                print(f"Cannot find {name}, skip...")
            return
        if not args or self.skip_instrument(func, name, before_run, ret_val, *args):
            return
        inputs = [nd.array(arg.numpy(), self.device) for arg in args[:-1]]
        result = nd.empty(args[-1].shape, args[-1].dtype, self.device)
        self.compare(name, args, [*inputs, result], (len(args) - 1,))
