"""The base of every IR node: a slotted dataclass with identity equality.

Nodes are immutable by convention. The convention is not enforced by `frozen=True`, because a frozen
dataclass takes several times longer to build in Pyodide; `tests/conftest.py` enforces it in tests.

How the fields of a node take part in visiting, rewriting and structural comparison is declared
once, where the field is: plain fields are children, `definition` fields bind variables, `reference`
fields point at things defined elsewhere, `hint` fields carry names that have no meaning. The type
of a child says what it holds: a node (`Stmt`), an array of nodes (`ArrayOf[Stmt]`), or, by
alternatives (`Stmt | None`), perhaps something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from mlcweb.ir.array import Array
from mlcweb.ir.class_names import add_node_class
from mlcweb.ir.errors import TOO_DEEP, nests_too_deep
from mlcweb.ir.pickling import as_an_object, flattened, restored
from mlcweb.ir.printing import Scriptable
from mlcweb.ir.span import Span

NodeClass = TypeVar("NodeClass", bound="type[Node]")
NodeType = TypeVar("NodeType", bound="Node")


def definition(**options: Any) -> Any:
    """A field that binds variables (a loop variable, a function's parameters)."""
    return field(metadata={"role": "definition"}, **options)


def child(**options: Any) -> Any:
    """A field with a part of the node, which visitors walk into: what a field is if not said."""
    return field(**options)


def reference(**options: Any) -> Any:
    """A field that points at a thing defined elsewhere; visitors do not walk into it."""
    return field(metadata={"role": "reference"}, **options)


def attribute(**options: Any) -> Any:
    """A field with plain data (numbers, strings, annotations); visitors do not walk into it."""
    return field(metadata={"role": "attribute"}, **options)


def hint(**options: Any) -> Any:
    """A field without meaning for structural equality (names)."""
    return field(metadata={"role": "hint"}, **options)


@dataclass(eq=False, slots=True, repr=False, weakref_slot=True)
class Node(Scriptable):
    """Base of all IR nodes. `span` says which source text the node came from, where known."""

    span: Span | None = field(default=None, kw_only=True)
    accesses_below: tuple[Any, ...] = field(init=False)
    calls_below: tuple[Any, ...] = field(init=False)
    variables_used: frozenset[Any] = field(init=False)
    """What `tir.contents` has found in a node, once that was asked for."""

    role_of_field: ClassVar[dict[str, str]] = {}
    child_fields: ClassVar[tuple[str, ...]] = ()
    structural_fields: ClassVar[tuple[str, ...]] = ()
    is_identity: ClassVar[bool] = False
    """Whether it is known by its identity, which pickles keep wherever it is referred to."""

    def children(self) -> tuple[Node, ...]:
        """The nodes in the child fields, in order. `node` writes this and the next two."""
        return ()

    def rewritten(self, mutator: Any) -> Self:
        """The node with its children rewritten by a `Mutator`; itself where all of them stay the
        same objects."""
        return self

    def replaced(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        raise NotImplementedError

    def same_as(self, other: object) -> bool:
        """Identity, under TVM's name."""
        return self is other

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself, since nothing of it changes."""
        return self

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Take the values of fields that `__getstate__` gave."""
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.is_identity:
            return as_an_object(self)
        return restored, (flattened(self, _is_part),)


def _is_part(value: Any) -> bool:
    """Whether the list of a pickled node has a value as a part of it."""
    return isinstance(value, Node) and not value.is_identity


@dataclass_transform(
    eq_default=False, field_specifiers=(field, child, definition, reference, attribute, hint)
)
def node(cls: NodeClass) -> NodeClass:
    """Class decorator that makes a `Node` subclass: slots, identity equality, field tables.

    Fields of a type `ArrayOf[X]` hold an `Array`, which an `__init__` of the class's own makes.
    A class may list `structural_order` where its variables are bound by a field that is not first.
    """
    own_init = "__init__" in vars(cls)
    node_class: Any = dataclass(eq=False, slots=True, repr=False)(cls)
    if not own_init and any(map(_is_array, fields(node_class))):
        node_class.__init__ = _init_with_arrays(node_class)
    roles = {
        f.name: f.metadata.get("role", "child")
        for f in fields(node_class)
        if f.init and f.name != "span"
    }
    node_class.role_of_field = roles
    node_class.child_fields = tuple(name for name, role in roles.items() if role == "child")
    order = getattr(node_class, "structural_order", tuple(roles))
    node_class.structural_fields = tuple(name for name in order if roles[name] != "hint")
    _write_walks(node_class, own_init)
    add_node_class(node_class)
    return node_class


def _is_array(declared: Any) -> bool:
    return str(declared.type).startswith("ArrayOf[")


def _init_with_arrays(node_class: Any) -> Callable[..., None]:
    """`__init__` as `dataclass` writes it, but that sequences become arrays."""
    scope: dict[str, Any] = {"Array": Array, "MISSING": MISSING}
    parameters, keywords, body = [], [], []
    for declared in fields(node_class):
        name = value = declared.name
        if not declared.init:  # set by `__post_init__`
            continue
        parameter = name
        if declared.default is not MISSING:
            parameter, scope[f"default_{name}"] = f"{name}=default_{name}", declared.default
        elif declared.default_factory is not MISSING:
            parameter, scope[f"make_{name}"] = f"{name}=MISSING", declared.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        if _is_array(declared):
            value = f"{name} if type({name}) is Array else Array({name})"
        (keywords if declared.kw_only else parameters).append(parameter)
        body.append(f"    self.{name} = {value}")
    if hasattr(node_class, "__post_init__"):
        body.append("    self.__post_init__()")
    head = f"def __init__(self, {', '.join(parameters)}, *, {', '.join(keywords)}):"
    exec("\n".join((head, *body)), scope)
    return wraps(node_class.__init__)(scope["__init__"])


def _write_walks(node_class: Any, own_init: bool) -> None:
    """The functions of a class that name its fields one by one, as `dataclass` writes `__init__`:
    most of the time of a compiler goes into walking through nodes, and a loop over the names of
    fields takes several times as long."""
    children, rewriting = [], []
    for declared in fields(node_class):
        name, kind = declared.name, str(declared.type)
        value = f"self.{name}"
        if name not in node_class.child_fields:
            continue
        if "Array" in kind:
            children.append(f"*({value} or ())")
            rewriting.append(f"{name} = {value} and mutator.rewrite_tuple({value})")
        elif " | " in kind:
            children.append(f"*(({value},) if isinstance({value}, Node) else ())")
            new = f"mutator.rewrite({value}) if isinstance({value}, Node) else {value}"
            rewriting.append(f"{name} = {new}")
        else:
            children.append(value)
            rewriting.append(f"{name} = mutator.rewrite({value})")
    names = [f.name for f in fields(node_class) if f.init]
    keywords = {f.name for f in fields(node_class) if f.kw_only or own_init}

    def copy(values: Mapping[str, str]) -> str:
        arguments = [(name, values.get(name, f"self.{name}")) for name in names]
        arguments.sort(key=lambda argument: argument[0] in keywords)
        texts = [f"{name}={text}" if name in keywords else text for name, text in arguments]
        return f"type(self)({', '.join(texts)})"

    same = " and ".join(f"{name} is self.{name}" for name in node_class.child_fields)
    changed = {name: f"self.{name} if {name} is SAME else {name}" for name in names}
    code = [
        f"def children(self): return ({''.join(f'{part}, ' for part in children)})",
        f"def replaced(self, *, {', '.join(f'{name}=SAME' for name in names)}):",
        f" return {copy(changed)}",
    ]
    if rewriting:
        code += [
            "def rewritten(self, mutator):",
            " try:",
            *(f"  {line}" for line in rewriting),
            " except TOO_DEEP: raise nests_too_deep('rewritten') from None",
            f" return self if {same} else {copy({n: n for n in node_class.child_fields})}",
        ]
    scope: dict[str, Any] = {
        "Node": Node,
        "SAME": object(),
        "TOO_DEEP": TOO_DEEP,
        "nests_too_deep": nests_too_deep,
    }
    exec("\n".join(code), scope)
    for name in ("children", "replaced", *(["rewritten"] if rewriting else [])):
        setattr(node_class, name, scope[name])


def replace(old: NodeType, **changes: Any) -> NodeType:
    """A copy of a node with some fields changed; the span is kept."""
    return old.replaced(**changes)
