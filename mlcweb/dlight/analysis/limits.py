"""What blocks of threads may use on a target."""

from __future__ import annotations

from mlcweb.runtime.target import Target

_SHARED_MEMORY = {"cuda": 48 << 10, "nvptx": 48 << 10, "rocm": 64 << 10, "metal": 32 << 10}
_MIN_SHARED_MEMORY = 16 << 10


def get_max_shared_memory_per_block(target: Target) -> int:
    """The bytes of shared memory of a block of threads; of a device that does not say, what all
    devices of its kind have."""
    if "gpu" not in target.keys:
        raise ValueError(f'{target} has no threads: give a target such as Target("cuda")')
    own = target.limits.get("max_shared_memory_per_block")
    return int(own or _SHARED_MEMORY.get(target.kind.name, _MIN_SHARED_MEMORY))
