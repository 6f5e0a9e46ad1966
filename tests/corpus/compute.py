"""Computes printed programs with a real TVM: run by `test_numbers.py` in TVM's environment.

Reads a file of NumPy arrays: `texts`, the programs, and the inputs of program i, a0_i, a1_i, …;
writes the content of all arrays after the call, or an error, as `error_i`.
"""

import sys

import numpy as np
import tvm
import tvm.script


def main(source: str, target: str) -> None:
    given = np.load(source)
    results: dict[str, np.ndarray] = {}
    for number, text in enumerate(given["texts"]):
        arrays = []
        while f"a{len(arrays)}_{number}" in given:
            arrays.append(tvm.runtime.tensor(given[f"a{len(arrays)}_{number}"]))
        try:
            module = tvm.script.from_source(str(text))
            module = module if isinstance(module, tvm.IRModule) else tvm.IRModule({"main": module})
            tvm.compile(module, target="llvm")["main"](*arrays)
        except Exception as error:
            results[f"error_{number}"] = np.array(str(error)[-300:])
            continue
        for position, array in enumerate(arrays):
            results[f"a{position}_{number}"] = array.numpy()
    np.savez(target, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
