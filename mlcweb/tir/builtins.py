"""The builtins of TensorIR that are no operators: one table of what is known of each.

They move memory, start threads, ask machines for their own instructions. A program with any of them
is read, printed and scheduled over; the targets run a few of them, and refuse the others by
`unsupported`. An operator (`mlcweb/tir/operators.py`) computes a value from values instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from mlcweb.ir.errors import DiagnosticError
from mlcweb.ir.op import Op, register_op
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.arithmetic import convert
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.expr import BufferLoad, Call, PrimExpr, StringImm


class Effect(Enum):
    """What a call may do besides giving a value. Only PURE ones may be moved or repeated."""

    PURE = auto()
    READS = auto()
    WRITES = auto()
    OPAQUE = auto()


FIRST, LAST, SAME, SECOND = "(first)", "(last)", "(same)", "(second)"
"""Where the type of a result comes from, if it is not always the same one: it is the first
argument in scripts, the last one, or the type of the first or second operand."""


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin.

    Attributes:
        name: The operator's name without `tir.`; also its name in `T`, unless `spelling` is given.
        dtype: The type of the result, or FIRST, LAST, SAME or SECOND.
        effect: What a call may do.
        machine: The machines whose instruction it is; "" where any might have it.
        spelling: Its name in `T`.
    """

    name: str
    dtype: str
    effect: Effect
    machine: str = ""
    spelling: str = ""

    @property
    def op(self) -> Op:
        return register_op(f"tir.{self.name}", pure=self.effect is Effect.PURE)

    @property
    def script_name(self) -> str:
        return f"T.{self.spelling or self.name}"


def _rows() -> list[Builtin]:
    pure, reads, writes, opaque = Effect.PURE, Effect.READS, Effect.WRITES, Effect.OPAQUE
    nvidia, apple, hexagon = "NVIDIA GPUs", "Apple's GPUs", "Hexagon DSPs"
    scalable, masked = "machines with scalable vectors", "machines that mask vectors"
    groups = (
        # Values from values
        (SAME, pure, "", "q_multiply_shift q_multiply_shift_per_axis fma handle_add_byte_offset "
         "tvm_thread_invariant ignore_loop_partition"),
        ("int32", pure, "", "clz ctpop"),
        ("int32", pure, scalable, "vscale"),
        ("bool", pure, "", "isnullptr"),
        ("handle", pure, "", "address_of ptr_byte_offset buffer_data tvm_access_ptr "
         "tvm_stack_make_shape tvm_stack_make_array"),
        (FIRST, pure, "", "reinterpret type_annotation call_pure_extern call_llvm_pure_intrin "
         "call_spirv_pure_glsl450 vectorlow vectorhigh vectorcombine dp4a"),
        (FIRST, pure, masked, "get_active_lane_mask"),
        # Memory
        ("handle", reads, "", "tvm_context_id tvm_static_handle"),
        ("int32", reads, "", "undef"),
        (FIRST, reads, masked, "masked_load"),
        (LAST, reads, "", "tvm_struct_get"),
        ("handle", reads, "", "anylist_getitem lookup_param"),
        ("int32", writes, "", "tvm_struct_set prefetch"),
        ("void", writes, masked, "masked_store"),
        (FIRST, writes, "", "atomic_add"),
        ("handle", opaque, "", "tvm_stack_alloca tvm_tuple TVMBackendAllocWorkspace "
         "nd_mem_alloc_with_scope anylist_resetitem anylist_setitem_call_packed "
         "anylist_setitem_call_cpacked"),
        # Calls and threads
        (FIRST, opaque, "", "call_extern call_llvm_intrin"),
        ("int32", opaque, "", "tvm_storage_sync TVMBackendFreeWorkspace "
         "tvm_throw_last_error call_ffi_kernel tvm_global_barrier_kinit tvm_call_trace_packed "
         "tvm_call_trace_packed_lowered vectorwrite"),
        ("void", opaque, "", "tvm_thread_allreduce break_loop continue_loop thread_return "
         "tvm_kernel_replace_point print_buffer start_profile_intrinsic end_profile_intrinsic"),
        ("bool", opaque, "", "assume"),
        (SAME, opaque, "", "ret"),
        (SECOND, opaque, "GPUs", "tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down "
         "tvm_warp_shuffle_xor"),
        # Instructions of machines
        ("handle", opaque, nvidia, "tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync "
         "tvm_bmma_sync tvm_store_matrix_sync"),
        ("uint32", opaque, nvidia, "tvm_warp_activemask cuda.__activemask"),
        (SECOND, opaque, nvidia, "cuda.__shfl_sync cuda.__shfl_up_sync cuda.__shfl_down_sync "
         "cuda.__shfl_xor_sync"),
        (FIRST, opaque, nvidia, "ptx_mma ptx_mma_sp ptx_ldmatrix mma_store mma_fill ptx_cp_async "
         "ptx_cp_async_bulk ptx_ldg32"),
        ("void", opaque, nvidia, "ptx_commit_group ptx_wait_group ptx_cp_async_barrier "
         "ptx_init_barrier_thread_count ptx_arrive_barrier ptx_arrive_barrier_expect_tx "
         "ptx_wait_barrier create_barriers"),
        ("handle", opaque, apple, "make_filled_simdgroup_matrix simdgroup_load simdgroup_store "
         "simdgroup_multiply_accumulate cooperative_tensor_fill cooperative_tensor_load "
         "cooperative_tensor_store cooperative_tensor_multiply_accumulate"),
        ("int32", opaque, hexagon, "dma_copy dma_wait dma_start_group dma_end_group"),
        (FIRST, opaque, "GPUs with textures", "texture2d_load texture2d_store"),
    )  # fmt: skip
    rows = [
        Builtin(name, dtype, effect, machine)
        for dtype, effect, machine, names in groups
        for name in names.split()
    ]
    rows += [
        Builtin(f"tvm_{name}", "int32", opaque, spelling=name)
        for name in ("call_packed", "call_cpacked", "call_packed_lowered", "call_cpacked_lowered")
    ]
    return rows


