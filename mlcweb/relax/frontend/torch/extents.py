"""Extents of PyTorch, which are numbers or formulas of SymPy, as those of Relax."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlcweb.relax.frontend.torch.errors import TorchError
from mlcweb.tir.arithmetic import floordiv, floormod
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.expr import Var as PrimVar


class Extents:
    """Those of one program: numbers, symbols, and formulas of symbols."""

    def __init__(self) -> None:
        self.symbols: dict[str, PrimVar] = {}

    def of(self, extent: Any) -> PrimExpr | int:
        return extent if isinstance(extent, int) else self._formula(extent.node.expr)

    def shape(self, tensor: Any) -> list[PrimExpr | int] | None:
        """The shape that PyTorch knows of a tensor, unless formulas have symbols that are new."""
        shape = getattr(tensor, "shape", None)
        if shape is None or all(isinstance(extent, int) for extent in shape):
            return None
        plain = {
            str(extent) for extent in shape if not isinstance(extent, int) and
            extent.node.expr.is_Symbol
        }  # fmt: skip
        used = {
            str(symbol) for extent in shape if not isinstance(extent, int)
            for symbol in extent.node.expr.free_symbols
        }  # fmt: skip
        return [self.of(extent) for extent in shape] if used <= plain | set(self.symbols) else None

    def _formula(self, formula: Any) -> PrimExpr | int:
        """An expression of SymPy, which is not imported here, as one of TensorIR."""
        kind = type(formula).__name__
        if formula.is_Integer:
            return int(formula)
        if formula.is_Symbol:
            return self.symbols.setdefault(str(formula), PrimVar(str(formula), "int64"))
        args = [self._formula(arg) for arg in formula.args]
        if kind == "Add":
            return sum(args[1:], args[0])
        if kind == "Mul":
            return math.prod(args[1:], start=args[0])
        if kind == "Pow" and isinstance(args[1], int) and args[1] > 0:
            return math.prod([args[0]] * (args[1] - 1), start=args[0])
        if kind == "FloorDiv":
            return floordiv(*args)
        if kind in ("Mod", "PythonMod"):
            return floormod(*args)
        raise TorchError(f"The extent {formula} cannot be imported")

    def bounds(self, constraints: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
        """The ranges of the symbols, as attributes of the function."""
        low, high = {}, {}
        for symbol, values in constraints.items():
            if str(symbol) in self.symbols:
                low[str(symbol)] = int(values.lower)
                if values.upper.is_Integer:
                    high[str(symbol)] = int(values.upper)
        attrs = {"tir_var_lower_bound": low, "tir_var_upper_bound": high}
        return {name: bounds for name, bounds in attrs.items() if bounds}
