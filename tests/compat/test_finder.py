"""One package answering to another's name, shown on a package made for the test."""

import importlib
import sys
from pathlib import Path

import pytest

from mlcweb.compat.finder import AliasFinder, MissingFinder


@pytest.fixture
def aliased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package `engine` (modules `parts.wheel`, `parts.broken`) that is also known as `motor`."""
    parts = tmp_path / "engine" / "parts"
    parts.mkdir(parents=True)
    (tmp_path / "engine" / "__init__.py").write_text("")
    (parts / "__init__.py").write_text("")
    (parts / "wheel.py").write_text("class Wheel: pass")
    (parts / "broken.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    finder = AliasFinder("motor", "engine", {"rotor": "parts.wheel", "bits": "parts"})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path, MissingFinder(finder)])
    importlib.invalidate_caches()
    yield finder
    for name in [n for n in sys.modules if n.partition(".")[0] in ("engine", "motor")]:
        del sys.modules[name]


def load(name: str):
    return importlib.import_module(name)


@pytest.mark.usefixtures("aliased")
def test_an_alias_is_the_module_itself():
    assert load("motor.parts.wheel") is load("engine.parts.wheel")
    assert load("motor.parts.wheel").__spec__.name == "engine.parts.wheel"
    assert load("motor.parts.wheel").Wheel.__module__ == "engine.parts.wheel"


@pytest.mark.usefixtures("aliased")
def test_renamed_modules_and_what_is_below_them():
    assert load("motor.rotor") is load("engine.parts.wheel")
    assert load("motor.bits.wheel") is load("engine.parts.wheel")


@pytest.mark.usefixtures("aliased")
def test_from_import_reaches_submodules():
    namespace = {}
    exec("from motor import parts\nfrom motor.parts import wheel", namespace)
    assert namespace["wheel"] is load("engine.parts.wheel")


@pytest.mark.usefixtures("aliased")
@pytest.mark.parametrize("statement", ["import motor.brake", "from motor import brake"])
def test_a_missing_module_is_told_with_those_that_are_there(statement):
    with pytest.raises(ModuleNotFoundError) as caught:
        exec(statement, {})
    assert str(caught.value) == (
        "engine has no motor.brake. The modules there are motor.bits, motor.parts, motor.rotor."
    )
    assert caught.value.name == "motor.brake"


@pytest.mark.usefixtures("aliased")
def test_a_missing_dependency_of_a_module_is_not_mistaken_for_the_module():
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_dependency'"):
        load("motor.parts.broken")


@pytest.mark.usefixtures("aliased")
def test_other_names_are_left_alone(aliased):
    assert aliased.find_spec("motorcycle") is None
    assert aliased.find_spec("json") is None
