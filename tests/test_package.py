"""The package as a whole: what importing it needs, and what its wheel holds."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import grimp
import pytest

import mlcweb

ROOT = Path(__file__).parents[1]

WITHOUT_NUMPY = [
    "mlcweb.ir",
    "mlcweb.arith",
    "mlcweb.tir",
    "mlcweb.relax",
    "mlcweb.script",
    "mlcweb.compat",
]


@pytest.mark.parametrize("package", ["mlcweb", *WITHOUT_NUMPY])
def test_everything_from_text_to_loops_imports_in_a_bare_interpreter(package):
    """Importing NumPy takes seconds in a browser, and it cannot be part of a memory snapshot."""
    program = f"""
import importlib, pkgutil, sys
for name in ("numpy", "js", "pyodide", "wasmtime", "rich"):
    sys.modules[name] = None
package = importlib.import_module({package!r})
if {package != "mlcweb"}:
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
"""
    done = subprocess.run(
        [sys.executable, "-S", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


def test_what_a_page_starts_with_leaves_the_graph_level_alone():
    """Every first visit waits for what is imported, and most programs have no models."""
    program = """
import sys
import mlcweb.playground.bridge
for name in ("relax", "topi", "codegen.gpu", "codegen.llvm"):
    assert f"mlcweb.{name}" not in sys.modules, name
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


MAX_CYCLE = 5
"""Files that may import each other: who changes one of them has to understand all."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom, also within functions and for type checkers alone."""
    return grimp.build_graph("mlcweb")


@pytest.mark.parametrize(
    "package", ["analysis", "arith", "schedule", "lower", "meta_schedule", "relax", "relax_vm"]
)
def test_few_files_import_each_other(imports, package):
    files = sorted(imports.find_descendants(f"mlcweb.{package}"))
    reached = {file: imports.find_upstream_modules(file) for file in files}
    assert len(files) > MAX_CYCLE
    for file in files:
        cycle = [file, *(other for other in reached[file] if file in reached.get(other, ()))]
        assert len(cycle) <= MAX_CYCLE, cycle


def test_wheel_is_pure_and_holds_the_package_alone(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    [wheel] = tmp_path.iterdir()
    assert wheel.name == f"mlcweb-{mlcweb.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "mlcweb",
        f"mlcweb-{mlcweb.__version__}.dist-info",
    }
    assert "mlcweb/ir/node.py" in names


def test_the_examples_of_the_readme_run(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "first.py").write_text("\n\n".join(examples))
    done = subprocess.run(
        [sys.executable, "first.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "T.vectorized(8)" in done.stdout
    assert "sch.split(loop=l1, factors=[None, 8]" in done.stdout
    assert done.stdout.endswith("[[8. 8. 8. 8.]]\n")
