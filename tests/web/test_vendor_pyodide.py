"""The vendoring script: the right bytes or none at all, and no work where all is in place."""

import gzip
import hashlib
import importlib.util
import io
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


def test_all_that_the_bundle_has_is_cached_at_once(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is large, so it is not to be downloaded again for another wheel."""
    two_wheels(vendor)

    def down(names: list[str]) -> dict[str, bytes]:
        raise vendor.VendorError("no route to the CDN")

    monkeypatch.setattr(vendor, "from_cdn", down)
    monkeypatch.setattr(vendor, "from_bundle", lambda names: dict.fromkeys(names, b"the wheel"))
    assert list(vendor.vendor_wheels()) == [WHEEL, "pyodide-lock.json"]
    assert not (vendor.RUNTIME / "plot.whl").exists()
    assert (tmp_path / "cache" / "mlcweb" / "plot.whl").read_bytes() == b"the wheel"


def test_packages_that_are_not_in_the_folder_have_their_address_at_the_cdn(
    vendor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    two_wheels(vendor)
    core = tmp_path / "core"
    core.mkdir()
    (core / "package.json").write_text('{"version": "9.9"}')
    others = {"scikit": {"file_name": "scikit.whl"}, "plot": {"file_name": "other.whl"}}
    (core / "pyodide-lock.json").write_text(json.dumps({"packages": others}))
    monkeypatch.setattr(vendor, "CORE", core)
    monkeypatch.setattr(vendor, "from_cdn", lambda names: dict.fromkeys(names, b"the wheel"))
    list(vendor.vendor_wheels())
    assert addresses(vendor) == {
        "numpy": WHEEL,
        "plot": f"{vendor.CDN}plot.whl",
        "scikit": "https://cdn.jsdelivr.net/pyodide/v9.9/full/scikit.whl",
    }
    list(vendor.vendor_wheels(["plot"]))
    assert addresses(vendor)["plot"] == "plot.whl"
    # What is there stays, also where it is not asked for again.
    assert list(vendor.vendor_wheels()) == []
    with pytest.raises(vendor.VendorError, match="has no package torch"):
        list(vendor.vendor_wheels(["torch"]))


def two_wheels(vendor: ModuleType) -> None:
    """A lock file of a package in every page, and of another one that needs it."""
    digest = hashlib.sha256(b"the wheel").hexdigest()
    packages = {
        "numpy": {"file_name": WHEEL, "sha256": digest},
        "plot": {"file_name": "plot.whl", "sha256": digest, "depends": ["numpy"]},
    }
    vendor.LOCK.write_text(json.dumps({"packages": packages}))


def addresses(vendor: ModuleType) -> dict[str, str]:
    lock = json.loads((vendor.RUNTIME / "pyodide-lock.json").read_text())
    return {name: entry["file_name"] for name, entry in lock["packages"].items()}


def test_the_lock_file_names_what_pages_ship_and_what_tests_fetch(vendor: ModuleType) -> None:
    lock = json.loads((SCRIPT.parents[1] / "pyodide-lock.json").read_text())
    assert {*vendor.SHIPPED, "matplotlib", "pandas", "scipy"} <= set(lock["packages"])
    assert all(len(entry["sha256"]) == 64 for entry in lock["packages"].values())
    needed = {name for entry in lock["packages"].values() for name in entry["depends"]}
    assert needed <= set(lock["packages"])


def test_a_wheel_is_compressed_as_a_whole(vendor: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "mlcweb-1-py3-none-any.whl"
    texts = {f"mlcweb/{name}.py": f"{name} = 1\n" * 50 for name in "abcdefgh"}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    content = vendor.packed(wheel)
    assert content == vendor.packed(wheel)
    assert len(content) < wheel.stat().st_size
    with zipfile.ZipFile(io.BytesIO(gzip.decompress(content))) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == texts
