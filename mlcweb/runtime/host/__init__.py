"""What depends on where Python runs: in a browser (Pyodide) or natively.

Nothing outside this folder imports `js`, `pyodide` or `wasmtime`.
"""

from mlcweb.runtime.host.clock import clock, clock_step, in_browser
