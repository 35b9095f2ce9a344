"""Other processes: forks, followers, kills, and the command line."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sidebloom
from sidebloom import Filter, Guard, Store


def in_fork(work: Callable[[], None]) -> int:
    """Runs `work` in a forked process. Returns its exit code: 0 if nothing was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Forks beside threads, from Python 3.12 on.
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_after_a_fork_the_child_gets_a_named_error(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store[b"a"] = b"1"
    seen, batch, tx, walk, snapshot = (
        store.create_keyspace("seen"),
        store.batch(),
        store.transaction(),
        iter(store),
        store.snapshot(),
    )
    guard = Guard.build(tmp_path / "g", ["x"])
    Filter.build(["x"]).save(tmp_path / "f")
    f = Filter.open(tmp_path / "f")

    def child() -> None:
        acts: list[Callable[[], Any]] = [
            lambda: store[b"a"],
            lambda: store.put(b"a", b"2"),
            lambda: seen.insert_new(b"a", b""),
            lambda: seen.insert_new_keys([b"a"]),
            lambda: batch.put(b"a", b"2"),
            lambda: batch.commit(),
            lambda: tx[b"a"],
            lambda: next(walk),
            lambda: snapshot[b"a"],
            lambda: store.close(),
            lambda: store.stats(),
            lambda: "x" in guard,
            lambda: guard.may_contain_many(["x"]),
            lambda: guard.insert("y"),
            lambda: guard.close(),
        ]
        for act in acts:
            with pytest.raises(sidebloom.ForkedError, match="parent"):
                act()
        assert "x" in f and "y" not in f  # A filter belongs to nobody.
        with Store(tmp_path / "s", follow=True) as follower:
            assert follower[b"a"] == b"1"

    assert in_fork(child) == 0
    store[b"b"] = b"2"
    assert store[b"a"] == b"1" and next(walk) == b"a" and "x" in guard
    store.close()
    guard.close()
    assert in_fork(lambda: Store(tmp_path / "s").close()) == 0


def follow(path: str, ready: Any, done: Any) -> None:
    with Store(path, follow=True) as store:
        ready.set()
        deadline = time.monotonic() + 60
        while store.get(b"last") is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(store.keys(b"row ")) == 1000
        with pytest.raises(sidebloom.ReadOnlyError):
            store[b"x"] = b""
        done.put(store[b"last"])


def test_other_processes_follow_a_store(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Queue()
    with Store(tmp_path / "s") as store:
        process = context.Process(target=follow, args=(str(tmp_path / "s"), ready, done))
        process.start()
        assert ready.wait(60)
        store.update({b"row %d" % n: b"" for n in range(1000)})
        store.flush()
        store[b"last"] = b"seen"
        assert done.get(timeout=60) == b"seen"
        process.join(60)
        assert process.exitcode == 0
        follower = Store(tmp_path / "s", follow=True)
        store[b"more"] = b"1"
        follower.catch_up()
        assert follower[b"more"] == b"1"
        follower.close()


def ask(f: Filter, keys: list[str]) -> list[bool]:
    answers: list[bool] = f.contains_many(keys).tolist()
    return answers


def test_processes_share_a_pickled_filter(tmp_path: Path) -> None:
    f = Filter.build([f"name {n}" for n in range(10_000)])
    f.save(tmp_path / "f")
    keys = [f"name {n}" for n in range(0, 20_000, 37)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for answers in pool.starmap(ask, [(f, keys)] * 4):
            assert answers == f.contains_many(keys).tolist()


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, durability: str) -> None:
    code = f"""
import sidebloom, sys
store = sidebloom.Store({str(tmp_path / "s")!r}, durability={durability!r}, memtable_bytes=65536)
for n in range(1_000_000):
    store[b"%08d" % n] = b"v" * 100
    sys.stdout.write(f"{{n}}\\n")
    sys.stdout.flush()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = 0
        while said < 2000:
            said = int(process.stdout.readline())
        process.kill()
        rest = process.stdout.read().split("\n")
        said = max([said, *(int(line) for line in rest[:-1])])
    with Store(tmp_path / "s") as store:
        count = len(store)
        assert count >= said + 1
        assert list(store) == [b"%08d" % n for n in range(count)]


def test_the_module_is_the_command_line(tmp_path: Path) -> None:
    def run(*arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sidebloom", "--db", str(tmp_path / "s"), *arguments]
        return subprocess.run(command, input=input, capture_output=True, text=True)

    assert run("put", "Nina Simone - Sinnerman", "1965").returncode == 0
    assert run("get", "Nina Simone - Sinnerman").stdout == "1965"
    assert run("get", "nobody").returncode == 1
    assert run("nonsense").returncode == 2
    assert run("load", "--format", "tsv", "-", input="a\t1\nb\t2\n").returncode == 0
    with Store(tmp_path / "s") as store:
        assert len(store) == 3
        assert run("get", "a").stdout == "1"  # It follows the store.
        locked = run("put", "a", "2")
        assert locked.returncode == 2 and "locked" in locked.stderr
    version = subprocess.run([sys.executable, "-m", "sidebloom", "--version"], capture_output=True, text=True)
    assert version.stdout == f"sidebloom {sidebloom.__version__}\n"


def test_the_command_line_can_be_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sidebloom", "--db", str(tmp_path / "s"), "load", "--format", "lines", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0


def test_files_of_a_store_are_no_standard_output(tmp_path: Path) -> None:
    """A daemon has closed standard input, output and errors; whoever prints must not write into the store."""
    code = f"""
import os, sidebloom
for descriptor in (0, 1, 2):
    os.close(descriptor)
store = sidebloom.Store({str(tmp_path / "s")!r})
guard = sidebloom.Guard.build({str(tmp_path / "g")!r}, ["x"])
store[b"a"] = b"b"
for descriptor in (0, 1, 2):
    os.write(descriptor, b"a warning\\n" * 10)
store[b"c"] = b"d"
store.close()
guard.close()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with Store(tmp_path / "s") as store:
        assert dict(store.items()) == {b"a": b"b", b"c": b"d"} and store.verify() == 2
    with Guard(tmp_path / "g") as guard:
        assert "x" in guard
    command = [sys.executable, "-m", "sidebloom", "--verbose", "--db", str(tmp_path / "s")]
    for key in ["x", "y"]:
        shell = " ".join([*command, "put", key, "1", "<&- >&- 2>&-"])
        assert subprocess.run(shell, shell=True).returncode == 0
    with Store(tmp_path / "s") as store:
        assert store.verify() == 4


def test_a_filter_that_was_changed_during_a_fork_is_no_trap(tmp_path: Path) -> None:
    f = Filter.build([b"a"], kind="bloom", capacity=10**6)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            f.update(range(100_000))

    thread = threading.Thread(target=change)
    thread.start()

    def child() -> None:
        signal.alarm(60)  # Instead of waiting for ever.
        try:
            assert b"a" in f and f.contains_many([b"a"]).all()
        except sidebloom.ForkedError:
            pass

    try:
        for _ in range(20):
            assert in_fork(child) == 0
    finally:
        stop.set()
        thread.join()
