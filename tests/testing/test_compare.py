"""Classes of tests of a pass."""

from __future__ import annotations

from typing import Any

from mlcweb import IRModule, TVMError, tir
from mlcweb.script import ir as I
from mlcweb.script import tir as T
from mlcweb.testing import CompareBeforeAfter


class Simplifies(CompareBeforeAfter):
    transform = tir.transform.Simplify()


class TestScripts(Simplifies):
    def before(A: T.Buffer((4,), "int32")):  # type: ignore[no-untyped-def, misc]
        for i in range(4):
            if i < 10:
                A[i] = i + 0 * i

    def expected(A: T.Buffer((4,), "int32")):  # type: ignore[no-untyped-def, misc]
        for i in range(4):
            A[i] = i


class TestDecorated(Simplifies):
    @T.prim_func
    def before(A: T.Buffer((4,), "int32")):
        for i in range(1):
            A[i] = 1

    @T.prim_func
    def expected(A: T.Buffer((4,), "int32")):
        for _ in range(1):
            A[0] = 1


class TestModules(CompareBeforeAfter):
    def transform(self) -> Any:
        return lambda module: module

    @I.ir_module
    class before:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = 1

    expected = before


class TestMethods(Simplifies):
    def before(self) -> IRModule:
        return IRModule({"main": TestMethods.program(1)})

    def expected(self) -> IRModule:
        return self.before_again()

    def before_again(self) -> IRModule:
        return IRModule({"main": TestMethods.program(1)})

    @staticmethod
    def program(value: int) -> tir.PrimFunc:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")) -> None:
            A[0] = value

        return main


class TestErrors(CompareBeforeAfter):
    transform = tir.transform.BF16StorageLegalize()

    @T.prim_func
    def before(A: T.Buffer((4,), "bfloat16")):
        A[0] = T.bfloat16(1)

    expected = TVMError


class TestWithoutChange(Simplifies):
    @T.prim_func
    def before(A: T.Buffer((4,), "int32")):
        A[0] = 1

    expected = before


class TestCapitals(Simplifies):
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = 1 + 1

    @I.ir_module
    class Expected:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = 2
