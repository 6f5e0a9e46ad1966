"""Models before and after tuning: `python -m benchmarks.tuning.models --trials 128`.

The two-layer network of the course's chapter 4, and a small convolutional network. Both are built,
run and timed as they are, tuned with the workers of this machine, and built again; that the results
are equal is checked. Times are medians of one call of the virtual machine, in microseconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import mlcweb
from mlcweb import relax
from mlcweb.ir import IRModule
from mlcweb.meta_schedule import relax_integration
from mlcweb.script import ir as I
from mlcweb.script import relax as R

TARGET = "llvm --num-cores=1"


@I.ir_module
class Mlp:
    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        with R.dataflow():
            h = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w0)), b0))
            y = R.add(R.matmul(h, R.permute_dims(w1)), b1)
            R.output(y)
        return y


@I.ir_module
class Cnn:
    @R.function
    def main(
        x: R.Tensor((1, 1, 28, 28), "float32"),
        k0: R.Tensor((16, 1, 3, 3), "float32"),
        b0: R.Tensor((1, 16, 1, 1), "float32"),
        k1: R.Tensor((32, 16, 3, 3), "float32"),
        b1: R.Tensor((1, 32, 1, 1), "float32"),
        w: R.Tensor((10, 1568), "float32"),
        b: R.Tensor((10,), "float32"),
    ):
        with R.dataflow():
            h0 = R.nn.relu(R.add(R.nn.conv2d(x, k0, padding=1), b0))
            p0 = R.nn.max_pool2d(h0, (2, 2), strides=(2, 2))
            h1 = R.nn.relu(R.add(R.nn.conv2d(p0, k1, padding=1), b1))
            p1 = R.nn.max_pool2d(h1, (2, 2), strides=(2, 2))
            y = R.add(R.matmul(R.reshape(p1, (1, 1568)), R.permute_dims(w)), b)
            R.output(y)
        return y


MODELS = {"mlp": Mlp, "cnn": Cnn}


def tune(name: str, model: IRModule, trials: int, seed: int) -> str:
    """Tune a model; a line of the table."""
    arrays = {param.name_hint: _random(param, n) for n, param in enumerate(model["main"].params)}
    x = mlcweb.nd.array(arrays.pop("x"))
    params = {key: mlcweb.nd.array(value) for key, value in arrays.items()}
    before, expected = _timed(relax.build(model, TARGET, params=params), x)
    begin = time.perf_counter()
    database = relax_integration.tune_relax(model, params, TARGET, None, trials, seed=seed)
    seconds = time.perf_counter() - begin
    tuned = relax_integration.compile_relax(database, model, TARGET, params)
    after, result = _timed(tuned, x)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    tasks = len(relax_integration.extract_tasks(model, TARGET, params))
    return (
        f"{name:6}{tasks:6} tasks{trials:7} trials{seconds:8.1f} s"
        f"{before * 1e6:10.1f} us ->{after * 1e6:10.1f} us   x{before / after:.2f}"
    )


def _random(param: Any, seed: int) -> np.ndarray:
    shape = [int(extent) for extent in param.struct_info.shape]
    return np.random.default_rng(seed).normal(0, 0.2, shape).astype("float32")


def _timed(executable: Any, x: Any) -> tuple[float, np.ndarray]:
    vm = relax.VirtualMachine(executable, mlcweb.cpu())
    result = vm["main"](x).numpy()
    timer = vm.time_evaluator("main", mlcweb.cpu(), number=20, repeat=15)
    return timer(x).median, result


def main(arguments: list[str] | None = None) -> None:
    """Tune the models that are asked for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    for name in options.models or MODELS:
        print(tune(name, MODELS[name], options.trials, options.seed), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
