"""What another package has and this one has not: it can be imported, and says what to use instead.

Programs import more than they use, so an import must not stop them; the first use does.
"""

from types import ModuleType
from typing import Any, NoReturn

from mlcweb.ir.errors import TVMError


class AbsentError(TVMError, NotImplementedError):
    """A program uses a part of TVM that is not here."""


class Absent(ModuleType):
    """Stands for something that is not here: a module, or anything inside of one.

    Its attributes are absent for the same reason. To call it, to derive from it, to index it, or to
    go through it is an `AbsentError`; nothing is an instance of it.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self._reason = reason
        self.__path__ = []

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(f"{self.__name__} has no {name}: {self._reason}")
        return Absent(f"{self.__name__}.{name}", self._reason)

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise AbsentError(f"{self.__name__} is not here: {self._reason}")

    __call__ = __mro_entries__ = __getitem__ = __iter__ = __enter__ = __bool__ = _refuse
    __len__ = __int__ = __float__ = _refuse

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not here: {self._reason}>"
