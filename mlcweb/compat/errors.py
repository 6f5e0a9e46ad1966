"""Errors of TVM that nothing here raises; programs name them where they catch."""

from mlcweb.ir.errors import TVMError


class OpError(TVMError):
    """An operator is at fault."""


class OpNotImplemented(OpError, NotImplementedError):
    """An importer does not know an operator."""


class OpAttributeInvalid(OpError, AttributeError):
    """An operator's attribute has a wrong value."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute."""


class RPCError(TVMError):
    """A program on another machine failed."""
