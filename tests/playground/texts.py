"""What the texts of traces say."""

import re
from collections.abc import Iterable

from mlcweb.playground.protocol.trace import TraceStep


def sides(diff: str | None) -> tuple[str, str]:
    """The texts before and after in a marked diff."""
    lines = (diff or "").split("\n")
    before = [line[1:] for line in lines if line[:1] != "+"]
    after = [line[1:] for line in lines if line[:1] != "-"]
    return "\n".join(before), "\n".join(after)


def methods(steps: Iterable[TraceStep]) -> list[str]:
    """The methods of a schedule that steps call."""
    texts = (step.instruction.text for step in steps if step.instruction)
    return re.findall(r"sch\.(\w+)\(", "\n".join(texts))
