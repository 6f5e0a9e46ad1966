"""Writes the text of one LLVM function: instructions, blocks, and the one place where it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

STACK = 65536
"""Local buffers take so many bytes of the stack, of which some threads have little; others are
taken from the heap."""

ALIGNMENT = 64

OUT_OF_MEMORY = 4
"""What a kernel returns where the heap has no room for its local buffers."""


class FunctionBuilder:
    """A function in the making, which returns a status of type i32: zero, or why it stopped.

    Values are texts: names (`%v7`) or constants. `block` is the label of the current block.
    """

    def __init__(self, name: str, parameters: Sequence[str], linkage: str = "") -> None:
        # One copy is enough of what is called from outside: others would be compiled, too.
        attributes = "#0" if linkage else "noinline #0"
        self._head = f'define {linkage}i32 @"{name}"({", ".join(parameters)}) {attributes} {{'
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._numbers = count()
        self._heap: list[str] = []
        self._stack_left = STACK
        self._exits: list[tuple[str, str]] = []
        self.block = "start"
        self.declared: set[str] = set()

    def line(self, text: str) -> None:
        """An instruction without a value."""
        self._lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """An instruction; the name of its value."""
        name = f"%v{next(self._numbers)}"
        self._lines.append(f"  {name} = {text}")
        return name

    def call(self, result: str, name: str, arguments: Sequence[tuple[str, str]]) -> str:
        """A call of an intrinsic function, which is declared; the name of its value."""
        types = ", ".join(kind for kind, _ in arguments)
        self.declared.add(f"declare {result} @{name}({types})")
        passed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return self.value(f"call {result} @{name}({passed})")

    def label(self, hint: str) -> str:
        """A fresh label."""
        return f"{hint}{next(self._numbers)}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def phi(self, kind: str, *sources: tuple[str, str]) -> str:
        """A value by the block that control comes from: pairs of values and labels."""
        texts = ", ".join(f"[ {value}, %{label} ]" for value, label in sources)
        return self.value(f"phi {kind} {texts}")

    def late_phi(self, kind: str) -> tuple[str, Callable[..., None]]:
        """A value like that, whose sources are told when they are known."""
        name = self.value("")
        place = len(self._lines) - 1

        def told(*sources: tuple[str, str]) -> None:
            texts = ", ".join(f"[ {value}, %{label} ]" for value, label in sources)
            self._lines[place] = f"  {name} = phi {kind} {texts}"

        return name, told

    def exit(self, status: str) -> None:
        """Leave the function: the block ends."""
        self._exits.append((status, self.block))
        self.jump("exit")

    def stop_unless(self, condition: str, status: str, before: Callable[[], None]) -> None:
        """Leave the function where a condition does not hold, after what `before` writes."""
        good, bad = self.label("good"), self.label("bad")
        self.branch(condition, good, bad)
        self.start(bad)
        before()
        self.exit(status)
        self.start(good)

    def stop_if_failed(self, status: str) -> None:
        """Leave the function with the status of a call, unless that is zero."""
        good = self.label("good")
        passed = self.value(f"icmp eq i32 {status}, 0")
        self._exits.append((status, self.block))
        self.branch(passed, good, "exit")
        self.start(good)

    def allocate(self, nbytes: int) -> str:
        """Memory for as long as the function runs, its content undefined."""
        name = f"%v{next(self._numbers)}"
        if nbytes <= self._stack_left:
            self._stack_left -= nbytes
            room = f"alloca [{max(nbytes, 1)} x i8], align {ALIGNMENT}"
            self._entry.append(f"  {name} = {room}")
            return name
        raw = f"{name}.raw"
        self._heap.append(raw)
        self._entry += [
            f"  {raw} = call ptr @malloc(i64 {nbytes + ALIGNMENT})",
            f"  {name}.start = ptrtoint ptr {raw} to i64",
            f"  {name}.up = add i64 {name}.start, {ALIGNMENT - 1}",
            f"  {name}.aligned = and i64 {name}.up, -{ALIGNMENT}",
            f"  {name}.step = sub i64 {name}.aligned, {name}.start",
            f"  {name} = getelementptr i8, ptr {raw}, i64 {name}.step",
        ]
        self.declared |= {"declare noalias ptr @malloc(i64)", "declare void @free(ptr)"}
        return name

    def build(self) -> str:
        """The text of the function."""
        self.exit("0")
        lines = [self._head, "entry:", *self._entry]
        if self._heap:
            lines += [f"  {raw}.none = icmp eq ptr {raw}, null" for raw in self._heap]
            none = f"{self._heap[0]}.none"
            for raw in self._heap[1:]:
                lines.append(f"  {raw}.any = or i1 {none}, {raw}.none")
                none = f"{raw}.any"
            self._exits.append((str(OUT_OF_MEMORY), "entry"))
            lines.append(f"  br i1 {none}, label %exit, label %start")
        else:
            lines.append("  br label %start")
        lines += ["start:", *self._lines, "exit:"]
        sources = ", ".join(f"[ {value}, %{label} ]" for value, label in self._exits)
        lines.append(f"  %status = phi i32 {sources}")
        lines += [f"  call void @free(ptr {raw})" for raw in self._heap]
        return "\n".join([*lines, "  ret i32 %status", "}"])
