"""The store against a dict, operation by operation."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sidebloom import Keyspace, Store

KEYS = st.sampled_from([b"", b"\x00", b"a", b"aa", b"ab", b"b", b"\xff", b"\xff\xff", b"k" * 300]) | st.binary(max_size=3)
VALUES = st.binary(max_size=20) | st.just(b"v" * 2000)
MISSING = object()


class StoreAgainstDict(RuleBasedStateMachine):
    """Two keyspaces with the same rules; small memtables, so that rows are flushed and merged."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.models: list[dict[bytes, bytes]] = [{}, {}]
        self.open(create=True)

    def open(self, create: bool = False) -> None:
        self.store = Store(self.directory / "store", memtable_bytes=4096, segment_bytes=4096)
        other = self.store.create_keyspace("other") if create else self.store.keyspace("other")
        self.spaces: list[Keyspace[bytes]] = [self.store, other]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.directory)

    which = st.sampled_from([0, 1])

    @rule(which=which, key=KEYS, value=VALUES)
    def put(self, which: int, key: bytes, value: bytes) -> None:
        self.spaces[which][key] = value
        self.models[which][key] = value

    @rule(which=which, key=KEYS)
    def delete(self, which: int, key: bytes) -> None:
        try:
            del self.spaces[which][key]
            found = True
        except KeyError:
            found = False
        assert (self.models[which].pop(key, MISSING) is not MISSING) == found

    @rule(which=which, key=KEYS)
    def pop(self, which: int, key: bytes) -> None:
        assert self.spaces[which].pop(key, None) == self.models[which].pop(key, None)

    @rule(which=which)
    def popitem(self, which: int) -> None:
        if model := self.models[which]:
            key, value = self.spaces[which].popitem()
            assert key == max(model) and model.pop(key) == value

    @rule(which=which, key=KEYS, value=VALUES)
    def setdefault(self, which: int, key: bytes, value: bytes) -> None:
        assert self.spaces[which].setdefault(key, value) == self.models[which].setdefault(key, value)

    @rule(which=which, rows=st.dictionaries(KEYS, VALUES))
    def update(self, which: int, rows: dict[bytes, bytes]) -> None:
        self.spaces[which].update(rows)
        self.models[which].update(rows)

    @rule(which=which, rows=st.lists(st.tuples(KEYS, VALUES)))
    def insert_new_many(self, which: int, rows: list[tuple[bytes, bytes]]) -> None:
        expected = []
        for key, value in rows:
            expected.append(key not in self.models[which])
            self.models[which].setdefault(key, value)
        assert self.spaces[which].insert_new_many(rows).tolist() == expected

    @rule(which=which, start=st.none() | KEYS, stop=st.none() | KEYS)
    def delete_range(self, which: int, start: bytes | None, stop: bytes | None) -> None:
        self.spaces[which].delete_range(start, stop)
        for key in list(self.models[which]):
            if (start is None or key >= start) and (stop is None or key < stop):
                del self.models[which][key]

    @rule(rows=st.lists(st.tuples(which, KEYS, st.none() | VALUES)), commit=st.booleans())
    def batch(self, rows: list[tuple[int, bytes, bytes | None]], commit: bool) -> None:
        batch = self.store.batch()
        for which, key, value in rows:
            if value is None:
                batch.delete(key, keyspace=self.spaces[which])
            else:
                batch.put(key, value, keyspace=self.spaces[which])
        self.end(rows, commit, batch.commit, batch.drop)

    @rule(rows=st.lists(st.tuples(which, KEYS, st.none() | VALUES)), commit=st.booleans())
    def transaction(self, rows: list[tuple[int, bytes, bytes | None]], commit: bool) -> None:
        tx = self.store.transaction()
        spaces = [tx, tx.keyspace(self.spaces[1])]
        models = [dict(model) for model in self.models]
        for which, key, value in rows:
            if value is None:
                spaces[which].delete(key)
                models[which].pop(key, None)
            else:
                spaces[which][key] = value
                models[which][key] = value
            assert dict(spaces[which].items()) == models[which]
        self.end(rows, commit, tx.commit, tx.roll_back)

    def end(self, rows, commit, do, drop) -> None:  # type: ignore[no-untyped-def]
        if not commit:
            drop()
            return
        do()
        for which, key, value in rows:
            if value is None:
                self.models[which].pop(key, None)
            else:
                self.models[which][key] = value

    @rule()
    def flush(self) -> None:
        self.store.flush()

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @rule(which=which, prefix=KEYS, start=st.none() | KEYS, stop=st.none() | KEYS)
    def walk(self, which: int, prefix: bytes, start: bytes | None, stop: bytes | None) -> None:
        rows = sorted(self.models[which].items())
        space = self.spaces[which]
        assert list(space.items(prefix)) == [row for row in rows if row[0].startswith(prefix)]
        inside = [r for r in rows if (start is None or r[0] >= start) and (stop is None or r[0] < stop)]
        assert list(space.items(start=start, stop=stop)) == inside
        assert list(reversed(space.items(start=start, stop=stop))) == inside[::-1]

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "spaces"):
            return
        for space, model in zip(self.spaces, self.models, strict=True):
            snapshot = space.snapshot()
            assert isinstance(space, MutableMapping)
            assert dict(space.items()) == model and dict(snapshot) == model and len(space) == len(model)
            asked = [*model, b"absent", b"a", b""]
            values = [model.get(key) for key in asked]
            assert space.get_many(asked) == values == snapshot.get_many(asked)
            assert [space.get(key) for key in asked] == values
            assert [key in space for key in asked] == [key in model for key in asked]
            snapshot.close()


StoreAgainstDict.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStoreAgainstDict = StoreAgainstDict.TestCase
