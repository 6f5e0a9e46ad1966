"""Instructions that add products of a few small integers: of x86, Arm, Hexagon and GPUs."""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Callable

from mlcweb.script import tir as T
from mlcweb.tir.arithmetic import const
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import IntImm, PrimExpr
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.tensor_intrin import TensorIntrin


def _register(name: str, described: tuple[PrimFunc, PrimFunc]) -> str:
    TensorIntrin.register(name, *described)
    return name


Value = Callable[[Buffer, Buffer, PrimExpr], PrimExpr]
"""What an instruction makes of a vector, a matrix, and the sums by now."""


def _dot(
    rows: int, depth: int, a_type: str, b_type: str, value: Value, c_type: str = "int32"
) -> tuple[PrimFunc, PrimFunc]:
    """Products of each row of a matrix with one vector, added to a vector of wider integers."""
    n, k = rows, depth

    @T.prim_func
    def description(
        A: T.Buffer((k,), a_type, offset_factor=1),
        B: T.Buffer((n, k), b_type, offset_factor=1),
        C: T.Buffer((n,), c_type, offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:n], A[0:k], B[0:n, 0:k])
            T.writes(C[0:n])
            for i, j in T.grid(n, k):
                with T.block("update"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    C[vi] = C[vi] + T.cast(A[vj], c_type) * T.cast(B[vi, vj], c_type)

    @T.prim_func
    def implementation(
        A: T.Buffer((k,), a_type, offset_factor=1),
        B: T.Buffer((n, k), b_type, offset_factor=1),
        C: T.Buffer((n,), c_type, offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:n], A[0:k], B[0:n, 0:k])
            T.writes(C[0:n])
            C[T.ramp(0, 1, n)] = value(A, B, C[T.ramp(0, 1, n)])

    return description, implementation


def _repeated(vector: Buffer, lanes: int) -> PrimExpr:
    """A vector of small integers, taken for one int32, in each lane."""
    row = vector.vload([0], f"{vector.dtype}x{vector.shape[0]}")
    return T.broadcast(T.reinterpret("int32", row), lanes)


def _instruction(name: str, operands: str = "int32") -> Value:
    """One instruction that does all of it. `operands` is what the lanes of its operands are."""

    def value(a: Buffer, b: Buffer, sums: PrimExpr) -> PrimExpr:
        rows, depth = (extent.value for extent in b.shape if isinstance(extent, IntImm))
        wide = f"{operands}x{rows * 4 if operands == 'int8' else rows}"
        return T.call_llvm_pure_intrin(
            sums.dtype,
            name,
            sums,
            T.reinterpret(wide, _repeated(a, rows)),
            T.reinterpret(wide, b[0, T.ramp(0, 1, rows * depth)]),
        )

    return value


def _avx512(a: Buffer, b: Buffer, sums: PrimExpr) -> PrimExpr:
    """Sixteen products of depth 4 where no single instruction does it: AVX-512 without VNNI."""
    pairs = T.call_llvm_pure_intrin(
        "int16x32",
        "llvm.x86.avx512.pmaddubs.w.512",
        T.reinterpret("uint8x64", _repeated(a, 16)),
        b[0, T.ramp(0, 1, 64)],
    )
    ones = T.broadcast(T.int16(1), 32)
    return sums + T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.pmaddw.d.512", pairs, ones)


def _neon(a: Buffer, b: Buffer, sums: PrimExpr) -> PrimExpr:
    """Four products of depth 4 by Neon before it had instructions for them: products of two rows
    each, sums of neighbours, sums of neighbours again."""

    def two_rows(first: int) -> PrimExpr:
        products = T.call_llvm_pure_intrin(
            "int16x8",
            "llvm.aarch64.neon.smull.v8i16",
            T.reinterpret("int8x8", _repeated(a, 2)),
            b[first, T.ramp(0, 1, 8)],
        )
        return T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", products)

    return sums + T.call_llvm_pure_intrin(
        "int32x4", "llvm.aarch64.neon.addp.v4i32", two_rows(0), two_rows(2)
    )


def _scalar_dot(
    a_type: str, b_type: str, machine: str, c_type: str = "int32"
) -> tuple[PrimFunc, PrimFunc]:
    """The product of two vectors of four, added to a number, on a GPU."""
    zero = const(0, c_type)

    @T.prim_func
    def description(
        A: T.Buffer((4,), a_type, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_type, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), c_type, offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[0] = C[0] + T.cast(A[vi], c_type) * T.cast(B[vi], c_type)

    @T.prim_func
    def nvidia(
        A: T.Buffer((4,), a_type, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_type, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), c_type, offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + T.call_pure_extern(
                c_type, "__dp4a", A[T.ramp(0, 1, 4)], B[T.ramp(0, 1, 4)], zero
            )

    @T.prim_func
    def amd(
        A: T.Buffer((4,), a_type, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_type, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), "int32", offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + T.call_llvm_pure_intrin(
                "int32",
                "llvm.amdgcn.sdot4",
                T.reinterpret("int32", A[T.ramp(0, 1, 4)]),
                T.reinterpret("int32", B[T.ramp(0, 1, 4)]),
                0,
                T.bool(True),
            )

    return description, amd if machine == "amd" else nvidia


VNNI_DOT_16x4_INTRIN = _register(
    "dot_16x4_vnni",
    _dot(16, 4, "uint8", "int8", _instruction("llvm.x86.avx512.vpdpbusd.512")),
)
AVX512_DOT_16x4_INTRIN = _register("dot_16x4_avx512", _dot(16, 4, "uint8", "int8", _avx512))
ARM_DOT_4x4_i8_NEON_INTRIN = _register("dot_4x4_i8i8s32_neon", _dot(4, 4, "int8", "int8", _neon))
ARM_DOT_4x4_i8_SDOT_INTRIN = _register(
    "dot_4x4_i8i8s32_sdot",
    _dot(4, 4, "int8", "int8", _instruction("llvm.aarch64.neon.sdot", "int8")),
)
ARM_DOT_4x4_u8_UDOT_INTRIN = _register(
    "dot_4x4_u8u8u32_udot",
    _dot(4, 4, "uint8", "uint8", _instruction("llvm.aarch64.neon.udot", "int8"), "uint32"),
)
ARM_DOT_4x4_u8_HDOT_INTRIN = _register(
    "dot_4x4_u8u8i32_hdot",
    _dot(4, 4, "uint8", "uint8", _instruction("llvm.aarch64.neon.udot", "int8")),
)
VRMPY_u8u8i32_INTRIN = _register(
    "dot_32x4_u8u8i32_vrmpy",
    _dot(32, 4, "uint8", "uint8", _instruction("llvm.hexagon.V6.vrmpyub.acc.128B")),
)
VRMPY_u8i8i32_INTRIN = _register(
    "dot_32x4_u8i8i32_vrmpy",
    _dot(32, 4, "uint8", "int8", _instruction("llvm.hexagon.V6.vrmpybusv.acc.128B")),
)
VDMPY_i16i16i32_INTRIN = _register(
    "dot_product_32x2_i16i16i32_vdmpy",
    _dot(32, 2, "int16", "int16", _instruction("llvm.hexagon.V6.vdmpyhvsat.acc.128B")),
)


def _description(name: str) -> PrimFunc:
    intrinsic = TensorIntrin.get(name)
    assert intrinsic is not None
    return intrinsic.desc


dot_product_16x4_u8i8i32_desc = _description(VNNI_DOT_16x4_INTRIN)
neon_4x4_i8i8i32_desc = _description(ARM_DOT_4x4_i8_NEON_INTRIN)
dot_product_32x4_u8u8i32_desc = _description(VRMPY_u8u8i32_INTRIN)
dot_product_32x4_u8i8i32_desc = _description(VRMPY_u8i8i32_INTRIN)
dot_product_32x2_i16i16i32_desc = _description(VDMPY_i16i16i32_INTRIN)
AMDGPU_SDOT4_INTRIN = _register("sdot4", _scalar_dot("int8", "int8", "amd"))
DP4A_INTRIN = _register("dp4a", _scalar_dot("int8", "int8", "nvidia"))
DP4A_S8S8S32_INTRIN = _register("dp4a_s8s8s32", _scalar_dot("int8", "int8", "nvidia"))
DP4A_U8S8S32_INTRIN = _register("dp4a_u8s8s32", _scalar_dot("uint8", "int8", "nvidia"))
DP4A_S8U8S32_INTRIN = _register("dp4a_s8u8s32", _scalar_dot("int8", "uint8", "nvidia"))
DP4A_U8U8U32_INTRIN = _register(
    "dp4a_u8u8u32", _scalar_dot("uint8", "uint8", "nvidia", c_type="uint32")
)
