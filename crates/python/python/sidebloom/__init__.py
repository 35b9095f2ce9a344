"""A key-value store, filters and guards whose lookups for missing keys rarely read the disk."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView

from ._sidebloom import (
    Batch,
    Filter,
    Guard,
    GuardTransaction,
    Items,
    Keys,
    Keyspace,
    KeyspaceTransaction,
    Rows,
    Snapshot,
    Store,
    Transaction,
    Values,
    __version__,
)
from .errors import (
    AlreadyExistsError,
    ClosedError,
    ConflictError,
    CorruptionError,
    Error,
    FilterFullError,
    FilterMismatchError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    IoError,
    KeyspaceError,
    LockLostError,
    LockedError,
    NotAGuardError,
    NotAStoreError,
    OutOfMemoryError,
    PoisonedError,
    ReadOnlyError,
    TooLargeError,
    VersionError,
)
from .transact import transact

__all__ = [
    "AlreadyExistsError",
    "Batch",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Error",
    "Filter",
    "FilterFullError",
    "FilterMismatchError",
    "ForkedError",
    "Guard",
    "GuardTransaction",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "Items",
    "Keys",
    "Keyspace",
    "KeyspaceError",
    "KeyspaceTransaction",
    "LockLostError",
    "LockedError",
    "NotAGuardError",
    "NotAStoreError",
    "OutOfMemoryError",
    "PoisonedError",
    "ReadOnlyError",
    "Rows",
    "Snapshot",
    "Store",
    "TooLargeError",
    "Transaction",
    "Values",
    "VersionError",
    "__version__",
    "transact",
]

MutableMapping.register(Keyspace)
Mapping.register(Snapshot)
KeysView.register(Keys)
ValuesView.register(Values)
ItemsView.register(Items)
Iterator.register(Rows)
