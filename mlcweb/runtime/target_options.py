"""The options that a target of each kind takes, and the types of their values."""

from __future__ import annotations

from typing import Any

from mlcweb.runtime.target_facts import KINDS

Types = dict[str, type]


def _named(kind: type, names: str) -> Types:
    return dict.fromkeys(names.split(), kind)


_COMMON: Types = {
    **_named(list, "keys libs"),
    **_named(str, "tag device model"),
    **_named(int, "from_device target_device_type"),
    # What the code generators of this package take besides.
    **_named(int, "bounds_check bounds-check relaxed_madd relaxed-madd opt_level opt-level"),
}

_PROCESSOR: Types = {
    **_named(str, "mcpu mtriple mfloat-abi mabi jit"),
    **_named(list, "mattr cl-opt"),
    **_named(int, "num-cores vector-width"),
    **_named(int, "fast-math fast-math-nnan fast-math-ninf fast-math-nsz fast-math-arcp"),
    **_named(int, "fast-math-contract fast-math-reassoc"),
}
"""Of the kinds that build for this machine's processor."""

_DEVICE: Types = _named(
    int,
    "max_num_threads max_threads_per_block max_shared_memory_per_block thread_warp_size "
    "max_block_size_x max_block_size_y max_block_size_z max_per_stage_descriptor_storage_buffer "
    "supports_float16",
)
"""Of the kinds of GPUs: what the driver of one may say."""

_OPTIONS: dict[str, Types] = {
    "c": {
        **_named(str, "mcpu march"),
        **_named(int, "workspace-byte-alignment constants-byte-alignment"),
    },
    "cuda": {**_named(str, "mcpu arch"), **_named(int, "registers_per_block l2_cache_size_bytes")},
    "nvptx": _named(str, "mcpu mtriple"),
    "rocm": {**_named(str, "mcpu mtriple"), **_named(list, "mattr")},
    "metal": _named(int, "max_function_args"),
    "opencl": _named(
        int,
        "texture_spatial_limit texture_depth_limit max_function_args image_base_address_alignment",
    ),
    "vulkan": {
        **_named(list, "mattr"),
        **_named(str, "device_type device_name driver_name"),
        **_named(int, "supports_float32 supports_float64 supports_int8 supports_int16"),
        **_named(int, "supports_int32 supports_int64 supports_8bit_buffer supports_16bit_buffer"),
        **_named(int, "supports_storage_buffer_storage_class supports_push_descriptor"),
        **_named(int, "supports_dedicated_allocation supports_integer_dot_product"),
        **_named(int, "supports_cooperative_matrix supported_subgroup_operations"),
        **_named(int, "max_push_constants_size max_uniform_buffer_range max_storage_buffer_range"),
        **_named(int, "driver_version vulkan_api_version max_spirv_version"),
    },
    "webgpu": _named(int, "supports_subgroups"),
    "hexagon": {
        **_named(str, "mcpu mtriple"),
        **_named(list, "mattr llvm-options"),
        **_named(int, "num-cores vtcm-capacity"),
    },
    "ext_dev": {},
}


def options_of_kind(kind: str) -> Types:
    """The options of a kind, by name, and the type of each one's value."""
    device = _DEVICE if kind in KINDS and "gpu" in KINDS[kind].keys else {}
    return {**_COMMON, **device, **_OPTIONS.get(kind, _PROCESSOR)}


def check_options(kind: str, options: dict[str, Any]) -> None:
    """A ValueError where a kind has no such option, or one has a value of another type. Features of
    processors (``feature.has_sve``) are not listed anywhere."""
    types = options_of_kind(kind)
    for name, value in options.items():
        if not isinstance(name, str):
            raise TypeError(f"The name of an option is a text, not {type(name).__name__}")
        if name.startswith("feature."):
            continue
        if name not in types:
            raise ValueError(
                f'Unknown config option "{name}" of target kind "{kind}"; '
                f"known are {', '.join(types)}"
            )
        expected = types[name]
        accepted = (list, tuple, str) if expected is list else expected
        if not isinstance(value, accepted):
            raise ValueError(
                f'Option "{name}": expected type "{expected.__name__}" but got '
                f'"{type(value).__name__}" ({value!r})'
            )


def value_of_text(kind: str, name: str, text: str) -> Any:
    """The value of an option that is written as a text. What is not of the type stays a text."""
    expected = options_of_kind(kind).get(name)
    if expected is list:
        return text.split(",")
    if expected is str:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.lstrip("-").isdecimal() else text
