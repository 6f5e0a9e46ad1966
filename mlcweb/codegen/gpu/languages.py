"""The languages that kernels are written in: CUDA C, OpenCL C, Metal and WGSL, each as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlcweb.codegen.gpu.kernels import DYNAMIC_ALIGNMENT, DeviceKernel
from mlcweb.codegen.gpu.vector_stores import vector_memory
from mlcweb.tir import dtype as dtypes
from mlcweb.tir import expr as E
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.operators import OPERATORS, Family, Key, keys, register_column


def _call(function: str, operator: Key) -> str:
    """A call of a function that takes the operands of an operator."""
    return f"{function}({', '.join(['{}'] * OPERATORS[operator].arity)})"


FORMS: Mapping[Key, str] = register_column(
    "gpu",
    {key: f"{{}} {row.symbol} {{}}" for key, row in OPERATORS.items() if row.symbol}
    | {
        E.Mod: "{} % {}",
        E.FloorDiv: "{} / {}",
        E.And: "{} && {}",
        E.Or: "{} || {}",
        E.Not: "!{}",
        "bitwise_not": "~{}",
    }
    | {
        name: _call(name, name)
        for name in ("abs", "fabs", *keys(Family.FUNCTION, Family.PREDICATE))
    }
    | {
        E.Min: "min({}, {})",
        E.Max: "max({}, {})",
        "popcount": "popcount({})",
        "likely": "{}",
        "nearbyint": "rint({})",
        "round": "rint({})",
        "sigmoid": "1 / (1 + exp(-{}))",
        E.Select: "{} ? {} : {}",
        "if_then_else": "{} ? {} : {}",
        E.Cast: "",
        "reinterpret": "",
    },
)
"""How operators are written in languages like C, where a language does not say otherwise. Divisions
are those that truncate; the printer sees to the sign."""


DYNAMIC_SHARED = "dynamic_shared"


@dataclass(frozen=True, slots=True)
class Language:
    """A language of kernels.

    Attributes:
        name: What it is called.
        types: Its types, by those of TensorIR; what is not there is refused.
        header: The lines above the body of a kernel, from the kernel and the names of what it uses.
        index: How a thread reads its index on an axis, from the axis ("threadIdx.x").
        barrier: The statement with which threads of a block wait for each other.
        global_barrier: The same where they have exchanged data in global memory.
        atomic_add: The statement that adds to an element, from its type: its place, the value and
            the word before pointers are filled in; None for types that cannot be added to.
        shared: The word before memory of a block; "" where the header declares it.
        dynamic_shared: The line that declares the memory of scope "shared.dyn" as one piece of
            bytes with the name `DYNAMIC_SHARED`; "" where it is declared as that of "shared" is.
        aligned: What stands before memory that is read or written as vectors of up to 16 bytes.
        pointer: The word before the type of a pointer to memory of a scope.
        forms: Operators that are written in another way than in `FORMS`, but for those of float64;
            "" where there is none.
        builtins: Builtins of TensorIR that it has beside the operators.
        functions: Text of functions that it lacks, by name; `T` is the type.
        suffixes: What stands after numbers of a type.
        has_pointers: Whether memory may be read as vectors, or as another type.
        has_int64: Whether integers have 64 bits, or those of int64 have 32, which must suffice.
        exchange: How a thread reads a register of another in its warp, by the builtins that do,
            from the register and a lane, a distance, or the bits in which lanes differ; nothing
            where it cannot, or the lanes of a block's threads are not laid down, as in OpenCL C
            and WGSL.
        async_copies: Whether copies to shared memory can go on while a thread computes, by the
            functions `cp_async_`, `cp_async_commit_` and `cp_async_wait_`.
        inline: The words before functions that the printer writes.
        has_own_float64: Whether operators on float64 are written as `FORMS` says.
        reserved: Names that are taken in it, beside those that are in other languages, too.
    """

    name: str
    types: Mapping[str, str]
    header: Callable[[DeviceKernel, Callable[[object], str]], list[str]]
    index: Callable[[str], str]
    barrier: str
    global_barrier: str
    atomic_add: Callable[[str], str | None]
    shared: str
    pointer: Callable[[str], str]
    forms: Mapping[Key, str] = field(default_factory=dict)
    builtins: Mapping[Key, str] = field(default_factory=lambda: {"clz": "((int)clz({}))"})
    functions: Mapping[str, str] = field(default_factory=dict)
    suffixes: Mapping[str, str] = field(default_factory=dict)
    dynamic_shared: str = ""
    aligned: str = "alignas(16) "
    has_pointers: bool = True
    has_int64: bool = True
    exchange: Mapping[Key, str] = field(default_factory=dict)
    async_copies: bool = False
    inline: str = "inline"
    has_own_float64: bool = True
    reserved: str = ""
    includes: Mapping[str, str] = field(default_factory=dict)
    infinity: str = "INFINITY"
    nan: str = "NAN"

    def type(self, dtype: str) -> str | None:
        """The type of values, of vectors too; None where there is none."""
        lanes = dtypes.lanes(dtype)
        element = self.types.get(dtypes.element_of(dtype))
        if element is None or lanes == 1:
            return element
        return f"{element.replace('unsigned ', 'u')}{lanes}" if self.has_pointers else None


def _cuda_header(kernel: DeviceKernel, name: Callable[[object], str]) -> list[str]:
    x, y, z = kernel.block_size()
    parameters = [
        f"{'' if b.data in kernel.written else 'const '}{CUDA.types[b.dtype]}* __restrict__ "
        f"{name(b)}"
        for b in kernel.buffers
    ]
    parameters += [f"{CUDA.types[var.dtype]} {name(var)}" for var in kernel.scalars]
    return [
        f'extern "C" __global__ void __launch_bounds__({x * y * z}) {kernel.name}'
        f"({', '.join(parameters)}) {{"
    ]


def _opencl_header(kernel: DeviceKernel, name: Callable[[object], str]) -> list[str]:
    x, y, z = kernel.block_size()
    parameters = [
        f"__global {'' if b.data in kernel.written else 'const '}{OPENCL.types[b.dtype]}* "
        f"restrict {name(b)}"
        for b in kernel.buffers
    ]
    parameters += [f"{OPENCL.types[var.dtype]} {name(var)}" for var in kernel.scalars]
    return [
        f"__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))",
        f"void {kernel.name}({', '.join(parameters)}) {{",
    ]


def _metal_header(kernel: DeviceKernel, name: Callable[[object], str]) -> list[str]:
    lines = []
    parameters = [
        f"device {'' if b.data in kernel.written else 'const '}{METAL.types[b.dtype]}* {name(b)} "
        f"[[buffer({n})]]"
        for n, b in enumerate(kernel.buffers)
    ]
    if kernel.scalars:
        fields = "; ".join(f"{METAL.types[var.dtype]} {name(var)}" for var in kernel.scalars)
        lines.append(f"struct {kernel.name}_args {{ {fields}; }};")
        parameters.append(f"constant {kernel.name}_args& args [[buffer({len(parameters)})]]")
    parameters.append("uint3 blockIdx [[threadgroup_position_in_grid]]")
    parameters.append("uint3 threadIdx [[thread_position_in_threadgroup]]")
    lines.append(f"kernel void {kernel.name}({', '.join(parameters)}) {{")
    lines += [f"  {METAL.types[v.dtype]} {name(v)} = args.{name(v)};" for v in kernel.scalars]
    return lines


def wgsl_array(element: str, size: Any, lanes: int) -> str:
    """The type of memory of some elements, as vectors of several lanes; `size` is an IntImm, or
    None for memory that has its own."""
    kind = f"vec{lanes}<{element}>" if lanes > 1 else element
    return f"array<{kind}>" if size is None else f"array<{kind}, {size.value // lanes}>"


def _wgsl_header(kernel: DeviceKernel, name: Callable[[object], str]) -> list[str]:
    lanes, atomic = vector_memory(kernel), kernel.atomic

    def array(buffer: Buffer, size: Any) -> str:
        element = WGSL.types[buffer.dtype]
        element = f"atomic<{element}>" if buffer.data in atomic else element
        return wgsl_array(element, size, lanes.get(buffer.data, 1))

    lines = [
        f"@group(0) @binding({n}) var<storage, "
        f"{'read_write' if b.data in kernel.written else 'read'}> {name(b)} : "
        f"{array(b, None)};"
        for n, b in enumerate(kernel.buffers)
    ]
    if kernel.scalars:
        fields = ", ".join(f"{name(var)} : {WGSL.types[var.dtype]}" for var in kernel.scalars)
        lines.append(
            f"@group(0) @binding({len(lines)}) var<uniform> {kernel.name}_args : "
            f"{kernel.name}_Args;"
        )
        lines.append(f"struct {kernel.name}_Args {{ {fields} }}")
    lines += [f"var<workgroup> {name(b)} : {array(b, b.shape[0])};" for b in kernel.shared]
    x, y, z = kernel.block_size()
    lines += [
        f"@compute @workgroup_size({x}, {y}, {z})",
        f"fn {kernel.name}(@builtin(workgroup_id) blockIdx : vec3<u32>, "
        "@builtin(local_invocation_id) threadIdx : vec3<u32>) {",
    ]
    lines += [
        f"  let {name(v)} : {WGSL.types[v.dtype]} = {kernel.name}_args.{name(v)};"
        for v in kernel.scalars
    ]
    return lines


def _with_suffix(names: str) -> dict[Key, str]:
    """C's functions of float32."""
    return {name: _call(f"{name}f", name) for name in names.split()}


