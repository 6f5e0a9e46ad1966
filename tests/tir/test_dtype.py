"""Data types by name."""

import math
import random

import numpy as np
import pytest

from mlcweb.compat.enums import DataTypeCode
from mlcweb.ir import DiagnosticError
from mlcweb.relax import PrimStructInfo
from mlcweb.tir import dtype as dtypes


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("float32", ("float", 32, 1)), ("bfloat16", ("bfloat", 16, 1)), ("int8x4", ("int", 8, 4)),
        ("uint64", ("uint", 64, 1)), ("bool", ("bool", 1, 1)), ("boolx8", ("bool", 1, 8)),
        ("handle", ("handle", 64, 1)), ("", ("void", 64, 1)),
    ],
)  # fmt: skip
def test_parts(name: str, parts: tuple[str, int, int]) -> None:
    assert dtypes.parse(name) == parts


def test_unknown_types_are_refused() -> None:
    with pytest.raises(DiagnosticError, match='Unknown data type "float"; did you mean "'):
        dtypes.parse("float")


def test_sizes_and_lanes() -> None:
    assert [dtypes.size_in_bytes(t) for t in ("bool", "int8", "float64", "float32x4")] == [
        1,
        1,
        8,
        16,
    ]
    assert dtypes.with_lanes("float32", 4) == "float32x4"
    assert dtypes.with_lanes("float32x4", 1) == dtypes.element_of("float32x4") == "float32"
    assert dtypes.with_lanes("bool", 4) == "boolx4"


def test_ranges() -> None:
    assert (dtypes.min_value("int8"), dtypes.max_value("int8")) == (-128, 127)
    assert (dtypes.min_value("uint16"), dtypes.max_value("uint16")) == (0, 65535)
    assert dtypes.max_value("float32") == 3.4028234663852886e38
    assert dtypes.min_value("float16") == -65504.0
    assert dtypes.max_value("bfloat16") == 3.3895313892515355e38


@pytest.mark.parametrize(
    ("value", "dtype", "wrapped"),
    [(128, "int8", -128), (-129, "int8", 127), (256, "uint8", 0), (2**31, "int32", -(2**31))],
)
def test_integers_wrap(value: int, dtype: str, wrapped: int) -> None:
    assert dtypes.wrap_integer(value, dtype) == wrapped


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_is_that_of_numpy(dtype: str) -> None:
    rng = random.Random(dtype)
    integers = [rng.randrange(-(2**63), 2**63) >> rng.randrange(63) for _ in range(500)]
    near = [(n >> 20 << 20) + rng.choice([-1, 0, 1]) for n in integers]
    floats = [rng.uniform(-1, 1) * 2.0 ** rng.randrange(-160, 130) for _ in range(500)]
    small = [rng.uniform(-1, 1) * 2.0 ** rng.randrange(-30, 18) for _ in range(500)]
    with np.errstate(over="ignore"):
        for value in [*integers, *near, *floats, *small, 65519.99, 65520.0, -0.0, math.inf]:
            source = "int64" if isinstance(value, int) else "float64"
            wanted = np.array(value, source).astype(dtype).item()
            assert dtypes.round_float(value, dtype) == wanted, value


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float8_e3m4", [0.296875, 1.3125, 5.75, math.inf]),
        ("float8_e4m3", [0.3125, 1.25, 5.5, 28]),
        ("float8_e4m3b11fnuz", [0.3125, 1.25, 5.5, 28]), ("float8_e4m3fn", [0.3125, 1.25, 5.5, 28]),
        ("float8_e4m3fnuz", [0.3125, 1.25, 5.5, 28]), ("float8_e5m2", [0.3125, 1.25, 6, 28]),
        ("float8_e5m2fnuz", [0.3125, 1.25, 6, 28]), ("float8_e8m0fnu", [0.25, 1, 4, 32]),
        ("float6_e2m3fn", [0.25, 1.25, 5.5]), ("float6_e3m2fn", [0.3125, 1.25, 6, 28]),
        ("float4_e2m1fn", [0.5, 1.5, 6]),
    ],
)  # fmt: skip
def test_rounding_of_narrow_floats(dtype: str, values: list[float]) -> None:
    for value, nearest in zip((0.3, 1.3, 5.7, 27.2), values, strict=False):
        assert dtypes.round_float(value, dtype) == nearest


def test_types_that_there_are_none_of():
    for text in ("nosuch", "float32x"):
        with pytest.raises(ValueError, match=f'Unknown data type "{text}"'):
            dtypes.DataType(text)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("int", "int32"), ("uint", "uint32"), ("float", "float32"), ("int8", "int8"),
        ("floatx4", "floatx4"), (np.dtype("float16"), "float16"),
        (PrimStructInfo("bfloat16"), "bfloat16"), ("e4m3_float8", "float8_e4m3fn"),
        ("e5m2_float8x4", "float8_e5m2x4"),
    ],
)  # fmt: skip
def test_full_names(given: object, name: str) -> None:
    assert dtypes.full_name(given) == name


def test_what_a_data_type_tells() -> None:
    half, flag = dtypes.DataType("float16x4"), dtypes.DataType("bool")
    assert half.itemsize == half.itemsize() == 8
    assert half.matches_code(DataTypeCode.INT, DataTypeCode.FLOAT)
    assert half.matches_element_type(DataTypeCode.FLOAT, 16)
    assert not half.is_scalar()
    assert flag.matches_code(DataTypeCode.BOOL)
    assert not flag.matches_code(DataTypeCode.INT, DataTypeCode.UINT)
    assert flag.is_scalar()
    assert dtypes.DataType("uint") == "uint32"
    sizes = {"float8_e5m2x4": 4, "float6_e2m3fnx4": 3, "float4_e2m1fnx4": 2, "float4_e2m1fn": 1}
    for name, size in {
        **sizes,
        "bool": 1,
        "boolx4": 4,
        "int4x8": 4,
        "float8_e4m3b11fnuzx2": 2,
    }.items():
        assert dtypes.DataType(name).itemsize == size
