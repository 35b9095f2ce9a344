"""Many threads with one store, filter or guard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import sidebloom
from sidebloom import Filter, Guard, Store

THREADS = 8


def together(work: Callable[[int], None]) -> None:
    """Runs `work` in all threads at once, and raises what it raises."""
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(run, number) for number in range(THREADS)]:
            done.result(120)


def test_one_of_many_inserts_a_key(store: Store[bytes]) -> None:
    won = [0] * THREADS

    def work(number: int) -> None:
        for n in range(500):
            won[number] += store.insert_new(b"one %d" % n, b"%d" % number)
        won[number] += int(store.insert_new_many((b"many %d" % n, b"") for n in range(500)).sum())

    together(work)
    assert sum(won) == 1000 and len(store) == 1000


def test_transactions_lose_no_update(store: Store[bytes]) -> None:
    def add_one(tx: sidebloom.Transaction[bytes]) -> None:
        tx[b"count"] = b"%d" % (int(tx.get(b"count", b"0")) + 1)

    def work(_: int) -> None:
        for _ in range(50):
            sidebloom.transact(store, add_one)

    together(work)
    assert store[b"count"] == b"%d" % (50 * THREADS)


def test_writes_walks_and_close_beside_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", memtable_bytes=65536)

    def work(number: int) -> None:
        try:
            for n in range(100_000):
                store[b"%d %d" % (number, n)] = b"v" * 100
                if n % 100 == number:
                    assert all(value == b"v" * 100 for value in store.values(b"%d " % number))
                if n == 1000 and number == 0:
                    store.close()
        except sidebloom.ClosedError:
            return
        raise AssertionError("the store was not closed")

    together(work)
    with Store(tmp_path / "s") as again:
        assert len(again.keys(b"0 ")) >= 1001


def test_threads_share_one_walk(store: Store[bytes]) -> None:
    store.update({b"%d" % n: b"" for n in range(20_000)})
    walk, rows, lock = iter(store), [], threading.Lock()

    def work(_: int) -> None:
        for key in walk:
            with lock:
                rows.append(key)

    together(work)
    assert sorted(rows) == sorted(b"%d" % n for n in range(20_000))


@pytest.mark.parametrize("mapped", [True, False])
def test_a_filter_is_asked_by_many(tmp_path: Path, mapped: bool) -> None:
    Filter.build(range(200_000)).save(tmp_path / "f")
    f = Filter.open(tmp_path / "f", mapped=mapped)

    def work(number: int) -> None:
        assert f.contains_many(range(number * 1000, 200_000)).all()
        assert all(n in f for n in range(number * 10, 2000))

    together(work)


def test_a_filter_is_filled_by_many_while_it_is_asked_and_saved(tmp_path: Path) -> None:
    f = Filter.build([], kind="bloom", capacity=100_000)

    def work(number: int) -> None:
        keys = [f"{number} {n}" for n in range(5000)]
        f.update(keys)
        assert f.contains_many(keys).all() and all(key in f for key in keys[:100])
        f.save(tmp_path / f"f{number}")
        saved = Filter.open(tmp_path / f"f{number}")
        assert saved.contains_many(keys).all()

    together(work)
    assert f.contains_many(f"{number} {n}" for number in range(THREADS) for n in range(5000)).all()


def test_a_guard_is_changed_by_many(tmp_path: Path) -> None:
    guard = Guard.build(tmp_path / "g", [], durability="os")
    won = [0] * THREADS

    def work(number: int) -> None:
        for n in range(100):
            guard.insert(f"{number} {n}")
            won[number] += guard.insert_new(f"shared {n}")
        assert guard.may_contain_many([f"{number} {n}" for n in range(100)]).all()

    together(work)
    assert sum(won) == 100 and guard.stats()["keys"] == 100 * (THREADS + 1)


def test_long_work_does_not_hold_the_gil(tmp_path: Path) -> None:
    """While one thread asks for so many keys that it takes a fifth of a second, another counts."""
    f = Filter.build(range(1000))
    keys = np.arange(20_000_000)
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    f.contains_many(keys)
    during = counted[0] - before
    stop.set()
    thread.join()
    assert during > 10


def test_filters_are_combined_beside_writers() -> None:
    f = Filter.build([b"a"], kind="bloom", capacity=1000)
    end = time.monotonic() + 3

    def work(number: int) -> None:
        while time.monotonic() < end:
            if number % 2:
                assert b"a" in (f | f)
            else:
                f.add(b"a")

    together(work)


def test_a_store_that_closes_does_not_stop_other_threads(tmp_path: Path) -> None:
    """A batch is put into and asked while `close` waits for a compaction, which takes a while."""
    for rows in [10**5, 10**6]:
        store = Store(tmp_path / f"{rows}")
        store.update((b"%d" % n, b"v" * 100) for n in range(rows))
        batch, calls, begun, ended = store.batch(), [0], threading.Event(), threading.Event()

        def count(batch: sidebloom.Batch[bytes], calls: list[int], ended: threading.Event) -> None:
            while not ended.is_set():
                len(batch)
                calls[0] += 1
                time.sleep(0.0001)

        def put(batch: sidebloom.Batch[bytes]) -> None:
            try:
                for n in range(10**9):
                    batch.put(b"%d" % (n % 10), b"")
            except sidebloom.ClosedError:
                pass

        def compact(store: Store[bytes], begun: threading.Event) -> None:
            begun.set()
            store.compact()

        threads = [
            threading.Thread(target=count, args=(batch, calls, ended)),
            threading.Thread(target=put, args=(batch,)),
            threading.Thread(target=compact, args=(store, begun)),
        ]
        for thread in threads:
            thread.start()
        begun.wait(60)
        time.sleep(0.02)
        before, start = calls[0], time.monotonic()
        store.close()
        during, took = calls[0] - before, time.monotonic() - start
        ended.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        if took > 0.2:  # Otherwise there was no compaction to wait for.
            assert during > 20, f"{during} calls in {took:.2f} s"
            return
    raise AssertionError("no compaction took long enough")
