"""Running the operator tests that the `onnx` package carries, and counting which pass.

    python -m tests.relax.frontend.onnx_operators [PART OF A NAME]

A test is claimed if every operator in it has a converter, its element types are those of tensors
here, and the importer does not refuse the form of an operator. Inputs that must be known when a
model is imported (shapes, axes, paddings) are made initializers, as models have them.
"""

import sys
import warnings
from collections import Counter
from functools import cache

import numpy as np

import mlcweb
from mlcweb import relax
from mlcweb.relax.frontend.onnx import ConstantNeeded, OnnxError, from_onnx
from mlcweb.relax.frontend.onnx.graph import CONTROL
from mlcweb.relax.frontend.onnx.node import CONVERTERS


@cache
def cases():
    """All operator tests by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name: case for case in collect_testcases(None)}


def array(value):
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def flat(values):
    """Tensors, also those of sequences."""
    for value in values:
        if hasattr(value, "numpy") or not isinstance(value, (list, tuple)):
            yield value
        else:
            yield from flat(value)


def operators(case):
    return {
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for node in case.model.graph.node
    }


def imported(case):
    """The module of a test, and the inputs that are left to give. Raises: OnnxError."""
    import onnx
    from onnx import numpy_helper

    given = list(case.model.graph.input)
    names, inputs = [value.name for value in given], case.data_sets[0][0]
    known = set()
    while True:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for name, value in zip(names, inputs, strict=True):
            if name in known:
                model.graph.initializer.append(numpy_helper.from_array(array(value), name))
        try:
            rest = [array(v) for name, v in zip(names, inputs, strict=True) if name not in known]
            return from_onnx(model), rest
        except ConstantNeeded as error:
            new = {error.input_name}
            if not new <= set(names):  # computed from inputs: shapes are lists of integers
                new = {
                    name
                    for name, value in zip(names, inputs, strict=True)
                    if array(value).ndim < 2 and array(value).dtype.kind in "iub"
                }
            if new <= known:
                raise
            known |= new


def outcome(case):
    """ "passed", or why not. Raises what running raises."""
    if not all(name in CONVERTERS or name in CONTROL for name in operators(case)):
        return "not claimed: operator"
    if any(isinstance(value, list) for value in case.data_sets[0][0]):
        return "not claimed: sequences as inputs"
    try:
        module, inputs = imported(case)
    except OnnxError:
        return "not claimed: form of an operator, or element type"
    expected = [array(value) for value in flat(case.data_sets[0][1])]
    if any(value.dtype.name == "bfloat16" for value in [*inputs, *expected]):
        return "not claimed: bfloat16 cannot be run"
    machine = relax.VirtualMachine(relax.build(module, "wasm"), mlcweb.cpu())
    results = machine["main"](*[mlcweb.nd.array(value) for value in inputs])
    results = flat([results])
    for result, value in zip(results, expected, strict=True):
        found = result.numpy()
        assert found.dtype == value.dtype and found.shape == value.shape
        # Sums of float16 are rounded at each step, here and in TVM; the reference rounds them once.
        half = value.dtype == np.float16
        rtol, atol = (4e-3, 1e-3) if half else (1e-3, 1e-5)
        np.testing.assert_allclose(
            found, value, rtol=max(case.rtol, rtol), atol=max(case.atol, atol)
        )
    return "passed"


def main(part=""):
    counts = Counter()
    for name, case in cases().items():
        if part in name:
            try:
                result = outcome(case)
            except Exception as error:
                result = "failed"
                print(name, " ".join(str(error).split())[:150])
            counts[result] += 1
    claimed = counts["passed"] + counts["failed"]
    print(f"passed {counts['passed']}, claimed {claimed}, all {sum(counts.values())}")
    for reason, count in counts.items():
        if reason.startswith("not"):
            print(f"  {reason}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
