"""The store: rows, walks, batches, snapshots, transactions, keyspaces, expiry, and its end."""

from __future__ import annotations

import gc
import math
import pickle
import time
import weakref
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sidebloom
from sidebloom import Store

ROWS = {b"a": b"1", b"b": b"2", b"ba": b"3", b"bb": b"4", b"c": b"5", b"\xff": b"6", b"\xff\xff": b"7"}


def test_walks_have_bounds_and_directions(store: Store[bytes]) -> None:
    store.update(ROWS)
    items = sorted(ROWS.items())
    assert list(store.items()) == items and list(reversed(store.items())) == items[::-1]
    assert list(store) == list(store.keys()) == [key for key, _ in items]
    assert list(reversed(store)) == [key for key, _ in items[::-1]]
    assert list(store.values()) == [value for _, value in items]
    assert list(store.keys(b"b")) == [b"b", b"ba", b"bb"]
    assert list(reversed(store.keys(b"b"))) == [b"bb", b"ba", b"b"]
    assert list(store.keys(b"\xff")) == [b"\xff", b"\xff\xff"]
    assert list(store.keys(b"")) == [key for key, _ in items]
    for start in [None, b"", b"ab", b"b", b"\xff\xff\xff"]:
        for stop in [None, b"", b"ba", b"c", b"\xff\xff"]:
            expected = [k for k, _ in items if (start is None or k >= start) and (stop is None or k < stop)]
            assert list(store.keys(start=start, stop=stop)) == expected, (start, stop)
            assert list(reversed(store.keys(start=start, stop=stop))) == expected[::-1]
            assert len(store.keys(start=start, stop=stop)) == len(expected)
    assert b"ba" in store.keys(b"b") and b"c" not in store.keys(b"b") and b"bz" not in store.keys(b"b")
    assert (b"c", b"5") in store.items() and (b"c", b"6") not in store.items()
    assert b"5" in store.values() and b"5" not in store.values(b"b")
    assert store.keys(b"b") & {b"b", b"x"} == {b"b"} and {b"x"} | store.keys(b"c") == {b"x", b"c"}
    assert store.keys() - {b"a"} == set(ROWS) - {b"a"} and store.keys() ^ set(ROWS) == set()
    assert store.keys() >= {b"a"} and store.items() >= {(b"a", b"1")} and store.keys().isdisjoint([b"x"])
    others: list[Any] = [None, 5, [b"a"], {b"a": b"1"}]
    assert not any(store.keys() == other for other in others)
    every: Any = set(ROWS)
    assert store.keys() == every and store.keys() != every - {b"a"}
    with pytest.raises(sidebloom.InvalidArgumentError, match="prefix"):
        store.keys(b"a", start=b"a")


def test_walks_over_many_rows_are_whole(store: Store[bytes]) -> None:
    rows = {b"%06d" % n: b"%d" % n for n in range(10_000)}
    store.update(rows)
    store.flush()
    store.update({b"%06d" % n: b"new" for n in range(0, 10_000, 7)})
    rows.update({b"%06d" % n: b"new" for n in range(0, 10_000, 7)})
    assert dict(store.items()) == rows and len(store) == 10_000
    assert list(reversed(store.items())) == sorted(rows.items(), reverse=True)


def test_a_walk_sees_the_moment_when_it_begins(store: Store[bytes]) -> None:
    store.update({b"%d" % n: b"" for n in range(1000)})
    view = store.keys()
    walk = iter(view)
    first = next(walk)
    store.clear()
    store[b"later"] = b""
    assert len([first, *walk]) == 1000 and list(view) == [b"later"]


def test_walks_and_snapshots_outlive_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.update({b"%d" % n: b"x" * 100 for n in range(5000)})
    store.flush()
    walk, snapshot = iter(store.items()), store.snapshot()
    store.close()
    with Store(tmp_path / "s") as again:
        again[b"0"] = b"changed"
    assert len(list(walk)) == 5000 and len(snapshot) == 5000 and snapshot[b"17"] == b"x" * 100
    del store
    gc.collect()
    assert next(iter(snapshot)) == b"0"
    # Others may remove the files of a closed store: then reads fail by name, or go on with what is open.
    walk = iter(snapshot.items())
    with Store(tmp_path / "s") as again:
        again.clear()
        again.compact()
    try:
        assert len(list(walk)) == 5000
    except sidebloom.IoError as error:
        assert error.errno == 2 and error.path is not None
    snapshot.close()
    with pytest.raises(sidebloom.ClosedError, match="snapshot"):
        snapshot[b"17"]


