"""The schedule cases of `tests/oracle_cases`, and what we make of one."""

from __future__ import annotations

import json
import linecache
import re
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import mlcweb
from mlcweb.script import from_source
from mlcweb.script import tir as T
from mlcweb.tir import Schedule
from mlcweb.tir.tensor_intrin import _intrinsics

CASES = Path(__file__).parents[1] / "oracle_cases"
NAMES = sorted(path.stem for path in CASES.glob("*.json") if ".expected" not in path.name)


@cache
def load(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A case and TVM's answer."""
    case = json.loads((CASES / f"{name}.json").read_text())
    answer = json.loads((CASES / f"{name}.expected.json").read_text())
    return case, answer


@cache
def scheduled(name: str) -> Schedule:
    """The schedule of a case, carried out by us."""
    case, _ = load(name)
    module = from_source(case["module"])
    sch = Schedule(module, seed=case.get("seed"))
    names = {"tvm": mlcweb, "np": np, "T": T}
    text, filename = case["schedule"], f"<{case['title']}>"
    # Intrinsics are defined by decorated functions, whose source is looked up here.
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    # Cases register intrinsics under names of their own choice.
    with mock.patch.dict(_intrinsics, clear=True):
        exec(compile(text, filename, "exec"), names)
        names["apply"](sch)
    return sch


NEWER_NAMES = (
    (r"\bT\.block\b", "T.sblock"),
    (r"\bT\.block_attr\b", "T.sblock_attr"),
    (r"\bT\.alloc_buffer\b", "T.sblock_alloc_buffer"),
    (r"@T\.prim_func\b", "@T.prim_func(s_tir=True)"),
    (r"\.get_block\b", ".get_sblock"),
    (r"\btvm\.tir\.(Schedule|TensorIntrin)", r"tvm.s_tir.\1"),
    (r"\btvm\.tir\b", "tvm.tirx"),
    (r"T\.Buffer\[(\(.*?\)), (\".*?\")\]", r"T.Buffer(\1, \2)"),
    (r"T\.call_extern\((.*), dtype=(\"\w+\")\)", r"T.call_extern(\2, \1)"),
)


def in_newer_spelling(text: str) -> str:
    """The schedule of a case as TVM writes it since 2026."""
    for old, new in NEWER_NAMES:
        text = re.sub(old, new, text)
    return text
