"""Machine code as the page shows it: a function, the loops it becomes, and their WebAssembly.

Each line knows the line that it was made from: an instruction its line of the loops, a line of
loops the lines of the TensorIR. All is computed when it is asked for, since a program may define
many modules.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.codegen.wasm.checks import Check
from mlcweb.codegen.wasm.kernel import WasmModule, compile_lowered
from mlcweb.codegen.wasm.module import Function
from mlcweb.codegen.wasm.pipeline import lower_for_wasm
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.ir.visitor import walk
from mlcweb.lower import PassRecord
from mlcweb.playground.source_lines import Listing, line_of, listing
from mlcweb.runtime.build import options_of
from mlcweb.runtime.host.engine import Host, available, engine
from mlcweb.runtime.registry import get_global_func
from mlcweb.tir import PrimFunc
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.expr import IntImm

VECTOR_PREFIXES = ("v128.", "i8x16.", "i16x8.", "i32x4.", "i64x2.", "f32x4.", "f64x2.")

_programs: dict[str, IRModule] = {}


def register(programs: Iterable[tuple[str, IRModule]]) -> list[dict[str, str]]:
    """Keep the modules of a run for the page, those of the run before are forgotten.

    Returns:
        ``id`` and ``title`` of each that has a TensorIR function.
    """
    _programs.clear()
    _compiled.cache_clear()
    shown = []
    for title, module in programs:
        if function_names(module):
            identifier = f"p{len(_programs)}"
            _programs[identifier] = module
            shown.append({"id": identifier, "title": title})
    return shown


def code(identifier: str, name: str | None = None, fused: bool | None = None) -> dict[str, Any]:
    """The machine code of a function of a program.

    Args:
        name: the function; by default "main", or the first.
        fused: whether multiply-adds may be fused; by default as the engine's builds do.

    Returns:
        Plain JSON: ``functions`` (names) and ``function`` (the chosen one); ``tensorir``,
        ``lowered`` and ``wat``, each with ``lines`` (text), the latter two with ``origins``: for
        each line the numbers, from 1, of the lines it was made from, of ``tensorir`` or
        ``lowered``; ``tensorir`` has ``stands_for``: the lines whose code a line means. ``passes``
        (``name`` and ``changed``); ``size`` (see `_size`); ``fused`` (``available``, ``on`` and
        how many are ``used``). Where there is no machine code, ``error`` (``message`` and
        ``line`` of the TensorIR, or None) says why, and what is missing is None. ``notes`` are
        sentences on what is different here.
    """
    module = find_program(identifier)
    names = function_names(module)
    chosen = name if name in names else "main" if "main" in names else names[0]
    built = _compiled(identifier, chosen, fused)
    result: dict[str, Any] = {
        "functions": names,
        "function": chosen,
        "tensorir": {
            "lines": built.tensorir.text.split("\n"),
            "standsFor": _stands_for(built.tensorir),
        },
        "passes": None,
        "lowered": None,
        "wat": None,
        "size": None,
        "fused": {"available": built.may_fuse, "on": built.options.relaxed_madd, "used": 0},
        "error": None,
        "notes": _notes(built.tensorir.function),
    }
    try:
        result["passes"] = [
            {"name": record.name, "changed": _changed(record)} for record in built.records
        ]
        result["lowered"] = _with_origins(built.lowered)
        result |= {"wat": _wat(built.compiled), "size": _size(built)}
        result["fused"]["used"] = sum("relaxed_" in i[0] for i in built.function.body)
    except TVMError as error:
        result["error"] = _error(error)
    return result


def compiled_code(identifier: str, name: str) -> bytes:
    """The bytes of the module whose text `code` shows."""
    return _compiled(identifier, name, None).compiled.code


def _error(error: TVMError) -> dict[str, Any]:
    """What is wrong, and at which line of the TensorIR or of the program."""
    message = getattr(error, "message", "") or str(error)
    span = error.span
    if span is not None and span.filename:
        message += f" (line {span.line} of {span.filename})"
    return {"message": message, "line": span.line if span and not span.filename else None}


def _notes(func: PrimFunc) -> list[str]:
    loops = [s for s in walk(func.body) if isinstance(s, S.For)]
    bound = [s.loop_var.name for s in loops if s.kind is S.ForKind.THREAD_BINDING]
    if not bound:
        return []
    names = ", ".join(bound)
    return [f"Loops bound to GPU threads ({names}) run one turn after the other here."]


def after_pass(identifier: str, name: str, index: int) -> dict[str, Any]:
    """The loops after pass `index` (from 0), against those before it: ``lines`` with a ``kind``
    ("same", "added", "removed"), ``text`` and ``origins`` in the TensorIR."""
    built = _compiled(identifier, name, None)
    record = built.records[index]
    before, after = listing(record.before), listing(record.after)
    return {"lines": line_diff_with_origins(before, after)}


def line_diff_with_origins(before: Listing, after: Listing) -> list[dict[str, Any]]:
    """Both texts line by line, removed lines before those in their place."""
    old, new = before.text.split("\n"), after.text.split("\n")
    first, last = _common_ends(old, new)

    def lines(kind: str, side: Listing, texts: list[str], numbers: range) -> list[dict[str, Any]]:
        return [{"kind": kind, "text": texts[n], "origins": list(side.origins[n])} for n in numbers]

    result = lines("same", after, new, range(first))
    middle_old, middle_new = old[first : len(old) - last], new[first : len(new) - last]
    # The heuristic for lines that repeat keeps long unrolled programs from taking seconds.
    matcher = difflib.SequenceMatcher(None, middle_old, middle_new)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        added = range(first + j, first + j_end)
        if kind == "equal":
            result += lines("same", after, new, added)
        else:
            result += lines("removed", before, old, range(first + i, first + i_end))
            result += lines("added", after, new, added)
    return result + lines("same", after, new, range(len(new) - last, len(new)))


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the start of both texts, and, after these, at the end."""
    most = min(len(old), len(new))
    first = next((n for n in range(most) if old[n] != new[n]), most)
    rest = most - first
    last = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return first, last


