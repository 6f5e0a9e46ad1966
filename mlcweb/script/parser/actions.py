"""What a call of `T` that is a statement of its own does to the block or function around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlcweb.script import constructs as C
from mlcweb.script.parser.with_frames import launch, thread_axis
from mlcweb.tir import stmt as S

if TYPE_CHECKING:
    from mlcweb.script.parser.statements import StatementParser


def _where(self: StatementParser, value: C.Where, node: Any) -> None:
    contents = self.block("T.where", node)
    if contents.predicate is not None:
        raise self.error(f'The block "{contents.name}" has a T.where already', node)
    contents.predicate = value.predicate


def _reads(self: StatementParser, value: C.Reads, node: Any) -> None:
    contents = self.block("T.reads", node)
    if contents.reads is not None:
        raise self.error(f'The block "{contents.name}" has a T.reads already', node)
    contents.reads = value.regions


def _writes(self: StatementParser, value: C.Writes, node: Any) -> None:
    contents = self.block("T.writes", node)
    if contents.writes is not None:
        raise self.error(f'The block "{contents.name}" has a T.writes already', node)
    contents.writes = value.regions


def _block_attr(self: StatementParser, value: C.BlockAttributes, node: Any) -> None:
    contents = self.block("T.block_attr", node)
    contents.annotations = {**contents.annotations, **value.values}


def _func_attr(self: StatementParser, value: C.FunctionAttributes, node: Any) -> None:
    self.function.attrs.update(value.values)


def _attribute_rest(self: StatementParser, value: C.AttributeFrame, node: Any) -> None:
    span = self.evaluator.span(node)
    self.wrap_rest(lambda body: S.AttrStmt(value.node, value.key, value.value, body, span=span))


def _let_rest(self: StatementParser, value: C.LetFrame, node: Any) -> None:
    var, span = value.var, self.evaluator.span(node)
    if var is None:
        raise self.error("Give it a name: `x = T.LetStmt(…)`", node)
    self.wrap_rest(lambda body: S.LetStmt(var, value.value, body, span=span))


def _check_rest(self: StatementParser, value: C.AssertFrame, node: Any) -> None:
    span = self.evaluator.span(node)
    self.wrap_rest(lambda body: S.AssertStmt(value.condition, value.message, body, span=span))


def _thread_rest(self: StatementParser, value: C.ThreadFrame, node: Any) -> None:
    axis = thread_axis(self, value, "", node)
    self.wrap_rest(lambda body: launch(axis, value.extent, body))


ACTIONS: dict[type, Callable[..., None]] = {
    C.Where: _where,
    C.Reads: _reads,
    C.Writes: _writes,
    C.BlockAttributes: _block_attr,
    C.FunctionAttributes: _func_attr,
    C.AttributeFrame: _attribute_rest,
    C.LetFrame: _let_rest,
    C.AssertFrame: _check_rest,
    C.ThreadFrame: _thread_rest,
}
"""How to carry out a call, by the type of its value."""
