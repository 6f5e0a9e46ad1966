"""Code generation: one folder per target, and the table that finds them."""

from mlcweb.codegen.registry import (
    Kernel,
    TargetEntry,
    default_target,
    find_target,
    register_target,
    target_names,
)
