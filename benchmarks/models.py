"""Whole models with default schedules beside onnxruntime: `python -m benchmarks.models`.

ResNet-50 of one 224 x 224 image and BERT-base of 128 words, in ONNX with random weights, and one
layer of BERT. Results are compared before times count. A line says what it takes from ONNX to the
first result, and of that the import and the build; the medians of calls; and the most memory that
the process has held. With `--tuned FOLDER` functions have the schedules of the tuning records
there, where there are any; `--trials 64 --seconds 300` tunes them first, each with so many trials,
for so long at most. A search that was cut off goes on with the records that it left.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import mlcweb
from mlcweb import relax
from mlcweb.meta_schedule.database.database import Database
from mlcweb.meta_schedule.database.json_database import JSONDatabase
from mlcweb.meta_schedule.relax_integration import extract_tasks, tune_relax
from mlcweb.meta_schedule.runner import EvaluatorConfig, LocalRunner
from mlcweb.relax.frontend.onnx import from_onnx
from mlcweb.runtime import config_threadpool
from mlcweb.runtime.host import clock
from tests.dlight.onnx_models import bert, resnet

LENGTH = 128
MODELS: dict[str, Callable[[], Any]] = {
    "resnet50": resnet,
    "bert_layer": partial(bert, 1, vocabulary=1000),
    "bert_base": bert,
}


def inputs_of(name: str) -> np.ndarray:
    """What a model is called with."""
    if name == "resnet50":
        return np.random.default_rng(0).standard_normal((1, 3, 224, 224), "float32")
    return np.arange(LENGTH, dtype="int64").reshape(1, LENGTH)


def ready(
    model: Any, target: str, array: np.ndarray, database: Database | None = None
) -> tuple[Callable[[], Any], list[float]]:
    """A model as a function without arguments, and the seconds of its import, its build, and its
    first call. Schedules are those of the database, where it knows any."""
    marks = [clock()]
    mod = from_onnx(model)
    marks.append(clock())
    with database or nullcontext():
        executable = relax.build(mod, target)
    marks.append(clock())
    main = relax.VirtualMachine(executable, mlcweb.cpu())["main"]
    call = partial(main, mlcweb.nd.array(array))
    call()
    marks.append(clock())
    return call, [end - begin for begin, end in pairwise(marks)]


def session(model: Any, threads: int) -> Any:
    """The model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def seconds(call: Callable[[], Any]) -> float:
    begin = clock()
    call()
    return clock() - begin


def tune(name: str, target: str, folder: Path, trials: int, limit: float) -> str:
    """Tune the functions of a model, and leave the records in a folder."""
    mod = from_onnx(MODELS[name]())
    tasks = len(extract_tasks(mod, target))
    begin = clock()
    # A model finds the weights of its functions in no cache.
    runner = LocalRunner(evaluator_config=EvaluatorConfig(enable_cpu_cache_flush=True))
    tune_relax(
        mod, None, target, folder, trials * tasks, trials, num_trials_per_iter=16,
        max_seconds=limit, runner=runner,
    )  # fmt: skip
    return f"{name:11} {tasks} tasks tuned in {clock() - begin:.0f} s"


def row(name: str, target: str, threads: int, rounds: int, database: Database | None) -> str:
    """A line of the table."""
    model, array = MODELS[name](), inputs_of(name)
    call, parts = ready(model, target, array, database)
    peer = session(model, threads)
    other = partial(peer.run, None, {peer.get_inputs()[0].name: array})
    (expected,) = other()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(call().numpy() / scale, expected / scale, atol=1e-4)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds(call))
        theirs.append(seconds(other))
    own, of_peer = statistics.median(ours), statistics.median(theirs)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = " + ".join(f"{part:.2f}" for part in parts)
    return (
        f"{name:11} {target}: import, build, first call {took} = {sum(parts):.2f} s; "
        f"{own * 1e3:.1f} ms, onnxruntime {of_peer * 1e3:.1f} ms, {of_peer / own:.2f} x its speed; "
        f"{memory:.0f} MiB"
    )


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--target", default="llvm -mcpu=host")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tuned", type=Path, metavar="FOLDER", help="of tuning records")
    parser.add_argument("--trials", type=int, default=0, help="of each function, to add records")
    parser.add_argument("--seconds", type=float, default=inf, help="after which no trial begins")
    options = parser.parse_args()
    config_threadpool(1, options.threads)
    names = options.models or MODELS
    if options.trials:
        for name in names:
            print(tune(name, options.target, options.tuned, options.trials, options.seconds))
    database = JSONDatabase(work_dir=options.tuned) if options.tuned else None
    for name in names:
        line = row(name, options.target, options.threads, options.rounds, database)
        print(line, flush=True)


if __name__ == "__main__":
    main()
