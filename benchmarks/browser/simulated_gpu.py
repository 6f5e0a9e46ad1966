"""The course's product of 1024 x 1024 matrices on shared memory, in the built page without a GPU:
`python -m benchmarks.browser.simulated_gpu`.

The program is built for CUDA and runs on the simulated GPU. Printed are the seconds of a build and
of each call.
"""

from __future__ import annotations

import argparse
import re
from contextlib import ExitStack
from pathlib import Path

from benchmarks.__main__ import BUILT_PAGE
from benchmarks.browser.built_page import open_built_page
from benchmarks.browser.engines import launch
from web.scripts.lesson_source import lessons

TIMING = """
import time

start = time.perf_counter()
library = tvm.build(sch.mod, target="cuda")
print(f"build: {time.perf_counter() - start:.2f} s")
a, b = (np.random.default_rng(0).random((1024, 1024), dtype="float32") for _ in range(2))
arrays = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, b, np.zeros_like(a))]
for _ in range(3):
    start = time.perf_counter()
    library["main"](*arrays)
    result = arrays[2].numpy()
    print(f"call: {time.perf_counter() - start:.2f} s")
print("as NumPy:", np.allclose(result, a @ b, rtol=1e-4))
"""


def program() -> str:
    """The cells of the lesson that import and that schedule the product, then the timing."""
    [lesson] = [lesson for lesson in lessons() if lesson.id == "07-gpu"]
    marks = ("import numpy", "class MyModuleMatmul", "def blocking_with_shared")
    cells = [cell.source for cell in lesson.cells if any(part in cell.source for part in marks)]
    return "\n".join((*cells, TIMING))


def main() -> None:
    """Measure, and print what the page prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built-page", type=Path, default=BUILT_PAGE, metavar="FOLDER")
    options = parser.parse_args()
    with ExitStack() as stack:
        playground = open_built_page(launch(stack), stack, options.built_page)
        playground.run_to_end(program())
        shown = playground["console"].inner_text()
        print("\n".join(re.findall(r"^(?:build|call|as NumPy|target).*$", shown, re.M)))


if __name__ == "__main__":
    main()