@dataclass
class _Build:
    """A function on its way to machine code; each stage is made when first asked for."""

    name: str
    tensorir: Listing
    options: Options
    shared: bool
    may_fuse: bool
    lookup: Callable[[str], Any]
    checks: list[Check] = field(default_factory=list)

    @cached_property
    def records(self) -> list[PassRecord]:
        records: list[PassRecord] = []
        # What is shown is the code for calls whose arrays share no memory.
        lower_for_wasm(self.tensorir.function, self.options, self.checks, True, records.append)
        return records

    @cached_property
    def lowered(self) -> Listing:
        return listing(self.records[-1].after)

    @cached_property
    def compiled(self) -> WasmModule:
        _require_constant_shapes(self.name, self.tensorir.function)
        originals = {self.name: self.tensorir.function}
        lowered = {self.name: self.lowered.function}
        return compile_lowered(
            originals, lowered, self.options, self.shared, self.checks, self.lookup
        )

    @property
    def function(self) -> Function:
        """The kernel itself, without helpers and the loop that times it."""
        return self.compiled.module.functions[0]


@lru_cache(maxsize=8)
def _compiled(identifier: str, name: str, fused: bool | None) -> _Build:
    host = _host()
    shown = listing(find_program(identifier)[name])
    may_fuse = host is not None and host.relaxed_simd
    shared = host is not None and host.shared
    lookup = _lookup_in(find_program(identifier))
    return _Build(name, shown, options(fused), shared, may_fuse, lookup)


def _lookup_in(module: IRModule) -> Callable[[str], Any]:
    """What a name means that a function calls, as for a build: a function of the module or a
    registered one."""
    functions = {var.name_hint: func for var, func in module.functions.items()}
    return lambda name: functions.get(name) or get_global_func(name, True)


def options(fused: bool | None) -> Options:
    """What code for this machine may use, as a build has it, with fused multiply-adds as asked for
    where there are any."""
    host = _host()
    if host is None:
        return Options()
    from mlcweb.runtime.host.wasm_target import options_for

    return options_for(host, options_of(None, {} if fused is None else {RELAXED_MADD: fused}))


def _host() -> Host | None:
    return engine() if available() else None


def _require_constant_shapes(name: str, func: PrimFunc) -> None:
    for buffer in func.parameter_buffers:
        if constant_shape(buffer) is None:
            raise TVMError(
                f'"{name}" is compiled when it is called, since the shape of "{buffer.name}" is '
                "known only then; bind its sizes to numbers to see the code"
            )


def find_program(identifier: str) -> IRModule:
    """A registered program; a TVMError where it is of an earlier run."""
    if identifier not in _programs:
        raise TVMError("this program is of an earlier run; run it again")
    return _programs[identifier]


