"""Functions known by name."""

import pytest

from mlcweb.ir import TVMError
from mlcweb.runtime import (
    device,
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in ("test.f", "named"):
        remove_global_func(name)


def test_the_three_ways_to_register():
    @register_func("test.f")
    def first(x):
        return x + 1

    assert get_global_func("test.f")(1) == 2
    register_func("test.f", lambda x: x + 2, override=True)
    assert get_global_func("test.f")(1) == 3
    assert first(1) == 2

    @register_func
    def named():
        return "by its own name"

    assert get_global_func("named")() == "by its own name"
    assert "test.f" in list_global_func_names()


def test_a_taken_name_needs_override():
    register_func("test.f", print)
    with pytest.raises(ValueError, match="override=True"):
        register_func("test.f", print)


def test_missing_functions():
    with pytest.raises(ValueError, match=r'Cannot find global function "test\.f"'):
        get_global_func("test.f")
    assert get_global_func("test.f", allow_missing=True) is None


@pytest.mark.parametrize("error", [TVMError, RuntimeError, ValueError])
def test_a_taken_name_is_an_error_of_each_class_that_tvm_had(error):
    register_func("test.f", abs)
    with pytest.raises(error, match="already registered"):
        register_func("test.f", abs)


def test_an_unknown_device():
    with pytest.raises(ValueError, match='Unknown device "nosuch"'):
        device("nosuch")
