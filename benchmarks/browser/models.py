"""Whole models in the built page beside onnxruntime-web: `python -m benchmarks.browser.models`.

The models of `benchmarks.models`, imported from ONNX by a program in the playground and built with
default schedules; onnxruntime-web runs the same file in a page of its own. Both results are
compared with onnxruntime's before times count. A line says what it takes from the bytes of the file
to the first result, and of that the import and the build; the medians of calls, taken in turn; and
the most memory that the process of each page has held.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks.__main__ import BUILT_PAGE
from benchmarks.browser.built_page import open_built_page
from benchmarks.browser.engines import PEER_FILES, PEERS, launch, serve
from benchmarks.models import MODELS, inputs_of, session

PREPARE = """\
import builtins
import time
import numpy as np
import tvm
from pyodide.http import pyfetch
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.runtime import config_threadpool

async def fetched(name):
    return await (await pyfetch(ADDRESS + name)).bytes()

config_threadpool(1, THREADS)
model = await fetched("model.onnx")
array = np.frombuffer(await fetched("input"), TYPE).reshape(SHAPE)
marks = [time.perf_counter()]
mod = from_onnx(model)
marks.append(time.perf_counter())
executable = relax.build(mod, "llvm")
marks.append(time.perf_counter())
call = relax.VirtualMachine(executable, tvm.cpu())["main"]
x = tvm.nd.array(array)
result = call(x).numpy()
marks.append(time.perf_counter())
parts = np.diff(marks).tolist()
expected = np.frombuffer(await fetched("expected"), "float32").reshape(result.shape)
np.testing.assert_allclose(result, expected, atol=1e-4 * np.abs(expected).max())
builtins.measured = lambda: call(x)
del mod, model, executable
print("parts:", *parts)
"""

SAMPLE = """\
import builtins
import time
start = time.perf_counter()
builtins.measured()
print("parts:", time.perf_counter() - start)
"""


class Tab:
    """The model in the playground."""

    def __init__(self, chromium: Browser, stack: ExitStack, root: Path, values: Mapping[str, Any]):
        self._view = open_built_page(chromium, stack, root)
        address = self._view.page.url.rpartition("/")[0] + "/"
        head = "".join(
            f"{name} = {value!r}\n" for name, value in {**values, "ADDRESS": address}.items()
        )
        self.parts = self._run(head + PREPARE)

    def sample(self) -> float:
        return self._run(SAMPLE)[0]

    def _run(self, program: str) -> list[float]:
        self._view.run_to_end(program)
        shown = self._view["console"].inner_text()
        parts = re.search(r"^parts: (.*)$", shown, re.MULTILINE)
        if parts is None:
            raise RuntimeError(f"the page says: {shown.strip()}")
        return [float(part) for part in parts[1].split()]


class Peer:
    """The model in onnxruntime-web, in a page of its own."""

    def __init__(self, page: Page, address: str, values: Mapping[str, Any], expected: np.ndarray):
        self._page = page
        page.goto(f"{address}models.html")
        page.wait_for_function("() => self.prepare")
        arguments = ["model.onnx", "input", values["TYPE"], values["SHAPE"], values["THREADS"]]
        prepared = page.evaluate("given => self.prepare(...given)", arguments)
        self.seconds = prepared["seconds"]
        result = np.asarray(prepared["result"], "float32").reshape(expected.shape)
        np.testing.assert_allclose(result, expected, atol=1e-4 * np.abs(expected).max())

    def sample(self) -> float:
        return self._page.evaluate("() => self.sample()")


def peak_memory(browser: Browser) -> dict[int, float]:
    """The most memory that each process of a page has held, in MiB."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return {
        process["id"]: int(line.split()[1]) / 1024
        for process in processes
        if process["type"] == "renderer"
        for line in Path(f"/proc/{process['id']}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    }


def row(name: str, threads: int, rounds: int, built: Path) -> str:
    """A line of the table."""
    model, array = MODELS[name](), inputs_of(name)
    peer = session(model, 1)
    (expected,) = peer.run(None, {peer.get_inputs()[0].name: array})
    values = {"TYPE": str(array.dtype), "SHAPE": array.shape, "THREADS": threads}
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "page"
        shutil.copytree(built, root)
        shutil.copy(Path(__file__).parent / "page" / "models.html", root)
        (root / "peers/ort").mkdir(parents=True)
        for file in PEER_FILES["peers/ort"]:
            shutil.copy(PEERS / file, root / "peers/ort")
        data = model.SerializeToString()
        (root / "model.onnx").write_bytes(data)
        (root / "input").write_bytes(array.tobytes())
        (root / "expected").write_bytes(np.ascontiguousarray(expected).tobytes())
        del model, peer
        browser = launch(stack)
        tab = Tab(browser, stack, root, values)
        held = peak_memory(browser)
        # Another name is another site, whose pages have processes of their own.
        address = serve(stack, root).replace("localhost", "127.0.0.1")
        other = Peer(browser.new_page(), address, values, expected)
        samples = [(tab.sample(), other.sample()) for _ in range(rounds)]
        own, of_peer = (statistics.median(times) for times in zip(*samples, strict=True))
        of_pages = peak_memory(browser)
        memory = max(held.values())
        memory_of_peer = max(peak for process, peak in of_pages.items() if process not in held)
        took = " + ".join(f"{part:.2f}" for part in tab.parts)
        return (
            f"{name:11} {len(data) / 2**20:.0f} MiB, {threads} thread(s): import, build, "
            f"first call {took} = {sum(tab.parts):.2f} s, onnxruntime-web {other.seconds:.2f} s; "
            f"{own * 1e3:.1f} ms, onnxruntime-web {of_peer * 1e3:.1f} ms, "
            f"{of_peer / own:.2f} x its speed; "
            f"{memory:.0f} MiB, onnxruntime-web {memory_of_peer:.0f} MiB"
        )


def main() -> None:
    """Print a line for each model and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--built-page", type=Path, default=BUILT_PAGE, metavar="FOLDER")
    options = parser.parse_args()
    for name in options.models or MODELS:
        for threads in options.threads:
            print(row(name, threads, options.rounds, options.built_page), flush=True)


if __name__ == "__main__":
    main()
