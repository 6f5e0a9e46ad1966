"""Spellings of older TVMs mean what today's say."""

from __future__ import annotations

import base64
import json
import re
import struct

import numpy as np
import pytest

import mlcweb
from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.structural import structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.script.parser import parse

TODAY = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.exp(A[vi, vk])
"""

OLDER = """
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, [8, 4], dtype="float32")
    B = T.match_buffer(b, [8], dtype="float32")
    for i, k in T.grid(8, 4):
        with T.block([8, T.reduce_axis(0, 4)], "B") as [vi, vk]:
            T.bind(vi, i)
            T.bind(vk, k)
            T.reads([A[vi, vk]])
            T.writes([B[vi]])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.exp(A[vi, vk], dtype="float32")
"""


def test_blocks_that_list_their_axes_are_read() -> None:
    assert structural_equal(parse(OLDER), parse(TODAY))


def test_buffers_are_parameters_by_the_name_of_the_function_too() -> None:
    older = TODAY.replace('T.Buffer((8, 4), "float32")', 'T.buffer(shape=(8, 4), dtype="float32")')
    assert older != TODAY
    assert structural_equal(parse(older), parse(TODAY))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("            T.bind(vk, k)\n", "", r'the axis "vk" is: T\.bind\(vk'),
        ("T.bind(vk, k)", "T.bind(i, k)", '"i" is not an axis of the block "B"'),
        ("as [vi, vk]", "as [vi]", "lists 2 axes, and names 1"),
    ],
)
def test_what_their_axes_lack_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        parse(OLDER.replace(old, new))


FLAT = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
"""

COPY = """
for i in range(16):
    B[i] = C[i]
"""


def read(body: str, head: str = FLAT):
    return parse(head + "".join(f"    {line}\n" for line in body.strip().splitlines()))


@pytest.mark.parametrize(
    "older",
    [
        'C = T.allocate([16], "float32", "local")\nC_1 = T.buffer_decl([16], "float32", data=C)\n'
        "C_1[0] = A[0]\nB[0] = C_1[0]",
        'C: T.handle("float32", "local") = T.allocate([16], "float32", "local")\n'
        "D = T.Buffer([16], data=C)\nD[0] = A[0]\nB[0] = D[0]",
        'with T.allocate([16], "float32", "local") as C_data:\n'
        "    with T.decl_buffer([16], data=C_data) as C:\n        C[0] = A[0]\n        B[0] = C[0]",
        'C = T.allocate([16], "float32", "local")\n'
        'T.store(C, 0, T.load("float32", A.data, 0), True)\n'
        'T.store(B.data, 0, T.load("float32", C, 0))',
    ],
)
def test_allocations_are_buffers(older: str) -> None:
    today = 'C = T.decl_buffer((16,), scope="local")\nC[0] = A[0]\nB[0] = C[0]'
    assert structural_equal(read(older), read(today))


PAIRS = [
    # flat places of a matrix, and vectors
    ('T.store(B.data, i * 4 + j, T.load("float32", A.data, j), True)', "B[i * 4 + j] = A[j]"),
    ('T.store(B.data, T.ramp(i * 4, 1, 4), T.load("float32x4", A.data, T.ramp(j, 1, 4)), '
     "T.broadcast(True, 4))", "B[i * 4:i * 4 + 4] = A[j:j + 4]"),
    ('M = T.allocate([4, 4], "float32")\nT.store(M, i * 4 + j, 1.0)',
     "M = T.decl_buffer((4, 4))\nM[(i * 4 + j) // 4, (i * 4 + j) % 4] = 1.0"),
    ('C = T.allocate_const([1, 2], "int32", [2])\nB[0] = T.Cast("float32", C[i])',
     'C = T.decl_buffer((2,), "int32")\nC[0] = 1\nC[1] = 2\nB[0] = T.Cast("float32", C[i])'),
    ('t = T.env_thread("threadIdx.x")\nT.attr(t, "thread_extent", 16)\nB[t] = A[t]',
     't = T.launch_thread("threadIdx.x", 16)\nB[t] = A[t]'),
    ('t = T.var("int32")\nwith T.attr(T.iter_var(t, None, "ThreadIndex", "threadIdx.x"), '
     '"thread_extent", 16):\n    B[t] = A[t]',
     't = T.launch_thread("threadIdx.x", 16)\nB[t] = A[t]'),
    ("T.evaluate(T.tvm_call_packed('f', i, dtype='int32'))", 'T.call_packed("f", i)'),
    ("C = T.allocate([2], 'float32')\nT.call_extern('g', C, dtype='int32')",
     "C = T.decl_buffer((2,))\nT.call_extern('int32', 'g', C.data)"),
    ("B[T.ceildiv(i, 4)] = T.BufferLoad(A, [i])", "B[(i + 4 - 1) // 4] = A[i]"),
    ("C = T.alloc_buffer([2], type='auto')\nC[0] = A[i]", "C = T.alloc_buffer((2,))\nC[0] = A[i]"),
    ("x: T.let = A[i]\nB[0] = x", "x: T.float32 = A[i]\nB[0] = x"),
    ("x = T.float32()\nT.Bind(A[i], var=x)\nB[0] = x", "x: T.f32 = A[i]\nB[0] = x"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "today"), PAIRS)
