"""Instructions that add products of a few small integers: of x86, Arm, Hexagon and GPUs."""

# TVMScript is Python by syntax, not by typing.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false

from __future__ import annotations

from mlcweb.script import tir as T
from mlcweb.tir.function import PrimFunc
from mlcweb.tir.tensor_intrin import TensorIntrin


def _register(name: str, described: tuple[PrimFunc, PrimFunc]) -> str:
    TensorIntrin.register(name, *described)
    return name


def _dot(
    rows: int, depth: int, a_type: str, b_type: str, instruction: str, operands: str = "int32"
) -> tuple[PrimFunc, PrimFunc]:
    """Products of each row of a matrix with one vector, added to a vector of int32. `operands` is
    what the lanes of the instruction's operands are."""
    n, k = rows, depth
    row = f"{a_type}x{k}"
    lanes = rows * 4 if operands == "int8" else rows
    wide, result = f"{operands}x{lanes}", f"int32x{n}"

    @T.prim_func
    def description(
        A: T.Buffer((k,), a_type, offset_factor=1),
        B: T.Buffer((n, k), b_type, offset_factor=1),
        C: T.Buffer((n,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:n], A[0:k], B[0:n, 0:k])
            T.writes(C[0:n])
            for i, j in T.grid(n, k):
                with T.block("update"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    C[vi] = C[vi] + T.cast(A[vj], "int32") * T.cast(B[vi, vj], "int32")

    @T.prim_func
    def implementation(
        A: T.Buffer((k,), a_type, offset_factor=1),
        B: T.Buffer((n, k), b_type, offset_factor=1),
        C: T.Buffer((n,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:n], A[0:k], B[0:n, 0:k])
            T.writes(C[0:n])
            C[T.ramp(0, 1, n)] = T.call_llvm_pure_intrin(
                result,
                instruction,
                C[T.ramp(0, 1, n)],
                T.reinterpret(wide, T.broadcast(T.reinterpret("int32", A.vload([0], row)), n)),
                T.reinterpret(wide, B[0, T.ramp(0, 1, n * k)]),
            )

    return description, implementation


def _avx512() -> tuple[PrimFunc, PrimFunc]:
    """Sixteen products of depth 4 where no single instruction does it: AVX-512 without VNNI."""

    @T.prim_func
    def avx512(
        A: T.Buffer((4,), "uint8", offset_factor=1),
        B: T.Buffer((16, 4), "int8", offset_factor=1),
        C: T.Buffer((16,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:16], A[0:4], B[0:16, 0:4])
            T.writes(C[0:16])
            C[T.ramp(0, 1, 16)] = C[T.ramp(0, 1, 16)] + T.call_llvm_pure_intrin(
                "int32x16",
                "llvm.x86.avx512.pmaddw.d.512",
                T.call_llvm_pure_intrin(
                    "int16x32",
                    "llvm.x86.avx512.pmaddubs.w.512",
                    T.reinterpret(
                        "uint8x64",
                        T.broadcast(T.reinterpret("int32", A.vload([0], "uint8x4")), 16),
                    ),
                    B[0, T.ramp(0, 1, 64)],
                ),
                T.broadcast(T.int16(1), 32),
            )

    return _dot(16, 4, "uint8", "int8", "")[0], avx512


def _neon() -> tuple[PrimFunc, PrimFunc]:
    """Four products of depth 4 by Neon before it had instructions for them."""

    @T.prim_func
    def neon(
        A: T.Buffer((4,), "int8", offset_factor=1),
        B: T.Buffer((4, 4), "int8", offset_factor=1),
        C: T.Buffer((4,), "int32", offset_factor=1),
    ):
        with T.block("root"):
            T.reads(C[0:4], A[0:4], B[0:4, 0:4])
            T.writes(C[0:4])
            # Products of two rows each, sums of neighbours, sums of neighbours again.
            C[T.ramp(0, 1, 4)] = C[T.ramp(0, 1, 4)] + T.call_llvm_pure_intrin(
                "int32x4",
                "llvm.aarch64.neon.addp.v4i32",
                T.call_llvm_pure_intrin(
                    "int32x4",
                    "llvm.aarch64.neon.saddlp.v4i32.v8i16",
                    T.call_llvm_pure_intrin(
                        "int16x8",
                        "llvm.aarch64.neon.smull.v8i16",
                        T.reinterpret(
                            "int8x8",
                            T.broadcast(T.reinterpret("int32", A.vload([0], "int8x4")), 2),
                        ),
                        B[0, T.ramp(0, 1, 8)],
                    ),
                ),
                T.call_llvm_pure_intrin(
                    "int32x4",
                    "llvm.aarch64.neon.saddlp.v4i32.v8i16",
                    T.call_llvm_pure_intrin(
                        "int16x8",
                        "llvm.aarch64.neon.smull.v8i16",
                        T.reinterpret(
                            "int8x8",
                            T.broadcast(T.reinterpret("int32", A.vload([0], "int8x4")), 2),
                        ),
                        B[2, T.ramp(0, 1, 8)],
                    ),
                ),
            )

    return _dot(4, 4, "int8", "int8", "")[0], neon


def _scalar_dot(a_type: str, b_type: str, machine: str) -> tuple[PrimFunc, PrimFunc]:
    """The product of two vectors of four, added to a number, on a GPU."""

    @T.prim_func
    def description(
        A: T.Buffer((4,), a_type, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_type, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), "int32", offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[0] = C[0] + T.cast(A[vi], "int32") * T.cast(B[vi], "int32")

    @T.prim_func
    def nvidia(
        A: T.Buffer((4,), a_type, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), b_type, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), "int32", offset_factor=1, align=4, scope="local"),
    ):
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] = C[0] + T.call_pure_extern(
                "int32", "__dp4a", A[T.ramp(0, 1, 4)], B[T.ramp(0, 1, 4)], 0
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
    "dot_16x4_vnni", _dot(16, 4, "uint8", "int8", "llvm.x86.avx512.vpdpbusd.512")
)
AVX512_DOT_16x4_INTRIN = _register("dot_16x4_avx512", _avx512())
ARM_DOT_4x4_i8_NEON_INTRIN = _register("dot_4x4_i8i8s32_neon", _neon())
ARM_DOT_4x4_i8_SDOT_INTRIN = _register(
    "dot_4x4_i8i8s32_sdot", _dot(4, 4, "int8", "int8", "llvm.aarch64.neon.sdot", "int8")
)
ARM_DOT_4x4_u8_UDOT_INTRIN = _register(
    "dot_4x4_u8u8u32_udot", _dot(4, 4, "uint8", "uint8", "llvm.aarch64.neon.udot", "int8")
)
ARM_DOT_4x4_u8_HDOT_INTRIN = _register(
    "dot_4x4_u8u8i32_hdot", _dot(4, 4, "uint8", "uint8", "llvm.aarch64.neon.udot", "int8")
)
VRMPY_u8u8i32_INTRIN = _register(
    "dot_32x4_u8u8i32_vrmpy", _dot(32, 4, "uint8", "uint8", "llvm.hexagon.V6.vrmpyub.acc.128B")
)
VRMPY_u8i8i32_INTRIN = _register(
    "dot_32x4_u8i8i32_vrmpy", _dot(32, 4, "uint8", "int8", "llvm.hexagon.V6.vrmpybusv.acc.128B")
)
VDMPY_i16i16i32_INTRIN = _register(
    "dot_product_32x2_i16i16i32_vdmpy",
    _dot(32, 2, "int16", "int16", "llvm.hexagon.V6.vdmpyhvsat.acc.128B"),
)
AMDGPU_SDOT4_INTRIN = _register("sdot4", _scalar_dot("int8", "int8", "amd"))
DP4A_INTRIN = _register("dp4a", _scalar_dot("int8", "int8", "nvidia"))
DP4A_S8S8S32_INTRIN = _register("dp4a_s8s8s32", _scalar_dot("int8", "int8", "nvidia"))
DP4A_U8S8S32_INTRIN = _register("dp4a_u8s8s32", _scalar_dot("uint8", "int8", "nvidia"))
DP4A_S8U8S32_INTRIN = _register("dp4a_s8u8s32", _scalar_dot("int8", "uint8", "nvidia"))
DP4A_U8U8U32_INTRIN = _register("dp4a_u8u8u32", _scalar_dot("uint8", "uint8", "nvidia"))
