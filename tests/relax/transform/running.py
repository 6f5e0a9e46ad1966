"""Modules of the graph level run on random arguments."""

import numpy as np

import mlcweb as tvm
from mlcweb import relax


def arguments(func, seed=0):
    """Random arrays for the parameters of a function of known shapes."""
    rng = np.random.default_rng(seed)
    result = []
    for param in func.params:
        info = param.struct_info
        shape = [extent.value for extent in info.values]
        if info.dtype.startswith("int"):
            result.append(rng.integers(0, 2, shape).astype(info.dtype))
        else:
            result.append(rng.uniform(0.5, 1.5, shape).astype(info.dtype))
    return result


def run(mod, given, name="main"):
    """What a function of a module gives, as a list of NumPy's arrays."""
    vm = relax.VirtualMachine(relax.build(mod, target="numpy"), tvm.cpu())
    return flat(vm[name](*(tvm.nd.array(each) for each in given)))


def flat(value):
    """The arrays in a value, which may be a tuple of them."""
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for each in value for array in flat(each)]