def test_means_what_today_says(older: str, today: str) -> None:
    head = FLAT.replace("):", ", i: T.int32, j: T.int32):")
    assert structural_equal(read(older, head), read(today, head))


def test_a_parameter_with_its_shape_before_flattening() -> None:
    older = read("T.preflattened_buffer(A, [4, 4], data=A.data)\nB[0] = A[5]")
    assert [str(e) for e in older.buffer_map[older.params[0]].shape] == ["4", "4"]
    a = np.arange(16, dtype="float32").reshape(4, 4)
    for target in ("interpreter", "wasm"):
        arrays = mlcweb.nd.array(a), mlcweb.nd.empty((16,))
        mlcweb.build(older, target=target)(*arrays)
        assert arrays[1].numpy()[0] == 5
    assert structural_equal(parse(older.script()), older)


def test_blocks_that_bind_nothing_have_loops_of_their_own() -> None:
    bound = "".join(line for line in OLDER.splitlines(True) if "T.bind" not in line)
    loops = "    for i, k in T.grid(8, 4):\n"
    alone = bound.replace(loops, "").replace("\n    " + " " * 4, "\n    ")
    assert structural_equal(parse(alone), parse(TODAY))


BEFORE_08 = """
@tvm.script.tir
class Module:
    def main(a: ty.handle, b: ty.handle) -> None:
        A = tir.match_buffer(a, [8, 4])
        B = tir.match_buffer(b, [8])
        for i in tir.range(0, 8):
            for k in tir.serial(0, 4):
                with tir.block([8, tir.reduce_axis(0, 4)], "B") as [vi, vk]:
                    tir.bind(vi, i)
                    tir.bind(vk, k)
                    tir.reads([A[vi, vk]])
                    tir.writes([B[vi]])
                    with tir.init():
                        B[vi] = tir.float32(0)
                    B[vi] = B[vi] + tir.exp(A[vi, vk], dtype="float32")
"""


def test_scripts_of_2021() -> None:
    assert structural_equal(parse(BEFORE_08)["main"], parse(TODAY))


def test_metadata_of_older_tvms() -> None:
    header = struct.pack("<QQiiiBBHq", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 2, 32, 1, 2)
    array = header + struct.pack("<q2f", 8, 1.5, 2.5)
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relax.expr.Constant", "IntImm"], "data": [2, 4]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relax.expr.Constant", "attrs": {"data": "0"}},
        {"type_key": "Array", "data": [5]},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "7"}},
    ]
    content = {"root": 1, "nodes": nodes, "b64ndarrays": [base64.b64encode(array).decode()]}
    func = parse(
        f'metadata = tvm.ir.load_json("""{json.dumps(content)}""")\n'
        '@R.function\ndef main(x: R.Tensor((2,), "float32")):\n'
        '    y = R.add(x, metadata["relax.expr.Constant"][0])\n    return y\n'
    )
    constant = func.body.blocks[0].bindings[0].value.args[1]
    np.testing.assert_array_equal(constant.data.numpy(), [1.5, 2.5])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('T.realize(A[0:4], "")', "T has no realize: a block allocates by T.alloc_buffer"),
        ("A.vstore([T.Ramp(0, 1, 4)], 1.0)", "A[0:4] is of float32x4, not of float32"),
        ('T.func_attr({"k": meta[IntImm][0]})', "The text was printed without its metadata"),
        ('T.store(A.data, 0, 1.0, A[0] > 0.0)', "under a predicate are not read: use `if`"),
        ('B[0] = T.load("int32", A.data, 0)', "T.load asks for int32"),
        ('B[0] = T.load("float32", 3, 0)', "is no memory that the script declares"),
        ('C = T.allocate_const([1], "int32", [2])', "as many numbers as it has elements"),
        ('C = T.allocate([4], "int32", "global", A[0] > 0.0)', "write `if` around it"),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        read(body)


def test_shapes_in_brackets_may_name_their_extents() -> None:
    text = """@T.prim_func
def main(A: T.Buffer{}, B: T.Buffer{}):
    B[0] = A[0]
"""
    older = text.format('[("n",), "float32"]', '[("n * 2",), "float32"]')
    today = text.format('(("n",), "float32")', '(("n * 2",), "float32")')
    assert structural_equal(parse(older), parse(today))


def test_names_of_a_body_in_its_regions() -> None:
    """Before TVM 0.13 they were what they stand for."""
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4, 8)), B: T.Buffer((8, 4))):
    for i, j in T.grid(4, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            row = vi
            column = vj % 8
            T.reads(A[row, column])
            B[column, row] = A[row, column]
""")
    (block,) = (part for part in walk(func.body) if getattr(part, "name_hint", "") == "b")
    assert str(block.reads[0]) == "A[vi, vj % 8]"
    assert str(block.writes[0]) == "B[vj % 8, vi]"
    assert structural_equal(parse(func.script()), func)
