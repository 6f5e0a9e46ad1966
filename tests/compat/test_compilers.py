"""`tvm.contrib.cc` and `tvm.contrib.clang`: compilers where there are some, else what to do."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from mlcweb.compat import compilers
from mlcweb.compat.absent import AbsentError

needs_compiler = pytest.mark.skipif(compilers.get_cc() is None, reason="no compiler is here")


@needs_compiler
def test_a_library_of_c_is_made_and_loaded(tmp_path: Path) -> None:
    source, library = tmp_path / "next.cc", tmp_path / "next.so"
    source.write_text('extern "C" int next(int x) { return x + 1; }')
    compilers.create_shared(str(library), [str(source)], options=["-O2"])
    assert ctypes.CDLL(str(library)).next(2) == 3


@needs_compiler
def test_what_the_compiler_refuses_is_said(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cc"
    source.write_text("int f( {")
    with pytest.raises(RuntimeError, match=r"Compilation error:[\s\S]*wrong\.cc"):
        compilers.create_shared(str(tmp_path / "wrong.so"), str(source))


def test_without_a_compiler_what_works_instead_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(AbsentError, match=r"no C compiler here: tvm\.build and lib"):
        compilers.create_shared("a.so", "a.cc")
    with pytest.raises(AbsentError, match=r"no clang here: .*@T\.prim_func"):
        compilers.create_llvm("int f() { return 1; }")
    assert compilers.find_clang(required=False) == []
