"""Filters: what they answer, how they are built, combined, saved and refused."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sidebloom
from sidebloom import Filter

KINDS = ["parity", "blocked", "bloom", "counting", "scalable", "small"]
GROWING = ["blocked", "bloom", "counting", "scalable"]
NAMES = [f"name {n}" for n in range(2000)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fpp", [0.2, 0.01, 0.0005])
def test_no_key_is_denied_and_few_others_pass(kind: Any, fpp: float) -> None:
    # With a seed, the bits of a counting filter are no matter of chance.
    f = Filter.build(NAMES, kind=kind, fpp=fpp, seed=0)
    assert all(name in f for name in NAMES)
    assert f.contains_many(NAMES).all()
    others = [f"other {n}" for n in range(20_000)]
    passed = f.contains_many(others)
    assert [other in f for other in others] == passed.tolist()
    assert passed.mean() <= 1.5 * fpp + 0.001
    assert f.fpp <= fpp * 1.02  # It follows from the bits.
    assert f.nbytes > 0 and bool(f)


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_from_its_file_mapped_and_read(kind: Any, tmp_path: Path) -> None:
    f = Filter.build(NAMES, kind=kind)
    assert f.path is None
    size = f.save(tmp_path / "f")
    assert size == (tmp_path / "f").stat().st_size and f.path == tmp_path / "f"
    asked = NAMES + [f"other {n}" for n in range(5000)]
    expected = f.contains_many(asked).tolist()
    for mapped in [True, False]:
        g = Filter.open(tmp_path / "f", mapped=mapped)
        assert g.mapped == mapped and g.kind == f.kind and len(g) == len(f)
        assert g.contains_many(asked).tolist() == expected
        g.verify()
        assert g.contains_many(asked).tolist() == expected
        assert [key in g for key in asked] == expected
        assert pickle.loads(pickle.dumps(g)).contains_many(asked).tolist() == expected
        assert copy.copy(g).contains_many(asked).tolist() == expected
        assert Filter.from_bytes(g.to_bytes()).contains_many(asked).tolist() == expected
        assert g.save(tmp_path / "copy") == size


@pytest.mark.parametrize("kind", GROWING)
def test_keys_are_added_until_it_is_full(kind: Any) -> None:
    f = Filter.build([], kind=kind, capacity=1000)
    assert f.add("first") and not f.add("first") and "first" in f
    if kind == "scalable":
        f.update(range(10_000))
        assert f.contains_many(range(10_000)).all() and f.capacity is None
        return
    with pytest.raises(sidebloom.FilterFullError, match="full"):
        f.update(range(10_000))
    assert f.capacity is not None and len(f) == f.capacity
    assert f.contains_many(range(f.capacity - 2)).all()


@pytest.mark.parametrize("kind", ["parity", "small"])
def test_some_kinds_take_no_more_keys(kind: Any) -> None:
    f = Filter.build(NAMES, kind=kind)
    with pytest.raises(sidebloom.InvalidArgumentError, match="build it again"):
        f.add("new")
    with pytest.raises(sidebloom.InvalidArgumentError, match="build it again"):
        f.update(["new"])


def test_only_counting_filters_remove_keys() -> None:
    f = Filter.build(NAMES, kind="counting")
    assert f.remove(NAMES[7]) and NAMES[7] not in f and not f.remove(NAMES[7])
    with pytest.raises(sidebloom.InvalidArgumentError, match="cannot remove"):
        Filter.build(NAMES, kind="bloom").remove(NAMES[7])


def test_set_algebra() -> None:
    def of(keys: range) -> Filter:
        return Filter.build(keys, kind="bloom", capacity=4000, fpp=0.001, seed=3)

    odd, small, every = of(range(1, 2000, 2)), of(range(500)), of(range(2000))
    assert (odd | small).contains_many(range(500)).all()
    assert (odd | small).contains_many(range(1, 2000, 2)).all()
    both = (odd & small).contains_many(range(2000))
    assert both[1:500:2].all() and both[500:].mean() < 0.01
    assert small.union(every).contains_many(range(2000)).all()
    assert every.union(every).contains_many(range(2000)).all()
    with pytest.raises(sidebloom.FilterMismatchError):
        odd.union(Filter.build(range(10), kind="bloom", capacity=10, seed=3))
    with pytest.raises(sidebloom.InvalidArgumentError, match="combined"):
        odd.union(Filter.build(range(10)))
    with pytest.raises(TypeError, match="a Filter expected, not set"):
        odd.union({1})  # type: ignore[arg-type]


def test_the_lines_of_a_file_are_keys(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes("\n".join(NAMES).encode() + b"\n\nlast")
    for kind in KINDS:
        for given in [path, str(path)]:
            f = Filter.build(given, kind=kind)  # type: ignore[arg-type]
            assert f.contains_many(NAMES).all() and "last" in f and "" in f
            assert f"{NAMES[0]}\n" not in f
    with pytest.raises(sidebloom.IoError, match="nothing") as raised:
        Filter.build(tmp_path / "nothing")
    assert isinstance(raised.value, FileNotFoundError) or raised.value.errno == 2


def test_filters_of_the_command_line_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("\n".join(NAMES))
    command = [sys.executable, "-m", "sidebloom", "filter", "build", str(tmp_path / "names"), "--kind", "parity"]
    subprocess.run([*command, "-o", str(tmp_path / "f")], check=True, stdout=subprocess.DEVNULL)
    Filter.build(NAMES).save(tmp_path / "g")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


def test_only_a_saved_filter_is_pickled(tmp_path: Path) -> None:
    f = Filter.build(NAMES, kind="blocked", capacity=5000)
    with pytest.raises(TypeError, match="save it first"):
        pickle.dumps(f)
    f.save(tmp_path / "f")
    assert NAMES[0] in pickle.loads(pickle.dumps(f))
    f.add("new")
    assert f.path is None
    with pytest.raises(TypeError, match="save it first"):
        pickle.dumps(f)


def test_a_mapped_filter_is_not_changed(tmp_path: Path) -> None:
    Filter.build(NAMES, kind="blocked").save(tmp_path / "f")
    f = Filter.open(tmp_path / "f")
    changes: list[Callable[[], object]] = [lambda: f.add("x"), lambda: f.update(["x"]), lambda: f.remove("x")]
    for change in changes:
        with pytest.raises(sidebloom.InvalidArgumentError, match="mapped=False"):
            change()
    g = Filter.open(tmp_path / "f", mapped=False)
    os.chdir(tmp_path.parent)  # Its path was absolute.
    assert pickle.loads(pickle.dumps(g)).contains_many(NAMES).all()


def test_damage_is_an_error_with_path_and_offset(tmp_path: Path) -> None:
    f = Filter.build(range(100_000))
    f.save(tmp_path / "f")
    data = bytearray((tmp_path / "f").read_bytes())
    data[4096 + 64 * 70] ^= 1
    (tmp_path / "f").write_bytes(data)
    g = Filter.open(tmp_path / "f")
    with pytest.raises(sidebloom.CorruptionError) as raised:
        g.contains_many(range(100_000))
    assert raised.value.path == tmp_path / "f" and raised.value.offset == 4096 + 64 * 64
    with pytest.raises(sidebloom.CorruptionError):
        g.verify()
    with pytest.raises(sidebloom.CorruptionError):
        Filter.open(tmp_path / "f", mapped=False)
    for content in [b"", b"nonsense", bytes(5000)]:
        (tmp_path / "f").write_bytes(content)
        for mapped in [True, False]:
            with pytest.raises(sidebloom.CorruptionError):
                Filter.open(tmp_path / "f", mapped=mapped)
    with pytest.raises(sidebloom.Error):
        Filter.from_bytes(b"nonsense")


def test_a_truncated_file_under_a_mapped_filter_is_an_error(tmp_path: Path) -> None:
    """In a process of its own, which a SIGBUS would kill."""
    Filter.build(range(1_000_000)).save(tmp_path / "f")
    code = f"""
