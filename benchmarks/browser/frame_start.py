"""What an opaque origin costs at the start of a frame: `python -m benchmarks.browser.frame_start`.

A page of another origin holds one frame with a cell, as an embed does. Measured in turn, round
after round, are the seconds from the frame to the end of its program:

- `snapshot`: the frame restores the snapshot of Python's memory that an earlier visit has stored;
- `no snapshot`: the page around is of another site, where the browser denies the frame all storage;
- `opaque`: the same in a sandbox without `allow-same-origin`, from a host that lets every origin
  read the page's files. Why it does not load as it is: Chromium starts no module worker from a blob
  in an opaque origin, be it empty, but a classic one that imports the module;
- `opaque, classic`: the same with such a worker.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, TypeVar

from playwright.sync_api import Browser, BrowserContext

from benchmarks.__main__ import BUILT_PAGE
from benchmarks.browser.engines import launch
from e2e import snapshot
from e2e.host_page import HostServer
from e2e.snapshot import SnapshotServer
from mlcweb.server import Answer, Headers

PAGE = """<!doctype html>
<title>A page around a frame</title>
<body>
<script>
  const options = {
    cell: { files: [{ name: "lesson.py", text: "print(6 * 7)" }], open: "lesson.py" },
    lesson: null, panes: [], theme: null, run: true, fixedHeight: true,
  };
  function start(address, sandbox, limit) {
    return new Promise((done) => {
      const frame = document.createElement("iframe");
      if (sandbox) frame.sandbox = sandbox;
      const begin = performance.now();
      let greeted = false;
      addEventListener("message", ({ data, source }) => {
        if (source !== frame.contentWindow || data?.mark !== "mlcweb") return;
        if (data.type === "hello" && !greeted) {
          greeted = true;
          source.postMessage({ mark: "mlcweb", type: "open", options }, "*");
        } else if (data.type === "ran") done(data.ok ? (performance.now() - begin) / 1000 : null);
      });
      frame.src = address;
      document.body.append(frame);
      setTimeout(() => done(null), limit);
    });
  }
</script>
"""

CLASSIC = """(() => {
  const [PlainBlob, PlainWorker] = [Blob, Worker];
  globalThis.Blob = class extends PlainBlob {
    constructor(parts, options) {
      const address = /^import (".*");$/.exec(parts?.[0])?.[1];
      super(address ? [`import(${address}).then(() => postMessage("there"))`] : parts, options);
    }
  };
  globalThis.Worker = class extends PlainWorker {
    /** What comes before the module listens would be lost. */
    early = [];
    constructor(url, options) {
      super(url, { ...options, type: "classic" });
      const first = (event) => {
        event.stopImmediatePropagation();
        for (const message of this.early) super.postMessage(...message);
        this.early = null;
      };
      this.addEventListener("message", first, { once: true });
    }
    postMessage(...message) {
      if (this.early) this.early.push(message);
      else super.postMessage(...message);
    }
  };
})()"""
"""Makes classic workers of those that import a module."""


Server = TypeVar("Server", HostServer, "OpenServer")


class Kind(NamedTuple):
    """A way to hold a frame."""

    other_site: bool = False
    sandbox: str = ""
    script: str = ""


KINDS = {
    "snapshot": Kind(),
    "no snapshot": Kind(other_site=True),
    "opaque": Kind(True, "allow-scripts"),
    "opaque, classic": Kind(True, "allow-scripts", CLASSIC),
}
LIMIT_MS = 60_000
"""After which a frame has not started."""


class OpenServer(SnapshotServer):
    """Lets every origin read the page's files, and serves settings of its own."""

    settings: Path

    def answer(self, target: str, given: Headers | None = None) -> Answer:
        if target == "/settings.json":
            length = str(self.settings.stat().st_size)
            response = Answer(HTTPStatus.OK, {"Content-Length": length}, self.settings)
        else:
            response = super().answer(target, given)
        return response._replace(headers={**response.headers, "Access-Control-Allow-Origin": "*"})


class Bench:
    """The servers, and a context of the browser for each kind."""

    def __init__(self, stack: ExitStack, built: Path) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.host = _serving(stack, HostServer())
        self.server = _serving(stack, OpenServer(built, isolated=False))
        self.server.settings = folder / "settings.json"
        origins = [self._page(other_site).rpartition("/")[0] for other_site in (False, True)]
        self.server.settings.write_text(json.dumps({"embedders": origins}))
        browser = launch(stack)
        self.server.snapshot = snapshot.shared(folder, browser, self.server.url)
        self.contexts = {name: self._context(browser, kind) for name, kind in KINDS.items()}

    def _page(self, other_site: bool) -> str:
        return self.host.put("page.html", PAGE, other_site=other_site)

    def _context(self, browser: Browser, kind: Kind) -> BrowserContext:
        context = browser.new_context(service_workers="block")
        assert self.server.snapshot is not None
        snapshot.install(context, self.server.url, self.server.snapshot)
        if kind.script:
            context.add_init_script(kind.script)
        return context

    def seconds(self, name: str) -> float | str:
        """One start; what the frame says where its program does not run."""
        kind = KINDS[name]
        with self.contexts[name].new_page() as page:
            page.goto(self._page(kind.other_site))
            start = f"([address, sandbox]) => start(address, sandbox, {LIMIT_MS})"
            outcome = page.evaluate(start, [f"{self.server.url}embed.html", kind.sandbox])
            if outcome is not None:
                return outcome
            return " ".join(page.frames[1].locator("body").inner_text().split())


def _serving(stack: ExitStack, server: Server) -> Server:
    stack.enter_context(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    stack.callback(thread.join)
    stack.callback(server.shutdown)
    return server


def main() -> None:
    """Measure, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--built-page", type=Path, default=BUILT_PAGE, metavar="FOLDER")
    options = parser.parse_args()
    samples: dict[str, list[float]] = {name: [] for name in KINDS}
    broken: set[str] = set()
    with ExitStack() as stack:
        bench = Bench(stack, options.built_page)
        for _ in range(options.rounds):
            for name in [name for name in KINDS if name not in broken]:
                seconds = bench.seconds(name)
                if isinstance(seconds, float):
                    samples[name].append(seconds)
                    continue
                print(f"{name}: does not start: {seconds}", flush=True)
                if not samples[name]:
                    broken.add(name)
    for name, times in samples.items():
        if times:
            middle, low, high = statistics.median(times), min(times), max(times)
            print(f"{name}: {middle:.2f} s ({low:.2f} to {high:.2f}, {len(times)} starts)")


if __name__ == "__main__":
    main()