_C_TYPES = {
    "bool": "bool",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
}

_COUNTERS = ("int32", "uint32")
"""The types whose addition is atomic in all languages of GPUs."""

_CP_ASYNC = {
    "cp_async_": """\
// Copies N bytes to shared memory while the thread goes on, or zeros: at once before Ampere.
template <int N> __device__ inline void cp_async_(void* to, const void* from, bool copied = true) {
#if __CUDA_ARCH__ >= 800
  unsigned int shared = (unsigned int)__cvta_generic_to_shared(to);
  int size = copied ? N : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
               :: "r"(shared), "l"(from), "n"(N), "r"(size) : "memory");
#else
  for (int i = 0; i < N / 4; ++i) ((int*)to)[i] = copied ? ((const int*)from)[i] : 0;
#endif
}""",
    "cp_async_commit_": """\
__device__ inline void cp_async_commit_() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}""",
    "cp_async_wait_": """\
// Waits until at most N of the groups committed last are not done.
template <int N> __device__ inline void cp_async_wait_() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif
}""",
}
"""Asynchronous copies, as NVIDIA's PTX has them."""

CUDA = Language(
    name="cuda",
    types={
        **_C_TYPES,
        "int8": "signed char",
        "uint8": "unsigned char",
        "uint16": "unsigned short",
        "uint32": "unsigned int",
        "int64": "long long",
        "uint64": "unsigned long long",
        "float64": "double",
        "bfloat16": "__nv_bfloat16",
        "float8_e4m3fn": "__nv_fp8_e4m3",
        "float8_e5m2": "__nv_fp8_e5m2",
        "float8_e8m0fnu": "__nv_fp8_e8m0",
    },
    header=_cuda_header,
    index=lambda tag: f"((int){tag})",
    barrier="__syncthreads();",
    global_barrier="__syncthreads();",
    atomic_add=lambda dtype: (
        "atomicAdd(&{0}, {1});" if dtype in (*_COUNTERS, "float32", "float64", "float16") else None
    ),
    shared="__shared__ ",
    pointer=lambda scope: "",
    forms={
        **_with_suffix(
            "exp exp2 exp10 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh "
            "acosh atanh erf sqrt rsqrt floor ceil trunc fabs pow atan2 hypot fmod copysign"
        ),
        "nearbyint": "rintf({})",
        "round": "rintf({})",
        "popcount": "popcount_({})",
        "sigmoid": "1.0f / (1.0f + expf(-{}))",
    },
    builtins={"clz": "clz_({})"},
    functions={
        "reinterpret_": (
            "template <typename T, typename S> __device__ inline T reinterpret_(S x) {\n"
            "  return *(T*)&x;\n"
            "}"
        ),
        "to_fp8_": (
            "// What is too large is no number, or infinite.\n"
            "template <typename T, __nv_fp8_interpretation_t K> __device__ inline T "
            "to_fp8_(float x) {\n"
            "  T result;\n"
            "  result.__x = __nv_cvt_float_to_fp8(x, __NV_NOSAT, K);\n"
            "  return result;\n"
            "}"
        ),
        "popcount_": (
            "template <typename T> __device__ inline T popcount_(T x) {\n"
            "  if (sizeof(T) == 8) return __popcll((unsigned long long)x);\n"
            "  return __popc((unsigned int)x & 0xffffffffu >> (32 - 8 * (int)sizeof(T)) % 32);\n"
            "}"
        ),
        "clz_": (
            "template <typename T> __device__ inline int clz_(T x) {\n"
            "  if (sizeof(T) == 8) return __clzll((long long)x);\n"
            "  return __clz((int)((unsigned int)x << (32 - 8 * (int)sizeof(T)) % 32));\n"
            "}"
        ),
        **_CP_ASYNC,
    },
    suffixes={"float32": "f", "int64": "LL", "uint64": "ULL", "uint32": "u"},
    includes={
        "float16": "#include <cuda_fp16.h>",
        "bfloat16": "#include <cuda_bf16.h>",
        "float8_e4m3fn": "#include <cuda_fp8.h>",
        "float8_e5m2": "#include <cuda_fp8.h>",
        "float8_e8m0fnu": "#include <cuda_fp8.h>",
        "wmma": "#include <mma.h>",
    },
    exchange={
        f"tvm_warp_shuffle{kind}": f"__shfl{kind}_sync(0xffffffff, {{}}, {{}})"
        for kind in ("", "_up", "_down", "_xor")
    },
    async_copies=True,
    inline="__device__ inline",
    dynamic_shared=(
        f"extern __shared__ __align__({DYNAMIC_ALIGNMENT}) unsigned char {DYNAMIC_SHARED}[];"
    ),
    reserved=DYNAMIC_SHARED,
    infinity="__int_as_float(0x7f800000)",
    nan="__int_as_float(0x7fc00000)",
)

