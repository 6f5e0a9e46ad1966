"""Machine code as the page shows it: a function, the loops it becomes, and their WebAssembly.

Each line knows the line that it was made from: an instruction its line of the loops, a line of
loops the lines of the TensorIR. All is computed when it is asked for, since a program may define
many modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlcweb.codegen.processor.checks import Check
from mlcweb.codegen.registry import RELAXED_MADD
from mlcweb.codegen.wasm.kernel import WasmModule, compile_lowered
from mlcweb.codegen.wasm.module import Function
from mlcweb.codegen.wasm.pipeline import lower_for_wasm
from mlcweb.codegen.wasm.select_function import Options
from mlcweb.ir import IRModule, TVMError, structural_equal
from mlcweb.ir.visitor import children, walk
from mlcweb.lower import PassRecord
from mlcweb.lower.parameters import with_kernel_parameters
from mlcweb.playground.aligned import aligned
from mlcweb.playground.compared import same_function
from mlcweb.playground.protocol.code import (
    VECTOR_PREFIXES,
    CodeError,
    CodeSize,
    FusedUse,
    LoopSize,
    MachineCode,
    PassLine,
    PassName,
    PassResult,
    SourceText,
    TracedText,
)
from mlcweb.playground.protocol.titled import Titled
from mlcweb.playground.session import Document, session
from mlcweb.playground.source_lines import Listing, line_of, listing
from mlcweb.runtime.build import options_of
from mlcweb.runtime.host.engine import Host, available, engine
from mlcweb.runtime.registry import get_global_func
from mlcweb.tir import PrimFunc
from mlcweb.tir import stmt as S
from mlcweb.tir.buffer import constant_shape
from mlcweb.tir.expr import IntImm
from mlcweb.tir.function import prim_funcs


def register(document: Document, programs: Iterable[tuple[str, IRModule]]) -> list[Titled]:
    """Keep the modules of a document's run that have a TensorIR function."""
    shown = []
    for title, module in programs:
        if prim_funcs(module):
            identifier = session.new_id("p")
            document.programs[identifier] = module
            shown.append(Titled(identifier, title))
    return shown


def code(
    program_id: str, function_name: str | None = None, fused: bool | None = None
) -> MachineCode:
    """The machine code of a function of a program.

    Args:
        function_name: by default "main", or the first.
        fused: whether multiply-adds may be fused; by default as the engine's builds do.
    """
    module = session.program(program_id)[1]
    names, chosen = list(prim_funcs(module)), same_function(module, function_name or "main")
    built = _build(program_id, chosen, fused)
    result = MachineCode(
        names,
        chosen,
        SourceText(built.tensorir.text.split("\n"), _stands_for(built.tensorir)),
        FusedUse(built.may_fuse, built.options.relaxed_madd, 0),
        _notes(built.tensorir.function),
    )
    try:
        result.passes = [PassName(record.name, _changed(record)) for record in built.records]
        result.lowered = _with_origins(built.lowered)
        result.wat, result.size = _wat(built.compiled), _size(built)
        result.fused.used = sum("relaxed_" in i[0] for i in built.function.body)
    except TVMError as error:
        result.error = _error(error)
    return result


def compiled_code(identifier: str, name: str) -> bytes:
    """The bytes of the module whose text `code` shows."""
    return _build(identifier, name, None).compiled.code


def _error(error: TVMError) -> CodeError:
    """What is wrong, and at which line of the TensorIR or of the program."""
    message = getattr(error, "message", "") or str(error)
    span = error.span
    if span is not None and span.filename:
        message += f" (line {span.line} of {span.filename})"
    return CodeError(message, span.line if span and not span.filename else None)


def _notes(func: PrimFunc) -> list[str]:
    loops = [s for s in walk(func.body) if isinstance(s, S.For)]
    bound = [s.loop_var.name for s in loops if s.kind is S.ForKind.THREAD_BINDING]
    if not bound:
        return []
    names = ", ".join(bound)
    return [f"Loops bound to GPU threads ({names}) run one iteration after the other here."]


def after_pass(program_id: str, function_name: str, index: int) -> PassResult:
    """The loops after pass `index` (from 0), against those before it."""
    built = _build(program_id, function_name, None)
    record = built.records[index]
    before, after = listing(record.before), listing(record.after)
    return PassResult(line_diff_with_origins(before, after))


