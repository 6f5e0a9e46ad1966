"""What depends on where Python runs: in a browser (Pyodide) or natively.

Nothing outside this folder imports `js`, `pyodide`, `wasmtime` or `llvmlite`.
"""

from mlcweb.runtime.host.clock import (
    Conditions,
    clock,
    clock_source,
    clock_step,
    conditions,
    in_browser,
)
