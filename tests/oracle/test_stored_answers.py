"""Schedule cases with the answers that a real TVM 0.27 gave, stored in `tests/oracle_cases`.

A case is a module and a schedule; its answer says whether TVM accepted it, the module and trace it
made, and checksums of what the scheduled module computes.
"""

import pytest

import mlcweb
from mlcweb.ir import TVMError, assert_structural_equal
from mlcweb.script import from_source
from tests.oracle.cases import NAMES, load, scheduled
from tests.oracle.numbers_of_cases import checksums, draw_inputs, shape_of


def in_our_words(trace):
    """A stored trace with the module name of the course's TVM."""
    text = trace.replace("s_tir.Schedule", "tir.Schedule").replace("import s_tir", "import tir")
    return [line.rstrip() for line in text.strip().splitlines()]


def steps(record):
    """The instructions of a record, but for index maps: one can be written in many ways."""

    def is_graph(value):
        return isinstance(value, str) and value.startswith('{"root_index"')

    return [
        [name, [v for v in inputs if not is_graph(v)], [a for a in attrs if not is_graph(a)], made]
        for name, inputs, attrs, made in record[0]
    ]


def arguments_of(func, run):
    """The inputs of the stored answers."""
    buffers = func.parameter_buffers
    parameters = [(b.dtype, shape_of(b.shape, run.get("dims", {}))) for b in buffers]
    return [mlcweb.nd.array(array) for array in draw_inputs(parameters, run["seed"])]


def is_run(name):
    case, answer = load(name)
    return bool(case.get("run") and answer.get("run"))


@pytest.mark.parametrize("name", NAMES)
def test_verdict_module_and_trace(name):
    _, answer = load(name)
    if not answer["ok"]:
        error = (TVMError, ValueError, IndexError)
        with pytest.raises(error):
            scheduled(name)
        return
    sch = scheduled(name)
    assert_structural_equal(sch.mod, from_source(answer["script_old"]))
    if "trace_old" in answer:  # TVM cannot print one with decompose_padding
        assert str(sch.trace).splitlines() == in_our_words(answer["trace_old"])
    assert steps(sch.trace.as_json(dialect="s_tir")) == steps(answer["trace_json"])


@pytest.mark.parametrize("target", ["interpreter", "numpy", "wasm"])
@pytest.mark.parametrize("name", list(filter(is_run, NAMES)))
def test_numbers(name, target):
    case, answer = load(name)
    module = scheduled(name).mod
    function = case["run"]["func"]
    arguments = arguments_of(module[function], case["run"])
    mlcweb.build(module, target=target)[function](*arguments)
    for array, wanted in zip(arguments, answer["run"]["params"], strict=True):
        for key, value in checksums(array.numpy()).items():
            assert value == pytest.approx(wanted[key], rel=1e-4, abs=1e-3), (wanted["name"], key)
