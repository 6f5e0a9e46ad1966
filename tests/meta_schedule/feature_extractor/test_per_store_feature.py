"""The features of stores are those of a real TVM, row for row."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mlcweb.meta_schedule import FeatureExtractor, TuneContext
from mlcweb.meta_schedule.feature_extractor import PerStoreFeature, RandomFeatureExtractor
from mlcweb.meta_schedule.search_strategy import MeasureCandidate
from mlcweb.runtime.target import Target
from mlcweb.script import from_source
from mlcweb.tir import Schedule
from tests.meta_schedule.feature_extractor.cases import (
    ANSWERS,
    answers,
    cases,
    lines,
    packed,
    program,
    questions,
    target,
)
from tests.meta_schedule.matmul import Matmul
from tests.meta_schedule.space_generator import cases as spaces
from tests.meta_schedule.space_generator.replaying import finished, generator

ANSWERED = answers()


def scheduled(name, number):
    mod = program(name)
    if number is None:
        return Schedule(mod)
    made = generator(name)
    space = made.generate_design_space(mod)[number]
    return finished(made, mod, space.trace, lines(name, number))[0]


@pytest.mark.parametrize("case", cases())
def test_features_are_those_of_tvm(case):
    name, number, options = cases()[case]
    context = TuneContext(program(name), target=Target(target(name)))
    extractor = PerStoreFeature(**options)
    (rows,) = extractor.extract_from(context, [MeasureCandidate(scheduled(name, number))])
    assert rows.dtype == "float64"
    assert rows.shape == (len(ANSWERED[case]), extractor.feature_vector_length)
    np.testing.assert_allclose(rows.numpy(), ANSWERED[case], atol=1e-6)


@pytest.mark.oracle
@pytest.mark.thorough
def test_tvm_answers_what_is_stored(oracle_python):
    script = Path(__file__).parent / "ask_tvm_features.py"
    done = subprocess.run(
        [oracle_python, str(script)], input=json.dumps(questions()), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = map(packed, json.loads(done.stdout))
    assert json.loads(json.dumps(dict(zip(cases(), rows, strict=True)))) == json.loads(
        ANSWERS.read_text()
    )


def test_a_program_without_stores_has_no_rows():
    empty = from_source(
        'from mlcweb.script import tir as T\n@T.prim_func\ndef main(A: T.Buffer((4,), "int32")):\n'
        "    for i in range(4):\n        A[i] = 0\n"
    )
    context = TuneContext(empty, target="llvm")
    (rows,) = PerStoreFeature().extract_from(context, [MeasureCandidate(Schedule(empty))])
    assert rows.shape == (0, 164)


def test_an_index_that_may_be_anything_touches_the_whole_buffer():
    gather = from_source(
        "from mlcweb.script import tir as T\n@T.prim_func\n"
        'def main(A: T.Buffer((64,), "float32"), I: T.Buffer((8,), "int64"), '
        'B: T.Buffer((8,), "float32")):\n'
        "    for i in range(8):\n        B[i] = A[I[i]]\n"
    )
    context = TuneContext(gather, target="llvm")
    (rows,) = PerStoreFeature().extract_from(context, [MeasureCandidate(Schedule(gather))])
    # B, I and A take one line, by the bytes of their elements; of A 256 bytes are touched.
    unique_bytes = 2 ** rows.numpy()[0, [61, 79, 97]] - 1
    assert sorted(unique_bytes.round()) == [32, 64, 256]


def test_what_is_refused_when_it_is_built_is_described():
    made = generator("dense_u8_vnni")
    mod = spaces.module("dense_u8")
    trace = spaces.answers()["dense_u8_vnni"][0][0]["lines"]
    sch, _ = finished(made, mod, made.generate_design_space(mod)[0].trace, trace)
    context = TuneContext(mod, target="llvm")
    (rows,) = PerStoreFeature().extract_from(context, [MeasureCandidate(sch)])
    assert rows.shape == (1, 164)


def test_extractors_by_name():
    extractor = FeatureExtractor.create("per-store-feature", buffers_per_store=3)
    assert isinstance(extractor, PerStoreFeature)
    assert extractor.feature_vector_length == 164 - 2 * 18
    with pytest.raises(ValueError, match='Unknown feature extractor "per-loop-feature"'):
        FeatureExtractor.create("per-loop-feature")


def test_random_features_are_those_of_tvm():
    candidates = [MeasureCandidate(Schedule(Matmul))] * 2
    first, second = RandomFeatureExtractor(feature_size=3, seed=5).extract_from(
        TuneContext(Matmul), candidates
    )
    assert (first.shape, second.shape) == ((4, 3), (4, 3))
    assert first.numpy()[0] == pytest.approx([0.05518012, 0.83132783, 0.3637369])
    assert second.numpy()[-1] == pytest.approx([0.09336303, 0.82655425, 0.83349274])
