"""Running one operator: what is deduced, what it is lowered to, and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlcweb as tvm
from mlcweb import relax
from mlcweb.relax import TensorStructInfo, TupleStructInfo
from mlcweb.relax.transform import LegalizeOps


def module_of(build: Callable[..., Any], *infos: Any) -> Any:
    """A module whose `main` is one call: `build` of a variable for each struct info."""
    params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(build(*params)))
    return builder.get()


def info_of(array: np.ndarray) -> TensorStructInfo:
    return TensorStructInfo(array.shape, str(array.dtype))


def evaluate(module: Any, arrays: list[np.ndarray], target: str = "interpreter") -> Any:
    """The result of a lowered `main`, by building the function of each call_tir and running it."""
    main = module["main"]
    values: dict[Any, Any] = dict(zip(main.params, arrays, strict=True))

    def value(expr: Any) -> Any:
        if isinstance(expr, relax.Var):
            return values[expr]
        if isinstance(expr, relax.Constant):
            return expr.data.numpy()
        if isinstance(expr, relax.Tuple):
            return [value(field) for field in expr.fields]
        if isinstance(expr, relax.TupleGetItem):
            return value(expr.tuple_value)[expr.index]
        assert isinstance(expr, relax.Call) and expr.op.name == "relax.call_tir", expr
        info = expr.sinfo_args[0]
        fields = info.fields if isinstance(info, TupleStructInfo) else [info]
        outputs = [tvm.nd.empty([int(n) for n in f.values], f.dtype) for f in fields]
        function = module[expr.args[0]]
        buffers = function.parameter_buffers[-len(outputs) :]
        for buffer, field in zip(buffers, fields, strict=True):
            assert [int(n) for n in buffer.shape] == [int(n) for n in field.values]
            assert buffer.dtype == field.dtype
        inputs = [tvm.nd.array(np.asarray(a)) for a in value(expr.args[1])]
        built = tvm.build(function.with_attr("global_symbol", "main"), target)
        built["main"](*inputs, *outputs)
        results = [output.numpy() for output in outputs]
        return results if isinstance(info, TupleStructInfo) else results[0]

    for block in main.body.blocks:
        for binding in block.bindings:
            values[binding.var] = value(binding.value)
    return value(main.body.body)


def check_operator(
    build: Callable[..., Any], arrays: list[np.ndarray], expected: Any, rtol: float = 1e-5,
    target: str = "interpreter",
) -> None:  # fmt: skip
    """The struct info deduced, the lowered function's shapes and the numbers are those of
    `expected`, an array or a list of arrays."""
    module = module_of(build, *map(info_of, arrays))
    result = module["main"].ret_struct_info
    several = isinstance(expected, (list, tuple))
    wanted = TupleStructInfo(list(map(info_of, expected))) if several else info_of(expected)
    assert result == wanted, f"deduced {result}, but NumPy gives {wanted}"
    lowered = LegalizeOps()(module)
    assert lowered["main"].ret_struct_info == wanted
    assert relax.analysis.well_formed(lowered)
    found = evaluate(lowered, arrays, target)
    pairs = zip(found, expected, strict=True) if several else [(found, expected)]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@pytest.fixture(name="check")
def check_fixture() -> Callable[..., None]:
    return check_operator


@pytest.fixture
def random() -> Callable[..., np.ndarray]:
    """Arrays of seeded random numbers of a shape and a dtype."""
    generator = np.random.default_rng(11)

    def array(*shape: int, dtype: str = "float32") -> np.ndarray:
        if dtype == "bool":
            return generator.random(shape) < 0.5
        if dtype.startswith("float"):
            return generator.standard_normal(shape).astype(dtype)
        return generator.integers(-9, 10, shape).astype(dtype)

    return array
