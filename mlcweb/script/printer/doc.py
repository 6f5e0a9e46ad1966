"""Trees of Python syntax that know which parts of a program they were printed for.

`mlcweb.script.printer.doc_printer.to_python_script` writes them. Names, arguments and fields are
those of TVM. A doc is compared by identity. Its `source_paths` say what it was printed for, and a
statement may have a `comment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from mlcweb.ir.access_path import AccessPath


class Doc:
    """Any part of Python's syntax."""

    __slots__ = ("_source_paths",)

    @property
    def source_paths(self) -> tuple[AccessPath, ...]:
        """The parts of a program that this was printed for."""
        return getattr(self, "_source_paths", ())

    @source_paths.setter
    def source_paths(self, paths: Iterable[AccessPath]) -> None:
        self._source_paths = tuple(paths)


class ExprDoc(Doc):
    """An expression. `x[a, b]` is an IndexDoc."""

    __slots__ = ()

    def attr(self, name: str) -> AttrAccessDoc:
        """The attribute `name` of this."""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """A call of this."""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: ExprDoc | tuple[ExprDoc, ...]) -> IndexDoc:
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    __iter__ = None  # else `__getitem__` makes it endless


class StmtDoc(Doc):
    """A statement."""

    __slots__ = ("_comment",)

    @property
    def comment(self) -> str | None:
        """What is written behind a simple statement, or at the head of a compound one."""
        return getattr(self, "_comment", None)

    @comment.setter
    def comment(self, comment: str | None) -> None:
        self._comment = comment


class StmtBlockDoc(Doc):
    """Statements in order."""

    def __init__(self, stmts: Sequence[StmtDoc]) -> None:
        self.stmts = tuple(stmts)


class LiteralDoc(ExprDoc):
    """A constant of Python: None, a string, a number or a truth value."""

    def __init__(
        self, value: str | float | bool | int | None, path: AccessPath | None = None
    ) -> None:
        self.value = value
        if path is not None:
            self.source_paths = (path,)


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name: str) -> None:
        self.name = name


class AttrAccessDoc(ExprDoc):
    """`value.name`."""

    def __init__(self, value: ExprDoc, name: str) -> None:
        self.value = value
        self.name = name


class IndexDoc(ExprDoc):
    """`value[indices]`."""

    def __init__(self, value: ExprDoc, indices: Sequence[ExprDoc]) -> None:
        self.value = value
        self.indices = tuple(indices)


class CallDoc(ExprDoc):
    """`callee(args, kwargs)`. Keywords are in `kwargs_keys`, with their `kwargs_values`."""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        self.callee = callee
        self.args = args
        self.kwargs_keys = tuple(kwargs)
        self.kwargs_values = tuple(kwargs.values())


class OperationKind(IntEnum):
    """The operators, by the number of their operands."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4
    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    _BinaryEnd = 26
    _SpecialStart = 27
    IfThenElse = 28
    _SpecialEnd = 29


class OperationDoc(ExprDoc):
    """An operator and its operands; those of IfThenElse are the condition and two values."""

    def __init__(self, kind: OperationKind, operands: Sequence[ExprDoc]) -> None:
        self.kind = OperationKind(kind)
        self.operands = tuple(operands)


class LambdaDoc(ExprDoc):
    """`lambda args: body`."""

    def __init__(self, args: Sequence[IdDoc], body: ExprDoc) -> None:
        self.args = tuple(args)
        self.body = body


class TupleDoc(ExprDoc):
    """`(a, b)`."""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        self.elements = tuple(elements)


class ListDoc(ExprDoc):
    """`[a, b]`."""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        self.elements = tuple(elements)


class DictDoc(ExprDoc):
    """`{a: b}`."""

    def __init__(self, content: Mapping[ExprDoc, ExprDoc]) -> None:
        self.keys = tuple(content)
        self.values = tuple(content.values())


class SliceDoc(ExprDoc):
    """`start:stop:step`, which only stands in an index."""

    def __init__(
        self,
        start: ExprDoc | None = None,
        stop: ExprDoc | None = None,
        step: ExprDoc | None = None,
    ) -> None:
        self.start = start
        self.stop = stop
        self.step = step


class AssignDoc(StmtDoc):
    """`lhs: annotation = rhs`.

    Raises:
        ValueError: there is neither a value nor an annotation, or several names are annotated.
    """

    def __init__(
        self, lhs: ExprDoc, rhs: ExprDoc | None, annotation: ExprDoc | None = None
    ) -> None:
        if rhs is None and annotation is None:
            raise ValueError("An AssignDoc needs a value or an annotation: rhs, annotation")
        if annotation is not None and not isinstance(lhs, IdDoc):
            raise ValueError(
                f"An AssignDoc annotates a name alone (IdDoc), not a {type(lhs).__name__}"
            )
        self.lhs = lhs
        self.rhs = rhs
        self.annotation = annotation


class IfDoc(StmtDoc):
    """`if predicate:` and its branches.

    Raises:
        ValueError: both branches are empty.
    """

    def __init__(
        self,
        predicate: ExprDoc,
        then_branch: Sequence[StmtDoc] | None,
        else_branch: Sequence[StmtDoc] | None,
    ) -> None:
        if not then_branch and not else_branch:
            raise ValueError("An IfDoc needs a statement in one of its branches")
        self.predicate = predicate
        self.then_branch = tuple(then_branch or ())
        self.else_branch = tuple(else_branch or ())


class WhileDoc(StmtDoc):
    """`while predicate:`."""

    def __init__(self, predicate: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.predicate = predicate
        self.body = tuple(body)


class ForDoc(StmtDoc):
    """`for lhs in rhs:`."""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.body = tuple(body)


class ScopeDoc(StmtDoc):
    """`with rhs as lhs:`."""

    def __init__(self, lhs: ExprDoc | None, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.body = tuple(body)


class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    def __init__(self, expr: ExprDoc) -> None:
        self.expr = expr


class AssertDoc(StmtDoc):
    """`assert test, msg`."""

    def __init__(self, test: ExprDoc, msg: ExprDoc | None = None) -> None:
        self.test = test
        self.msg = msg


class ReturnDoc(StmtDoc):
    """`return value`."""

    def __init__(self, value: ExprDoc) -> None:
        self.value = value


class FunctionDoc(StmtDoc):
    """`def name(args) -> return_type:` below its decorators."""

    def __init__(
        self,
        name: IdDoc,
        args: Sequence[AssignDoc],
        decorators: Sequence[ExprDoc],
        return_type: ExprDoc | None,
        body: Sequence[StmtDoc],
    ) -> None:
        self.name = name
        self.args = tuple(args)
        self.decorators = tuple(decorators)
        self.return_type = return_type
        self.body = tuple(body)


class ClassDoc(StmtDoc):
    """`class name:` below its decorators."""

    def __init__(self, name: IdDoc, decorators: Sequence[ExprDoc], body: Sequence[StmtDoc]) -> None:
        self.name = name
        self.decorators = tuple(decorators)
        self.body = tuple(body)


class CommentDoc(StmtDoc):
    """Lines of comment."""

    def __init__(self, comment: str) -> None:
        self.comment = comment


class DocStringDoc(StmtDoc):
    """A docstring."""

    def __init__(self, docs: str) -> None:
        self.comment = docs
