"""The base of every IR node: a slotted dataclass with identity equality.

Nodes are immutable by convention. The convention is not enforced by `frozen=True`, because a frozen
dataclass takes several times longer to build in Pyodide; `tests/conftest.py` enforces it in tests.

How the fields of a node take part in visiting, rewriting and structural comparison is declared
once, where the field is: plain fields are children, `definition` fields bind variables, `reference`
fields point at things defined elsewhere, `hint` fields carry names that have no meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from mlcweb.ir.array import Array
from mlcweb.ir.class_names import add_node_class
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

    role_of_field: ClassVar[dict[str, str]] = {}
    child_fields: ClassVar[tuple[str, ...]] = ()
    last_child_fields: ClassVar[tuple[str, ...]] = ()
    """The same from the last one on."""
    structural_fields: ClassVar[tuple[str, ...]] = ()
    all_fields: ClassVar[tuple[str, ...]] = ("span",)
    values_of: ClassVar[Callable[[Any], tuple[Any, ...]]]
    """The values of all fields of a node."""
    is_identity: ClassVar[bool] = False
    """Whether it is known by its identity, which pickles keep wherever it is referred to."""

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
    node_class.last_child_fields = node_class.child_fields[::-1]
    order = getattr(node_class, "structural_order", tuple(roles))
    node_class.structural_fields = tuple(name for name in order if roles[name] != "hint")
    node_class.all_fields = ("span", *roles)
    node_class.values_of = attrgetter(*node_class.all_fields) if roles else lambda old: (old.span,)
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


def replace(old: NodeType, **changes: Any) -> NodeType:
    """A copy of a node with some fields changed; the span is kept."""
    cls: Any = type(old)
    values = dict(zip(cls.all_fields, cls.values_of(old), strict=True))
    values.update(changes)
    return cls(**values)
