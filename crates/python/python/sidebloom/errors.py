"""What goes wrong in stores, filters and guards, by name. Wrong types raise TypeError, missing keys KeyError."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "AlreadyExistsError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Error",
    "FilterFullError",
    "FilterMismatchError",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "KeyspaceError",
    "LockLostError",
    "LockedError",
    "NotAGuardError",
    "NotAStoreError",
    "OutOfMemoryError",
    "PoisonedError",
    "ReadOnlyError",
    "TooLargeError",
    "VersionError",
]


class Error(Exception):
    """Anything that sidebloom reports."""

    path: Path | None = None
    """The file or directory, if one is concerned."""
    offset: int | None = None
    """Where in the file, in bytes from its start."""


class IoError(Error, OSError):
    """The operating system refused something; `errno` says why."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[object, ...]:
        state = {**self.__dict__, "errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return type(self), self.args, state

    def __setstate__(self, state: dict[str, object] | None) -> None:
        for name, value in (state or {}).items():
            setattr(self, name, value)


class CorruptionError(Error):
    """A file is damaged. The value was not returned."""


class VersionError(Error):
    """A file has a format of another version of sidebloom. It is not damaged, and was not changed."""


class LockedError(Error):
    """The store or guard is open already, here or in another process."""


class LockLostError(Error):
    """The store's lock file was removed or replaced while it was open."""


class NotAStoreError(Error):
    """The path is no store, and creating one was not allowed."""


class NotAGuardError(Error):
    """The path is no guard."""


class AlreadyExistsError(Error):
    """The target of a copy exists."""


class ReadOnlyError(Error):
    """A write to a store that was opened read-only."""


class PoisonedError(Error):
    """An earlier write has failed. Open the store again to write."""


class ForkedError(Error):
    """The store or guard was opened before this process was forked; open it again here."""


class ClosedError(Error, ValueError):
    """The store, guard, batch or transaction was closed."""


class ConflictError(Error):
    """Others have changed what a transaction read. Nothing was written; try again."""

    key: str = ""
    """The key, escaped."""


class KeyspaceError(Error):
    """The keyspace is missing, exists already, was dropped, belongs to another store, or has no valid name."""


class TooLargeError(Error, ValueError):
    """A key, value, batch, transaction or filter is too large, or there are too many keys."""


class FilterFullError(Error):
    """The filter holds as many keys as its false-positive rate allows."""


class FilterMismatchError(Error, ValueError):
    """Filters of different capacity, rate or seed cannot be combined."""


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory for a filter."""


class InvalidArgumentError(Error, ValueError):
    """An argument is not possible."""


class InternalError(Error):
    """A bug in sidebloom; please report it."""
