"""The vendoring script: the right bytes or none at all, and no work where all is in place."""

import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "web" / "scripts" / "vendor_pyodide.py"
WHEEL = "numpy-1.0-py3-none-any.whl"


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with all its folders below a temporary one and a lock file of one wheel."""
    spec = importlib.util.spec_from_file_location("vendor_pyodide", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lock = tmp_path / "pyodide-lock.json"
    digest = hashlib.sha256(b"the wheel").hexdigest()
    lock.write_text(json.dumps({"packages": {"numpy": {"file_name": WHEEL, "sha256": digest}}}))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "LOCK", lock)
    monkeypatch.setattr(module, "RUNTIME", tmp_path / "runtime")
    module.RUNTIME.mkdir()
    return module


def unreachable(names: list[str]) -> dict[str, bytes]:
    raise AssertionError(f"no need to fetch {names}")


def test_a_wheel_with_the_right_hash_is_installed_and_cached(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor, "from_cdn", lambda names: dict.fromkeys(names, b"the wheel"))
    assert WHEEL in list(vendor.vendor_wheels())
    assert (vendor.RUNTIME / WHEEL).read_bytes() == b"the wheel"

    monkeypatch.setattr(vendor, "from_cdn", unreachable)
    assert list(vendor.vendor_wheels()) == []
    (vendor.RUNTIME / WHEEL).unlink()
    assert list(vendor.vendor_wheels()) == [WHEEL]


def test_a_wheel_with_another_hash_is_refused(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendor, "from_cdn", lambda names: dict.fromkeys(names, b"something else"))
    monkeypatch.setattr(vendor, "from_bundle", unreachable)
    with pytest.raises(vendor.VendorError, match=r"sha256 is .* Nothing was installed"):
        list(vendor.vendor_wheels())
    assert not (vendor.RUNTIME / WHEEL).exists()


def test_a_spoilt_file_in_the_cache_is_fetched_again(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cached = tmp_path / "cache" / "mlcweb" / WHEEL
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"half a whe")
    monkeypatch.setattr(vendor, "from_cdn", lambda names: dict.fromkeys(names, b"the wheel"))
    list(vendor.vendor_wheels())
    assert cached.read_bytes() == b"the wheel"


def test_the_second_source_is_asked_when_the_first_is_out_of_reach(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(names: list[str]) -> dict[str, bytes]:
        raise vendor.VendorError("no route to the CDN")

    monkeypatch.setattr(vendor, "from_cdn", down)
    monkeypatch.setattr(vendor, "from_bundle", lambda names: {})
    with pytest.raises(vendor.VendorError, match=r"cannot get numpy.*\n.*no route to the CDN"):
        list(vendor.vendor_wheels())

    monkeypatch.setattr(vendor, "from_bundle", lambda names: dict.fromkeys(names, b"the wheel"))
    assert WHEEL in list(vendor.vendor_wheels())


def test_the_bundle_is_read_as_an_archive(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(command: list[str], **options: object) -> object:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "bundle-1-py3-none-any.whl", "w") as archive:
            archive.writestr(vendor.BUNDLE_FOLDER + WHEEL, b"the wheel")
        return type("Done", (), {"returncode": 0})

    monkeypatch.setattr(vendor.subprocess, "run", download)
    assert vendor.from_bundle([WHEEL, "absent.whl"]) == {WHEEL: b"the wheel"}


def test_the_lock_file_names_what_the_page_ships() -> None:
    lock = json.loads((SCRIPT.parents[1] / "pyodide-lock.json").read_text())
    assert set(lock["packages"]) == {"micropip", "numpy", "packaging"}
    assert all(len(entry["sha256"]) == 64 for entry in lock["packages"].values())
