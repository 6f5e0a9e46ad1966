"""Data types as TVM spells them: "float32", "int8", "bool", "float32x4", "handle"."""

from __future__ import annotations

import difflib
import math
import re
from functools import cache
from typing import Any

from mlcweb.ir.errors import DiagnosticError


class UnknownTypeError(DiagnosticError, ValueError):
    """There is no such data type."""


class ScalableTypeError(DiagnosticError, ValueError):
    """Something needs the number of lanes of a vector that is as long as a machine's vectors."""


_PATTERN = re.compile(
    r"(float|bfloat|int|uint)(\d+)(?:_e\d+m\d+[a-wyz]*\d*[a-wyz]*)?(?:x(vscalex)?(\d+))?"
)
"""A type by its kind, bits and lanes. Floats of fewer than 16 bits say how they divide them:
`float8_e4m3fn`."""

_OF_32_BITS = ("int", "uint", "float")

_OLDER_FLOATS = re.compile(r"(e4m3|e5m2)_float8(x\d+)?")
"""The spelling of TVM before 0.20."""


def full_name(dtype: Any) -> str:
    """A type by the name that nodes have: "int", "uint" and "float" are of 32 bits, as for TVM,
    "e4m3_float8" is "float8_e4m3fn", and the node `ir.PrimType` is what it describes."""
    name = str(getattr(dtype, "dtype", dtype) if hasattr(dtype, "matches_code") else dtype)
    if name in _OF_32_BITS:
        return f"{name}32"
    older = _OLDER_FLOATS.fullmatch(name)
    if older is None:
        return name
    return f"float8_{older[1]}{'fn' if older[1] == 'e4m3' else ''}{older[2] or ''}"


COMMON = (
    "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "bool", "handle",
)  # fmt: skip
"""Types that may be meant by one that is not known."""


@cache
def parse(dtype: str) -> tuple[str, int, int]:
    """(kind, bits, lanes) with kind one of float, bfloat, int, uint, bool, handle, void. A scalable
    vector, of some lanes for each of `T.vscale()`, has a negative number, as in DLPack."""
    if dtype == "bool" or dtype.startswith("boolx"):
        return "bool", 1, parse(f"uint1{dtype[4:]}")[2]
    if dtype in ("handle", "void", ""):
        return dtype or "void", 64, 1
    match = _PATTERN.fullmatch(dtype)
    if match is None:
        close = difflib.get_close_matches(dtype, COMMON, n=1)
        meant = f'; did you mean "{close[0]}"?' if close else ""
        raise UnknownTypeError(f'Unknown data type "{dtype}"{meant}')
    count = int(match[4] or 1)
    return match[1], int(match[2]), -count if match[3] else count


@cache
def kind(dtype: str) -> str:
    return parse(dtype)[0]


@cache
def bits(dtype: str) -> int:
    return parse(dtype)[1]


@cache
def lanes(dtype: str) -> int:
    """How many elements a vector has.

    Raises:
        ScalableTypeError: only the machine says it.
    """
    count = parse(dtype)[2]
    if count < 0:
        raise ScalableTypeError(
            f"{dtype} has as many lanes as the vectors of the machine, which are not of one length "
            "here; write a number of lanes in place of T.vscale()"
        )
    return count


@cache
def lane_count(dtype: str) -> int:
    """How many elements a vector has; of a scalable one, how many for each of `T.vscale()`, as a
    negative number."""
    return parse(dtype)[2]


