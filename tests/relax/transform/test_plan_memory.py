"""StaticPlanBlockMemory: what shares memory, and what must not; TVM's plans are compared in
test_passes_as_tvm.py."""

import re

import numpy as np
import pytest

from mlcweb import relax
from mlcweb.relax.analysis.well_formed import refuse_ill_formed
from mlcweb.script import from_source
from tests.relax.transform.running import arguments, run

t = relax.transform


def planned(body, params='x: R.Tensor((4,), "float32")', result="e"):
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    program = f"""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main({params}):
{lines}
        return {result}
"""
    module = from_source(program)
    after = t.StaticPlanBlockMemory()(t.CallTIRRewrite()(t.LegalizeOps()(module)))
    refuse_ill_formed(after)
    return module, after


def storages(module):
    """The storage of each tensor that is placed, in the order of the text."""
    return re.findall(r"R\.memory\.alloc_tensor\((storage\d*)", module.script())


def test_tensors_that_follow_each_other_share_two_storages():
    _, after = planned("a = R.exp(x)\nb = R.exp(a)\nc = R.exp(b)\nd = R.exp(c)\ne = R.exp(d)")
    assert storages(after) == ["storage", "storage1", "storage", "storage1"]


def test_keeps_the_numbers():
    before, after = planned(
        "a = R.sin(x)\nb = R.exp(a)\nc = R.add(b, a)\nd = R.exp(c)\ne = R.exp(d)"
    )
    given = arguments(before["main"])
    np.testing.assert_allclose(run(after, given)[0], run(before, given)[0], rtol=1e-6)


def test_what_a_registered_function_gave_may_be_what_it_got():
    """TVM places `c` in the storage of `a` here, though `b` may be `a`."""
    _, after = planned(
        'a = R.exp(x)\nb = R.call_packed("f", a, sinfo_args=R.Tensor((4,), "float32"))\n'
        "c = R.exp(b)\nd = R.exp(c)\ne = R.exp(d)"
    )
    assert storages(after) == ["storage", "storage1", "storage"]


def test_a_branch_uses_what_it_may_give():
    _, after = planned(
        """
a = R.exp(x)
if p:
    b = a
else:
    b = x
c = R.exp(x)
d = R.exp(c)
e = R.add(b, d)
""",
        'x: R.Tensor((4,), "float32"), p: R.Tensor((), "bool")',
    )
    assert storages(after) == ["storage", "storage1", "storage2"]


def test_fields_of_what_is_given_back_are_no_part_of_the_plan():
    _, after = planned("a = R.exp(x)\nb = (a, x)\nc = R.exp(a)\nd = R.exp(c)", result="(b, d)")
    assert storages(after) == ["storage"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_storages_grow_and_keep_their_type(dtype):
    _, after = planned(
        f'a = R.astype(x, "{dtype}")\nb = R.sum(a)\nc = R.add(a, b)\nd = R.concat((c, c))\n'
        f"f = R.exp(d)\ng = R.exp(f)\ne = R.sum(g)"
    )
    sizes = re.findall(r"alloc_storage\(R\.shape\(\[(\d+)\]\)", after.script())
    width = 4 if dtype == "float32" else 2
    assert max(map(int, sizes)) == 8 * width


def test_symbolic_shapes_stay():
    _, after = planned("a = R.exp(x)\ne = R.exp(a)", 'x: R.Tensor(("n",), "float32")')
    assert storages(after) == []
    assert after.script().count("R.builtin.alloc_tensor") == 2


def test_storages_of_symbolic_size():
    _, after = planned("e = R.exp(x)", 'x: R.Tensor(("n",), "float16")')
    lowered = t.LowerAllocTensor()(after)
    assert "R.memory.alloc_storage(R.shape([n * 2])" in lowered.script()
    x = np.array([0, 1], "float16")
    np.testing.assert_allclose(run(lowered, [x])[0], np.exp(x), rtol=1e-2)


def test_runs_after_the_ends_of_values_are_said():
    before, after = planned("a = R.exp(x)\nb = a\nc = R.add(b, a)\nd = (c, x)\ne = R.exp(c)")
    ended = t.KillAfterLastUse()(t.LowerAllocTensor()(after))
    refuse_ill_formed(ended)
    text = ended.script()
    assert text.count("kill_tensor") == 2 and text.count("kill_storage") == 3
    given = arguments(before["main"])
    np.testing.assert_allclose(run(ended, given)[0], run(before, given)[0], rtol=1e-6)


def test_says_nothing_in_dataflow_blocks():
    module = from_source(
        """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.exp(y)
            R.output(z)
        return z
"""
    )
    assert "kill" not in t.KillAfterLastUse()(module).script()
