"""The sequences that nodes hold: what programs do with them as with TVM's arrays."""

# ruff: noqa: RUF005 (sums of arrays and lists are what is tested)

from __future__ import annotations

import copy
import pickle

import pytest

from mlcweb import te
from mlcweb.compat.containers import Array as public
from mlcweb.compat.containers import convert
from mlcweb.ir import structural_equal, structural_hash
from mlcweb.ir.array import Array
from mlcweb.relax import ShapeExpr, TensorStructInfo, Tuple
from mlcweb.relax import Var as RelaxVar
from mlcweb.relax import op as relax_op
from mlcweb.script import tir as T
from mlcweb.tir import BufferLoad, PrimFunc, SeqStmt, Var, call_extern, decl_buffer

A, B = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")
C = te.compute((4, 8), lambda i, j: A[i, j] + B[j], name="C")


@T.prim_func
def add(a: T.Buffer((4,), "int32"), b: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("add"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi] + 1


def _block():
    return add.body.block.body.body.block


def test_a_slice_is_a_list_which_joins_lists():
    x = Var("x", "int32")
    assert add.params[:-1] + [x] == [add.params[0], x]
    assert [x] + add.params[1:] == [x, add.params[1]]
    rest = add.params[1:]
    rest.append(x)
    assert rest == [add.params[1], x] and len(add.params) == 2
    assert add.params[::-1] == [add.params[1], add.params[0]]


def test_arrays_join_any_sequence_on_either_side():
    a, b = add.params
    x = Var("x", "int32")
    for joined in (add.params + [x], add.params + (x,), add.params + Array([x])):
        assert type(joined) is Array and [*joined] == [a, b, x]
    for joined in ([x] + add.params, (x,) + add.params):
        assert type(joined) is Array and [*joined] == [x, a, b]
    with pytest.raises(TypeError):
        add.params + 5


def test_arrays_equal_lists_and_tuples_of_the_same_items():
    a, b = add.params
    assert add.params == [a, b] == add.params and [a, b] == add.params
    assert add.params == (a, b) and (a, b) == add.params
    assert add.params != [b, a] and add.params != [a]
    assert not isinstance(add.params, list)
    assert {add.params: 1}[PrimFunc([a, b], add.body).params] == 1
    assert str(C.shape) == "(4, 8)"


def test_items_are_read_as_of_any_sequence():
    a, b = add.params
    assert (add.params[0], add.params[-1], len(add.params)) == (a, b, 2)
    assert list(reversed(add.params)) == [b, a] and add.params.index(b) == 1
    assert a in add.params and add.params
    with pytest.raises(IndexError):
        add.params[2]
    with pytest.raises(TypeError):
        add.params[0] = b


def test_each_sequence_of_a_node_is_an_array():
    x = RelaxVar("x", TensorStructInfo((2, 3), "float32"))
    call = relax_op.add(x, x)
    buffer = decl_buffer((4, 4), "float32", "D")
    block = _block()
    for values in (
        add.params, buffer.shape, buffer.strides, block.iter_vars, block.reads, block.writes,
        block.alloc_buffers, block.match_buffers, block.reads[0].region, block.body.indices,
        call_extern("int32", "f", 1).args, SeqStmt([block.body, block.body]).seq,
        C.shape, C.op.axis, C.op.reduce_axis, C.op.input_tensors, C.op.body,
        call.args, call.sinfo_args, Tuple([x]).fields, ShapeExpr([2, 3]).values,
        x.struct_info.shape.values, BufferLoad(buffer, [0, 1]).indices,
    ):  # fmt: skip
        assert type(values) is Array


def test_parts_of_a_program_make_another():
    """The last parameter and its dimension are replaced by slices joined with lists."""
    shape = C.shape[:-1] + [16]
    last = decl_buffer(shape, "float32", "E")
    assert last.shape == [4, 16]
    outer = te.compute(A.shape[:-1] + [2, 4], lambda i, j, k: A[i, j * 4 + k])
    assert [int(extent) for extent in outer.shape] == [4, 2, 4]
    func = te.create_prim_func([A, outer])
    assert structural_equal(func.with_body(func.body), func)
    x = RelaxVar("x", TensorStructInfo((2, 3, 4), "float32"))
    flat = relax_op.reshape(x, x.struct_info.shape.values[:1] + [12])
    assert flat.args[1].values == [2, 12]


@pytest.mark.parametrize("way", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy])
def test_copies_hold_arrays(way):
    func = way(add)
    assert type(func.params) is Array and type(func.buffer_map[func.params[0]].shape) is Array
    assert structural_equal(func, add) and structural_hash(func) == structural_hash(add)
    assert way(Array([1, 2])) == [1, 2] and type(way(Array([1]))) is Array


def test_array_is_the_class_that_programs_name():
    assert isinstance(add.params, public) and not isinstance((1, 2), public)
    assert isinstance(convert([1, 2]), public)
