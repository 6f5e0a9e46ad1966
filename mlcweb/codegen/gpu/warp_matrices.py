"""The matrix instructions of PTX in CUDA C, where loops are marked as one of them.

Each is a function of its own, in assembly, which takes pointers to the registers of a lane.
"""

from __future__ import annotations

from typing import Any

from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import find_nodes
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.lower.warp_matrices import sizes_of
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, floormod, is_const_int, multiply
from mlcweb.tir.substitute import substitute

SUM = 1
ROW_BYTES = 16

_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32}  # others are bytes
_FORMS = {"f32": ("float", "f"), "f64": ("double", "d")}
"""The type of C's registers and the letter of assembly, other than `unsigned` and "r"."""


def warp_instruction(printer: Any, statement: S.AttrStmt) -> str:
    """The call of the function for an instruction that some loops stand for; the function is added
    to the printer's.

    Raises a TVMError in other languages, and for threads that are no whole warps.
    """
    name = printer.language.name
    if name != "cuda":
        raise TVMError(
            f"The matrix instructions of PTX are NVIDIA's, and {name} has none: build for "
            '"cuda", or leave the blocks as loops, without tensorize',
            statement.span,
        )
    kind, *options = instruction_of(statement)
    store, loops = _parts(statement)
    first = dict.fromkeys(loops, const(0))
    if kind == "ldmatrix":
        name, text = _ldmatrix(int(options[0]), options[1] == "1")
        [tx] = (var for var, tag in printer.kernel.indices.items() if tag == "threadIdx.x")
        load, place = row_of_lane(statement, tx)
        _check_aligned(printer, load, place)
        operands = [(store, substitute(store.indices[0], first)), (load, place)]
    else:
        name, text = _mma(options[0], options[1:])
        loads = find_nodes(store.value, E.BufferLoad)
        operands = [(part, substitute(part.indices[0], first)) for part in loads]
    printer.functions[name] = text
    return f"{name}({', '.join(_address(printer, *operand) for operand in operands)});"


def instruction_of(statement: S.AttrStmt) -> list[str]:
    """The kind of instruction that some loops are, "ldmatrix" or "mma", and its options."""
    assert isinstance(statement.value, E.StringImm)
    return statement.value.value.split()


def row_of_lane(statement: S.AttrStmt, tx: E.PrimExpr) -> tuple[E.BufferLoad, E.PrimExpr]:
    """Where the row of 16 bytes begins of which lane `tx` tells an `ldmatrix` the address, row
    tx % 8 of matrix tx // 8: the load of its first element, and the flat index."""
    count, turns = map(int, instruction_of(statement)[1:])
    store, [lane, register] = _parts(statement)
    assert isinstance(store.value, E.BufferLoad)
    if count < 4:  # The addresses of the first lanes count, and all have to be there.
        tx = floormod(tx, const(8 * count))
    matrix, row = floordiv(tx, const(8)), floormod(tx, const(8))
    word = 4 // dtypes.size_in_bytes(store.buffer.dtype)
    # The lane, and the register of it, that gets the row's first element.
    at = {lane: multiply(row, 4), register: multiply(matrix, word)}
    if turns:
        place = add(multiply(matrix, 2), floormod(row, const(2)))
        at = {lane: floordiv(row, const(2)), register: place}
    return store.value, substitute(store.value.indices[0], at)


def _parts(statement: S.AttrStmt) -> tuple[S.BufferStore, list[E.Var]]:
    """The store under the mark, and its loops."""
    parts = list(S.statements_in(statement))
    [store] = (part for part in parts if isinstance(part, S.BufferStore))
    return store, [part.loop_var for part in parts if isinstance(part, S.For)]


def _address(printer: Any, access: Any, place: E.PrimExpr) -> str:
    """Where an element is, by its index. Memory is aligned, as for vectors."""
    owner = printer.owner(access.buffer)
    printer.vectors.add(owner)
    return f"{printer.name(owner)} + {printer.text(printer.analyzer.simplify(place), SUM)}"


def _check_aligned(printer: Any, load: E.BufferLoad, place: E.PrimExpr) -> None:
    """Refuse a row that may begin where the hardware stops: at no multiple of its 16 bytes."""
    count = ROW_BYTES // dtypes.size_in_bytes(load.buffer.dtype)
    rest = printer.analyzer.simplify(floormod(place, const(count)))
    if not is_const_int(rest, 0):
        raise TVMError(
            f"ldmatrix takes rows of {ROW_BYTES} bytes that begin at a multiple of that, and "
            f'those of "{load.buffer.name}" may not; with sch.storage_align, use a factor and an '
            f"offset that are multiples of {count} elements",
            load.span or load.buffer.span,
        )


def _ldmatrix(count: int, turns: bool) -> tuple[str, str]:
    trans = ".trans" if turns else ""
    name = f"ldmatrix_x{count}{trans.replace('.', '_')}_"
    registers = ", ".join(f"%{n}" for n in range(count))
    outputs = ", ".join(f'"=r"(to[{n}])' for n in range(count))
    return name, (
        f"__device__ inline void {name}(void* registers, const void* row) {{\n"
        "  unsigned* to = (unsigned*)registers;\n"
        "  unsigned from = (unsigned)__cvta_generic_to_shared(row);\n"
        f'  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 '
        f'{{{registers}}}, [%{count}];"\n'
        f'    : {outputs} : "r"(from) : "memory");\n'
        "}"
    )


def _mma(shape: str, types: list[str]) -> tuple[str, str]:
    a, b, c = types
    m, n, k = sizes_of(shape)
    sizes = ((m * n, c), (m * k, a), (k * n, b))
    counts = [-(-size * _BITS.get(kind, 8) // (WARP_SIZE * 32)) for size, kind in sizes]
    kinds = [_FORMS.get(kind, ("unsigned", "r")) for _, kind in sizes]
    if c == a == "f64":
        counts = [count // 2 for count in counts]
    name = f"mma_{shape}_{'_'.join(types)}_"
    lists, inputs, number = [], [], 0
    for operand, count, (_, letter) in zip("cab", counts, kinds, strict=True):
        lists.append(f"{{{', '.join(f'%{number + i}' for i in range(count))}}}")
        sign = "+" if operand == "c" else ""
        inputs.append(", ".join(f'"{sign}{letter}"({operand}[{i}])' for i in range(count)))
        number += count
    result, left, right = lists
    lines = (
        f"__device__ inline void {name}(void* c_, const void* a_, const void* b_) {{",
        *(
            f"  {const_}{kind}* {operand} = ({const_}{kind}*){operand}_;"
            for operand, (kind, _), const_ in zip(
                "cab", kinds, ("", "const ", "const "), strict=True
            )
        ),
        f'  asm volatile("mma.sync.aligned.{shape}.row.col.{c}.{a}.{b}.{c} "',
        f'    "{result}, {left}, {right}, {result};"',
        f"    : {inputs[0]} : {inputs[1]}, {inputs[2]});",
        "}",
    )
    return name, "\n".join(lines)
