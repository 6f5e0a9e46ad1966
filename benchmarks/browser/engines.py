"""Engines in a page of headless Chromium, all in one worker."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Worker, sync_playwright

from benchmarks.bench import BUILDS, CALL
from benchmarks.engine import Engine, NotForThis
from benchmarks.kernels import WORKLOADS
from e2e.chromium import find
from mlcweb.server import PageServer

ROOT = Path(__file__).parents[2]
PYODIDE = ROOT / "web" / "public" / "pyodide"
PEERS = ROOT / "benchmarks" / "peers" / "node_modules"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

PEER_FILES = {
    "peers/tfjs": (
        "@tensorflow/tfjs-core/dist/tf-core.min.js",
        "@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js",
        "@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm",
    ),
    "peers/ort": (
        "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
        "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
        "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    ),
}
"""What is served of each of the peers, by folder."""

TITLES = {
    "page": "page",
    "tfjs": "tfjs-wasm",
    "ort": "ORT-web",
    "numpy": "NumPy in Pyodide",
}
"""By name."""


class PageEngine:
    """One of the engines of the worker."""

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.title = TITLES[name]
        self.only_best = name != "page"
        self._worker = worker

    def prepare(self, name: str) -> None:
        workload = WORKLOADS.get(name.partition("/")[0])
        if workload is None and name not in (*BUILDS, CALL):
            raise NotForThis(f"{name} is nothing for this page")
        if self.name == "numpy":
            if workload is None or not (workload.model or workload.operator == "matmul"):
                raise NotForThis("NumPy is asked for matrix products and models alone")
        elif self.name != "page" and (workload is None or workload.operator is None):
            raise NotForThis(f"{self.name} is not asked for {name}")
        self._ask("prepare", name)

    def sample(self, name: str) -> float:
        return self._ask("sample", name)

    def peak(self) -> float | None:
        return self._ask("peak", "") if self.name == "page" else None

    def forget(self, name: str) -> None:
        self._ask("forget", name)

    def _ask(self, method: str, name: str) -> Any:
        return self._worker.evaluate("question => self.ask(...question)", [self.name, method, name])


def open_page(
    chromium: Callable[[], Browser], stack: ExitStack, names: list[str], config: Mapping[str, Any]
) -> list[Engine]:
    """Serve the page, open it, and wait until the engines `names` can be asked. `config` are
    options for building our programs.

    Raises:
        NotForThis: something that the page is made of is not there.
    """
    worker = open_worker(chromium, stack, PEER_FILES, config)
    return [PageEngine(name, worker) for name in names]


def open_worker(
    chromium: Callable[[], Browser],
    stack: ExitStack,
    peers: Mapping[str, Sequence[str]],
    config: Mapping[str, Any],
) -> Worker:
    """The worker of the page, which answers for all engines."""
    if not PYODIDE.is_dir():
        raise NotForThis("no Pyodide: `npm ci && npm run vendor` in web/ gets it")
    root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    assemble(root, peers)
    page = chromium().new_page()
    with page.expect_event("worker") as started:
        page.goto(f"{serve(stack, root)}?config={quote(json.dumps(config))}")
    worker = started.value
    # The script of the worker has run when its function is there.
    worker.evaluate(
        "async () => { while (!self.ask) await new Promise((then) => setTimeout(then, 20)); }"
    )
    return worker


def launch(stack: ExitStack, flags: Sequence[str] = FLAGS) -> Browser:
    """A headless Chromium, which is closed with the stack."""
    path = find()
    if path is None:
        raise NotForThis("no Chromium: `python e2e/chromium.py` gets one")
    playwright = stack.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=path, args=[*flags])
    stack.callback(browser.close)
    return browser


def serve(stack: ExitStack, root: Path) -> str:
    """The address at which a folder is served until the stack is closed."""
    server = stack.enter_context(PageServer(root))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    stack.callback(thread.join)
    stack.callback(server.shutdown)
    return server.url


def assemble(root: Path, peers: Mapping[str, Sequence[str]]) -> None:
    """Put together what is served: the page, Pyodide, the sources of this tree, and the peers."""
    shutil.copytree(Path(__file__).parent / "page", root, dirs_exist_ok=True)
    shutil.copytree(PYODIDE, root / "pyodide")
    with zipfile.ZipFile(root / "sources.zip", "w") as archive:
        for package in ("mlcweb", "benchmarks"):
            for path in sorted((ROOT / package).rglob("*.*")):
                if path.suffix in (".py", ".js") and "node_modules" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
    for folder, files in peers.items():
        (root / folder).mkdir(parents=True)
        for file in files:
            if (PEERS / file).is_file():
                shutil.copy(PEERS / file, root / folder)


def missing_peers() -> list[str]:
    """The engines that npm has not installed."""
    return [
        folder.removeprefix("peers/")
        for folder, files in PEER_FILES.items()
        if not all((PEERS / file).is_file() for file in files)
    ]
