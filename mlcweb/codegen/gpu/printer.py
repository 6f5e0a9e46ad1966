"""Kernels as text: one printer for all languages; what differs stands in their tables."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

from mlcweb.analysis.threads import ATOMIC, MATRIX_UNIT, WARP_MATRIX, is_barrier, is_shared
from mlcweb.arith import Analyzer
from mlcweb.codegen.gpu.kernels import DeviceKernel
from mlcweb.codegen.gpu.languages import DYNAMIC_SHARED, FORMS, Language, wgsl_array
from mlcweb.codegen.gpu.matrix_units import declare_fragments, matrix_instruction
from mlcweb.codegen.gpu.vector_copies import WORD, vector_copy
from mlcweb.codegen.gpu.vector_stores import VectorStore, vector_memory, vector_store
from mlcweb.codegen.gpu.warp_matrices import warp_instruction
from mlcweb.codegen.gpu.wide_integers import check_integers_fit, is_wide
from mlcweb.codegen.names import NameTable
from mlcweb.ir.errors import TVMError, nesting_limit
from mlcweb.ir.node import Node
from mlcweb.ir.span import Span
from mlcweb.ir.visitor import Dispatcher, children, find_nodes, on
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, floormod, is_const_int
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.builtins import unsupported
from mlcweb.tir.operators import DIVISIONS, OPERATORS, key_of, operands_of, operator_name
from mlcweb.tir.substitute import substitute, uses

OTHER, SUM, PRODUCT, ATOM = range(4)
"""How tightly a text holds together; what is OTHER stands in brackets beside any operator."""

_GREATEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
_CALL = re.compile(r"\w+\(\{\d?\}(, \{\d?\})*\)")
_ATOM = re.compile(r"\w*\(.*\)")

MAX_COPIES = 256
"""So many copies of a statement are written, at most, where loops are written out."""

_NAMING = (S.AllocBuffer, S.LetStmt, S.DeclBuffer)

_HALVES = {
    "float16": ("__half2float", "__float2half"),
    "bfloat16": ("__bfloat162float", "__float2bfloat16"),
}
"""How CUDA converts types that its functions lack to float32, and back."""

_FLOAT8 = {"float8_e4m3fn": "__NV_E4M3", "float8_e5m2": "__NV_E5M2", "float8_e8m0fnu": ""}
"""Types that CUDA keeps, and converts to float32 and, but for powers of two, back."""

_ASYNC = {
    "ptx_cp_async": "cp_async_",
    "ptx_commit_group": "cp_async_commit_",
    "ptx_wait_group": "cp_async_wait_",
}
"""Functions for asynchronous copies, by operator."""

INSTEAD = {
    "shuffle": 'exchange the values through a buffer of scope "warp" or "shared"',
    "shfl": 'exchange the values through a buffer of scope "warp" or "shared"',
    "cp_async": "copy by a loop over threads; a barrier waits for it",
    "commit_group": "copies are not asynchronous, so that there is nothing to wait for",
    "wait_group": "copies are not asynchronous, so that there is nothing to wait for",
    "ptx_mma_sp": "there are no products of sparse matrices; multiply whole ones by T.ptx_mma",
    "atomic_add": "name the element by T.address_of(A[i]), and use no result of it",
}
"""What to do instead of some instructions, by a part of their names."""

RESERVED = """float half double bool char short int long uint uchar ushort ulong signed unsigned
const void device thread threadgroup constant kernel global local shared array vec2 vec3 vec4 var
let fn struct args auto case default do else enum extern for goto if inline register restrict return
sizeof static switch typedef union volatile while main blockIdx threadIdx min max select sample
texture buffer vertex fragment asm this new delete template class private args public protected
operator namespace using true false read_only write_only read_write""".split()  # noqa: SIM905
"""Names that some language has taken, beside those of operators."""


def write_kernels(kernels: list[DeviceKernel], language: Language) -> str:
    """The source of some kernels, one module for all."""
    return _module(kernels, language)[0]


def write_kernel(kernel: DeviceKernel, language: Language) -> tuple[str, list[Span | None]]:
    """The source of a kernel for itself, and where each of its lines comes from."""
    text, [printer] = _module([kernel], language)
    spans = printer.spans()
    above = text.count("\n") - len(spans) - 1
    return text, [*(None for _ in range(above)), *spans, None]


@nesting_limit("built")
def _module(kernels: list[DeviceKernel], language: Language) -> tuple[str, list[KernelPrinter]]:
    texts: list[str] = []
    printers: list[KernelPrinter] = []
    taken = {f"{kernel.name}{end}" for kernel in kernels for end in ("", "_args", "_Args")}
    for kernel in kernels:
        printer = KernelPrinter(kernel, language, taken)
        printers.append(printer)
        texts.append(printer.source())
        if printer.is_wgsl:
            # Memory is declared beside the functions, where a name means one thing.
            taken.update(map(printer.name, (*kernel.buffers, *kernel.shared)))
    return _with_head(printers, texts), printers


def write_functions(printers: list[KernelPrinter]) -> str:
    """What some printers of one language write, with what it needs above."""
    return _with_head(printers, [printer.source() for printer in printers])


def _with_head(printers: list[KernelPrinter], texts: list[str]) -> str:
    language = printers[0].language
    used = {dtype for printer in printers for dtype in printer.dtypes} | {""}
    head = [*dict.fromkeys(text for dtype, text in language.includes.items() if dtype in used)]
    names = {name for printer in printers for name in printer.helpers}
    head += [text for name, text in language.functions.items() if name in names]
    head += sorted({text for printer in printers for text in printer.functions.values()})
    return "\n\n".join((*head, *texts)) + "\n"


class KernelPrinter(Dispatcher):
    """Writes one kernel."""

    def __init__(self, kernel: DeviceKernel, language: Language, taken: Iterable[str] = ()) -> None:
        self.kernel = kernel
        self.language = language
        functions = (name for name in OPERATORS if isinstance(name, str))
        self.names = NameTable((*RESERVED, *functions, *language.reserved.split(), *taken))
        self.analyzer = Analyzer(kernel.domains)
        self.lines: list[str] = []
        self.places: list[Span | None] = []
        self.span: Span | None = None
        self.depth = 1
        self.copies = 1
        self.dtypes: set[str] = set()
        self.helpers: set[str] = set()
        self.vectors: set[Buffer] = set()
        self.lanes = {} if language.has_pointers else vector_memory(kernel)
        self.atomics = frozenset() if language.has_pointers else kernel.atomic
        self.declared: dict[Buffer, int] = {}
        self.functions: dict[str, str] = {}
        self.owners: dict[E.Var, Buffer] = {
            buffer.data: buffer for buffer in (*kernel.buffers, *kernel.shared)
        }
        for buffer in (*kernel.buffers, *kernel.shared):
            passed = buffer in kernel.buffers or buffer.dtype != "bool"
            self.type(buffer.dtype, f'"{buffer.name}"', in_memory=passed)
        for var in kernel.scalars:
            in_memory = language.has_int64 or var.dtype != "int64"
            self.type(var.dtype, f'"{var.name}"', in_memory)
        if not (language.has_int64 or kernel.scalars) and is_wide(kernel):
            check_integers_fit(kernel, language.name, {})

    def source(self) -> str:
        """The whole kernel."""
        header = self.language.header(self.kernel, self.name)
        if self.language.shared:
            dynamic = self.kernel.dynamic_shared()[0] if self.language.dynamic_shared else {}
            if dynamic:
                self.line(self.language.dynamic_shared)
            for buffer in self.kernel.shared:
                if buffer in dynamic:
                    self.declare_part(buffer, dynamic[buffer])
                else:
                    self.declare_array(buffer, self.language.shared)
        self.statement(self.kernel.body)
        for buffer, at in self.declared.items():
            if buffer in self.vectors:
                text = self.lines[at].lstrip()
                indent = self.lines[at][: -len(text)]
                self.lines[at] = f"{indent}{self.language.aligned}{text}"
        return "\n".join((*header, *self.lines, "}"))

    def name(self, node: Any) -> str:
        return self.names[node]

    def type(self, dtype: str, what: str, in_memory: bool = False) -> str:
        """The type of the language; a TVMError that names what has it where there is none."""
        text = self.language.type(dtype)
        here = self.language.name
        if text is None or (in_memory and here == "webgpu" and dtype in ("bool", "int64")):
            raise TVMError(f"{what} is {dtype}, which {here} has not")
        self.dtypes.add(dtypes.element_of(dtype))
        return text

    # Statements

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)
        self.places.append(self.span)

    def spans(self) -> list[Span | None]:
        """Where each line of the body comes from, after `source`."""
        pairs = zip(self.lines, self.places, strict=True)
        return [place for line, place in pairs for _ in line.split("\n")]

    @contextmanager
    def braces(self, header: str) -> Iterator[None]:
        self.line(f"{header} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def statement(self, statement: S.Stmt) -> None:
        handler = self.table.get(type(statement))
        if handler is None:
            raise TVMError(
                f"A {type(statement).__name__} has no form in {self.language.name}", statement.span
            )
        self.span = statement.span or self.span
        handler(self, statement)

    @on(S.SeqStmt)
    def sequence(self, statement: S.SeqStmt) -> None:
        for part in statement.seq:
            self.statement(part)

    @on(S.AttrStmt)
    def attribute(self, statement: S.AttrStmt) -> None:
        if statement.attr_key == MATRIX_UNIT:
            self.dtypes.add("wmma")
            self.line(matrix_instruction(self, statement))
        elif statement.attr_key == WARP_MATRIX:
            self.line(warp_instruction(self, statement))
        elif statement.attr_key == ATOMIC:
            self.atomic(statement.body)
        else:
            self.statement(statement.body)

    def atomic(self, update: Any) -> None:
        """An addition to an element that no other thread interrupts."""
        if self.is_wgsl and self.scope(update.buffer) == "local":
            self.store(update)
            return
        dtype = update.buffer.dtype
        form = self.language.atomic_add(dtype)
        if form is None:
            raise TVMError(
                f"{self.language.name} has no atomic addition of {dtype} to "
                f'"{update.buffer.name}"; reduce in the threads of a block, and add up their '
                "results in a second kernel",
                update.span,
            )
        element = self.element(update.buffer, update.indices, update)
        pointer = self.language.pointer(self.scope(update.buffer))
        self.line(form.format(element, self.text(update.value.b), pointer.strip()))

    @cached_property
    def exchanges_in_global_memory(self) -> bool:
        """Whether the kernel reads global memory that it writes."""
        loads = find_nodes(self.kernel.body, E.BufferLoad)
        written = {buffer.data for buffer in self.kernel.buffers} & self.kernel.written
        return any(load.buffer.data in written for load in loads)

    @on(S.AssertStmt, S.DeclBuffer)
    def around(self, statement: Any) -> None:
        self.statement(statement.body)

    @on(S.AllocBuffer)
    def allocation(self, statement: S.AllocBuffer) -> None:
        self.owners[statement.buffer.data] = statement.buffer
        self.declare_array(statement.buffer, "")
        self.statement(statement.body)

    def declare_part(self, buffer: Buffer, offset: int) -> None:
        """Declare a buffer as a part of the piece of memory that a launch gives."""
        self.elements_of(buffer)
        element = self.type(buffer.dtype, f'"{buffer.name}"')
        start = f"{DYNAMIC_SHARED} + {offset}" if offset else DYNAMIC_SHARED
        self.line(f"{element}* const {self.name(buffer)} = ({element}*)({start});")

    def elements_of(self, buffer: Buffer) -> E.IntImm:
        """How many elements memory inside of a kernel has, which is constant."""
        size = buffer.shape[0]
        if not isinstance(size, E.IntImm):
            raise TVMError(
                f'"{buffer.name}" has {size} elements; memory inside of a kernel has a constant '
                "size",
                buffer.span,
            )
        return size

    def declare_array(self, buffer: Buffer, word: str) -> None:
        size = self.elements_of(buffer)
        element = self.type(buffer.dtype, f'"{buffer.name}"')
        if buffer.scope().startswith("wmma"):
            self.line(declare_fragments(self, buffer, element))
            return
        self.declared[buffer] = len(self.lines)
        if self.is_wgsl:
            array = wgsl_array(element, size, self.lanes.get(buffer.data, 1))
            self.line(f"var {self.name(buffer)} : {array};")
        else:
            self.line(f"{word}{element} {self.name(buffer)}[{size.value}];")

    @property
    def is_wgsl(self) -> bool:
        return not self.language.has_pointers

    @on(S.For)
    def loop(self, loop: S.For) -> None:
        if self.vector_copy(loop):
            return
        if loop.kind is S.ForKind.UNROLLED and self.is_wgsl and self.write_out(loop):
            return
        self.analyzer.bind(loop.loop_var, loop.domain)
        name, low = self.name(loop.loop_var), self.text(loop.min)
        end = self.text(self.analyzer.simplify(loop.min + loop.extent), SUM)
        if loop.kind is S.ForKind.UNROLLED and not self.is_wgsl:
            self.line("#pragma unroll")
        kind = self.type(loop.loop_var.dtype, f'"{loop.loop_var.name}"')
        if self.is_wgsl:
            header = f"for (var {name} : {kind} = {low}; {name} < {end}; {name}++)"
        else:
            header = f"for ({kind} {name} = {low}; {name} < {end}; ++{name})"
        with self.braces(header):
            self.statement(loop.body)

    def write_out(self, loop: S.For) -> bool:
        """An unrolled loop in a language that cannot ask for it: its iterations one after the
        other, so that memory of the thread is indexed by numbers and can lie in registers. False
        where that is too long, or an iteration has memory of its own."""
        parts = S.statements_in(loop.body)
        if self.copies * _copies(loop) > MAX_COPIES or any(isinstance(p, _NAMING) for p in parts):
            return False
        extent = cast(E.IntImm, loop.extent).value
        self.copies *= extent
        for number in range(extent):
            value = add(loop.min, const(number, loop.loop_var.dtype))
            self.statement(substitute(loop.body, {loop.loop_var: value}))
        self.copies //= extent
        return True

    def vector_copy(self, loop: S.For) -> bool:
        """A loop that copies neighbouring elements, as one load and one store of a vector."""
        if self.is_wgsl:
            return self.vector_store(loop)
        copy = vector_copy(loop, self.analyzer)
        if copy is None:
            return False
        store, load, _, dtype, *firsts = copy
        self.vectors.update(self.owner(part.buffer) for part in (store, load))
        vector = self.type(dtype, f'"{store.buffer.name}"')
        target, source = (
            f"*({self.language.pointer(self.scope(part.buffer))}{const}{vector}*)"
            f"({self.name(self.owner(part.buffer))} + {self.text(first, SUM)})"
            for part, first, const in zip((store, load), firsts, ("", "const "), strict=True)
        )
        self.line(f"{target} = {source};")
        return True

    def vector_store(self, loop: S.For) -> bool:
        """A loop whose iterations are the lanes of vectors, where memory is an array of these."""
        vector = vector_store(loop, self.analyzer)
        if vector is None:
            return False
        if any(part.buffer.data not in self.lanes for part in vector.vectors):
            return False
        target = self.vector_element(vector, vector.store)
        value = self.vector(vector, vector.store.value, loop.loop_var)[0]
        self.line(f"{target} = {value};")
        return True

    def vector_element(self, vector: VectorStore, access: E.BufferLoad | S.BufferStore) -> str:
        return f"{self.name(self.owner(access.buffer))}[{self.text(vector.vectors[access])}]"

    def vector(self, vector: VectorStore, value: Any, var: E.Var) -> tuple[str, int]:
        """A value for all lanes, and how tightly it holds together; what is the same in all is
        repeated."""
        if not uses(value, var):
            kind = self.type(value.dtype, "A value")
            return f"vec{vector.lanes}<{kind}>({self.text(value)})", ATOM
        if isinstance(value, E.BufferLoad):
            return self.vector_element(vector, value), ATOM
        key = key_of(value)
        form = self.language.forms.get(key, FORMS[key])
        is_call = _CALL.fullmatch(form) is not None
        parts = (self.vector(vector, part, var) for part in operands_of(value))
        texts = [text if is_call or held == ATOM else f"({text})" for text, held in parts]
        return form.format(*texts), ATOM if is_call else OTHER

    def scope(self, buffer: Buffer) -> str:
        owner = self.owner(buffer)
        if owner in self.kernel.buffers:
            return "global"
        return "shared" if is_shared(owner) or owner in self.kernel.shared else "local"

    def owner(self, buffer: Buffer) -> Buffer:
        return self.owners.get(buffer.data, buffer)

    @on(S.While)
    def while_loop(self, statement: S.While) -> None:
        with self.braces(f"while ({self.text(statement.condition)})"):
            self.statement(statement.body)

    @on(S.IfThenElse)
    def branch(self, branch: S.IfThenElse) -> None:
        with self.braces(f"if ({self.text(branch.condition)})"):
            self.statement(branch.then_case)
        if branch.else_case is not None:
            with self.braces("else"):
                self.statement(branch.else_case)

    @on(S.LetStmt)
    def let(self, let: S.LetStmt) -> None:
        self.define(let.var, let.value)
        self.statement(let.body)

    def define(self, var: E.Var, value: E.PrimExpr) -> None:
        text, kind = self.text(value), self.type(var.dtype, f'"{var.name}"')
        if dtypes.is_integer(var.dtype):
            self.analyzer.bind(var, value)
        name = self.name(var)
        self.line(f"let {name} : {kind} = {text};" if self.is_wgsl else f"{kind} {name} = {text};")

    @on(S.BufferStore)
    def store(self, store: S.BufferStore) -> None:
        value = self.text(store.value)
        element = self.element(store.buffer, store.indices, store)
        atomic = store.buffer.data in self.atomics
        self.line(f"atomicStore(&{element}, {value});" if atomic else f"{element} = {value};")

    @on(S.Evaluate)
    def evaluate(self, statement: S.Evaluate) -> None:
        if is_barrier(statement):
            exchange = self.exchanges_in_global_memory
            self.line(self.language.global_barrier if exchange else self.language.barrier)
        elif self.language.async_copies and operator_name(statement.value) in _ASYNC:
            self.line(self.async_copy(statement.value))
        elif isinstance(statement.value, E.Call):
            self.line(f"{self.text(statement.value)};")

    def async_copy(self, call: Any) -> str:
        """An asynchronous copy, or a call that commits or waits."""
        name = _ASYNC[operator_name(call)]
        self.helpers.add(name)
        if name == "cp_async_commit_":
            return f"{name}();"
        if name == "cp_async_wait_":
            return f"{name}<{self.text(call.args[0])}>();"
        target, to, source, start, size, *condition = call.args
        if target not in self.owners or source not in self.owners:
            self.refuse(call)
        self.vectors.add(self.owners[target])
        places = [
            f"{self.name(self.owners[data])} + {self.text(offset, SUM)}"
            for data, offset in ((target, to), (source, start))
        ]
        return f"{name}<{self.text(size)}>({', '.join((*places, *map(self.text, condition)))});"

    # Expressions

    def text(self, expression: Node, around: int = OTHER) -> str:
        """An expression; in brackets where `around` holds together more tightly."""
        handler = self.table.get(type(expression))
        if handler is not None:
            return handler(self, expression)
        key = key_of(expression)
        if key in self.language.exchange:
            form = self.language.exchange[str(key)]
            return form.format(*map(self.text, operands_of(expression)[1:3]))
        if key in self.language.builtins:
            return self.builtin(self.language.builtins[key], operands_of(expression))
        if key in ("call_extern", "call_pure_extern"):
            return self.call_of_the_language(expression)
        if key not in FORMS:
            self.refuse(expression)
        written, strength = self.in_its_type(key, expression)
        return written if strength >= around or strength == ATOM else f"({written})"

    def builtin(self, form: str, operands: list[Any]) -> str:
        self.helpers.update(name for name in self.language.functions if form.startswith(name))
        return form.format(*map(self.text, operands))

    def call_of_the_language(self, call: Any) -> str:
        """A call of a function by its name in the language, with numbers and vectors."""
        name, *arguments = call.args
        return f"{name.value}({', '.join(map(self.argument, arguments))})"

    def argument(self, value: Any) -> str:
        """What a function of the language is given: of vectors of octets, which have no arithmetic,
        the word that they are."""
        lanes = dtypes.lanes(value.dtype)
        if value.dtype == "handle":
            raise TVMError(
                "A function of a GPU's language is given numbers, and no memory, so that it is "
                "known what threads read and write; pass elements, and store its result",
                value.span,
            )
        if lanes == 1:
            return self.text(value)
        ramp = value.indices[0] if isinstance(value, E.BufferLoad) else None
        if self.is_wgsl or not (isinstance(ramp, E.Ramp) and is_const_int(ramp.stride, 1)):
            raise TVMError("A vector that is passed on is a slice of a buffer", value.span)
        buffer, dtype = self.owner(value.buffer), value.dtype
        if not is_const_int(self.analyzer.simplify(ramp.base % lanes), 0):
            raise TVMError(
                f'A vector of {lanes} elements of "{buffer.name}" begins at a multiple of {lanes}',
                value.span,
            )
        self.vectors.add(buffer)
        if dtypes.size_in_bytes(dtypes.element_of(dtype)) * lanes == WORD and lanes == WORD:
            dtype = "uint32" if dtype.startswith("u") else "int32"
        kind, pointer = self.type(dtype, "A vector"), self.language.pointer(self.scope(buffer))
        return f"*({pointer}const {kind}*)({self.name(buffer)} + {self.text(ramp.base, SUM)})"

    def refuse(self, expression: Any) -> None:
        name, here = operator_name(expression), self.language.name
        reason = unsupported(name, f"form in {here}") if name else ""
        for kind, advice in INSTEAD.items():
            if kind in name:
                reason = f"{name} is not written in {here} here: {advice}"
        raise TVMError(
            reason or f"A {type(expression).__name__} has no form in {here}", expression.span
        )

    def in_its_type(self, key: Any, expression: Any) -> tuple[str, int]:
        """An operation, whose result is of the type that TensorIR says."""
        if self.is_widened(key, expression.dtype):
            kind = self.type(expression.dtype, "A value")
            return f"(({kind})({self.operation(expression)[0]}))", ATOM
        return self.operation(expression)

    def operation(self, expression: Any) -> tuple[str, int]:
        key, operands = key_of(expression), operands_of(expression)
        dtype = expression.dtype
        self.check_computed(key, operands, expression)
        if key in (E.Cast, "reinterpret"):
            return self.conversion(key, operands[0], dtype), ATOM
        if key in DIVISIONS and dtypes.is_float(dtype):
            if key is E.Div:
                return (
                    f"{self.text(operands[0], PRODUCT)} / {self.text(operands[1], ATOM)}",
                    PRODUCT,
                )
            key = "fmod"
        elif self.needs_function(key) and not self.is_natural(operands):
            return self.division(key, operands, dtype), ATOM
        if key in (E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod):
            strength = SUM if key in (E.Add, E.Sub) else PRODUCT
            left, right = self.text(operands[0], strength), self.text(operands[1], strength + 1)
            return FORMS[key].format(left, right), strength
        is_double = operands[0].dtype == "float64" and self.language.has_own_float64
        forms = FORMS if is_double else self.language.forms
        form = forms.get(key, FORMS[key])
        if not form:
            self.refuse(expression)
        widens, rounds = _HALVES.get(operands[-1].dtype, ("", ""))
        half = bool(widens) and self.language.name == "cuda"
        if half and key in (E.Min, E.Max):
            form = f"__h{'min' if key is E.Min else 'max'}({{}}, {{}})"
        brackets = OTHER if _CALL.fullmatch(form) else ATOM
        texts = [self.text(part, brackets) for part in operands]
        if key in (E.Min, E.Max) and self.is_small(dtype):
            texts = [f"({self.type(dtype, 'A value')})({text})" for text in texts]
        if half and isinstance(key, str) and key != "if_then_else":
            texts = [f"{widens}({text})" for text in texts]
            form = form if dtype == "bool" else f"{rounds}({form})"
        helpers = [name for name in self.language.functions if f"{name}(" in form]
        if helpers and self.is_wgsl and dtype == "float16":
            texts, form = [f"f32({text})" for text in texts], f"f16({form})"
        self.helpers.update(helpers)
        return form.format(*texts), ATOM if _ATOM.fullmatch(form) else OTHER

    def check_computed(self, key: Any, operands: list[Any], expression: Any) -> None:
        """A TVMError for what no language computes."""
        if dtypes.lanes(expression.dtype) > 1:
            raise TVMError(
                f"A vector ({expression.dtype}) in a kernel has no form in {self.language.name}; "
                "vectorize a loop instead",
                expression.span,
            )
        kept = operands[0].dtype
        if kept in _FLOAT8 and key not in (E.Cast, "reinterpret"):
            raise TVMError(
                f"{self.language.name} keeps {kept}, and does not compute with it; cast to float16 "
                "or float32, and back",
                expression.span,
            )

    def is_small(self, dtype: str) -> bool:
        """Whether values are integers of fewer than 32 bits, with which C computes as with int."""
        return dtypes.is_integer(dtype) and dtypes.bits(dtype) < 32

    def is_widened(self, key: Any, dtype: str) -> bool:
        """Whether C gives an operator's result another type, whose value may be another, too."""
        if key == "abs" and self.language.name == "opencl":
            return dtypes.is_integer(dtype)  # its result is unsigned
        return OPERATORS[key].overflows and self.is_small(dtype)

    def is_natural(self, operands: list[Any]) -> bool:
        """Whether both operands are at least zero, so that to truncate is to round down."""
        unsigned = operands[0].dtype.startswith("uint")
        return unsigned or all(self.analyzer.const_int_bound(part)[0] >= 0 for part in operands)

    def needs_function(self, key: Any) -> bool:
        """Whether a division of negative numbers is something else than the language's own: all of
        these truncate. Vulkan leaves open what a remainder of WGSL is then."""
        return key in (E.FloorDiv, E.FloorMod) or (key is E.Mod and self.is_wgsl)

    def division(self, key: Any, operands: list[Any], dtype: str) -> str:
        """A quotient or remainder, by a function written above the kernels."""
        kind = self.type(dtype, "A quotient")
        names = {E.FloorDiv: "floordiv", E.FloorMod: "floormod", E.Mod: "truncmod"}
        name = f"{names[key]}_{kind.replace(' ', '_')}"
        result = "r"
        if key is not E.Mod:
            values = ("q", "q - 1") if key is E.FloorDiv else ("r", "r + b")
            select = self.language.forms.get(E.Select, FORMS[E.Select])
            result = select.format("(r == 0 || (r < 0) == (b < 0))", *values)
        if self.is_wgsl:
            head, define = f"fn {name}(a : {kind}, b : {kind}) -> {kind}", "let "
        else:
            head = f"{self.language.inline} {kind} {name}({kind} a, {kind} b)"
            define = f"{kind} "
        lines = (f"{define}q = a / b;", f"{define}r = a - q * b;", f"return {result};")
        self.functions[name] = "\n  ".join((f"{head} {{", *lines)) + "\n}"
        return f"{name}({self.text(operands[0])}, {self.text(operands[1])})"

    def conversion(self, key: Any, value: Any, dtype: str) -> str:
        if key is E.Cast:
            if (value.dtype in _FLOAT8 and dtype != "float32") or dtype in _FLOAT8:
                value = E.Cast("float32", value) if value.dtype != "float32" else value
            if dtype in _FLOAT8:
                return self.float8(self.text(value), dtype)
        if key == "reinterpret":
            return self.reinterpreted(value, dtype)
        text, kind = self.text(value), self.type(dtype, "A value")
        if dtypes.is_integer(dtype) and dtypes.is_float(value.dtype):
            return self.integer_part(value, dtype, kind)
        if self.is_wgsl or self.language.name == "metal":
            return f"{kind}({text})"
        return f"(({kind}){self.text(value, ATOM)})"

    def reinterpreted(self, value: Any, dtype: str) -> str:
        """The bits of a value as another type."""
        text, kind = self.text(value), self.type(dtype, "A value")
        if self.is_wgsl:
            return f"bitcast<{kind}>({text})"
        if self.language.name == "cuda":
            own = self.type(value.dtype, "A value")
            self.helpers.add("reinterpret_")
            return f"reinterpret_<{kind}, {own}>({text})"
        as_type = f"as_{kind}" if self.language.name == "opencl" else f"as_type<{kind}>"
        return f"{as_type}({text})"

    def float8(self, text: str, dtype: str) -> str:
        """A float32 as a float of eight bits."""
        kind = self.type(dtype, "A value")
        if not _FLOAT8[dtype]:
            raise TVMError(
                f"{self.language.name} does not round to {dtype}; pass its bits as uint8"
            )
        self.helpers.add("to_fp8_")
        return f"to_fp8_<{kind}, {_FLOAT8[dtype]}>({text})"

    def integer_part(self, value: Any, dtype: str, kind: str) -> str:
        """A float as an integer: beyond its range the nearest end, as on all targets. GPUs convert
        to 32 and 64 bits so; C leaves it open, and so does Metal's language."""
        text = self.text(value, ATOM)
        if self.language.name == "opencl":
            return f"convert_{kind}_sat({text})"
        if self.language.name == "metal":
            self.helpers.add("saturated_")
            return f"saturated_<{kind}>({self.text(value)})"
        if dtypes.bits(dtype) < 32:
            low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
            text = f"min(max(((int){text}), {low}), {high})"
        return f"{kind}({text})" if self.is_wgsl else f"(({kind}){text})"

    @on(E.Var)
    def variable(self, var: E.Var) -> str:
        tag = self.kernel.indices.get(var)
        if tag is not None:
            index = self.language.index(tag)
            kind = self.type(var.dtype, "An index")
            if var.dtype == "int32" or self.is_wgsl:
                return index if kind in ("int", "i32") else f"{kind}({index})"
            return f"({kind}){index}"
        if var.dtype == "handle":
            if var not in self.owners:
                raise TVMError(f'"{var.name}" is no memory that a kernel has', var.span)
            return self.name(self.owners[var])
        return self.name(var)

    @on(E.IntImm)
    def integer(self, constant: E.IntImm) -> str:
        if constant.dtype == "bool":
            return "true" if constant.value else "false"
        if constant.value == -(2**31) or constant.value == -(2**63):
            return f"({constant.value + 1} - 1)"
        self.type(constant.dtype, str(constant.value))
        suffix = self.language.suffixes.get(constant.dtype, "")
        return f"{constant.value}{suffix}" if constant.value >= 0 else f"({constant.value}{suffix})"

    @on(E.FloatImm)
    def floating(self, constant: E.FloatImm) -> str:
        value, dtype = constant.value, constant.dtype
        if dtype in _FLOAT8:
            return self.float8(self.floating(E.FloatImm("float32", value)), dtype)
        kind = self.type(dtype, str(value))
        if not math.isfinite(value):
            self.helpers.add("special_")
            text = self.language.nan if value != value else self.language.infinity
            text = f"(-{text})" if value < 0 else text
            if dtype == "float32":
                return text
            return f"{kind}({text})" if self.is_wgsl else f"({kind})({text})"
        text = repr(value) if dtype == "float64" else _shortest(value)
        suffix = self.language.suffixes.get(dtype)
        if dtype in ("float16", "bfloat16") and suffix is None:
            return f"{kind}({text}f)"
        text = f"{text}{suffix or ''}"
        return text if math.copysign(1, value) > 0 else f"({text})"

    @on(E.BufferLoad)
    def load(self, load: E.BufferLoad) -> str:
        element = self.element(load.buffer, load.indices, load)
        return f"atomicLoad(&{element})" if load.buffer.data in self.atomics else element

    def element(self, buffer: Buffer, indices: tuple[E.PrimExpr, ...], node: Node) -> str:
        owner = self.owner(buffer)
        if owner.scope().startswith("wmma"):
            raise TVMError(
                f'"{owner.name}" is fragments of matrices, whose elements one thread cannot reach; '
                "store them to shared memory, and read them there",
                node.span,
            )
        if any(dtypes.lanes(index.dtype) > 1 for index in indices):
            raise TVMError(
                f'A vector of "{buffer.name}" has no form in {self.language.name}; vectorize a '
                "loop instead",
                node.span,
            )
        index = "0"
        if indices:
            # What is written out has a number in the place of each loop.
            first = self.analyzer.simplify(indices[0]) if self.copies > 1 else indices[0]
            if lanes := self.lanes.get(owner.data):
                count = const(lanes, first.dtype)
                whole, lane = (self.text(f(first, count)) for f in (floordiv, floormod))
                return f"{self.name(owner)}[{whole}][{lane}]"
            index = self.text(first)
        if owner.dtype == buffer.dtype:
            return f"{self.name(owner)}[{index}]"
        if self.is_wgsl:
            raise TVMError(f'webgpu cannot read "{owner.name}" as {buffer.dtype}', node.span)
        pointer = f"{self.language.pointer(self.scope(buffer))}{self.type(buffer.dtype, 'A view')}*"
        return f"(({pointer}){self.name(owner)})[{index}]"

    @on(E.Let)
    def inner_let(self, let: E.Let) -> str:
        return self.text(substitute(let.body, {let.var: let.value}), ATOM)


def _copies(statement: S.Stmt) -> int:
    """How often a statement stands in the text where all unrolled loops in this one are written
    out; too often where that is not known."""
    inside = [_copies(part) for part in children(statement) if isinstance(part, S.Stmt)]
    most = max(inside, default=1)
    if not isinstance(statement, S.For) or statement.kind is not S.ForKind.UNROLLED:
        return most
    extent = statement.extent
    return most * extent.value if isinstance(extent, E.IntImm) else MAX_COPIES + 1


def _shortest(value: float) -> str:
    """The shortest decimal that is the same float32, and not beyond the greatest: browsers refuse
    what would have to be rounded down to it."""
    value = max(-_GREATEST, min(_GREATEST, value))
    exact = struct.pack("f", value)

    def is_exact(text: str) -> bool:
        number = float(text)
        return abs(number) <= _GREATEST and struct.pack("f", number) == exact

    text = next(filter(is_exact, (f"{value:.{digits}g}" for digits in range(1, 18))))
    return text if "e" in text or "." in text else f"{text}.0"