OPENCL = Language(
    name="opencl",
    types={**_C_TYPES, "float64": "double"},
    header=_opencl_header,
    index=lambda tag: (
        f"((int)get_{'group' if tag.startswith('block') else 'local'}_id({'xyz'.index(tag[-1])}))"
    ),
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    global_barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    atomic_add=lambda dtype: "atomic_add(&{0}, {1});" if dtype in _COUNTERS else None,
    shared="__local ",
    aligned="__attribute__((aligned(16))) ",
    pointer=lambda scope: {"global": "__global ", "shared": "__local "}.get(scope, "__private "),
    forms={"sigmoid": "1.0f / (1.0f + exp(-{}))"},
    suffixes={"float32": "f", "int64": "L", "uint64": "UL", "uint32": "u", "float16": "h"},
    includes={
        "float16": "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        "float64": "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    },
)

METAL = Language(
    name="metal",
    types={**_C_TYPES, "bfloat16": "bfloat"},
    header=_metal_header,
    index=lambda tag: f"((int){tag})",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    global_barrier="threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);",
    atomic_add=lambda dtype: (
        f"atomic_fetch_add_explicit(({{2}} atomic_{METAL.types[dtype]}*)&{{0}}, {{1}}, "
        "memory_order_relaxed);"
        if dtype in (*_COUNTERS, "float32")
        else None
    ),
    shared="threadgroup ",
    pointer=lambda scope: {"global": "device ", "shared": "threadgroup "}.get(scope, "thread "),
    forms={
        "sigmoid": "1.0f / (1.0f + exp(-{}))",
        "log1p": "log(1.0f + {})",
        "hypot": "length(float2({}, {}))",
        "erf": "erf_({})",
    },
    functions={
        "erf_": (
            "inline float erf_(float x) {\n"
            "  float t = 1.0f / (1.0f + 0.3275911f * fabs(x));\n"
            "  float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * "
            "(-1.453152027f + t * 1.061405429f))));\n"
            "  return copysign(1.0f - p * exp(-x * x), x);\n"
            "}"
        ),
        "saturated_": (
            "template <typename T, typename S> inline T saturated_(S x) {\n"
            "  T low = numeric_limits<T>::min(), high = numeric_limits<T>::max();\n"
            "  return x >= S(high) ? high : x > S(low) ? T(x) : x <= S(low) ? low : T(0);\n"
            "}"
        ),
    },
    suffixes={"float32": "f", "int64": "L", "uint64": "UL", "uint32": "u", "float16": "h"},
    exchange={
        f"tvm_warp_shuffle{kind}": f"simd_shuffle{kind}({{}}, ushort({{}}))"
        for kind in ("", "_up", "_down", "_xor")
    },
    includes={"": "#include <metal_stdlib>\nusing namespace metal;"},
)

