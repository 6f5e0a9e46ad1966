"""The GPU view: what a GPU does with the kernels of a program, and what fits on one.

Nothing runs: all is computed from the program. NumPy is imported when a program is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.visitor import walk
from mlcweb.playground.compared import Program, choices, program, same_function
from mlcweb.playground.protocol.gpu import (
    LANES,
    SECTOR,
    GpuAxis,
    GpuFetch,
    GpuKernel,
    GpuLanes,
    GpuOccupancy,
    GpuReport,
    GpuSite,
    GpuStep,
)
from mlcweb.playground.source_lines import listing
from mlcweb.tir import stmt as S
from mlcweb.tir.function import prim_funcs

if TYPE_CHECKING:
    from mlcweb.playground.gpu.fetch import Fetch
    from mlcweb.playground.gpu.names import Access
    from mlcweb.playground.gpu.profile import KernelProfile

UNBOUND = (
    "No loop of {0} is bound to threads. Bind loops to see what a GPU does with it: "
    'sch.bind(loop, "blockIdx.x") for the blocks, sch.bind(loop, "threadIdx.x") for the threads '
    "of a block."
)


class _Kernels(NamedTuple):
    """The kernels of a function, and their accesses."""

    profiles: list[KernelProfile]
    accesses: list[list[Access]]


def explain(
    program_id: str, function_name: str | None = None, other_id: str | None = ""
) -> GpuReport:
    """The kernels of a function of a registered program.

    Args:
        function_name: by default the first with threads, or else "main", or the first.
        other_id: the program to compare with, or a step on the way to this one; by default the
            last other one with threads that ran before it, None for no comparison.
    """
    from mlcweb.playground.gpu.hardware import DEFAULT_TAG, tags

    shown = program(program_id)
    names = list(prim_funcs(shown.module))
    bound = [name for name in names if is_bound(shown.module, name)]
    chosen = same_function(shown.module, function_name or (bound or ["main"])[0])
    steps = [step for step in shown.steps if is_bound(step.derivation.result, chosen)]
    others = [
        identifier
        for identifier, module in shown.document.programs.items()
        if module is not shown.module and is_bound(module, same_function(module, chosen))
    ]
    before = list(shown.document.programs)
    earlier = [each for each in others if before.index(each) < before.index(program_id)]
    other = (earlier[-1] if earlier else None) if other_id == "" else other_id
    report = GpuReport(
        functions=names,
        function=chosen,
        others=others,
        other=other,
        steps=choices(steps),
        kernels=[],
        problem="",
        sentences=[],
        tags=tags(),
        tag=DEFAULT_TAG,
    )
    if chosen not in bound:
        report.problem = UNBOUND.format(chosen)
        return report
    try:
        kernels = _kernels(shown, chosen)
    except TVMError as error:
        report.problem = str(error).strip()
        return report
    report.kernels = [
        _kernel(profile, accesses)
        for profile, accesses in zip(kernels.profiles, kernels.accesses, strict=True)
    ]
    report.sentences = _sentences(shown, chosen, kernels, other)
    return report


def lanes(program_id: str, function_name: str, kernel: int, site: int, warp: int) -> GpuLanes:
    """What the lanes of a warp touch in one access of a kernel."""
    import numpy as np

    from mlcweb.playground.gpu.counts import lane_addresses
    from mlcweb.playground.gpu.memory import INACTIVE, bank_use, units

    profile = _kernels(program(program_id), function_name).profiles[kernel]
    access = profile.sites[site]
    addresses = lane_addresses(access, profile.launch, warp)
    if addresses is None:
        return GpuLanes(access.bytes, [None] * LANES, "The addresses depend on data.")
    row = np.array([[INACTIVE if each is None else each for each in addresses]], np.int64)
    active = sum(each is not None for each in addresses)
    if access.shared:
        count = int(bank_use(row, access.bytes).degree[0])
        many = f"the busiest bank gives {count} words one after the other"
        sentence = many if count > 1 else "no bank has to give more than one word"
    else:
        count = int(units(row, SECTOR)[0])
        sentence = f"{count} transaction{'' if count == 1 else 's'} of {SECTOR} bytes"
    who = f"All {LANES}" if active == LANES else f"{active} of {LANES}"
    return GpuLanes(access.bytes, addresses, f"{who} lanes take part: {sentence}.")


def occupancy(
    program_id: str, function_name: str, kernel: int, tag: str, registers: int | None = None
) -> GpuOccupancy:
    """How many warps of a kernel a multiprocessor of a GPU holds at a time.

    Args:
        registers: of a thread; by default as estimated.
    """
    from mlcweb.playground.gpu.hardware import BOARDS, multiprocessor, peak_flops
    from mlcweb.playground.gpu.occupancy import occupancy as blocks_at_a_time

    profile = _kernels(program(program_id), function_name).profiles[kernel]
    hardware = multiprocessor(tag)
    used = registers or min(profile.registers, hardware.thread_registers)
    result = blocks_at_a_time(profile.launch.threads, profile.shared_bytes, used, hardware)
    board = BOARDS.get(tag)
    limit = result.limits[0].name
    if result.blocks:
        blocks = "1 block" if result.blocks == 1 else f"{result.blocks} blocks"
        sentence = (
            f"A multiprocessor holds {blocks} of {profile.launch.warps} warps at a time, "
            f"{100 * result.share:.0f} % of its {result.most} warps; the limit is {limit}."
        )
    else:
        sentence = f"Not even one block fits on a multiprocessor: too much is asked of {limit}."
    if board is not None and result.blocks:
        sentence += _waves(profile.launch.blocks, result.blocks * board.multiprocessors)
    return GpuOccupancy(
        used,
        result.warps,
        result.most,
        result.limits,
        sentence,
        peak_flops(tag),
        board.bandwidth * 1e9 if board else None,
    )


def _waves(blocks: int, at_a_time: int) -> str:
    """How the blocks of a launch fill a whole GPU."""
    if blocks < at_a_time:
        return f" The launch has {blocks:,} blocks; the whole GPU holds {at_a_time:,} at a time."
    waves = -(-blocks // at_a_time)
    return f" {blocks:,} blocks, {at_a_time:,} at a time, take {waves:,} waves."


def is_bound(module: IRModule, name: str) -> bool:
    """Whether a function has loops bound to the axes of a GPU."""
    body = module[name].body
    return any(isinstance(part, S.For) and part.thread_binding is not None for part in walk(body))


def _kernels(shown: Program, name: str) -> _Kernels:
    return shown.document.cached(_profiled, shown.module, name)


def _profiled(module: IRModule, name: str) -> _Kernels:
    from mlcweb.playground.gpu.names import accesses
    from mlcweb.playground.gpu.profile import profiles

    text = listing(module[name])
    kernels = profiles(text.function, name)
    return _Kernels(kernels, [accesses(profile, text) for profile in kernels])


def _sentences(shown: Program, name: str, kernels: _Kernels, other_id: str | None) -> list[str]:
    from mlcweb.playground.gpu.sentences import compare, describe, total

    accesses = [access for each in kernels.accesses for access in each]
    sentences = describe(accesses)
    if other_id is None:
        return [*sentences, total(accesses)]
    try:
        other = shown.other(other_id)
        old = _kernels(other, same_function(other.module, name))
    except TVMError as error:
        reason = str(error).strip().split("\n")[0]
        return [f"The other program cannot be compared: {reason}", *sentences, total(accesses)]
    before = [access for each in old.accesses for access in each]
    return [*compare(accesses, before, "the other program"), *sentences]


def _kernel(profile: KernelProfile, accesses: list[Access]) -> GpuKernel:
    launch = profile.launch
    return GpuKernel(
        name=profile.kernel.name,
        grid=list(launch.grid),
        block=list(launch.block),
        axes=[
            GpuAxis(tag, var.name, int(getattr(profile.kernel.axes[tag], "value", 1)))
            for var, tag in profile.kernel.indices.items()
        ],
        threads=launch.threads,
        warps=launch.warps,
        shared_bytes=profile.shared_bytes,
        registers=profile.registers,
        operations=profile.operations,
        argument_bytes=profile.argument_bytes,
        moved_bytes=profile.moved_bytes,
        sites=[_site(access) for access in accesses],
        steps=_steps(profile),
        fetches=[_fetch(profile, each) for each in profile.fetches],
    )


def _site(access: Access) -> GpuSite:
    site, counts = access.site, access.counts
    notes = []
    if counts is None:
        notes.append("Its addresses depend on data, so that they are not counted.")
    elif not counts.exact:
        notes.append("Counted in a sample of the iterations.")
    if site.guesses:
        notes.append("Counted as if a condition that depends on data always held.")
    if site.tile:
        notes.append("One instruction of a matrix unit for the whole warp.")
    return GpuSite(
        buffer=site.buffer.name,
        kind=site.kind,
        shared=site.shared,
        text=access.text,
        index=access.index,
        line=access.line,
        cost=counts,
        note=" ".join(notes),
    )


def _steps(profile: KernelProfile) -> list[GpuStep]:
    result = []
    times = [1]
    for step in profile.parts.steps:
        del times[step.depth + 1 :]
        here = times[-1]
        loop = ""
        if step.loop is not None:
            loop = f"{step.loop.var.name}, {step.loop.extent} iterations"
            times.append(here * step.loop.extent)
        sites = [
            number
            for number, site in enumerate(profile.sites)
            if step.kind == "phase" and site.phase == step.phase
        ]
        result.append(GpuStep(step.kind, step.depth, loop, here, sites))
    return result


def _fetch(profile: KernelProfile, each: Fetch) -> GpuFetch:
    iterations = int(each.iterations.max()) + 1
    taking = len({thread for thread in each.threads.tolist() if thread >= 0})
    name = each.site.buffer.name
    how = (
        f"{taking} of {profile.launch.threads} threads of a block"
        if taking < profile.launch.threads
        else f"All {taking} threads of a block"
    )
    rate = f"{each.elements / taking:.3g}"
    sentence = (
        f"{how} fetch {each.elements:,} elements of {each.source} into {name}, "
        f"{rate} each, in {iterations} step{'' if iterations == 1 else 's'}."
    )
    columns = profile.columns.get(each.site.buffer.data, 0) or min(32, len(each.threads))
    return GpuFetch(name, columns, each.threads.tolist(), each.iterations.tolist(), sentence)
