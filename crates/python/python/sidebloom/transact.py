"""Transactions that are tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ._sidebloom import Keyspace, Transaction
from .errors import ConflictError

T = TypeVar("T")
S = TypeVar("S", bytes, str)


def transact(keyspace: Keyspace[S], work: Callable[[Transaction[S]], T], *, tries: int = 1000) -> T:
    """Calls `work` with a transaction, commits that, and returns what `work` returned.

    After a conflict, both are done again. `work` should change nothing but the transaction.
    """
    if tries < 1:
        raise ValueError(f"tries is {tries}: at least 1 expected")
    for left in range(tries, 0, -1):
        transaction = keyspace.transaction()
        try:
            with transaction:
                return work(transaction)
        except ConflictError:
            if left == 1:
                raise
    raise AssertionError("the last attempt returns or raises")
