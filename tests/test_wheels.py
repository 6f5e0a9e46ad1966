"""The packages as they are published, in an environment with nothing else from this checkout."""

import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest

import mlcweb

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
MAX_PAGE_BYTES = 15_000_000
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        not (WEB / "dist" / "index.html").is_file(), reason="the page is not built (make play)"
    ),
]


class Wheels(NamedTuple):
    mlcweb: Path
    page: Path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """mlcweb's wheel, built from its sdist in an environment of its own, and the page's."""
    folder = tmp_path_factory.mktemp("wheels")
    command(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    command(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=WEB)
    [package] = folder.glob("mlcweb-*.whl")
    [page] = folder.glob("mlcweb_page-*.whl")
    return Wheels(package, page)


@pytest.fixture(scope="module")
def bin_folder(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with both wheels and what they need."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command(python, "-m", "pip", "install", "-q", f"{wheels.mlcweb}[cli,native]", wheels.page)
    return folder / "bin"


@pytest.fixture
def served(bin_folder: Path, tmp_path: Path) -> Iterator[str]:
    """The address of the page that the installed `mlcweb serve` serves."""
    with subprocess.Popen(
        [bin_folder / "mlcweb", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[3]
        process.send_signal(signal.SIGTERM)


def test_the_sdist_builds_the_wheel_of_the_tree(wheels, tmp_path):
    command(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    [of_tree] = tmp_path.iterdir()
    assert contents(wheels.mlcweb) == contents(of_tree)


def test_both_wheels_have_the_version_of_the_package(wheels):
    assert wheels.mlcweb.name == f"mlcweb-{mlcweb.__version__}-py3-none-any.whl"
    assert wheels.page.name == f"mlcweb_page-{mlcweb.__version__}-py3-none-any.whl"


def test_the_page_is_small_and_comes_with_its_licenses(wheels):
    assert wheels.page.stat().st_size < MAX_PAGE_BYTES
    licenses = {Path(name).name for name in contents(wheels.page) if "/licenses/" in name}
    expected = {"mlcweb.txt", "Pyodide.txt", "Python.txt", "NumPy.txt", "npm.md", "README.md"}
    assert licenses == expected


def test_what_runs_in_the_tab_does_not_hold_the_page(wheels):
    [inner] = (name for name in contents(wheels.page) if name.startswith("mlcweb_page/wheels/mlc"))
    with zipfile.ZipFile(wheels.page) as page:
        content = gzip.decompress(page.read(inner))
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        folders = {name.partition("/")[0] for name in wheel.namelist()}
    assert folders == {"mlcweb", f"mlcweb-{mlcweb.__version__}.dist-info"}


def test_serve_serves_the_installed_page(served):
    with urlopen(served) as response:
        assert b"<title>" in response.read()
        assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    for name in ("pyodide.asm.wasm", "python_stdlib.zip", "pyodide.mjs", "pyodide.asm.mjs"):
        assert get(f"{served}pyodide/{name}") == (WEB / "dist" / "pyodide" / name).read_bytes()
    packages = json.loads(get(f"{served}pyodide/pyodide-lock.json"))["packages"].values()
    own = [package for package in packages if "://" not in package["file_name"]]
    assert {package["name"] for package in own} >= {"micropip", "numpy", "packaging"}
    for package in own:
        assert sha256(get(f"{served}pyodide/{package['file_name']}")) == package["sha256"]
    manifest = json.loads(get(f"{served}wheels/manifest.json"))
    assert sha256(get(f"{served}wheels/{manifest['file']}")) == manifest["sha256"]
    assert "index.html" in json.loads(get(f"{served}release.json"))["files"]


def test_a_program_runs(bin_folder, tmp_path):
    program = ROOT / "examples" / "tiling_report.py"
    done = command(bin_folder / "mlcweb", "run", program, cwd=tmp_path)
    assert done.stdout


def command(*words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end without this checkout on the path; an error shows its output."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def contents(wheel: Path) -> dict[str, int]:
    """Checksums of a wheel's files by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.CRC for info in archive.infolist()}


def get(url: str) -> bytes:
    with urlopen(url) as response:
        return response.read()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