@cache
def size_in_bytes(dtype: str) -> int:
    """Bytes that one value takes in memory; a bool takes one, and so does each of a vector."""
    name, width, _ = parse(dtype)
    count = lanes(dtype)
    return count if name == "bool" else -(-width * count // 8)


@cache
def is_float(dtype: str) -> bool:
    return kind(dtype) in ("float", "bfloat")


@cache
def is_integer(dtype: str) -> bool:
    """Signed or unsigned integers; bool is not one."""
    return kind(dtype) in ("int", "uint")


@cache
def is_scalar_integer(dtype: str) -> bool:
    """Whether a type is of one signed or unsigned integer."""
    return is_integer(dtype) and lanes(dtype) == 1


@cache
def is_bool(dtype: str) -> bool:
    return kind(dtype) == "bool"


@cache
def element_of(dtype: str) -> str:
    """The type of one lane."""
    return dtype.split("x")[0] if lane_count(dtype) != 1 else dtype


@cache
def with_lanes(dtype: str, count: int) -> str:
    """The type of vectors of so many elements, as `lane_count` counts them."""
    element = element_of(dtype)
    if count < 0:
        return f"{element}xvscalex{-count}"
    return element if count == 1 else f"{element}x{count}"


@cache
def like(element: str, dtype: str) -> str:
    """A type of other elements with as many lanes."""
    return with_lanes(element, lane_count(dtype))


@cache
def vector_at(dtype: str, index: str) -> str:
    """The type of the elements, of type `dtype` each, at the lanes of an index of type `index`."""
    counts = lane_count(dtype), lane_count(index)
    if max(counts) < 0:
        raise ScalableTypeError(f"There are no vectors of {dtype} at indices of type {index}")
    return with_lanes(dtype, counts[0] * counts[1])


@cache
def truth_value(dtype: str) -> str:
    """The type of what compares values of a type."""
    return like("bool", dtype)


def min_value(dtype: str) -> int | float:
    """The least finite value of a type."""
    return -_float_max(dtype) if is_float(dtype) else _integer_range(dtype)[0]


def max_value(dtype: str) -> int | float:
    """The greatest finite value of a type."""
    return _float_max(dtype) if is_float(dtype) else _integer_range(dtype)[1]


def wrap_integer(value: int, dtype: str) -> int:
    """`value` reduced to the range of an integer type, as two's complement arithmetic does."""
    low, high = _integer_range(dtype)
    return (value - low) % (high - low + 1) + low


@cache
def _integer_range(dtype: str) -> tuple[int, int]:
    name, width, _ = parse(dtype)
    if name == "bool":
        return 0, 1
    if name in ("handle", "void"):
        raise DiagnosticError(f"{name} has no numbers")
    if name == "uint":
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


_FLOATS = {
    "float64": (53, -1022, (2 - 2**-52) * 2.0**1023),
    "float32": (24, -126, (2 - 2**-23) * 2.0**127),
    "bfloat16": (8, -126, (2 - 2**-7) * 2.0**127),
    "float16": (11, -14, 65504.0),
    "float8_e3m4": (5, -2, 15.5),
    "float8_e4m3": (4, -6, 240.0),
    "float8_e4m3b11fnuz": (4, -10, 30.0),
    "float8_e4m3fn": (4, -6, 448.0),
    "float8_e4m3fnuz": (4, -7, 240.0),
    "float8_e5m2": (3, -14, 57344.0),
    "float8_e5m2fnuz": (3, -15, 57344.0),
    "float8_e8m0fnu": (1, -127, 2.0**127),
    "float6_e2m3fn": (4, 0, 7.5),
    "float6_e3m2fn": (3, -2, 28.0),
    "float4_e2m1fn": (2, 0, 6.0),
}
"""Of each float type the significant bits, the exponent of the least normal number and the greatest
finite value: IEEE 754, the 8-bit types of OCP, and the microscaling formats of OCP (MX)."""

NARROW_FLOATS = tuple(name for name in _FLOATS if "_" in name)
"""The floats of 8 bits and fewer."""


def _float_max(dtype: str) -> float:
    limits = _FLOATS.get(element_of(dtype))
    if limits is None:
        raise DiagnosticError(f"The greatest {dtype} is not known")
    return limits[2]


def round_float(value: int | float, dtype: str) -> float:
    """The value of a float type that is nearest to a number, of two the one whose last bit is zero;
    beyond the greatest infinite, or NaN in a type that has no infinity."""
    if not value or not math.isfinite(value):
        return float(value)
    greatest = _float_max(dtype)
    precision, least_exponent, _ = _FLOATS[element_of(dtype)]
    if isinstance(value, int) and (excess := abs(value).bit_length() - 53) > 0 and precision < 53:
        # A double has no room for it: what is cut off is kept as a last bit, to be rounded once.
        kept, cut = divmod(abs(value), 1 << excess)
        value = math.copysign((kept | bool(cut)) << excess, value)
    unit = max(math.frexp(value)[1] - 1, least_exponent) - precision + 1
    nearest = math.ldexp(round(math.ldexp(value, -unit)), unit)
    beyond = math.nan if element_of(dtype).endswith(("fn", "fnu", "fnuz")) else math.inf
    return math.copysign(nearest if abs(nearest) <= greatest else beyond, value)


def _numbers_of_bytes(fraction: int, bias: int, first_nan: int) -> tuple[float, ...]:
    """What the bits 0, 1, … of a float of 8 bits mean; what is between the greatest number and the
    first NaN is infinite."""
    greatest = _FLOATS["float8_e5m2" if fraction == 2 else "float8_e4m3fn"][2]
    magnitudes = []
    for bits in range(128):
        exponent, digits = divmod(bits, 1 << fraction)
        digits += (exponent > 0) << fraction
        number = math.ldexp(digits, max(exponent, 1) - bias - fraction)
        number = number if number <= greatest else math.inf
        magnitudes.append(number if bits < first_nan else math.nan)
    return (*magnitudes, *(-number for number in magnitudes))


NUMBERS_OF_BYTES = {
    "float8_e4m3fn": _numbers_of_bytes(3, 7, 0x7F),
    "float8_e5m2": _numbers_of_bytes(2, 15, 0x7D),
}
"""The floats of 8 bits that targets compute with, and the numbers of their bytes in order."""


def widen_bfloat16(bits: Any) -> Any:
    """The float32 of the bits of bfloat16, a NumPy array of uint16: they are its upper half."""
    return (bits.astype("uint32") << 16).view("float32")


class ItemSize(int):
    """A number of bytes that may be called: `itemsize` was a method until TVM 0.20."""

    def __call__(self) -> int:
        return int(self)


class DataType(str):
    """A data type as text, with what TVM's class of the name tells of one."""

    __slots__ = ()

    def __new__(cls, content: str) -> DataType:
        name = full_name(content)
        parse(name)  # refuses what is no type
        return super().__new__(cls, name)

    @property
    def bits(self) -> int:
        return bits(self)

    @property
    def lanes(self) -> int:
        """Negative for scalable vectors."""
        return lane_count(self)

    @property
    def itemsize(self) -> ItemSize:
        return ItemSize(size_in_bytes(self))

    @property
    def type_code(self) -> int:
        """DLPack's number of the kind; a bool is an unsigned integer of one bit."""
        return {"int": 0, "uint": 1, "bool": 1, "float": 2, "handle": 3, "bfloat": 4}[kind(self)]

    def matches_code(self, *codes: int) -> bool:
        """Whether the kind is one of these numbers of `DataTypeCode`, where a bool has its own."""
        return (6 if kind(self) == "bool" else self.type_code) in codes

    def matches_element_type(self, code: int, bits: int) -> bool:
        """Whether one lane is of this kind and of this many bits."""
        return self.matches_code(code) and self.bits == bits

    def is_scalar(self) -> bool:
        """Whether the type has one lane."""
        return self.lanes == 1

    def with_lanes(self, lanes: int) -> DataType:
        return DataType(with_lanes(self, lanes))
