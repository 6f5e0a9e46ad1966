"""Errors of TVM that nothing here raises; programs name them where they catch."""

from typing import Any

from mlcweb.ir.errors import TVMError


class OpError(TVMError):
    """An operator is at fault."""


class OpNotImplemented(OpError, NotImplementedError):
    """An importer does not know an operator."""


class OpAttributeInvalid(OpError, AttributeError):
    """An operator's attribute has a wrong value."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An importer does not know an operator with such an attribute."""


class RPCError(TVMError):
    """A program on another machine failed."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A program on another machine took too long."""


def register_error(name_or_cls: Any = None, cls: type | None = None) -> Any:
    """Decorates an error class, which stays as it is: here Python raises all errors."""
    if isinstance(name_or_cls, type):
        return name_or_cls
    return cls if cls is not None else register_error
