"""The instructions of WebAssembly that we may emit: one table for encoding and printing,
and for reading and checking in the tests.

An instruction is a plain tuple, because a kernel has tens of thousands of them: the mnemonic of
the text format, then its immediates, as `("local.get", 3)` or `("v128.load", 16)`. The kinds of
immediates, in the words of the table, and the Python values that stand for them:

- `i32`, `i64`: a signed integer of that width; `f32`, `f64`: a float; `v128`: 16 bytes
- `memory`: the constant byte offset that is added to the address. The alignment hint, which has no
  effect on the meaning, is always the natural one, so it is not written down
- `lane`: a lane number; `lanes`: 16 numbers of bytes to pick (shuffle)
- `local`: the index of a local, parameters first; `global`, `function`: the name of one
- `block`: the type of a block's result, or None
- `label`: how many enclosing blocks to leave

Opcodes and types: WebAssembly Core Specification 3.0, appendix "Index of Instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Instruction = tuple[Any, ...]
"""A mnemonic and its immediates."""

ValueType = str
"""The type of a value on the stack: `i32`, `i64`, `f32`, `f64` or `v128`."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the table.

    `effect` is what the instruction takes from the stack and what it leaves there, or None where
    that depends on its immediates or on what stands around it. `access` counts the bytes of memory
    that it touches (0 where it touches none).
    """

    mnemonic: str
    prefix: int | None
    number: int
    immediates: tuple[str, ...]
    effect: tuple[tuple[ValueType, ...], tuple[ValueType, ...]] | None
    access: int


# A row: first opcode, immediates, stack effect ("*": see `Operation.effect`), mnemonics of that and
# the following opcodes. "/4" gives the bytes of memory touched; "-" skips an opcode without use.
# A row with a distance and types (or shapes of vectors) says that of each of these, which are so
# many opcodes apart: "{}" is the type.

Row = tuple[Any, ...]

_PLAIN: tuple[Row, ...] = (
    (0x00, "", "*", "unreachable"),
    (0x01, "", "->", "nop"),
    (0x02, "block", "*", "block loop if"),
    (0x05, "", "*", "else"),
    (0x0B, "", "*", "end"),
    (0x0C, "label", "*", "br br_if"),
    (0x0F, "", "*", "return"),
    (0x10, "function", "*", "call"),
    (0x1A, "", "*", "drop select"),
    (0x20, "local", "*", "local.get local.set local.tee"),
    (0x23, "global", "*", "global.get global.set"),
    (0x28, "memory", "i32 -> {}", "{}.load/4", 2, "i32 f32"),
    (0x29, "memory", "i32 -> {}", "{}.load/8", 2, "i64 f64"),
    (0x2C, "memory", "i32 -> i32", "i32.load8_s/1 i32.load8_u/1 i32.load16_s/2 i32.load16_u/2"),
    (0x36, "memory", "i32 {} ->", "{}.store/4", 2, "i32 f32"),
    (0x37, "memory", "i32 {} ->", "{}.store/8", 2, "i64 f64"),
    (0x3A, "memory", "i32 i32 ->", "i32.store8/1 i32.store16/2"),
    (0x41, "{}", "-> {}", "{}.const", 1, "i32 i64 f32 f64"),
    (0x45, "", "{} -> i32", "{}.eqz", 11, "i32 i64"),
    (0x46, "", "{} {} -> i32", "{}.eq {}.ne {}.lt_s {}.lt_u {}.gt_s {}.gt_u", 11, "i32 i64"),
    (0x4C, "", "{} {} -> i32", "{}.le_s {}.le_u {}.ge_s {}.ge_u", 11, "i32 i64"),
    (0x5B, "", "{} {} -> i32", "{}.eq {}.ne {}.lt {}.gt {}.le {}.ge", 6, "f32 f64"),
    (0x6A, "", "{} {} -> {}", "{}.add {}.sub {}.mul {}.div_s {}.div_u", 18, "i32 i64"),
    (0x6F, "", "{} {} -> {}", "{}.rem_s {}.rem_u {}.and {}.or {}.xor", 18, "i32 i64"),
    (0x74, "", "{} {} -> {}", "{}.shl {}.shr_s {}.shr_u", 18, "i32 i64"),
    (0x8B, "", "{} -> {}", "{}.abs {}.neg {}.ceil {}.floor {}.trunc", 14, "f32 f64"),
    (0x90, "", "{} -> {}", "{}.nearest {}.sqrt", 14, "f32 f64"),
    (0x92, "", "{} {} -> {}", "{}.add {}.sub {}.mul {}.div {}.min {}.max", 14, "f32 f64"),
    (0x98, "", "{} {} -> {}", "{}.copysign", 14, "f32 f64"),
    (0xA7, "", "i64 -> i32", "i32.wrap_i64"),
    (0xAC, "", "i32 -> i64", "i64.extend_i32_s i64.extend_i32_u"),
    (0xB2, "", "i32 -> {}", "{}.convert_i32_s {}.convert_i32_u", 5, "f32 f64"),
    (0xB4, "", "i64 -> {}", "{}.convert_i64_s {}.convert_i64_u", 5, "f32 f64"),
    (0xB6, "", "f64 -> f32", "f32.demote_f64"),
    (0xBB, "", "f32 -> f64", "f64.promote_f32"),
    (0xBC, "", "f32 -> i32", "i32.reinterpret_f32"),
    (0xBD, "", "f64 -> i64", "i64.reinterpret_f64"),
    (0xBE, "", "i32 -> f32", "f32.reinterpret_i32"),
    (0xBF, "", "i64 -> f64", "f64.reinterpret_i64"),
    (0xC0, "", "i32 -> i32", "i32.extend8_s i32.extend16_s"),
)

_MORE: tuple[Row, ...] = (
    (0, "", "f32 -> {}", "{}.trunc_sat_f32_s {}.trunc_sat_f32_u", 4, "i32 i64"),
    (2, "", "f64 -> {}", "{}.trunc_sat_f64_s {}.trunc_sat_f64_u", 4, "i32 i64"),
)

_INTEGERS, _FLOATS = "i8x16 i16x8 i32x4 i64x2", "f32x4 f64x2"
_UNARY, _BINARY, _TERNARY = "v128 -> v128", "v128 v128 -> v128", "v128 v128 v128 -> v128"

_SIMD: tuple[Row, ...] = (
    (0, "memory", "i32 -> v128", "v128.load/16"),
    (7, "memory", "i32 -> v128", "v128.load8_splat/1 v128.load16_splat/2"),
    (9, "memory", "i32 -> v128", "v128.load32_splat/4 v128.load64_splat/8"),
    (11, "memory", "i32 v128 ->", "v128.store/16"),
    (12, "v128", "-> v128", "v128.const"),
    (13, "lanes", _BINARY, "i8x16.shuffle"),
    (15, "", "i32 -> v128", "i8x16.splat i16x8.splat i32x4.splat"),
    (18, "", "i64 -> v128", "i64x2.splat"),
    (19, "", "f32 -> v128", "f32x4.splat"),
    (20, "", "f64 -> v128", "f64x2.splat"),
    (21, "lane", "v128 -> i32", "{}.extract_lane_s {}.extract_lane_u", 3, "i8x16 i16x8"),
    (27, "lane", "v128 -> i32", "i32x4.extract_lane"),
    (29, "lane", "v128 -> i64", "i64x2.extract_lane"),
    (31, "lane", "v128 -> f32", "f32x4.extract_lane"),
    (33, "lane", "v128 -> f64", "f64x2.extract_lane"),
    (35, "", _BINARY, "{}.eq {}.ne {}.lt_s {}.lt_u {}.gt_s {}.gt_u", 10, "i8x16 i16x8 i32x4"),
    (41, "", _BINARY, "{}.le_s {}.le_u {}.ge_s {}.ge_u", 10, "i8x16 i16x8 i32x4"),
    (65, "", _BINARY, "{}.eq {}.ne {}.lt {}.gt {}.le {}.ge", 6, _FLOATS),
    (77, "", _UNARY, "v128.not"),
    (78, "", _BINARY, "v128.and v128.andnot v128.or v128.xor"),
    (82, "", _TERNARY, "v128.bitselect"),
    (84, "memory lane", "i32 v128 -> v128", "v128.load8_lane/1 v128.load16_lane/2"),
    (86, "memory lane", "i32 v128 -> v128", "v128.load32_lane/4 v128.load64_lane/8"),
    (88, "memory lane", "i32 v128 ->", "v128.store8_lane/1 v128.store16_lane/2"),
    (90, "memory lane", "i32 v128 ->", "v128.store32_lane/4 v128.store64_lane/8"),
    (92, "memory", "i32 -> v128", "v128.load32_zero/4 v128.load64_zero/8"),
    (94, "", _UNARY, "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"),
    (96, "", _UNARY, "{}.abs", 32, _INTEGERS),
    (99, "", "v128 -> i32", "{}.all_true {}.bitmask", 32, _INTEGERS),
    (103, "", _UNARY, "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"),
    (107, "", "v128 i32 -> v128", "{}.shl {}.shr_s {}.shr_u", 32, _INTEGERS),
    (110, "", _BINARY, "{}.add", 32, _INTEGERS),
    (113, "", _BINARY, "{}.sub", 32, _INTEGERS),
    (116, "", _UNARY, "f64x2.ceil f64x2.floor"),
    (118, "", _BINARY, "{}.min_s {}.min_u {}.max_s {}.max_u", 32, "i8x16 i16x8 i32x4"),
    (122, "", _UNARY, "f64x2.trunc"),
    (135, "", _UNARY, "i16x8.extend_low_i8x16_s - i16x8.extend_low_i8x16_u"),
    (148, "", _UNARY, "f64x2.nearest"),
    (149, "", _BINARY, "{}.mul", 32, "i16x8 i32x4 i64x2"),
    (167, "", _UNARY, "i32x4.extend_low_i16x8_s - i32x4.extend_low_i16x8_u"),
    (186, "", _BINARY, "i32x4.dot_i16x8_s"),
    (199, "", _UNARY, "i64x2.extend_low_i32x4_s - i64x2.extend_low_i32x4_u"),
    (214, "", _BINARY, "i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s"),
    (224, "", _UNARY, "{}.abs {}.neg - {}.sqrt", 12, _FLOATS),
    (228, "", _BINARY, "{}.add {}.sub {}.mul {}.div", 12, _FLOATS),
    (232, "", _BINARY, "{}.min {}.max {}.pmin {}.pmax", 12, _FLOATS),
    (248, "", _UNARY, "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u"),
    (250, "", _UNARY, "f32x4.convert_i32x4_s f32x4.convert_i32x4_u"),
    (252, "", _UNARY, "i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero"),
    (254, "", _UNARY, "f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"),
    # Relaxed SIMD: the result may differ between processors.
    (261, "", _TERNARY, "{}.relaxed_madd {}.relaxed_nmadd", 2, _FLOATS),
)


def _operations(
    prefix: int | None,
    first: int,
    immediates: str,
    effect: str,
    names: str,
    distance: int = 0,
    types: str = "",
) -> Iterator[Operation]:
    """The operations of a row."""
    for position, type in enumerate(types.split() or [""]):
        operands, _, results = effect.replace("{}", type).partition("->")
        stack = None if effect == "*" else (tuple(operands.split()), tuple(results.split()))
        kinds = tuple(immediates.replace("{}", type).split())
        start = first + position * distance
        for number, name in enumerate(names.replace("{}", type).split(), start):
            mnemonic, _, size = name.partition("/")
            yield Operation(mnemonic, prefix, number, kinds, stack, int(size or 0))


_TABLES: dict[int | None, tuple[Row, ...]] = {None: _PLAIN, 0xFC: _MORE, 0xFD: _SIMD}

OPERATIONS: dict[str, Operation] = {
    operation.mnemonic: operation
    for prefix, rows in _TABLES.items()
    for row in rows
    for operation in _operations(prefix, *row)
    if operation.mnemonic != "-"
}
"""The table, by mnemonic."""
