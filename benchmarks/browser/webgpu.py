"""Our programs on WebGPU beside other engines, in one page, on one adapter:
`python -m benchmarks.browser.webgpu`.

By default Chromium has a software adapter, which computes on the processor. A ratio there shows
that all of it works, and says next to nothing about a GPU; `--adapter` takes the machine's own.
Each engine is asked in turn, round after round, and what it computes is compared with NumPy first.
Peers are installed by `npm ci` in `benchmarks/peers`; those that are not, or that fail, are named.
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import ExitStack
from typing import Any

from playwright.sync_api import Error

from benchmarks.browser.engines import PEERS, launch, open_worker
from benchmarks.kernels.on_gpu import ON_GPU
from e2e import chromium

PEER_FILES = {
    "peers/tfjs": ("@tensorflow/tfjs-core/dist/tf-core.min.js",),
    "peers/tfjs-webgpu": ("@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.min.js",),
    "peers/ort-webgpu": (
        "onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
        "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.mjs",
        "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.wasm",
    ),
    "peers/jax": tuple(
        str(file.relative_to(PEERS)) for file in sorted(PEERS.glob("@jax-js/jax/dist/*.js"))
    ),
}
TITLES = {
    "webgpu": "mlcweb",
    "tfjs-webgpu": "tfjs-webgpu",
    "ort-webgpu": "ORT-web WebGPU",
    "jax": "jax-js",
}
ADAPTER = """async () => {
  const { vendor, architecture, description } = (await navigator.gpu.requestAdapter()).info;
  return [vendor, architecture, description].filter(Boolean).join(" ");
}"""
ASK = "question => self.ask(...question)"


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=ON_GPU, default=list(ON_GPU))
    parser.add_argument("--engines", nargs="*", choices=TITLES, default=list(TITLES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--adapter", action="store_true", help="the GPU that the machine has")
    options = parser.parse_args()
    own = [flag for flag in chromium.FLAGS if flag != "--disable-gpu"]
    flags = [*own, "--enable-unsafe-webgpu"] if options.adapter else chromium.WITH_SOFTWARE_GPU
    with ExitStack() as stack:
        worker = open_worker(lambda: launch(stack, flags), stack, PEER_FILES, {})

        def ask(engine: str, method: str, name: str = "") -> Any:
            return worker.evaluate(ASK, [engine, method, name])

        print(f"Adapter: {worker.evaluate(ADAPTER)}")
        print(
            f"A call of ours, of a thousand empty ones: {ask('webgpu', 'overhead') * 1e6:.0f} us\n"
        )
        print("| | " + " | ".join(TITLES[engine] for engine in options.engines) + " |")
        print("|---" * (1 + len(options.engines)) + "|", flush=True)
        for name in options.only:
            samples: dict[str, list[float]] = {}
            reasons: dict[str, str] = {}
            for engine in options.engines:
                try:
                    reasons[engine] = ask(engine, "prepare", name) or ""
                    samples[engine] = []
                except Error as error:
                    reasons[engine] = " ".join(error.message.split())[-1500:]
            for _ in range(options.rounds):
                for engine, taken in samples.items():
                    taken.append(ask(engine, "sample", name))
            cells = [_cell(samples.get(engine)) for engine in options.engines]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            for engine, reason in reasons.items():
                if reason:
                    print(f"<!-- {name}, {TITLES[engine]}: {reason} -->", flush=True)
            for engine in samples:
                ask(engine, "forget", name)


def _cell(samples: list[float] | None) -> str:
    if not samples:
        return "fails"
    middle, low, high = statistics.median(samples), min(samples), max(samples)
    return f"{middle * 1e3:.2f} ms ({low * 1e3:.2f} to {high * 1e3:.2f})"


if __name__ == "__main__":
    main()
