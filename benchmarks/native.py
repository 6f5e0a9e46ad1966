"""Engines outside of a browser: mlcweb with wasmtime and with LLVM and NumPy in this process, and a
real TVM in another."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import MIN_BATCH_MS, Bench
from benchmarks.engine import NotForThis
from benchmarks.kernels import WORKLOADS
from mlcweb.runtime.host import clock
from mlcweb.runtime.host.engine import available, has_llvm
from mlcweb.runtime.host.llvm_engine import processor

ROOT = Path(__file__).parents[1]
SERVER = Path(__file__).with_name("tvm_server.py")


class NativeEngine:
    """mlcweb with wasmtime."""

    name = "native"
    title = "wasmtime"
    only_best = False
    target = "wasm"

    def __init__(self, config: Mapping[str, Any]) -> None:
        if not available():
            raise NotForThis('wasmtime is not installed: pip install ".[native]"')
        self._bench = Bench(config, self.target)
        self.sample = self._bench.sample
        self.peak = self._bench.peak
        self.forget = self._bench.forget

    def prepare(self, name: str) -> None:
        self._bench.prepare(name)


class LlvmEngine(NativeEngine):
    """mlcweb with LLVM, for this very processor."""

    name = "llvm"
    title = "LLVM"
    target = "llvm -mcpu=host"

    def __init__(self, config: Mapping[str, Any]) -> None:
        if not has_llvm():
            raise NotForThis('llvmlite is not installed: pip install ".[native]"')
        super().__init__(config)
        # What is known of peaks is measured with vectors of WebAssembly, which are shorter.
        self.peak = lambda: None


class NumpyEngine:
    """NumPy in this process, on one thread."""

    name = "numpy-host"
    title = "NumPy host"
    only_best = True

    def __init__(self) -> None:
        self._calls: dict[str, Callable[[], object]] = {}

    def prepare(self, name: str) -> None:
        workload = WORKLOADS.get(name.partition("/")[0])
        if workload is None or workload.model:
            raise NotForThis(f"{name}: NumPy is not asked")
        inputs, _ = workload.arguments()
        self._calls[name] = partial(workload.reference, *inputs)
        self.sample(name)

    def sample(self, name: str) -> float:
        call, number = self._calls[name], 1
        while True:
            start = clock()
            for _ in range(number):
                call()
            seconds = clock() - start
            if seconds * 1e3 >= MIN_BATCH_MS:
                return seconds / number
            number *= 2

    def peak(self) -> None:
        return None

    def forget(self, name: str) -> None:
        self._calls.pop(name, None)


def tvm_python() -> str:
    """The Python that has a real TVM: that of MLCWEB_ORACLE_PYTHON, or of `.venv-oracle`."""
    return os.environ.get("MLCWEB_ORACLE_PYTHON", str(ROOT / ".venv-oracle/bin/python"))


class TVMEngine:
    """The same scheduled programs, compiled by a real TVM for its generic target `llvm`, or for
    this very processor."""

    only_best = False

    def __init__(self, stack: ExitStack, on_host: bool = False) -> None:
        self.name = "tvm-host" if on_host else "tvm"
        self.title = "TVM host" if on_host else "TVM llvm"
        if on_host and not has_llvm():
            raise NotForThis("llvmlite, which says what this processor is, is not installed")
        self._cpu = processor().cpu if on_host else ""
        python = tvm_python()
        if not Path(python).exists():
            raise NotForThis(f"no TVM: {python} does not exist; MLCWEB_ORACLE_PYTHON may name it")
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._process = subprocess.Popen(
            [python, SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TVM_NUM_THREADS": "1", "PYTHONPATH": ""},
        )
        stack.callback(self._process.wait)
        stack.callback(self._process.kill)

    def prepare(self, name: str) -> None:
        workload_name, _, program = name.partition("/")
        if workload_name not in WORKLOADS:
            raise NotForThis(f"{name}: TVM is not asked")
        workload = WORKLOADS[workload_name]
        inputs, expected = workload.arguments()
        path = self._folder / "arrays.npz"
        np.savez(path, *inputs, expected)
        script = workload.programs[program]().script()
        self._ask(prepare=name, script=script, arrays=str(path), cpu=self._cpu)
        workload.check(np.load(path)["arr_0"], expected)

    def sample(self, name: str) -> float:
        return self._ask(sample=name)

    def peak(self) -> None:
        return None

    def forget(self, name: str) -> None:
        self._ask(forget=name)

    def _ask(self, **question: str) -> Any:
        assert self._process.stdin and self._process.stdout
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process has ended"}
        if "error" in answer:
            raise RuntimeError(f"TVM: {answer['error']}")
        return answer["value"]
