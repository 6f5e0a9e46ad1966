"""The names of storage scopes: where a buffer's memory lies."""

from __future__ import annotations

from mlcweb.schedule.errors import ScheduleError

STORAGE_SCOPES = ("global", "shared", "warp", "local", "wmma", "m16n8k8", "texture", "amx", "mma")
"""The kinds of memory. A name may go on after a dot, as in "shared.dyn" or "global.A_reg"."""


class StorageScopeError(ScheduleError):
    """There is no such storage scope."""


def check_storage_scope(name: str) -> None:
    """Raise StorageScopeError unless `name` is a storage scope."""
    if name.split(".")[0] not in STORAGE_SCOPES:
        raise StorageScopeError(
            f'The input storage scope "{name}" is invalid',
            advice='"global", "shared", "local", or one of these with a name, as "global.A_reg"',
        )
