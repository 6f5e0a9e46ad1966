"""The instructions of NVIDIA's matrix units in CUDA C, where loops are marked as one of them."""

from __future__ import annotations

from typing import Any

from mlcweb.analysis.threads import MATRIX_UNIT
from mlcweb.ir.errors import TVMError
from mlcweb.ir.visitor import find_nodes
from mlcweb.lower.matrix_units import Tile
from mlcweb.lower.thread_axes import WARP_SIZE
from mlcweb.tir import expr as E
from mlcweb.tir import stmt as S
from mlcweb.tir.arithmetic import add, const, floordiv, floormod, multiply, subtract
from mlcweb.tir.buffer import Buffer
from mlcweb.tir.substitute import substitute

SPACE = "nvcuda::wmma::"
SUM = 1

Access = Any
"""A load from a buffer of one dimension, or a store to it."""


def declare_fragments(printer: Any, buffer: Buffer, element: str) -> str:
    """The line that declares the fragments that a buffer is divided into."""
    tile = _tiles(printer.kernel.body).get(buffer.data)
    if tile is None:
        raise TVMError(
            f'"{buffer.name}" has scope "{buffer.scope()}", but no instruction loads or fills its '
            "fragments: tensorize the blocks that do",
            buffer.span,
        )
    scope = buffer.scope().partition(".")[2]
    rows, columns = tile.sides(buffer.scope())
    count = getattr(buffer.shape[0], "value", 0) // (rows * columns)
    layout = "" if scope == "accumulator" else f", {SPACE}{tile.layout}"
    sizes = ", ".join(map(str, tile.shape))
    kind = f"{SPACE}fragment<{SPACE}{scope}, {sizes}, {element}{layout}>"
    return f"{kind} {printer.name(buffer)}[{count}];"


def _tiles(body: S.Stmt) -> dict[E.Var, Tile]:
    """The tile of each fragment that is loaded or filled, by its data."""
    tiles: dict[E.Var, Tile] = {}
    for part in S.find_attributes(body, MATRIX_UNIT):
        kind, tile = _instruction(part)
        if kind != "store":
            whole = Tile(tile.shape, tile.layout if kind == "load" else "row_major")
            tiles[_stores(part)[0].buffer.data] = whole
    return tiles


def _instruction(statement: S.AttrStmt) -> tuple[str, Tile]:
    assert isinstance(statement.value, E.StringImm)
    kind, m, n, k, layout = statement.value.value.split()
    return kind, Tile((int(m), int(n), int(k)), layout)


def _stores(statement: S.Stmt) -> list[S.BufferStore]:
    return list(S.find_statements(statement, S.BufferStore))


def matrix_instruction(printer: Any, statement: S.AttrStmt) -> str:
    """The call of `nvcuda::wmma` that some loops stand for.

    Raises a TVMError in other languages, and for threads that are no whole warps.
    """
    name = printer.language.name
    if name != "cuda":
        raise TVMError(
            f"Tensor cores are NVIDIA's, and {name} has no instruction for them: build for "
            '"cuda", or leave the blocks as loops, without tensorize',
            statement.span,
        )
    lanes = printer.kernel.block_size()[0]
    if lanes % WARP_SIZE:
        raise TVMError(
            f'"{printer.kernel.name}" uses tensor cores, on which the {WARP_SIZE} threads of a '
            f"warp work together, and has {lanes} along threadIdx.x; bind a loop of {WARP_SIZE} "
            "to it",
            statement.span,
        )
    kind, tile = _instruction(statement)
    write = _Writer(printer, statement)
    store, value = write.stores[0], write.stores[0].value
    if kind == "fill":
        return f"{SPACE}fill_fragment({write.fragment(store, tile)}, {printer.text(value)});"
    if kind == "load":
        memory, stride = write.memory(value, "i")
        return f"{SPACE}load_matrix_sync({write.fragment(store, tile)}, {memory}, {stride});"
    if kind == "store":
        memory, stride = write.memory(store, "i" if tile.layout == "row_major" else "j")
        fragment = write.fragment(value, Tile(tile.shape, "row_major"))
        return (
            f"{SPACE}store_matrix_sync({memory}, {fragment}, {stride}, {SPACE}mem_{tile.layout});"
        )
    return write.product()


class _Writer:
    """Writes the operands of one instruction."""

    def __init__(self, printer: Any, statement: S.AttrStmt) -> None:
        self.printer = printer
        self.stores = _stores(statement)
        self.loops = list(S.find_statements(statement, S.For))
        self.tiles = _tiles(printer.kernel.body)

    def at(self, access: Access, **places: int) -> E.PrimExpr:
        """The flat index of an access in some iteration; loops that are not named are at 0."""
        values = {
            loop.loop_var: const(places.get("ijk"[n], 0)) for n, loop in enumerate(self.loops)
        }
        return self.printer.analyzer.simplify(substitute(access.indices[0], values))

    def step(self, access: Access, loop: str) -> E.PrimExpr:
        """How far the next iteration of a loop is."""
        first = self.at(access)
        return self.printer.analyzer.simplify(subtract(self.at(access, **{loop: 1}), first))

    def fragment(self, access: Access, tile: Tile) -> str:
        """A fragment by its number: which of the tiles that divide its buffer."""
        rows, columns = tile.sides(access.buffer.scope())
        steps = [self.step(access, loop) for loop in "ijk"[: len(self.loops)]]
        across = max(step.value for step in steps if isinstance(step, E.IntImm)) // columns
        first = floordiv(self.at(access), columns)
        number = add(multiply(floordiv(first, across * rows), across), floormod(first, across))
        index = self.printer.text(self.printer.analyzer.simplify(number))
        return f"{self.printer.name(self.printer.owner(access.buffer))}[{index}]"

    def memory(self, access: Access, outer: str) -> tuple[str, str]:
        """The address of the first element, and the step of the outer loop over the others."""
        place = self.printer.text(self.at(access), SUM)
        name = self.printer.name(self.printer.owner(access.buffer))
        return f"{name} + {place}", self.printer.text(self.step(access, outer))

    def product(self) -> str:
        """D = A @ B + C, whose C is what D is set to first, or D itself."""
        last = self.stores[-1]
        loads = list(find_nodes(last.value, E.BufferLoad))
        by_scope = {load.buffer.scope(): load for load in loads}
        before: Access = self.stores[0].value if len(self.stores) > 1 else last
        operands: tuple[Access, ...] = (
            last,
            by_scope["wmma.matrix_a"],
            by_scope["wmma.matrix_b"],
            before,
        )
        texts = [self.fragment(part, self.tiles[part.buffer.data]) for part in operands]
        return f"{SPACE}mma_sync({', '.join(texts)});"
