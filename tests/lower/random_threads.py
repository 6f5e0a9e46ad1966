"""Random programs whose threads exchange data, for `lockstep` and every target to run.

Each is the text of a function of A, B and C, of 8 integers each. S is shared by threads, U may lie
in other memory, L is a value of each thread.
"""

from __future__ import annotations

from random import Random

SHAPES = (
    {"threadIdx.x": 8},
    {"threadIdx.y": 2, "threadIdx.x": 4},
    {"threadIdx.x": 4, "threadIdx.y": 2},
    {"threadIdx.x": 4, "vthread": 2},
    {"threadIdx.z": 2, "threadIdx.y": 2, "threadIdx.x": 2},
    {"blockIdx.x": 2, "vthread.x": 2, "threadIdx.x": 2},
    {"threadIdx.x": 4, "blockIdx.x": 2},
)
SCOPES = (("shared", "shared"), ("shared", "global"), ("warp", "shared"), ("shared", "warp"))
BARRIER = 'T.evaluate(T.tvm_storage_sync("shared"))'


class RandomThreads:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.shape = self.random.choice(SHAPES)
        self.names = {tag: tag.replace(".", "_") for tag in self.shape}
        self.all = self.number(self.shape)
        axes = {tag: n for tag, n in self.shape.items() if not tag.startswith("blockIdx")}
        self.thread = self.number(axes)
        self.threads = 8 // self.shape.get("blockIdx.x", 1)
        self.lines: list[str] = []
        self.indent = 1
        self.loops: list[str] = []
        self.fresh = 0

    def number(self, shape: dict[str, int]) -> str:
        text = "0"
        for tag, extent in shape.items():
            text = f"({text} * {extent} + {self.names[tag]})"
        return text

    def program(self) -> str:
        scopes = dict(zip("SU", self.random.choice(SCOPES), strict=True))
        parameters = ", ".join(f'{name}: T.Buffer((8,), "int32")' for name in "ABC")
        for name, scope in scopes.items():
            self.line(f'{name} = T.alloc_buffer((8,), "int32", scope="{scope}")')
        self.line('L = T.alloc_buffer((1,), "int32", scope="local")')
        launched = self.random.random() < 0.3 and "vthread" not in "".join(self.shape)
        for tag, extent in self.shape.items():
            if launched:
                self.line(f'{self.names[tag]} = T.launch_thread("{tag}", {extent})')
            else:
                header = f'T.thread_binding({extent}, thread="{tag}")'
                self.line(f"for {self.names[tag]} in {header}:")
                self.indent += 1
        for name in scopes:
            for start in range(0, 8, self.threads):
                self.line(f"{name}[{self.thread} + {start}] = {self.thread} + {start + 3}")
        self.line(BARRIER)
        self.line(f"L[0] = A[{self.all}]")
        self.statements(self.random.randint(2, 6), 0)
        self.line(f"C[{self.all}] = S[{self.threads - 1} - {self.thread}] + L[0]")
        return "\n".join([f"def main({parameters}):", *self.lines, ""])

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.65 or depth > 2:
                name = self.random.choice("SSUULB")
                self.line(f"{name}[{self.index(name)}] = {self.value(0)}")
            elif kind < 0.75:
                self.line(BARRIER)
            elif kind < 0.87:
                self.fresh += 1
                loop = f"i{self.fresh}"
                extent = self.random.choice(["1", "2", "3", self.thread])
                self.inside(f"for {loop} in range({extent}):", depth, loop)
            else:
                self.inside(f"if {self.condition()}:", depth)
                if self.random.random() < 0.3:
                    self.inside("else:", depth)

    def inside(self, header: str, depth: int, *loops: str) -> None:
        self.line(header)
        self.indent += 1
        self.loops += loops
        self.statements(self.random.randint(1, 3), depth + 1)
        del self.loops[len(self.loops) - len(loops) :]
        self.indent -= 1

    def index(self, name: str) -> str:
        if name == "L":
            return "0"
        if name == "B":
            return self.all
        thread, last = (self.all, 7) if name == "A" else (self.thread, self.threads - 1)
        loop = self.random.choice([*self.loops, "1"])
        scale, shift = self.random.choice([1, 3, 5]), self.random.randint(0, 7)
        choices = [
            thread,
            thread,
            f"({last} - {thread})",
            f"(({thread} * {scale} + {shift}) % {last + 1})",
            f"(({thread} + {loop}) % 8)",
            str(shift),
        ]
        return self.random.choice(choices)

    def value(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.5 or depth > 2:
            name = self.random.choice("ASSUULB")
            return f"{name}[{self.index(name)}]"
        if kind < 0.6:
            return self.random.choice([self.thread, str(self.random.randint(0, 9))])
        a, b = self.value(depth + 1), self.value(depth + 1)
        if kind < 0.7:
            return f"T.if_then_else({self.condition()}, {a}, {b})"
        return f"({a} {self.random.choice('+-')} {b})"

    def condition(self) -> str:
        tag = self.random.choice(list(self.shape))
        loop = self.random.choice([*self.loops, self.names[tag]])
        compare = self.random.choice(["<", "==", ">="])
        choices = [
            f"{loop} {compare} {self.random.randint(0, self.shape[tag])}",
            f"A[{self.random.randint(0, 7)}] > {self.random.randint(0, 9)}",
            f"{self.thread} % 2 == {self.random.randint(0, 1)}",
        ]
        return self.random.choice(choices)
