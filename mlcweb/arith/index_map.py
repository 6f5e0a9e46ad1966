"""IndexMap: how the indices of one layout of an array become the indices of another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlcweb.arith.analyzer import Analyzer
from mlcweb.ir.array import ArrayOf
from mlcweb.ir.errors import TVMError
from mlcweb.ir.lazy_attributes import provided
from mlcweb.ir.node import Node, definition, node
from mlcweb.ir.visitor import Mutator, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import const, convert, is_const_int
from mlcweb.tir.buffer import Range
from mlcweb.tir.expr import IntImm, PrimExpr, Var
from mlcweb.tir.substitute import substitute


class IndexMapError(TVMError):
    """A map cannot be inverted, or does not fit the array."""


@node
class IndexMap(Node):
    """The map from `initial_indices` to `final_indices`, which are expressions in them.

    `inverse_index_map` may give the inverse; otherwise it is derived where it is asked for.
    """

    initial_indices: ArrayOf[Var] = definition()
    final_indices: ArrayOf[PrimExpr]
    inverse_index_map: IndexMap | None = None

    @staticmethod
    def from_func(
        mapping_function: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map that a Python function describes, called with one variable per dimension.

        A `*rest` parameter takes as many as are left of `ndim`.

        Example: `IndexMap.from_func(lambda i, j: [j // 4, i, j % 4])`.
        """
        names: list[str] = []
        rest_at: int | None = None
        parameters = inspect.signature(mapping_function).parameters.values()
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                raise ValueError("An index map takes indices, not keyword arguments (**)")
            if parameter.kind is parameter.VAR_POSITIONAL:
                if ndim is None:
                    raise ValueError("ndim must be given for an index map with *args")
                rest_at = len(names)
                count = ndim - len(parameters) + 1
                names += [f"{parameter.name}_{n}" for n in range(count)]
            else:
                names.append(parameter.name)
        variables = [Var(name, index_dtype) for name in names]
        keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
        by_name = {v.name: v for v in variables if rest_at is not None and v.name in keywords}
        positional = [v for v in variables if v.name not in by_name]
        mapped = mapping_function(*positional, **by_name)
        values = mapped if isinstance(mapped, (list, tuple)) else [mapped]
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = IndexMap.from_func(inverse, ndim=len(values), index_dtype=index_dtype)
        return IndexMap(tuple(variables), tuple(_index(v, index_dtype) for v in values), inverse)

    def with_values(self, values: Mapping[Any, Any]) -> IndexMap:
        """The map with other variables than its indices replaced; itself where it has none such."""
        final = tuple(substitute(index, values) for index in self.final_indices)
        if all(new is old for new, old in zip(final, self.final_indices, strict=True)):
            return self
        return IndexMap(self.initial_indices, final, self.inverse_index_map)

    def with_index_dtype(self, dtype: str) -> IndexMap:
        """The same map on indices of another integer type."""
        if all(var.dtype == dtype for var in self.initial_indices):
            return self
        variables = {var: Var(var.name, dtype) for var in self.initial_indices}
        retyped = _Retyped(variables, dtype)
        return IndexMap(
            tuple(variables.values()),
            tuple(retyped.rewrite(index) for index in self.final_indices),
            self.inverse_index_map and self.inverse_index_map.with_index_dtype(dtype),
        )

    def map_indices(
        self, indices: Sequence[PrimExpr | int], analyzer: Analyzer | None = None
    ) -> list[PrimExpr]:
        """The final indices of given initial ones, simplified."""
        self._check_count(indices)
        index_map = self._wide_enough_for(indices)
        analyzer = analyzer or Analyzer()
        pairs = zip(index_map.initial_indices, indices, strict=True)
        values = {var: _argument(index, var.dtype) for var, index in pairs}
        return [analyzer.simplify(substitute(index, values)) for index in index_map.final_indices]

    def map_shape(
        self, shape: Sequence[PrimExpr | int], analyzer: Analyzer | None = None
    ) -> list[PrimExpr]:
        """The shape of the smallest array that has all final indices of an array of `shape`.

        An IndexMapError where the final indices do not start at 0.
        """
        from mlcweb.arith.padded_inverse import index_ranges

        index_map = self._wide_enough_for(shape)._known_to(analyzer)
        ranges = index_ranges(index_map, index_map._domains(shape))
        extents = []
        for index, reached in zip(index_map.final_indices, ranges, strict=True):
            if reached is None:
                raise IndexMapError(f"The extent of the index {index!r} cannot be found")
            if not is_const_int(reached.min, 0):
                raise IndexMapError(
                    f"The index {index!r} of {self!r} starts at {reached.min!r}, not at 0"
                )
            extents.append(reached.extent)
        return extents

    def map_tensor(self, arr_src: Any) -> Any:
        """An array with the elements of another one where the map puts them, and zeros elsewhere.

        An IndexMapError where the array has another number of dimensions.
        """
        self._check_count(arr_src.shape)
        return provided(__name__, "map_tensor")(self, arr_src)

    def map_ndarray(self, arr_src: Any) -> Any:
        """`map_tensor`, under its name until 2025."""
        return self.map_tensor(arr_src)

    def _known_to(self, analyzer: Analyzer | None) -> IndexMap:
        """The map with what an analyzer knows of variables other than the indices."""
        if analyzer is None:
            return self
        final = tuple(map(analyzer.simplify, self.final_indices))
        return IndexMap(self.initial_indices, final, self.inverse_index_map)

    def _wide_enough_for(self, values: Sequence[Any]) -> IndexMap:
        """The map on the widest type of its indices and of some expressions."""
        if not self.initial_indices:
            return self
        types = [value.dtype for value in values if isinstance(value, PrimExpr)]
        widest = max((self.initial_indices[0].dtype, *types), key=dtypes.bits)
        return self.with_index_dtype(widest)

    def inverse(
        self, shape: Sequence[PrimExpr | Range | int], analyzer: Analyzer | None = None
    ) -> IndexMap:
        """The inverse on an array of `shape`; an IndexMapError where the map is not bijective."""
        inverse, padding = self.non_surjective_inverse(shape, analyzer)
        if not is_const_int(padding, 0):
            raise IndexMapError(
                f"{self!r} is not bijective: it leaves elements unused where {padding!r}"
            )
        return inverse

    def non_surjective_inverse(
        self, shape: Sequence[PrimExpr | Range | int], analyzer: Analyzer | None = None
    ) -> tuple[IndexMap, PrimExpr]:
        """The inverse, and the condition on the final indices under which an element of the new
        array is padding, so that the inverse is outside of the old array.

        An IndexMapError where different elements get one place, or the padding is not at the ends
        of the array's dimensions.
        """
        from mlcweb.arith.padded_inverse import padded_inverse

        domains = self._domains(shape)
        if self.inverse_index_map is not None:
            return self.inverse_index_map, const(False)
        return padded_inverse(self._known_to(analyzer), domains)

    def is_equivalent_to(self, other_map: IndexMap, analyzer: Analyzer | None = None) -> bool:
        """Whether both maps give the same final indices for all initial ones."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        if len(self.final_indices) != len(other_map.final_indices):
            return False
        analyzer = analyzer or Analyzer()
        mapped = other_map.map_indices(self.initial_indices, analyzer)
        pairs = zip(self.final_indices, mapped, strict=True)
        return all(analyzer.can_prove_equal(mine, other) for mine, other in pairs)

    def _domains(self, shape: Sequence[PrimExpr | Range | int]) -> dict[Var, Range]:
        self._check_count(shape)
        domains = {}
        for var, extent in zip(self.initial_indices, shape, strict=True):
            if not isinstance(extent, Range):
                extent = Range(const(0, var.dtype), _argument(extent, var.dtype))
            domains[var] = extent
        return domains

    def _check_count(self, values: Sequence[Any]) -> None:
        if len(values) != len(self.initial_indices):
            raise IndexMapError(
                f"{self!r} takes {len(self.initial_indices)} indices, but {len(values)} are given"
            )

    def to_python_string(self) -> str:
        """The map as the text of a Python function, as traces have it."""
        results = " ".join(f"{index!r}," for index in self.final_indices)
        return f"lambda {self._parameters}: ({results})"

    @property
    def _parameters(self) -> str:
        return ", ".join(var.name for var in self.initial_indices)

    def __repr__(self) -> str:
        inverse = self.inverse_index_map
        functions = [
            f"lambda {index_map._parameters}: {index_map.final_indices!r}"
            for index_map in ([self] if inverse is None else [self, inverse])
        ]
        return f"T.index_map({', inverse_index_map='.join(functions)})"


class _Retyped(Mutator):
    def __init__(self, variables: dict[Var, Var], dtype: str) -> None:
        self.variables = variables
        self.dtype = dtype

    @on(Var)
    def variable(self, var: Var) -> PrimExpr:
        return self.variables.get(var, var)

    @on(IntImm)
    def constant(self, value: IntImm) -> PrimExpr:
        return const(value.value, self.dtype)


def _index(value: Any, dtype: str) -> PrimExpr:
    if isinstance(value, bool) or not isinstance(value, (int, PrimExpr)):
        raise TypeError(
            "An index map returns an expression or a list of expressions, not "
            f"{value!r} ({type(value).__name__})"
        )
    return const(value, dtype) if isinstance(value, int) else value


def _argument(value: PrimExpr | int, dtype: str) -> PrimExpr:
    index = convert(value)
    return const(index.value, dtype) if isinstance(index, IntImm) else index