BUILTINS: dict[str, Builtin] = {row.name: row for row in _rows()}
"""The table, by the operators' names without `tir.`."""

OPS = {name: row.op for name, row in BUILTINS.items()}
"""Their operators, registered before anybody calls them who does not know which are pure."""

NAMESPACES = {
    "ptx": "NVIDIA GPUs",
    "ptx_legacy": "NVIDIA GPUs",
    "cuda": "NVIDIA GPUs",
    "nvshmem": "NVIDIA GPUs",
    "metal": "Apple's GPUs",
    "webgpu": "WebGPU",
    "nki": "AWS Trainium",
    "s_tir": "NVIDIA GPUs",
}
"""Names of `T` below which newer TVMs have instructions of machines, `T.ptx.…`: any name there is
read as one whose effects are not known."""


def builtin(name: str) -> Builtin | None:
    """What is known of an operator's name without `tir.`; None of what is no builtin."""
    entry = BUILTINS.get(name)
    if entry is not None:
        return entry
    family, dot, _ = name.partition(".")
    if not dot or family not in NAMESPACES:
        return None
    return Builtin(name, "", Effect.OPAQUE, NAMESPACES[family])


def call_builtin(row: Builtin, *args: Any, dtype: Any = None, **options: Any) -> PrimExpr:
    """A call of a builtin as scripts write it. Each may be told the type of its result by `dtype`;
    where that comes first or last, it may also be that argument. What gives nothing is `void`,
    whatever type older texts name.

    Raises:
        DiagnosticError: no type is given where it does not follow.
    """
    if options.keys() == {"cond"} and row.name == "assume":
        args = (options.pop("cond"),)
    if options:
        raise DiagnosticError(f"{row.script_name} takes no argument by name, as {list(options)}")
    if dtype is None and takes_type(row, args):
        at = -1 if row.dtype == LAST else 0
        dtype = args[at]
        args = args[:-1] if at else args[1:]
    operands = tuple(_operand(row, arg) for arg in args)
    said = None if dtype is None or row.dtype == "void" else str(dtype)
    dtype = said or result_type(row, operands)
    if dtype is None and said == "":
        dtype = "void"  # as texts before 2023 call it
    if dtype is None:
        raise DiagnosticError(f'{row.script_name} needs the type of its result: dtype="…"')
    return Call(dtype, row.op, operands)


def _operand(row: Builtin, value: Any) -> PrimExpr:
    """What a call is given for a value; for a buffer, its memory, or the element whose address is
    the buffer's."""
    if not isinstance(value, Buffer):
        return convert(value)
    if row.name == "address_of":
        return BufferLoad(value, tuple(convert(0) for _ in value.shape))
    return value.data


def takes_type(row: Builtin, args: Sequence[Any]) -> bool:
    """Whether an argument of a script says the type of the result."""
    return row.dtype in (FIRST, LAST, "") and bool(args) and _names_type(args[-(row.dtype == LAST)])


def result_type(row: Builtin, operands: Sequence[PrimExpr]) -> str | None:
    """The type of a call that does not say it; None where it has to."""
    if row.dtype in (SAME, SECOND):
        of = operands[row.dtype == SECOND :]
        return of[0].dtype if of else None
    if row.name == "dp4a":
        return "int32"
    return None if row.dtype in (FIRST, LAST) else row.dtype or "void"


def _names_type(value: Any) -> bool:
    text = value.value if isinstance(value, StringImm) else value
    if isinstance(text, PrimExpr):
        return False
    try:
        return bool(dtypes.parse(str(text)))
    except DiagnosticError:
        return False


def unsupported(name: str, form: str) -> str:
    """Why a target refuses the call of an operator. `form` is what it would need, such as "Python
    form"."""
    row = builtin(name)
    reason = f": it is an instruction of {row.machine}" if row and row.machine else ""
    return f"tir.{name} has no {form}{reason}"
