"""Builds a function: instructions in order, locals by type, jumps by label instead of by depth.

builder = FunctionBuilder("count", [("n", "i32")], ["i32"])
i = builder.local("i32", "i")
with builder.loop("again"):
    builder.code("local.get i  i32.const 1  i32.add  local.tee i")
    builder.code("local.get n  i32.lt_s  br_if again")
builder.emit("local.get", i)
function = builder.build()
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from mlcweb.codegen.wasm.instructions import OPERATIONS, Instruction, ValueType
from mlcweb.codegen.wasm.module import Function, FunctionType, WasmError


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A block to jump to: to its start if it is a loop, else past its end."""

    name: str
    level: int


Opened = AbstractContextManager[Label]


class FunctionBuilder:
    """A function in the making.

    `source` is the tag that instructions get from now on: what in the program they are for.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, ValueType]] = (),
        results: Sequence[ValueType] = (),
    ) -> None:
        self.name = name
        self.type = FunctionType(tuple(type for _, type in parameters), tuple(results))
        self.source: Hashable = None
        self._parameters = {name: index for index, (name, _) in enumerate(parameters)}
        self._body: list[Instruction] = []
        self._sources: list[Hashable] = []
        self._local_types = [type for _, type in parameters]
        self._local_names = [name for name, _ in parameters]
        self._free: dict[ValueType, list[int]] = {}
        self._label_names: list[str] = []
        self._open: list[Label] = []

    def emit(self, *instruction: object) -> None:
        """Append an instruction: its mnemonic, then its immediates."""
        self._body.append(instruction)
        self._sources.append(self.source)

    def code(self, text: str) -> None:
        """Append instructions from their text, in which locals and labels go by name, a block has
        its type, and two semicolons start a comment."""
        lines = (line.partition(";;")[0] for line in text.splitlines())
        words = iter(" ".join(lines).split())
        for mnemonic in words:
            kinds = OPERATIONS[mnemonic].immediates
            self.emit(mnemonic, *(_READERS[kind](self, next(words)) for kind in kinds))

    def _local_called(self, name: str) -> int:
        return int(name) if name.isdigit() else self._local_names.index(name)

    def _depth_of(self, name: str) -> int:
        return self.depth(next(label for label in reversed(self._open) if label.name == name))

    def parameter(self, name: str) -> int:
        """The index of a parameter."""
        return self._parameters[name]

    def local(self, type: ValueType, name: str = "") -> int:
        """The index of a local that is not in use. It holds zero, or what it was released with."""
        free = self._free.get(type)
        if free:
            return free.pop()
        self._local_types.append(type)
        self._local_names.append(name)
        return len(self._local_types) - 1

    def release(self, local: int) -> None:
        """Say that a local's value is no longer needed, so that `local` may give it out again."""
        self._free.setdefault(self._local_types[local], []).append(local)

    def block(self, name: str = "", result: ValueType | None = None) -> Opened:
        """A block; a jump to its label goes past its end."""
        return self._structure("block", name, result)

    def loop(self, name: str = "", result: ValueType | None = None) -> Opened:
        """A loop; a jump to its label starts it again, without one it runs once."""
        return self._structure("loop", name, result)

    def branch(self, name: str = "", result: ValueType | None = None) -> Opened:
        """An `if` over the i32 on the stack; `otherwise` starts its other side."""
        return self._structure("if", name, result)

    @contextmanager
    def _structure(self, kind: str, name: str, result: ValueType | None) -> Iterator[Label]:
        label = Label(name, len(self._open))
        self._open.append(label)
        self._label_names.append(name)
        self.emit(kind, result)
        yield label
        self._open.pop()
        self.emit("end")

    def otherwise(self) -> None:
        """Start the `else` side of the innermost `branch`."""
        self.emit("else")

    def depth(self, label: Label) -> int:
        """How many enclosing blocks a jump to `label` from here leaves, as immediates have it."""
        if label not in self._open:
            raise WasmError(f"Function {self.name}: a jump to {label.name!r} from outside of it")
        return len(self._open) - 1 - label.level

    def jump(self, label: Label) -> None:
        """Jump to `label`."""
        self.emit("br", self.depth(label))

    def jump_if(self, label: Label) -> None:
        """Jump to `label` if the i32 on the stack is not zero."""
        self.emit("br_if", self.depth(label))

    def build(self) -> Function:
        """The function as it is now."""
        if self._open:
            raise WasmError(f"Function {self.name}: {len(self._open)} blocks are still open")
        return Function(
            self.name,
            self.type,
            tuple(self._local_types[len(self.type.parameters) :]),
            tuple(self._body),
            tuple(self._local_names) if any(self._local_names) else (),
            tuple(self._label_names) if any(self._label_names) else (),
            tuple(self._sources),
        )


def _integer(_: FunctionBuilder, word: str) -> int:
    return int(word, 0)


def _float(_: FunctionBuilder, word: str) -> float:
    return float(word)


def _name(_: FunctionBuilder, word: str) -> str:
    return word


_READERS: dict[str, Callable[[FunctionBuilder, str], object]] = {
    "i32": _integer, "i64": _integer, "memory": _integer, "lane": _integer,
    "f32": _float, "f64": _float, "block": _name, "function": _name, "global": _name,
    "local": FunctionBuilder._local_called, "label": FunctionBuilder._depth_of,
}  # fmt: skip
"""How to read each kind of immediate that `code` may have."""
