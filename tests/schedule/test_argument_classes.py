"""The classes of the errors for wrong arguments.

TVM 0.27 was asked what it makes of each of `argument_values.VALUES` as each argument; its answers
are in cases/wrong_arguments.txt.

What TVM refuses is refused here by an error of the same class, or of a subclass of it, and what it
accepts is accepted. `DIFFERENCES` has what is otherwise, and why.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import mlcweb.schedule
from mlcweb.ir import InternalError
from mlcweb.schedule import BlockRV, ScheduleError
from mlcweb.script import tir as T
from mlcweb.tir import Schedule
from tests.programs import THREE_BLOCKS as PROGRAM
from tests.schedule.argument_values import CALLS, PRELUDE, VALUES, calls
from tests.schedule.case_files import FOLDER, module

CLASSES = {
    "T": TypeError,
    "V": ValueError,
    "X": IndexError,
    "A": AssertionError,
    "I": InternalError,
    "S": ScheduleError,
    "-": (AttributeError, KeyError),
}
"""By letters of the table, where "." means accepted; "-" also that TVM ends."""

BREAKS = ".TVXIAS"
ANY = r"[\w*]+"

DIFFERENCES = [
    ("-", ANY, ANY, ".*", BREAKS, "TVM breaks down, also while it writes the message of an error"),
    (
        "T", ANY, "target|.*block.*|.*buffer_index", r"'.*'|\[\]|\[?\(?'.*", ".SXV",
        "blocks and buffers may be given by name everywhere, and a list of blocks be empty",
    ),
    ("T", "sample_categorical", "probs", ".*", ".S", "integers are numbers"),
    (
        ".S", ANY, ANY, r"2\*\*(31|40|62)", ".STVX",
        "TVM cuts integers to 32 bits, and takes what is left",
    ),
    (
        ".", "sample_.*", "probs|n|partition_pos|innerpart_factor|decision", ".*", "S",
        "TVM returns as many integers as the decision has, also negative ones",
    ),
    ("I", "cache_index", ANY, ".*", ".", "TVM breaks down where there is no index to compute"),
    ("I", "blockize", "target", r"\[block(, block)?\]", ".", "one block is a list, too"),
    ("I", "read_at|write_at", "loop|block", ".*", "S", "TVM does not expect a loop elsewhere"),
    (
        "IAVST", ANY, "index_map|pad_value|gen_new_ranges", "lambda.*|int|T.*|sampled.*", ".TVSX",
        "what is no map of integers is a TypeError, but for a constant index, which is one",
    ),
    (".", "annotate_buffer_access", "gen_new_ranges", r".*1\.5.*", "T", "floats are no indices"),
    ("X", "annotate", "ann_val", r"T\..*", ".", "an annotation may have variables"),
    ("T", "annotate", "ann_val", r"\[\]", ".", "an empty list is a list"),
    ("S", "read_at|write_at", ".*_index", r"np\.int64\(1\)", "T", "an integer of Python is needed"),
    ("S", "split", "factors", r"\[-1\]", ".", "-1 is what sample_partitioned_tile leaves open"),
    ("T", "unsafe_set_dtype", "dtype", "'handle'", "S", "the type is none of numbers"),
    (
        "V", "merge|tensorize", r"\*loops|block_or_loop", ".*", "X",
        "TVM counts the loops, and looks for the intrinsic, first",
    ),
    (
        ".", "loop_partition|reindex_cache_.*|reverse_compute_inline", "loop|index_map|block", ".*",
        "S", "what TVM makes of it computes other numbers, or reads what nobody writes",
    ),
    (".", "read_at", "loop|block", ".*", "S", "TVM puts the copy where nobody reads it"),
]  # fmt: skip
"""TVM's answers, primitives, arguments, values, ours, and why."""

TABLE = {
    tuple(line.split()[:2]): line.split()[2]
    for line in (FOLDER / "wrong_arguments.txt").read_text().splitlines()
}


def is_explained(call, tvm, ours):
    return any(
        tvm in answers
        and re.fullmatch(primitive, call.primitive)
        and re.fullmatch(argument, call.argument)
        and re.fullmatch(value, call.value)
        and ours in accepted
        for answers, primitive, argument, value, accepted, _ in DIFFERENCES
    )


def outcome(names, sch, text):
    """A letter of the table, and all that an error is."""
    try:
        eval(text, {**names, "sch": sch})
    except Exception as error:
        letters = [letter for letter, cls in CLASSES.items() if isinstance(error, cls)]
        return letters[-1] if letters else repr(error), letters
    return ".", "."


@pytest.mark.parametrize("primitive", CALLS)
def test_wrong_arguments_are_errors_of_tvm_s_classes(primitive):
    first = Schedule(module(PROGRAM), error_render_level="fast")
    schedules = SimpleNamespace(Schedule=Schedule, schedule=mlcweb.schedule)
    names = {"T": T, "np": np, "s_tir": schedules, "BlockRV": BlockRV, "sch": first}
    for line in PRELUDE:
        exec(line, names)
    unexplained = []
    for call in calls(primitive):
        tvm = TABLE[primitive, call.argument][VALUES.index(call.value)]
        ours, all_of_ours = outcome(names, first.copy(), call.text)
        if tvm not in all_of_ours and not is_explained(call, tvm, ours):
            unexplained.append(f"{call.text}: TVM {tvm}, here {ours}")
    assert not unexplained, "\n".join(unexplained)
