"""Code generation: one folder per target, and the table that finds them."""

from mlcweb.codegen.registry import (
    Builder,
    Kernel,
    TargetEntry,
    default_target,
    find_target,
    register_target,
    target_names,
)


def _interpreter() -> Builder:
    from mlcweb.codegen.interpreter import build

    return build


def _numpy() -> Builder:
    from mlcweb.codegen.numpy import build

    return build


def _simulated() -> Builder:
    from mlcweb.codegen.simulated import build

    return build


register_target("simulated", _simulated, rank=-1)
register_target("interpreter", _interpreter, rank=0)
register_target("numpy", _numpy, rank=10)
