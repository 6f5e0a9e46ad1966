"""Scans: what they are, and what is refused. `create_prim_func` takes none, as in TVM."""

from __future__ import annotations

from typing import Any

import pytest

from mlcweb import te
from mlcweb.compat import ir_json
from mlcweb.ir import TVMError


def running_sums() -> tuple[Any, Any, Any, Any]:
    m, n = te.var("m"), te.var("n")
    x, state = te.placeholder((m, n), name="x"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    return x, init, update, state


def test_a_scan_has_the_shape_of_its_state() -> None:
    x, init, update, state = running_sums()
    result = te.scan(init, update, state, inputs=[x], name="sums", tag="t", attrs={"k": 1})
    assert tuple(result.shape) == tuple(state.shape)
    assert result.dtype == "float32"
    assert isinstance(result.op, te.ScanOp)
    assert (result.op.name, result.op.tag, result.op.attrs) == ("sums", "t", {"k": 1})
    assert result.op.scan_axis.dom.min == 1
    assert list(result.op.input_tensors) == [init, update]


def test_several_tensors_by_one_scan() -> None:
    _, init, update, state = running_sums()
    first, second = te.scan([init, init], [update, update], [state, state])
    assert (first.value_index, second.value_index) == (0, 1)
    loaded = ir_json.load_json(ir_json.save_json(first.op))
    assert isinstance(loaded, te.ScanOp)
    assert loaded.num_outputs == 2


def test_refusals() -> None:
    x, init, update, state = running_sums()
    with pytest.raises(TypeError, match="Unsupported Operation: ScanOp"):
        te.create_prim_func([x, te.scan(init, update, state)])
    with pytest.raises(ValueError, match="must have the same length, not 1, 2 and 1"):
        te.scan(init, [update, update], state)
    with pytest.raises(TVMError, match="as many dimensions, not 1, 2 and 2"):
        te.scan(te.placeholder((1,)), update, state)
    with pytest.raises(TVMError, match="of one type, not of int32, float32 and float32"):
        te.scan(te.placeholder(init.shape, "int32"), update, state)
    with pytest.raises(TVMError, match="the same but for its first extent"):
        te.scan(te.placeholder((1, 7)), update, state)