def line_diff_with_origins(before: Listing, after: Listing) -> list[PassLine]:
    """Both texts line by line, removed lines before those in their place."""
    old, new = before.text.split("\n"), after.text.split("\n")
    first, last = _common_ends(old, new)
    middle = old[first : len(old) - last], new[first : len(new) - last]
    lines = [PassLine("same", new[n], list(after.origins[n])) for n in range(first)]
    # The heuristic for lines that repeat keeps long unrolled programs from taking seconds.
    for i, j in aligned(*middle, autojunk=True):
        if j is None:
            number = first + (i or 0)
            lines.append(PassLine("removed", old[number], list(before.origins[number])))
        else:
            number = first + j
            kind = "added" if i is None else "same"
            lines.append(PassLine(kind, new[number], list(after.origins[number])))
    rest = range(len(new) - last, len(new))
    return lines + [PassLine("same", new[n], list(after.origins[n])) for n in rest]


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
    def kernel(self) -> PrimFunc:
        """The function with the parameters of its code."""
        return with_kernel_parameters(self.tensorir.function)

    @cached_property
    def records(self) -> list[PassRecord]:
        records: list[PassRecord] = []
        # What is shown is the code for calls whose arrays share no memory.
        lower_for_wasm(self.kernel, self.options, self.checks, True, records.append)
        return records

    @cached_property
    def lowered(self) -> Listing:
        return listing(self.records[-1].after)

    @cached_property
    def compiled(self) -> WasmModule:
        _require_constant_shapes(self.name, self.tensorir.function)
        originals = {self.name: self.kernel}
        lowered = {self.name: self.lowered.function}
        return compile_lowered(
            originals, lowered, self.options, self.shared, self.checks, self.lookup
        )

    @property
    def function(self) -> Function:
        """The kernel itself, without helpers and the loop that times it."""
        return self.compiled.module.functions[0]


def _build(program_id: str, name: str, fused: bool | None) -> _Build:
    document, module = session.program(program_id)
    return document.cached(_started, module, name, fused)


def _started(module: IRModule, name: str, fused: bool | None) -> _Build:
    host = _host()
    shown = listing(module[name])
    may_fuse = host is not None and host.relaxed_simd
    shared = host is not None and host.shared
    lookup = _lookup_in(module)
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


def _with_origins(lowered: Listing) -> TracedText:
    return TracedText(lowered.text.split("\n"), [list(lines) for lines in lowered.origins])


def _wat(compiled: WasmModule) -> TracedText:
    text = compiled.text
    tags = (getattr(source, "line", None) for source in text.sources)
    return TracedText(text.text.rstrip("\n").split("\n"), [[line] if line else [] for line in tags])


def _size(built: _Build) -> CodeSize:
    body = built.function.body
    loop = _hottest_loop(built.function, _trips(built.lowered.function))
    return CodeSize(len(built.compiled.code), len(body), _count_simd(body), loop)


def _count_simd(body: Sequence[tuple[Any, ...]]) -> int:
    return sum(instruction[0].startswith(VECTOR_PREFIXES) for instruction in body)


def _hottest_loop(function: Function, trips: Mapping[int, float]) -> LoopSize | None:
    """Of the loops without a loop inside, the one that runs most instructions."""
    labels = iter(function.label_names)
    opened: list[tuple[int, str]] = []
    innermost = False
    weighted: list[tuple[float, LoopSize]] = []
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
                line = getattr(function.sources[start], "line", None)
                entry = LoopSize(label, len(body), _count_simd(body))
                weighted.append((trips.get(line or 0, 1) * len(body), entry))
    return max(weighted, key=lambda pair: pair[0])[1] if weighted else None


def _trips(lowered: PrimFunc) -> dict[int, float]:
    """How often the body of the innermost loop of each line runs, by the line's number. A loop
    whose extent is not constant counts as one iteration."""
    trips: dict[int, float] = {}

    def visit(node: Any, outer: float) -> None:
        if isinstance(node, S.For):
            outer *= node.extent.value if isinstance(node.extent, IntImm) else 1
            line = line_of(node) or 0
            trips[line] = max(trips.get(line, 0), outer)
        for child in children(node):
            if isinstance(child, S.Stmt):
                visit(child, outer)

    visit(lowered.body, 1.0)
    return trips
