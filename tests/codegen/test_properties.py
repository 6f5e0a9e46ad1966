"""Random programs: every target and the lowering agree with the interpreter."""

import numpy as np
from hypothesis import given

from mlcweb.lower import lower
from mlcweb.runtime import build, nd
from mlcweb.runtime.host.engine import available
from tests.codegen.corpus import inputs
from tests.strategies import examples, prim_funcs

EXACT_WASM = "wasm -relaxed_madd=0"
"""Products and sums are rounded one by one, as everywhere else."""


def run(func, target):
    arguments = [nd.array(values) for values in inputs(func)]
    build(func, target)(*arguments)
    return [argument.numpy() for argument in arguments]


def check_all_ways(func, rtol=0.0, atol=0.0):
    expected = run(func, "interpreter")
    lowered = lower(func)
    ways = [(lowered, "interpreter"), (func, "numpy"), (lowered, "numpy")]
    if available():
        ways.append((lowered, EXACT_WASM))
    for form, target in ways:
        for one, other in zip(expected, run(form, target), strict=True):
            np.testing.assert_allclose(other, one, rtol=rtol, atol=atol)


@examples(60)
@given(prim_funcs())
def test_block_programs(func):
    check_all_ways(func, rtol=1e-5, atol=1e-3)
