"""TVM's containers are Python's here: `isinstance` of these classes says what programs mean."""

from typing import Any

from mlcweb.tir.buffer import Range as NodeOfRange
from mlcweb.tir.constructors import constructor, make_range

Array = tuple
Map = dict
String = str
ShapeTuple = tuple

Range: Any = constructor(NodeOfRange, make_range)
"""Integers from `begin` to before `end`, or from 0 to before `begin`: makes the node of
TensorIR, which has `min` and `extent`."""