_WGSL_WORDS = """NULL Self abstract active alias alignas alignof as async atomic attribute await
become bitcast break cast catch co_await co_return co_yield coherent column_major common compile
concept const_assert const_cast consteval constexpr constinit continue continuing crate debugger
decltype demote diagnostic discard dynamic_cast enable explicit export extends external fallthrough
filter final finally friend from fxgroup get groupshared highp impl implements import instanceof
interface layout loop lowp macro macro_rules match mediump meta mod module move mut mutable nil
noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of override
package packoffset partial pass patch pixelfragment precise precision premerge priv pub readonly ref
regardless reinterpret_cast require requires resource self set smooth snorm static_assert
static_cast std subroutine super target thread_local throw trait try type typeid typename typeof
unless unorm unsafe unsized use varying virtual wgsl where with writeonly yield bitcast f16 f32 i32
u32 vec2 vec3 vec4 ptr uniform storage workgroup function read write inverseSqrt countOneBits
countLeadingZeros length"""

WGSL = Language(
    name="webgpu",
    types={
        "bool": "bool",
        "int32": "i32",
        "uint32": "u32",
        "int64": "i32",
        "float16": "f16",
        "float32": "f32",
    },
    header=_wgsl_header,
    index=lambda tag: f"i32({tag})",
    barrier="workgroupBarrier();",
    global_barrier="storageBarrier();\n  workgroupBarrier();",
    atomic_add=lambda dtype: "atomicAdd(&{0}, {1});" if dtype in _COUNTERS else None,
    shared="",
    pointer=lambda scope: "",
    forms={
        "shift_left": "{} << u32({})",
        "shift_right": "{} >> u32({})",
        E.Select: "select({2}, {1}, {0})",
        "if_then_else": "select({2}, {1}, {0})",
        "fabs": "abs({})",
        "popcount": "countOneBits({})",
        "rsqrt": "inverseSqrt({})",
        "nearbyint": "round({})",
        "round": "round({})",
        "fmod": "{} % {}",
        "exp10": "pow(10.0, {})",
        "log10": "(log({}) * 0.4342944819)",
        "log1p": "log(1.0 + {})",
        "hypot": "length(vec2({}, {}))",
        "isnan": "{0} != {0}",
        "isinf": "abs(f32({})) > 3.4028234e+38f",
        "ldexp": "ldexp({}, i32({}))",
        "nextafter": "",
        "copysign": "select(-abs({0}), abs({0}), {1} >= 0.0)",
        "sigmoid": "1.0 / (1.0 + exp(-{}))",
        "erf": "erf_({})",
    },
    builtins={"clz": "i32(countLeadingZeros({}))"},
    functions={
        "erf_": (
            "fn erf_(x : f32) -> f32 {\n"
            "  let t = 1.0 / (1.0 + 0.3275911 * abs(x));\n"
            "  let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * "
            "(-1.453152027 + t * 1.061405429))));\n"
            "  return sign(x) * (1.0 - p * exp(-x * x));\n"
            "}"
        ),
        "special_": (
            "var<private> bits_ : u32;\n"
            "fn special_(bits : u32) -> f32 {\n  bits_ = bits;\n  return bitcast<f32>(bits_);\n}"
        ),
    },
    suffixes={"float32": "f", "uint32": "u", "float16": "h"},
    has_pointers=False,
    has_int64=False,
    reserved=_WGSL_WORDS,
    includes={"float16": "enable f16;"},
    infinity="special_(0x7f800000u)",
    nan="special_(0x7fc00000u)",
)

LANGUAGES: dict[str, Language] = {
    "cuda": CUDA, "nvptx": CUDA, "opencl": OPENCL, "metal": METAL, "webgpu": WGSL, "vulkan": WGSL,
}  # fmt: skip
"""The language of each kind of target."""
