"""TVM's containers are Python's here: `isinstance` of these classes says what programs mean."""

from typing import Any

from mlcweb.tir.arithmetic import convert, subtract
from mlcweb.tir.buffer import Range as NodeOfRange

Array = tuple
Map = dict
String = str
ShapeTuple = tuple


class _RangeType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, NodeOfRange)


class Range(metaclass=_RangeType):
    """The integers from `begin` to before `end`, or from 0 to before `begin`, as TVM's users write
    them; what is made is the node of TensorIR, which has `min` and `extent`."""

    def __new__(cls, begin: Any, end: Any = None, span: Any = None) -> Any:
        low, high = (0, begin) if end is None else (begin, end)
        return cls.from_min_extent(low, subtract(convert(high), convert(low)), span)

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any, span: Any = None) -> NodeOfRange:
        """`extent` integers from `min_value` on."""
        return NodeOfRange(convert(min_value), convert(extent), span=span)