import os, sidebloom
f = sidebloom.Filter.open({str(tmp_path / "f")!r})
os.truncate(f.path, 8192)
try:
    f.contains_many(range(1_000_000))
except sidebloom.CorruptionError as error:
    print("refused", error.path == f.path)
try:
    5 in f
except sidebloom.CorruptionError:
    print("again")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused True\nagain\n"), done.stderr


def test_impossible_arguments_are_named() -> None:
    for fpp in [0.0, 1.0, -1.0, 2.0, float("nan"), float("inf")]:
        for kind in KINDS:
            with pytest.raises(sidebloom.InvalidArgumentError, match="fpp"):
                Filter.build(NAMES, kind=kind, fpp=fpp)  # type: ignore[arg-type]
    with pytest.raises(sidebloom.InvalidArgumentError, match="the least is"):
        Filter.build(NAMES, fpp=1e-12)
    with pytest.raises(sidebloom.InvalidArgumentError, match="no kind of filter"):
        Filter.build(NAMES, kind="cuckoo")  # type: ignore[arg-type]
    with pytest.raises(sidebloom.InvalidArgumentError, match="capacity"):
        Filter.build([], kind="bloom", capacity=0)
    with pytest.raises(OverflowError):
        Filter.build([], kind="bloom", capacity=-1)
    with pytest.raises((sidebloom.TooLargeError, sidebloom.OutOfMemoryError)):
        Filter.build([], kind="bloom", capacity=2**60)
    with pytest.raises(sidebloom.InvalidArgumentError, match="no length"):
        Filter.build((name for name in NAMES), kind="bloom")
    assert Filter.build(name for name in NAMES).contains_many(NAMES).all()
    with pytest.raises(sidebloom.Error, match="65"):
        Filter.build(range(70_000), kind="small")
    with pytest.raises(TypeError):
        Filter()


def test_a_mapped_filter_stays_what_it_was(tmp_path: Path) -> None:
    Filter.build(NAMES).save(tmp_path / "f")
    f = Filter.open(tmp_path / "f")
    Filter.build(["other"] * 3000).save(tmp_path / "f")
    f.save(tmp_path / "g")
    for copied in [f, Filter.from_bytes(f.to_bytes()), Filter.open(tmp_path / "g")]:
        assert copied.contains_many(NAMES).all()
    (tmp_path / "f").unlink()
    assert Filter.from_bytes(f.to_bytes()).contains_many(NAMES).all()


def test_what_does_not_fit_into_memory_is_an_error() -> None:
    """In a process of its own, with little memory."""
    code = """
import resource, numpy as np, sidebloom, tempfile
few = np.broadcast_to(np.int64(5), 10**9)
with tempfile.TemporaryDirectory() as directory:
    store = sidebloom.Store(directory + "/s")
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    for act in (
        lambda: sidebloom.Filter.build(few),
        lambda: sidebloom.Guard.build(directory + "/g", few),
        lambda: store.put(b"a", bytearray(1 << 29)),
    ):
        try:
            act()
        except (MemoryError, sidebloom.TooLargeError):
            print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "refused\n" * 3, done.stderr
