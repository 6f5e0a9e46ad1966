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
    that it touches, `lanes` the values its lane number can take (both 0 where it has none).
    """

    mnemonic: str
    prefix: int | None
    number: int
    immediates: tuple[str, ...]
    effect: tuple[tuple[ValueType, ...], tuple[ValueType, ...]] | None
    access: int
    lanes: int


# A row: first opcode, immediates, stack effect ("*": see `Operation.effect`), mnemonics of that and
# the following opcodes. "/4" gives the bytes of memory touched; "-" skips an opcode without use.

_PLAIN = (
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
    (0x28, "memory", "i32 -> i32", "i32.load/4"),
    (0x29, "memory", "i32 -> i64", "i64.load/8"),
    (0x2A, "memory", "i32 -> f32", "f32.load/4"),
    (0x2B, "memory", "i32 -> f64", "f64.load/8"),
    (0x2C, "memory", "i32 -> i32", "i32.load8_s/1 i32.load8_u/1 i32.load16_s/2 i32.load16_u/2"),
    (0x36, "memory", "i32 i32 ->", "i32.store/4"),
    (0x37, "memory", "i32 i64 ->", "i64.store/8"),
    (0x38, "memory", "i32 f32 ->", "f32.store/4"),
    (0x39, "memory", "i32 f64 ->", "f64.store/8"),
    (0x3A, "memory", "i32 i32 ->", "i32.store8/1 i32.store16/2"),
    (0x41, "i32", "-> i32", "i32.const"),
    (0x42, "i64", "-> i64", "i64.const"),
    (0x43, "f32", "-> f32", "f32.const"),
    (0x44, "f64", "-> f64", "f64.const"),
    (0x45, "", "i32 -> i32", "i32.eqz"),
    (0x46, "", "i32 i32 -> i32", "i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u"),
    (0x4C, "", "i32 i32 -> i32", "i32.le_s i32.le_u i32.ge_s i32.ge_u"),
    (0x50, "", "i64 -> i32", "i64.eqz"),
    (0x51, "", "i64 i64 -> i32", "i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u"),
    (0x57, "", "i64 i64 -> i32", "i64.le_s i64.le_u i64.ge_s i64.ge_u"),
    (0x5B, "", "f32 f32 -> i32", "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge"),
    (0x61, "", "f64 f64 -> i32", "f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"),
    (0x6A, "", "i32 i32 -> i32", "i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u"),
    (0x71, "", "i32 i32 -> i32", "i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u"),
    (0x7C, "", "i64 i64 -> i64", "i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u"),
    (0x83, "", "i64 i64 -> i64", "i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u"),
    (0x8B, "", "f32 -> f32", "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"),
    (0x92, "", "f32 f32 -> f32", "f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"),
    (0x99, "", "f64 -> f64", "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"),
    (0xA0, "", "f64 f64 -> f64", "f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"),
    (0xA7, "", "i64 -> i32", "i32.wrap_i64"),
    (0xAC, "", "i32 -> i64", "i64.extend_i32_s i64.extend_i32_u"),
    (0xB2, "", "i32 -> f32", "f32.convert_i32_s f32.convert_i32_u"),
    (0xB4, "", "i64 -> f32", "f32.convert_i64_s f32.convert_i64_u"),
    (0xB6, "", "f64 -> f32", "f32.demote_f64"),
    (0xB7, "", "i32 -> f64", "f64.convert_i32_s f64.convert_i32_u"),
    (0xB9, "", "i64 -> f64", "f64.convert_i64_s f64.convert_i64_u"),
    (0xBB, "", "f32 -> f64", "f64.promote_f32"),
    (0xBC, "", "f32 -> i32", "i32.reinterpret_f32"),
    (0xBD, "", "f64 -> i64", "i64.reinterpret_f64"),
    (0xBE, "", "i32 -> f32", "f32.reinterpret_i32"),
    (0xBF, "", "i64 -> f64", "f64.reinterpret_i64"),
    (0xC0, "", "i32 -> i32", "i32.extend8_s i32.extend16_s"),
)

_MORE = (
    (0, "", "f32 -> i32", "i32.trunc_sat_f32_s i32.trunc_sat_f32_u"),
    (2, "", "f64 -> i32", "i32.trunc_sat_f64_s i32.trunc_sat_f64_u"),
    (4, "", "f32 -> i64", "i64.trunc_sat_f32_s i64.trunc_sat_f32_u"),
    (6, "", "f64 -> i64", "i64.trunc_sat_f64_s i64.trunc_sat_f64_u"),
)

_SIMD = (
    (0, "memory", "i32 -> v128", "v128.load/16"),
    (7, "memory", "i32 -> v128", "v128.load8_splat/1 v128.load16_splat/2"),
    (9, "memory", "i32 -> v128", "v128.load32_splat/4 v128.load64_splat/8"),
    (11, "memory", "i32 v128 ->", "v128.store/16"),
    (12, "v128", "-> v128", "v128.const"),
    (13, "lanes", "v128 v128 -> v128", "i8x16.shuffle"),
    (15, "", "i32 -> v128", "i8x16.splat i16x8.splat i32x4.splat"),
    (18, "", "i64 -> v128", "i64x2.splat"),
    (19, "", "f32 -> v128", "f32x4.splat"),
    (20, "", "f64 -> v128", "f64x2.splat"),
    (21, "lane", "v128 -> i32", "i8x16.extract_lane_s i8x16.extract_lane_u"),
    (24, "lane", "v128 -> i32", "i16x8.extract_lane_s i16x8.extract_lane_u"),
    (27, "lane", "v128 -> i32", "i32x4.extract_lane"),
    (29, "lane", "v128 -> i64", "i64x2.extract_lane"),
    (31, "lane", "v128 -> f32", "f32x4.extract_lane"),
    (33, "lane", "v128 -> f64", "f64x2.extract_lane"),
    (35, "", "v128 v128 -> v128", "i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u"),
    (41, "", "v128 v128 -> v128", "i8x16.le_s i8x16.le_u i8x16.ge_s i8x16.ge_u"),
    (45, "", "v128 v128 -> v128", "i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u"),
    (51, "", "v128 v128 -> v128", "i16x8.le_s i16x8.le_u i16x8.ge_s i16x8.ge_u"),
    (55, "", "v128 v128 -> v128", "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u"),
    (61, "", "v128 v128 -> v128", "i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u"),
    (65, "", "v128 v128 -> v128", "f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge"),
    (71, "", "v128 v128 -> v128", "f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge"),
    (77, "", "v128 -> v128", "v128.not"),
    (78, "", "v128 v128 -> v128", "v128.and v128.andnot v128.or v128.xor"),
    (82, "", "v128 v128 v128 -> v128", "v128.bitselect"),
    (84, "memory lane", "i32 v128 -> v128", "v128.load8_lane/1 v128.load16_lane/2"),
    (86, "memory lane", "i32 v128 -> v128", "v128.load32_lane/4 v128.load64_lane/8"),
    (88, "memory lane", "i32 v128 ->", "v128.store8_lane/1 v128.store16_lane/2"),
    (90, "memory lane", "i32 v128 ->", "v128.store32_lane/4 v128.store64_lane/8"),
    (92, "memory", "i32 -> v128", "v128.load32_zero/4 v128.load64_zero/8"),
    (94, "", "v128 -> v128", "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"),
    (96, "", "v128 -> v128", "i8x16.abs"),
    (99, "", "v128 -> i32", "i8x16.all_true i8x16.bitmask"),
    (103, "", "v128 -> v128", "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"),
    (107, "", "v128 i32 -> v128", "i8x16.shl i8x16.shr_s i8x16.shr_u"),
    (110, "", "v128 v128 -> v128", "i8x16.add"),
    (113, "", "v128 v128 -> v128", "i8x16.sub"),
    (116, "", "v128 -> v128", "f64x2.ceil f64x2.floor"),
    (118, "", "v128 v128 -> v128", "i8x16.min_s i8x16.min_u i8x16.max_s i8x16.max_u"),
    (122, "", "v128 -> v128", "f64x2.trunc"),
    (128, "", "v128 -> v128", "i16x8.abs"),
    (131, "", "v128 -> i32", "i16x8.all_true i16x8.bitmask"),
    (135, "", "v128 -> v128", "i16x8.extend_low_i8x16_s - i16x8.extend_low_i8x16_u"),
    (139, "", "v128 i32 -> v128", "i16x8.shl i16x8.shr_s i16x8.shr_u"),
    (142, "", "v128 v128 -> v128", "i16x8.add"),
    (145, "", "v128 v128 -> v128", "i16x8.sub"),
    (148, "", "v128 -> v128", "f64x2.nearest"),
    (149, "", "v128 v128 -> v128", "i16x8.mul i16x8.min_s i16x8.min_u i16x8.max_s i16x8.max_u"),
    (160, "", "v128 -> v128", "i32x4.abs"),
    (163, "", "v128 -> i32", "i32x4.all_true i32x4.bitmask"),
    (167, "", "v128 -> v128", "i32x4.extend_low_i16x8_s - i32x4.extend_low_i16x8_u"),
    (171, "", "v128 i32 -> v128", "i32x4.shl i32x4.shr_s i32x4.shr_u"),
    (174, "", "v128 v128 -> v128", "i32x4.add"),
    (177, "", "v128 v128 -> v128", "i32x4.sub"),
    (181, "", "v128 v128 -> v128", "i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u"),
    (192, "", "v128 -> v128", "i64x2.abs"),
    (195, "", "v128 -> i32", "i64x2.all_true i64x2.bitmask"),
    (199, "", "v128 -> v128", "i64x2.extend_low_i32x4_s - i64x2.extend_low_i32x4_u"),
    (203, "", "v128 i32 -> v128", "i64x2.shl i64x2.shr_s i64x2.shr_u"),
    (206, "", "v128 v128 -> v128", "i64x2.add"),
    (209, "", "v128 v128 -> v128", "i64x2.sub"),
    (213, "", "v128 v128 -> v128", "i64x2.mul"),
    (214, "", "v128 v128 -> v128", "i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s"),
    (224, "", "v128 -> v128", "f32x4.abs f32x4.neg - f32x4.sqrt"),
    (228, "", "v128 v128 -> v128", "f32x4.add f32x4.sub f32x4.mul f32x4.div"),
    (232, "", "v128 v128 -> v128", "f32x4.min f32x4.max f32x4.pmin f32x4.pmax"),
    (236, "", "v128 -> v128", "f64x2.abs f64x2.neg - f64x2.sqrt"),
    (240, "", "v128 v128 -> v128", "f64x2.add f64x2.sub f64x2.mul f64x2.div"),
    (244, "", "v128 v128 -> v128", "f64x2.min f64x2.max f64x2.pmin f64x2.pmax"),
    (248, "", "v128 -> v128", "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u"),
    (250, "", "v128 -> v128", "f32x4.convert_i32x4_s f32x4.convert_i32x4_u"),
    (252, "", "v128 -> v128", "i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero"),
    (254, "", "v128 -> v128", "f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"),
    # Relaxed SIMD: the result may differ between processors.
    (261, "", "v128 v128 v128 -> v128", "f32x4.relaxed_madd f32x4.relaxed_nmadd"),
    (263, "", "v128 v128 v128 -> v128", "f64x2.relaxed_madd f64x2.relaxed_nmadd"),
)


def _lane_count(mnemonic: str, access: int) -> int:
    """How many lanes there are to choose from: 4 for `f32x4.extract_lane`, 16 bytes / `access`."""
    shape = mnemonic.partition(".")[0]
    return 16 // access if access else int(shape.partition("x")[2])


def _operation(
    prefix: int | None, number: int, immediates: str, effect: str, name: str
) -> Operation:
    mnemonic, _, size = name.partition("/")
    kinds = tuple(immediates.split())
    operands, _, results = effect.partition("->")
    access = int(size or 0)
    return Operation(
        mnemonic,
        prefix,
        number,
        kinds,
        None if effect == "*" else (tuple(operands.split()), tuple(results.split())),
        access,
        _lane_count(mnemonic, access) if "lane" in kinds else 0,
    )


OPERATIONS: dict[str, Operation] = {
    operation.mnemonic: operation
    for prefix, rows in ((None, _PLAIN), (0xFC, _MORE), (0xFD, _SIMD))
    for first, immediates, effect, names in rows
    for number, name in enumerate(names.split(), first)
    if name != "-"
    for operation in (_operation(prefix, number, immediates, effect, name),)
}
"""The table, by mnemonic."""
