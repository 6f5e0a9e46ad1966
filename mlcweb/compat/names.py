"""Names under which TVM's users know our modules and functions.

TVM's API has been spelled in three ways: ``tvm.tir``, ``tvm.nd``, ``tvm.build`` until 2025,
then ``tvm.runtime.tensor`` and ``tvm.compile``, and ``tvm.s_tir``, ``tvm.tirx`` and ``sblock``
since 2026. The package itself uses the first; these tables add the others. They are read while
the compatibility layer is installed, and hold names relative to the root package.
"""

MODULES: dict[str, str] = {
    "nd": "runtime.nd",
    "transform": "ir.transform",
    "s_tir": "tir",
    "s_tir.meta_schedule": "meta_schedule",
    "tirx": "tir",
    "script.tirx": "script.tir",
    **{
        f"{tir}.{name}": package
        for tir in ("tir", "s_tir", "tirx")
        for name, package in {
            "schedule": "schedule",
            "schedule.testing": "testing",
            "analysis": "analysis",
            "transform": "lower",
        }.items()
    },
}
"""A module's other name -> its name. A submodule of a renamed module follows it."""

ATTRIBUTES: dict[str, str] = {
    "compile": "build",
    "register_global_func": "register_func",
    "runtime.tensor": "runtime.array",
    "runtime.Tensor": "runtime.NDArray",
    "meta_schedule.runner.LocalRunner": "meta_schedule.local_runner.LocalRunner",
    "tir.SBlock": "tir.Block",
    "tir.SBlockRealize": "tir.BlockRealize",
    "schedule.SBlockRV": "schedule.BlockRV",
}
"""The other name of a function, class or method -> its name."""

ABSENT: dict[str, str] = {}
"""Modules of TVM that are not here: they can be imported, since course cells import more than they
use, and say what is missing when something of them is used."""
