"""Attributes of packages that are loaded when they are first asked for."""

import sys

import pytest

from mlcweb.ir import lazy_attributes


@pytest.fixture
def asked(monkeypatch):
    """What a provider of two names has been asked for."""
    names = []
    monkeypatch.setattr(lazy_attributes, "_providers", {})

    @lazy_attributes.provides("package.below", "one", "two")
    def provider(name):
        names.append(name)
        return name.upper()

    return names


def test_a_provider_is_called_when_its_name_is_asked_for(asked):
    assert asked == []
    assert lazy_attributes.provided("package.below", "two") == "TWO"
    assert lazy_attributes.lazy_attributes("package.below")("one") == "ONE"
    assert asked == ["two", "one"]


def test_a_name_without_a_provider_is_an_attribute_error(asked):
    with pytest.raises(AttributeError, match=r"^module 'package' has no attribute 'one'$"):
        lazy_attributes.provided("package", "one")


def test_submodules_and_their_names_are_imported_on_request(monkeypatch):
    monkeypatch.delitem(sys.modules, "json.tool", raising=False)
    load = lazy_attributes.lazy_attributes("json", {"tool": ["main"], "decoder": []})
    assert load("decoder") is sys.modules["json.decoder"]
    assert "json.tool" not in sys.modules
    assert load("main") is sys.modules["json.tool"].main
