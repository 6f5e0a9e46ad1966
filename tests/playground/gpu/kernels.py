"""Kernels for one block of threads, written line by line."""

from mlcweb.playground.gpu.profile import KernelProfile, profiles
from mlcweb.playground.protocol.gpu import GpuCost
from mlcweb.script import from_source


def kernel(
    body: str,
    threads: str = "x=32",
    blocks: int = 1,
    buffers: str = 'A: T.Buffer((65536,), "float32"), B: T.Buffer((65536,), "float32")',
) -> KernelProfile:
    """What threads x, y, z of blocks b do; S is shared memory of 4096 elements."""
    lines = [
        f"for b in T.thread_binding({blocks}, thread='blockIdx.x'):",
        *(
            f"for {axis} in T.thread_binding({extent}, thread='threadIdx.{axis}'):"
            for axis, extent in (part.split("=") for part in threads.split())
        ),
    ]
    nest = "".join(f"{' ' * (4 + n)}{line}\n" for n, line in enumerate(lines))
    inner = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    text = f"@T.prim_func\ndef main({buffers}):\n{nest}{inner}"
    (profile,) = profiles(from_source(text), "main")
    return profile


def costs(profile: KernelProfile, buffer: str, kind: str = "load") -> GpuCost:
    """Of the one access of a kind to a buffer."""
    (counts,) = (
        counts
        for site, counts in zip(profile.sites, profile.counts, strict=True)
        if site.buffer.name == buffer and site.kind == kind
    )
    assert counts is not None
    return counts
