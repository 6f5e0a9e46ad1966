"""One package answering to another's name, shown on a package made for the test."""

import importlib
import sys
from pathlib import Path

import pytest

from mlcweb.compat.absent import AbsentError
from mlcweb.compat.finder import AliasFinder, PackageFinder, ReplacedFinder
from mlcweb.compat.replaced import PACKAGES
from mlcweb.compat.tree import Tree


@pytest.fixture
def aliased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package `engine` (modules `parts.wheel`, `parts.broken`) that is also known as `motor`."""
    parts = tmp_path / "engine" / "parts"
    parts.mkdir(parents=True)
    (tmp_path / "engine" / "__init__.py").write_text("")
    (parts / "__init__.py").write_text("")
    (parts / "wheel.py").write_text("class Wheel: pass")
    (parts / "broken.py").write_text("import no_such_dependency")
    (parts / "late.py").write_text("def late(): return 'the function'")
    monkeypatch.syspath_prepend(tmp_path)
    tree = Tree(
        "engine",
        "motor",
        modules={"rotor": "parts.wheel", "bits": "parts"},
        attributes={"parts.Tyre": "parts.wheel.Wheel"},
        views={"parts.round": ("parts.wheel",), "parts.late": ("parts.wheel",)},
        absent={"steam": "replaced by parts", "parts.coal": "use parts.wheel"},
    )
    finder = AliasFinder("motor", "engine", tree)
    first, last = PackageFinder(tree, last=False), PackageFinder(tree, last=True)
    monkeypatch.setattr(sys, "meta_path", [finder, first, *sys.meta_path, last])
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
    assert str(caught.value) == "There is no motor.brake here"
    assert caught.value.name == "motor.brake"


@pytest.mark.usefixtures("aliased")
def test_a_misspelled_module_is_told_with_what_may_be_meant():
    load("motor.parts.wheel")
    with pytest.raises(ModuleNotFoundError) as caught:
        exec("from motor.parts import wheell", {})
    assert (
        str(caught.value) == "There is no motor.parts.wheell here; did you mean motor.parts.wheel?"
    )


@pytest.mark.usefixtures("aliased")
def test_names_of_the_tables_are_attributes_of_the_modules():
    parts = load("motor.parts")
    assert parts.Tyre is load("engine.parts.wheel").Wheel
    namespace = {}
    exec("from motor.bits import Tyre, round\nfrom motor.parts.round import Wheel", namespace)
    assert namespace["Tyre"] is namespace["Wheel"] is namespace["round"].Wheel
    with pytest.raises(AttributeError, match=r"^motor.parts has no Tire here$"):
        parts.Tire


@pytest.mark.usefixtures("aliased")
def test_a_file_has_the_names_of_its_view_beside_its_own():
    late = load("motor.parts.late")
    assert late is load("engine.parts.late")
    assert late.late() == "the function" and late.Wheel is load("engine.parts.wheel").Wheel


@pytest.mark.usefixtures("aliased")
def test_importing_a_file_leaves_a_function_of_its_name_callable(aliased):
    parts = load("engine.parts")
    parts.late = load("engine.parts.late").late
    function = parts.late
    namespace = {}
    exec("import motor.parts.late\nfrom motor.parts.late import late", namespace)
    assert namespace["late"] is function and parts.late() == "the function"
    aliased.forget()
    assert parts.late is function


@pytest.mark.usefixtures("aliased")
def test_what_is_absent_is_imported_and_refused_when_used():
    namespace = {}
    exec("from motor import steam\nfrom motor.parts.coal import fire", namespace)
    steam, fire = namespace["steam"], namespace["fire"]
    assert not isinstance(1, steam.Boiler) and not hasattr(steam, "__wrapped__")
    with pytest.raises(AbsentError, match=r"^motor.steam.boil is not here: replaced by parts$"):
        steam.boil(3)
    with pytest.raises(AbsentError, match=r"^motor.parts.coal.fire is not here: use parts.wheel$"):
        exec("class Mine(fire): pass", {"fire": fire})


@pytest.mark.usefixtures("aliased")
def test_a_missing_dependency_of_a_module_is_not_mistaken_for_the_module():
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_dependency'"):
        load("motor.parts.broken")


@pytest.mark.usefixtures("aliased")
def test_other_names_are_left_alone(aliased):
    assert aliased.find_spec("motorcycle") is None
    assert aliased.find_spec("json") is None


@pytest.mark.parametrize(
    ("package", "instead"),
    [
        ("topi", "write from tvm import topi"),
        ("nnvm", "write models with tvm.relax"),
        ("vta", "tvm.tir.TensorIntrin.register"),
    ],
)
def test_packages_that_came_with_tvm_are_told_with_what_replaced_them(
    package, instead, monkeypatch
):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, ReplacedFinder(PACKAGES)])
    message = f"There is no package {package} here: .*{instead}"
    with pytest.raises(ModuleNotFoundError, match=message) as caught:
        load(package)
    assert caught.value.name == package