def programs() -> dict[str, IRModule]:
    """The registered programs by identifier."""
    return dict(_programs)


def function_names(module: IRModule) -> list[str]:
    """The names of a module's TensorIR functions."""
    functions = module.functions.items()
    return [var.name_hint for var, func in functions if isinstance(func, PrimFunc)]


def _stands_for(tensorir: Listing) -> list[list[int]]:
    """For each line the lines whose code it means: itself, or, for one that says something about a
    block or loop, all lines in there. Lines from 1."""
    statements = [s for s in walk(tensorir.function.body) if isinstance(s, S.Stmt) and s.span]
    leaves = {line_of(s) for s in statements if not isinstance(s, S.Block | S.BlockRealize)}
    regions: dict[int, tuple[int, int]] = {}
    root = tensorir.function.root_block
    for statement in statements:  # parents first, so that the innermost region stays
        span = statement.span
        assert span is not None
        if statement is root or (statement is tensorir.function.body and root is not None):
            continue
        for line in range(span.line, span.end_line + 1):
            regions[line] = span.line, span.end_line
    result = []
    for line in range(1, len(tensorir.origins) + 1):
        first, last = (line, line) if line in leaves else regions.get(line, (1, 0))
        result.append([number for number in range(first, last + 1) if number in leaves])
    return result


def _changed(record: PassRecord) -> bool:
    return record.changed and not structural_equal(record.before, record.after)


def _with_origins(lowered: Listing) -> dict[str, Any]:
    origins = [list(lines) for lines in lowered.origins]
    return {"lines": lowered.text.split("\n"), "origins": origins}


def _wat(compiled: WasmModule) -> dict[str, Any]:
    text = compiled.text
    tags = (getattr(source, "line", None) for source in text.sources)
    return {
        "lines": text.text.rstrip("\n").split("\n"),
        "origins": [[line] if line else [] for line in tags],
    }


def _size(built: _Build) -> dict[str, Any]:
    """``bytes`` of the module; ``instructions`` of the function and how many are ``simd``; and of
    its innermost loop, the one that runs most instructions, ``loop``: its ``name``, ``line`` in
    the loops, ``instructions`` and ``simd`` (None where there is no loop)."""
    body = built.function.body
    return {
        "bytes": len(built.compiled.code),
        "instructions": len(body),
        "simd": _count_simd(body),
        "loop": _hottest_loop(built.function, _trips(built.lowered.function)),
    }


def _count_simd(body: Sequence[tuple[Any, ...]]) -> int:
    return sum(instruction[0].startswith(VECTOR_PREFIXES) for instruction in body)


def _hottest_loop(function: Function, trips: Mapping[int, float]) -> dict[str, Any] | None:
    """Of the loops without a loop inside, the one that runs most instructions."""
    labels = iter(function.label_names)
    opened: list[tuple[int, str]] = []
    innermost = False
    found: list[tuple[float, dict[str, Any]]] = []
    for index, instruction in enumerate(function.body):
        mnemonic = instruction[0]
        if mnemonic in ("block", "loop", "if"):
            label = next(labels, "")
            opened.append((index if mnemonic == "loop" else -1, label))
            innermost = innermost or mnemonic == "loop"
        elif mnemonic == "end":
            start, label = opened.pop()
            if start >= 0 and innermost:
                innermost = False
                body = function.body[start + 1 : index]
                source = function.sources[start]
                line = getattr(source, "line", None)
                entry = {
                    "name": label,
                    "line": line,
                    "instructions": len(body),
                    "simd": _count_simd(body),
                }
                found.append((trips.get(line or 0, 1) * len(body), entry))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _trips(lowered: PrimFunc) -> dict[int, float]:
    """How often the body of the innermost loop of each line runs, by the line's number. A loop
    whose extent is not constant counts as one turn."""
    trips: dict[int, float] = {}

    def visit(node: Any, outer: float) -> None:
        if isinstance(node, S.For):
            outer *= node.extent.value if isinstance(node.extent, IntImm) else 1
            line = line_of(node) or 0
            trips[line] = max(trips.get(line, 0), outer)
        for name in node.child_fields:
            value = getattr(node, name)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, S.Stmt):
                    visit(child, outer)

    visit(lowered.body, 1.0)
    return trips