def test_a_closed_walk_ends(store: Store[bytes]) -> None:
    store.update({b"%d" % n: b"" for n in range(1000)})
    walk = iter(store)
    next(walk)
    walk.close()
    assert list(walk) == []


def test_handles_are_collected(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store[b"a"] = b"b"
    walk = iter(store)
    references: list[Callable[[], object]] = [weakref.ref(store), weakref.ref(walk), weakref.ref(store.snapshot())]
    del store
    gc.collect()
    assert references[0]() is None and references[2]() is None
    assert list(walk) == [b"a"]
    del walk
    gc.collect()
    assert references[1]() is None
    Store(tmp_path / "s").close()  # Nobody has it locked.


def test_a_batch_is_all_or_nothing(store: Store[bytes]) -> None:
    store.update(ROWS)
    other = store.create_keyspace("other")
    with store.batch(sync=True) as batch:
        batch[b"new"] = b"1"
        del batch[b"a"]
        batch.delete_prefix(b"b")
        batch.delete_range(b"\xff", None)
        batch.put(b"there", b"2", keyspace=other)
        assert len(batch) == 5 and b"new" not in store
    assert dict(store.items()) == {b"new": b"1", b"c": b"5"} and dict(other.items()) == {b"there": b"2"}
    with pytest.raises(RuntimeError), store.batch() as batch:
        batch[b"never"] = b""
        raise RuntimeError
    assert b"never" not in store
    with pytest.raises(sidebloom.ClosedError, match="batch"):
        batch[b"never"] = b""
    batch = store.batch()
    batch[b"x"] = b""
    batch.commit()
    with pytest.raises(sidebloom.ClosedError):
        batch.commit()
    with pytest.raises(sidebloom.InvalidArgumentError, match="would delete every key"), store.batch() as batch:
        batch.delete_prefix(b"")


def test_transactions_commit_conflict_and_roll_back(store: Store[bytes]) -> None:
    store.update(ROWS)
    other = store.create_keyspace("other")
    with store.transaction() as tx:
        assert tx[b"a"] == b"1" and tx.get(b"none") is None and b"a" in tx
        tx[b"a"] = b"one"
        del tx[b"b"]
        with pytest.raises(KeyError):
            del tx[b"b"]
        assert tx.insert_new(b"z", b"") and not tx.insert_new(b"c", b"")
        tx.keyspace(other)[b"o"] = b"1"
        tx.delete_prefix(b"\xff")
        assert list(tx.keys()) == [b"a", b"ba", b"bb", b"c", b"z"]
        assert list(reversed(tx.keys(b"b"))) == [b"bb", b"ba"]
        assert tx.get_many([b"a", b"b"]) == [b"one", None]
        assert store[b"a"] == b"1" and b"o" not in other
        before = tx.savepoint()
        tx[b"dropped"] = b""
        tx.roll_back_to(before)
    assert store[b"a"] == b"one" and other[b"o"] == b"1" and b"dropped" not in store
    with pytest.raises(sidebloom.ClosedError, match="transaction"):
        tx[b"a"]
    with pytest.raises(sidebloom.ConflictError) as raised, store.transaction() as tx:
        tx[b"a"] = tx[b"a"] + b"!"
        store[b"a"] = b"other"
    assert raised.value.key == "a" and store[b"a"] == b"other"
    with pytest.raises(RuntimeError), store.transaction() as tx:
        tx[b"a"] = b"never"
        raise RuntimeError
    assert store[b"a"] == b"other"
    with store.transaction(isolation="snapshot") as tx:
        tx.get(b"a")
        store[b"a"] = b"changed"
        tx[b"q"] = b""
    with pytest.raises(sidebloom.InvalidArgumentError, match="savepoint"), store.transaction() as tx:
        tx.roll_back_to(7)


def test_a_walk_of_a_transaction_counts_as_read(store: Store[bytes]) -> None:
    store.update({b"%04d" % n: b"" for n in range(1000)})
    with pytest.raises(sidebloom.ConflictError), store.transaction() as tx:
        assert len(list(tx.keys())) == 1000
        store[b"0500x"] = b""
        tx[b"sum"] = b"1000"
    with store.transaction() as tx:
        for key, value in tx.items(start=b"0100", stop=b"0200"):
            tx[key] = value + b"!"
        store[b"0900x"] = b""
    assert store[b"0150"] == b"!"


def test_transact_tries_again(store: Store[bytes]) -> None:
    calls: list[int] = []

    def work(tx: sidebloom.Transaction[bytes]) -> int:
        count = int(tx.get(b"count", b"0"))
        if len(calls) < 3:
            store[b"count"] = b"%d" % (10 * len(calls) + 1)
        calls.append(count)
        tx[b"count"] = b"%d" % (count + 1)
        return count

    assert sidebloom.transact(store, work) == 21 and len(calls) == 4 and store[b"count"] == b"22"
    calls.clear()
    with pytest.raises(sidebloom.ConflictError):
        sidebloom.transact(store, work, tries=1)
    with pytest.raises(ValueError):
        sidebloom.transact(store, work, tries=0)


def test_insert_new_and_its_relatives(store: Store[bytes]) -> None:
    assert store.insert_new(b"a", b"1") and not store.insert_new(b"a", b"2")
    new = store.insert_new_many({b"a": b"x", b"b": b"y"})
    assert new.dtype == np.bool_ and new.tolist() == [False, True]
    assert store.insert_new_many([(b"c", b"1"), (b"c", b"2")]).tolist() == [True, False]
    lists: Any = iter([[b"d", b"1"]])
    assert store.insert_new_many(lists).tolist() == [True]
    assert store.insert_new_keys([b"d", b"e"], b"v").tolist() == [False, True] and store[b"e"] == b"v"
    assert store.insert_new_keys(np.array(["f", "e"])).tolist() == [True, False] and store[b"f"] == b""
    many = store.insert_new_many((b"%d" % (n % 30_000), b"%d" % n) for n in range(50_000))
    assert many.sum() == 30_000 and store[b"17"] == b"17"
    assert store.compare_and_set(b"a", b"1", b"2") and not store.compare_and_set(b"a", b"1", b"3")
    assert store.compare_and_set(b"n", None, b"1") and store.compare_and_set(b"n", b"1", None)
    assert b"n" not in store
    assert store.get_many([b"a", b"zz", b"b"]) == [b"2", None, b"y"]
    assert store.get_many([b"zz"], b"?") == [b"?"]
    assert store.may_contain(b"a") and store.may_contain_many([b"a"]).tolist() == [True]
    absent = store.may_contain_many([b"absent %d" % n for n in range(1000)])
    assert absent.mean() < 0.1
    for wrong in [[1], [(b"a",)], [(b"a", b"b", b"c")], [(b"a", 1)], [("a", b"b")], 5, b"ab", [b"ab"]]:
        with pytest.raises(TypeError):
            store.insert_new_many(wrong)  # type: ignore[arg-type]


def test_a_store_of_text(tmp_path: Path) -> None:
    with Store(tmp_path / "s", text=True) as store:
        store["Zoë"] = "名前"
        assert store["Zoë"] == "名前" and list(store.items("Z")) == [("Zoë", "名前")] and store.text
        store.update(more="1")
        with store.batch() as batch:
            batch["b"] = "2"
        with store.transaction() as tx:
            tx["c"] = tx["b"]
        assert store.snapshot()["c"] == "2" and store.pop("c") == "2"
        for act in (
            lambda: store[b"a"],  # type: ignore[index]
            lambda: store.put("a", b"a"),  # type: ignore[arg-type]
            lambda: store.get_many([b"a"]),  # type: ignore[list-item]
        ):
            with pytest.raises(TypeError, match="str"):
                act()
        with pytest.raises(UnicodeEncodeError):
            store["\ud800"] = ""
    with Store(tmp_path / "s") as store2:
        store2[b"\xff"] = b"\xfe"
    with Store(tmp_path / "s", text=True) as store:
        # What cannot be shown stays.
        for refused in [lambda: list(store), store.popitem]:
            with pytest.raises(sidebloom.InvalidArgumentError, match="no text"):
                refused()
    with Store(tmp_path / "s") as store2:
        assert store2.pop(b"\xff") == b"\xfe"
        store2[b"k"] = b"\xfe"
    with Store(tmp_path / "s", text=True) as store:
        with pytest.raises(sidebloom.InvalidArgumentError, match="no text"):
            store.pop("k")
        assert "k" in store
        del store["k"]
        assert "k" not in store


def test_keyspaces(store: Store[bytes]) -> None:
    seen = store.create_keyspace("seen")
    seen[b"a"] = b"1"
    assert b"a" not in store and store.keyspaces() == ["seen"] and seen.name == "seen" and store.name == ""
    assert store.keyspace("seen")[b"a"] == b"1" and isinstance(seen, sidebloom.Keyspace)
    with pytest.raises(sidebloom.KeyspaceError, match="already has"):
        store.create_keyspace("seen")
    with pytest.raises(sidebloom.KeyspaceError, match="no keyspace"):
        store.keyspace("other")
    with pytest.raises(sidebloom.KeyspaceError):
        store.create_keyspace("")
    store.drop_keyspace("seen")
    with pytest.raises(sidebloom.KeyspaceError, match="dropped"):
        seen[b"a"]
    with pytest.raises(sidebloom.InvalidArgumentError, match="exclude"):
        store.create_keyspace("both", expire_after=1, window=1)


def test_rows_expire(store: Store[bytes]) -> None:
    store.put(b"soon", b"", expire_after=0.2)
    store.put(b"later", b"", expire_after=timedelta(hours=1))
    store.put(b"then", b"", expire_at=datetime.now(timezone.utc) + timedelta(minutes=1))
    store.put(b"number", b"", expire_at=time.time() + 100)
    store[b"never"] = b""
    assert store.time_to_live(b"never") == math.inf and store.time_to_live(b"missing") is None
    for key, least, most in [(b"later", 3590, 3600), (b"then", 50, 60), (b"number", 90, 100)]:
        left = store.time_to_live(key)
        assert left is not None and least < left <= most, (key, left)
    assert store.touch(b"later", expire_after=5) and not store.touch(b"missing")
    assert store.touch(b"then") and store.time_to_live(b"then") == math.inf
    seen = store.create_keyspace("seen", expire_after=timedelta(seconds=100))
    assert seen.insert_new(b"a", b"") and 90 < (seen.time_to_live(b"a") or 0) <= 100
    deadline = time.monotonic() + 30
    while b"soon" in store and time.monotonic() < deadline:
        time.sleep(0.05)
    assert b"soon" not in store
    for bad in [{"expire_after": -1}, {"expire_after": math.nan}, {"expire_at": -5}, {"expire_after": 1e300}]:
        with pytest.raises(sidebloom.InvalidArgumentError):
            store.put(b"x", b"", **bad)  # type: ignore[arg-type]
    with pytest.raises(sidebloom.InvalidArgumentError, match="time zone"):
        store.put(b"x", b"", expire_at=datetime(2030, 1, 1))
    with pytest.raises(sidebloom.InvalidArgumentError, match="exclude"):
        store.put(b"x", b"", expire_at=1.0, expire_after=1)
    with pytest.raises(TypeError):
        store.put(b"x", b"", expire_after="1")  # type: ignore[arg-type]


def test_everything_of_a_closed_store_raises(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    seen, batch, tx = store.create_keyspace("seen"), store.batch(), store.transaction()
    store.close()
    store.close()
    assert store.closed and "s" in repr(store)
    acts: list[Callable[[], Any]] = [
        lambda: store[b"a"],
        lambda: store.get(b"a"),
        lambda: store.put(b"a", b"b"),
        lambda: b"a" in store,
        lambda: list(store),
        lambda: len(store),
        lambda: seen[b"a"],
        lambda: seen.insert_new_keys([b"a"]),
        lambda: seen.may_contain_many([b"a"]),
        lambda: store.batch(),
        lambda: store.transaction(),
        lambda: store.snapshot(),
        lambda: store.stats(),
        lambda: store.keyspace("seen"),
        lambda: batch.put(b"a", b"b"),
        lambda: batch.commit(),
        lambda: store.sync(),
        lambda: store.name,
    ]
    for act in acts:
        with pytest.raises(sidebloom.ClosedError):
            act()
    acts = [lambda: tx[b"a"], lambda: tx.put(b"a", b"b"), lambda: list(tx), lambda: tx.keyspace(seen)]
    for act in acts:
        with pytest.raises(sidebloom.ClosedError):
            act()
    tx.roll_back()
    Store(tmp_path / "s").close()  # Nothing keeps it locked.


def test_errors_name_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no store")
    with pytest.raises(sidebloom.NotAStoreError) as raised:
        Store(tmp_path / "file")
    assert raised.value.path == tmp_path / "file"
    with pytest.raises(sidebloom.NotAStoreError):
        Store(tmp_path / "missing", create=False)
    with Store(tmp_path / "s") as store:
        with pytest.raises(sidebloom.LockedError) as locked:
            Store(tmp_path / "s")
        assert str(tmp_path / "s") in str(locked.value.path)
        store[b"a"] = b"b"
        with pytest.raises(sidebloom.TooLargeError):
            store[b"k" * 70_000] = b""
        store.checkpoint(tmp_path / "copy")
        with pytest.raises(sidebloom.AlreadyExistsError):
            store.checkpoint(tmp_path / "copy")
    with Store(tmp_path / "copy", read_only=True) as copy:
        assert dict(copy.items()) == {b"a": b"b"} and copy.verify() == 1
        with pytest.raises(sidebloom.ReadOnlyError):
            copy[b"a"] = b"c"
    with pytest.raises(sidebloom.IoError) as missing:
        sidebloom.Filter.open(tmp_path / "missing")
    for error in [missing.value, pickle.loads(pickle.dumps(missing.value))]:
        assert error.errno == 2 and error.filename == error.path == tmp_path / "missing"
        assert "cannot open" in str(error) and error.strerror
    with pytest.raises(sidebloom.InvalidArgumentError):
        Store(tmp_path / "x", memtable_bytes=1)
    with pytest.raises(sidebloom.InvalidArgumentError):
        Store(tmp_path / "x", durability="often")  # type: ignore[call-overload]
    with pytest.raises(sidebloom.InvalidArgumentError, match="exclude"):
        Store(tmp_path / "x", read_only=True, follow=True)
    with pytest.raises(TypeError):
        Store()  # type: ignore[call-overload]
    with pytest.raises(OverflowError):
        Store(tmp_path / "x", memtable_bytes=-1)
    assert not (tmp_path / "x").exists()


def test_every_option_opens(tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [
        {"durability": "sync"},
        {"bits_per_key": 0},
        {"bits_per_key": 16.5},
        {"compression": "none"},
        {"compression": "lz4"},
        {"compression": "fsst"},
        {"block_cache_bytes": 0},
        {"memtable_bytes": 4096, "segment_bytes": 4096},
        {"max_open_files": 8},
        {"background_threads": 4},
        {"transaction_bytes": 1000},
        {"mode": 0o600},
    ]
    for number, given in enumerate(options):
        with Store(tmp_path / "s", **given) as store:
            store.update({b"%d %d" % (number, n): b"v" * 50 for n in range(500)})
            store.flush()
            assert len(store.keys(b"%d " % number)) == 500
    with Store(tmp_path / "s", transaction_bytes=1000) as store:
        with pytest.raises(sidebloom.TooLargeError), store.transaction() as tx:
            for n in range(1000):
                tx[b"%d" % n] = b"v" * 100
    with Store(tmp_path / "s", mode=0o600) as store:
        store[b"a"] = b"b"
        store.flush()
    with Store(tmp_path / "s", follow=True) as store:
        assert len(store) == 500 * len(options) + 1


def test_stats_count(store: Store[bytes]) -> None:
    store.update({b"%d" % n: b"" for n in range(1000)})
    store.flush()
    before = store.stats()["filter_negatives"]
    assert not any(key in store for key in [b"absent %d" % n for n in range(100)])
    stats = store.stats()
    assert stats["filter_negatives"] >= before and stats["levels"] and stats["key_hash"] == "xxh3-64"
    assert stats["levels"][0]["keys"] + sum(level["keys"] for level in stats["levels"][1:]) == 1000


def test_damage_is_found_with_path_and_offset(tmp_path: Path) -> None:
    with Store(tmp_path / "s", compression="none") as store:
        store.update({b"%05d" % n: b"value %d" % n for n in range(20_000)})
        store.flush()
        assert store.verify() == 20_000
    segment = max(tmp_path.glob("s/*.segment"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with Store(tmp_path / "s") as store:
        acts: list[Callable[[], Any]] = [store.verify, lambda: list(store)]
        for act in acts:
            with pytest.raises(sidebloom.CorruptionError) as raised:
                act()
            assert raised.value.path == segment and 0 < (raised.value.offset or 0) <= len(data) // 2
        right = 0
        for n in range(20_000):
            try:
                assert store.get(b"%05d" % n) == b"value %d" % n
                right += 1
            except sidebloom.CorruptionError:
                pass
        assert 19_000 < right < 20_000
