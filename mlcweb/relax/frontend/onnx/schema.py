"""The messages of ONNX files, as far as the importer reads them.

Source: onnx.proto, the ONNX specification; kinds are those of wire.py.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from mlcweb.relax.frontend.onnx.wire import Decoder, Schema

Proto: TypeAlias = Any
"""A message: of the package onnx, or as wire.py reads it."""

SCHEMA: Schema = {
    "ModelProto": {
        1: "ir_version: int",
        2: "producer_name: str",
        7: "graph: GraphProto",
        8: "opset_import: [OperatorSetIdProto]",
        25: "functions: [FunctionProto]",
    },
    "OperatorSetIdProto": {1: "domain: str", 2: "version: int"},
    "FunctionProto": {
        1: "name: str",
        4: "input: [str]",
        5: "output: [str]",
        6: "attribute: [str]",
        7: "node: [NodeProto]",
        9: "opset_import: [OperatorSetIdProto]",
        10: "domain: str",
        11: "attribute_proto: [AttributeProto]",
    },
    "GraphProto": {
        1: "node: [NodeProto]",
        2: "name: str",
        5: "initializer: [TensorProto]",
        11: "input: [ValueInfoProto]",
        12: "output: [ValueInfoProto]",
    },
    "NodeProto": {
        1: "input: [str]",
        2: "output: [str]",
        3: "name: str",
        4: "op_type: str",
        5: "attribute: [AttributeProto]",
        7: "domain: str",
    },
    "AttributeProto": {
        1: "name: str",
        2: "f: float",
        3: "i: int",
        4: "s: bytes",
        5: "t: TensorProto",
        6: "g: GraphProto",
        7: "floats: [float]",
        8: "ints: [int]",
        9: "strings: [bytes]",
        20: "type: int",
        21: "ref_attr_name: str",
    },
    "TensorProto": {
        1: "dims: [int]",
        2: "data_type: int",
        4: "float_data: [float]",
        5: "int32_data: [int]",
        7: "int64_data: [int]",
        8: "name: str",
        9: "raw_data: bytes",
        10: "double_data: [double]",
        11: "uint64_data: [uint]",
        13: "external_data: [StringStringEntryProto]",
        14: "data_location: int",
    },
    "StringStringEntryProto": {1: "key: str", 2: "value: str"},
    "ValueInfoProto": {1: "name: str", 2: "type: TypeProto"},
    "TypeProto": {1: "tensor_type: TensorTypeProto"},
    "TensorTypeProto": {1: "elem_type: int", 2: "shape: TensorShapeProto"},
    "TensorShapeProto": {1: "dim: [Dimension]"},
    "Dimension": {1: "dim_value: int?", 2: "dim_param: str"},
}

DECODER = Decoder(SCHEMA)

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
"""The element types that tensors may have here, by TensorProto.DataType."""

UNSUPPORTED_DTYPES = {
    8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
    24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
"""Those that they may not have."""

FLOAT, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS = range(1, 9)
"""The kinds of attributes, AttributeProto.AttributeType."""

EXTERNAL = 1
"""TensorProto.DataLocation of tensors whose bytes are in a file of their own."""
