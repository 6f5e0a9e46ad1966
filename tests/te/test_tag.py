"""Tags that a scope gives to the operations inside of it."""

from __future__ import annotations

import pytest

from mlcweb import TVMError, te


def test_a_scope_tags_what_has_no_tag_of_its_own() -> None:
    a = te.placeholder((4,), name="a")
    with te.tag_scope("injective"):
        b = te.compute((4,), lambda i: a[i] + 1)
        c = te.compute((4,), lambda i: a[i], tag="copy")

    @te.tag_scope(tag="conv")
    def conv(x: te.Tensor) -> te.Tensor:
        return te.compute((4,), lambda i: x[i] * 2)

    assert [t.op.tag for t in (a, b, c, conv(a))] == ["", "injective", "copy", "conv"]


def test_scopes_are_not_nested() -> None:
    with te.tag_scope("one"), pytest.raises(TVMError, match='inside of that of "one"'):
        te.tag_scope("two").__enter__()
