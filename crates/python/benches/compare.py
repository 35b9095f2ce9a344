"""Compares sidebloom with other packages from PyPI, in one run, with the same keys in the same order.

    pip install rbloom fastbloom-rs pybloom-live rocksdict psutil
    python benches/compare.py [--keys N] [--rounds N]

Prints medians of the rounds, which take turns. Every filter has the same number of keys and false-positive rate.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastbloom_rs
import numpy as np
import pybloom_live
import rbloom
import rocksdict

import sidebloom

FPP = 0.01


def seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: statistics.median(all_times) for name, all_times in times.items()}


def report(title: str, times: dict[str, float], keys: int) -> None:
    print(f"\n{title}")
    first = next(iter(times.values()))
    for name, taken in times.items():
        print(f"  {name:<44} {taken / keys * 1e9:9.1f} ns a key   {taken / first:7.1f} x")


def queries(keys: int, rounds: int) -> None:
    numbers = np.random.default_rng(1).permutation(2 * keys)
    members, asked = numbers[:keys], numbers[keys // 2 : keys // 2 + keys]
    member_list, asked_list = members.tolist(), asked.tolist()
    names = np.array([f"user/{n:08}" for n in asked_list], dtype="S")
    name_list = [f"user/{n:08}" for n in asked_list]
    member_names = [f"user/{n:08}" for n in member_list]

    ours = {kind: sidebloom.Filter.build(members, kind=kind, fpp=FPP) for kind in ("parity", "blocked", "bloom")}
    theirs = rbloom.Bloom(keys, FPP)
    theirs.update(member_list)
    fast = fastbloom_rs.FilterBuilder(keys, FPP).build_bloom_filter()
    fast.add_int_batch(member_list)
    live = pybloom_live.BloomFilter(keys, FPP)
    for n in member_list[: keys // 10]:
        live.add(n)
    report(
        f"{keys:,} integers in a numpy array, half of them in the filter",
        medians(
            {
                **{f"sidebloom {k} contains_many(array)": (lambda f=f: f.contains_many(asked)) for k, f in ours.items()},
                "sidebloom parity contains_many(list)": lambda: ours["parity"].contains_many(asked_list),
                "sidebloom parity, a loop": lambda: [n in ours["parity"] for n in asked_list],
                "rbloom, a loop over the list": lambda: [n in theirs for n in asked_list],
                "rbloom, a loop over the array": lambda: [n in theirs for n in asked],
                "fastbloom-rs contains_int_batch(list)": lambda: fast.contains_int_batch(asked_list),
                "fastbloom-rs contains_int_batch(array.tolist())": lambda: fast.contains_int_batch(asked.tolist()),
                "pybloom-live, a loop (a tenth of the keys)": lambda: [n in live for n in asked_list],
            },
            rounds,
        ),
        keys,
    )
    text = sidebloom.Filter.build(member_names, fpp=FPP)
    theirs = rbloom.Bloom(keys, FPP)
    theirs.update(np.array(member_names, dtype="S"))
    theirs.update(member_names)
    fast = fastbloom_rs.FilterBuilder(keys, FPP).build_bloom_filter()
    fast.add_str_batch(member_names)
    report(
        f"{keys:,} names of 13 bytes, half of them in the filter",
        medians(
            {
                "sidebloom parity contains_many(array)": lambda: text.contains_many(names),
                "sidebloom parity contains_many(list)": lambda: text.contains_many(name_list),
                "rbloom, a loop over the list": lambda: [n in theirs for n in name_list],
                "rbloom, a loop over the array": lambda: [n in theirs for n in names],
                "fastbloom-rs contains_str_batch(list)": lambda: fast.contains_str_batch(name_list),
            },
            rounds,
        ),
        keys,
    )


def inserts(keys: int, rounds: int, directory: Path) -> None:
    rows = [(b"%016d" % (n * 7919 % keys), b"%d" % n) for n in range(keys)]
    halves = rows[: keys // 2] + rows[: keys // 2]

    def ours() -> None:
        shutil.rmtree(directory / "ours", ignore_errors=True)
        with sidebloom.Store(directory / "ours") as store:
            assert int(store.insert_new_many(halves).sum()) == keys // 2

    def theirs() -> None:
        shutil.rmtree(directory / "theirs", ignore_errors=True)
        store = rocksdict.Rdict(str(directory / "theirs"), rocksdict.Options(raw_mode=True))
        new = 0
        for key, value in halves:
            if store.get(key) is None:
                store.put(key, value)
                new += 1
        store.close()
        assert new == keys // 2

    def theirs_batched() -> None:
        shutil.rmtree(directory / "theirs", ignore_errors=True)
        store = rocksdict.Rdict(str(directory / "theirs"), rocksdict.Options(raw_mode=True))
        new = 0
        for at in range(0, len(halves), 16_384):
            part = halves[at : at + 16_384]
            found = store.get([key for key, _ in part])
            batch = rocksdict.WriteBatch(raw_mode=True)
            for (key, value), old in zip(part, found, strict=True):
                if old is None:
                    batch.put(key, value)
                    new += 1
            store.write(batch)
        store.close()
        assert new == keys // 2

    report(
        f"insert if new: {keys:,} rows, each key twice, into an empty store, closed at the end",
        medians(
            {
                "sidebloom insert_new_many": ours,
                "rocksdict get + put": theirs,
                "rocksdict get(list) + WriteBatch": theirs_batched,
            },
            rounds,
        ),
        keys,
    )


def sizes(directory: Path) -> None:
    path = directory / "large.filter"
    sidebloom.Filter.build([], kind="bloom", capacity=896_000_000).save(path)
    code = (
        "import sys, time; before = time.perf_counter(); import sidebloom; imported = time.perf_counter();"
        "f = sidebloom.Filter.open(sys.argv[1]) if len(sys.argv) > 1 else None; opened = time.perf_counter();"
        "rss = next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmRSS'));"
        "print((imported - before) * 1e3, (opened - imported) * 1e3, rss / 1024)"
    )
    runs = [
        [float(x) for x in subprocess.check_output([sys.executable, "-c", code, str(path)]).split()] for _ in range(9)
    ]
    imported, opened, rss = (statistics.median(column) for column in zip(*runs, strict=True))
    files = importlib.metadata.files("sidebloom") or []
    native = sum(os.path.getsize(str(f.locate())) for f in files if f.name.endswith(".so"))
    print(f"\nimport {imported:.1f} ms; opening a filter of {path.stat().st_size / 1e9:.2f} GB {opened:.2f} ms, then")
    print(f"{rss:.1f} MiB are resident; the native library has {native / 1e6:.1f} MB (uncompressed)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in ("sidebloom", "rbloom", "fastbloom-rs", "rocksdict")}
    print(f"Python {platform.python_version()}, {versions}, fpp {FPP}, {given.rounds} rounds")
    with tempfile.TemporaryDirectory() as directory:
        queries(given.keys, given.rounds)
        inserts(given.keys, given.rounds, Path(directory))
        sizes(Path(directory))


if __name__ == "__main__":
    main()
