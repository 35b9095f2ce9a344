"""Guards in front of a database."""

from __future__ import annotations

import gc
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sidebloom
from sidebloom import Guard

SONGS = [f"song {n}" for n in range(5000)]


def test_it_knows_what_the_database_has(tmp_path: Path) -> None:
    with Guard.build(tmp_path / "g", SONGS) as guard:
        assert guard.may_contain_many(SONGS).all() and all(song in guard for song in SONGS[:100])
        others = [f"other {n}" for n in range(10_000)]
        assert guard.may_contain_many(others).mean() < 0.02
        assert guard.contains(SONGS[3]) and not guard.contains("other") and guard.count(SONGS[3]) == 1
        guard.insert(SONGS[3])
        assert guard.count(SONGS[3]) == 2
        guard.remove(SONGS[3])
        guard.remove(SONGS[3])
        assert not guard.contains(SONGS[3])
        assert guard.insert_new("new") and not guard.insert_new("new")
        assert guard.insert_new("short", expire_after=1000)
        guard.insert_many(pa.array(["one", "two"]))
        guard.insert_many(np.array([1, 2]))
        assert "one" in guard and 2 in guard
        guard.sync()
        assert guard.stats()["keys"] == 5000 - 1 + 5 and guard.path == tmp_path / "g"
    with pytest.raises(sidebloom.ClosedError):
        "new" in guard
    with pytest.raises(sidebloom.ClosedError):
        guard.may_contain_many(["new"])
    with Guard(tmp_path / "g", read_only=True) as again:
        assert "new" in again and again.contains("two") and not again.contains(SONGS[3])
        with pytest.raises(sidebloom.ReadOnlyError):
            again.insert("x")


def test_transactions_keep_it_true(tmp_path: Path) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE songs (title TEXT PRIMARY KEY)")
    database.commit()
    guard = Guard.build(tmp_path / "g", ["old"])
    with guard.transaction(database.commit) as changes:
        database.execute("INSERT INTO songs VALUES ('new')")
        changes.insert_new("new")
        changes.remove("old")
        assert not guard.contains("new")
    assert guard.contains("new") and not guard.contains("old") and not database.in_transaction
    with pytest.raises(sqlite3.IntegrityError), guard.transaction(database.commit) as changes:
        changes.insert("never")
        database.execute("INSERT INTO songs VALUES ('new')")
    assert not guard.contains("never")

    def fails() -> None:
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="gone"), guard.transaction(fails) as changes:
        changes.insert("perhaps")
        changes.remove("new")
    assert guard.contains("perhaps") and guard.contains("new")  # It may have committed.
    changes = guard.transaction(lambda: "done")
    changes.insert("x")
    assert changes.commit() == "done"
    acts: list[Callable[[], object]] = [changes.commit, lambda: changes.insert("y")]
    for act in acts:
        with pytest.raises(sidebloom.ClosedError):
            act()
    # The commit may use the guard, and Python.
    with guard.transaction(lambda: "old" in guard) as changes:
        changes.insert("deep")
    database.close()


def test_what_is_no_guard_is_refused(tmp_path: Path) -> None:
    sidebloom.Store(tmp_path / "s").close()
    for path in [tmp_path / "s", tmp_path / "missing"]:
        with pytest.raises(sidebloom.Error):
            Guard(path)
    Guard.build(tmp_path / "g", ["a"])
    with pytest.raises(sidebloom.Error):
        Guard.build(tmp_path / "g", ["a"])
    with pytest.raises(TypeError):
        Guard.build(tmp_path / "h", "text")
    with pytest.raises(TypeError):
        Guard.build(tmp_path / "h", [1.5])  # type: ignore[list-item]
    assert not (tmp_path / "h").exists()


def test_the_commit_of_a_database_may_close_the_guard(tmp_path: Path) -> None:
    guard = Guard.build(tmp_path / "g", ["a"])

    def commit() -> bool:
        threading.Thread(target=guard.close).start()
        time.sleep(0.2)
        try:
            return "a" in guard
        except sidebloom.ClosedError:
            return False

    with guard.transaction(commit) as changes:
        changes.insert("x")
    guard.close()
    with Guard(tmp_path / "g") as again:
        assert "x" in again
        with again.transaction(again.close) as changes:
            changes.insert("y")
    with Guard(tmp_path / "g") as again:
        assert "y" in again


def test_a_guard_in_a_cycle_is_collected(tmp_path: Path) -> None:
    class Repository:
        def __init__(self) -> None:
            self.guard = Guard.build(tmp_path / "g", [])
            self.changes = self.guard.transaction(self.commit)

        def commit(self) -> None:
            pass

    reference = weakref.ref(Repository())
    gc.collect()
    assert reference() is None
    Guard(tmp_path / "g").close()


def test_an_exception_for_an_ended_transaction_may_run_code_that_uses_it(tmp_path: Path) -> None:
    changes = Guard.build(tmp_path / "g", []).transaction(lambda: 0)
    changes.commit()

    class Cyclic:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with pytest.raises(sidebloom.ClosedError):
                changes.insert("z")

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(500):
            Cyclic()
            with pytest.raises(sidebloom.ClosedError):
                changes.insert("a")
    finally:
        gc.set_threshold(*before)
