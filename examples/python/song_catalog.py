"""A song catalogue in SQLite, with a guard in front: titles that it does not have are not looked up.

    python song_catalog.py [--small]

Prints the queries that the guard saved, and the time of both ways. The guard is in `songs.guard`, the
catalogue in `songs.sqlite`, in the current directory.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import time
from pathlib import Path

from sidebloom import Guard


def title(number: int) -> str:
    words = ["Blue", "Night", "River", "Golden", "Train", "Heart", "Stone", "Summer", "Ghost", "Electric"]
    return f"{words[number % 10]} {words[number // 10 % 10]} No. {number}"


def build(songs: int) -> tuple[sqlite3.Connection, Guard]:
    Path("songs.sqlite").unlink(missing_ok=True)
    shutil.rmtree("songs.guard", ignore_errors=True)
    database = sqlite3.connect("songs.sqlite")
    database.execute("CREATE TABLE songs (title TEXT PRIMARY KEY, year INT) WITHOUT ROWID")
    database.executemany("INSERT INTO songs VALUES (?, ?)", ((title(n), 1950 + n % 70) for n in range(songs)))
    database.commit()
    guard = Guard.build("songs.guard", (row[0] for row in database.execute("SELECT title FROM songs")))
    return database, guard


def year_of(database: sqlite3.Connection, wanted: str) -> int | None:
    row = database.execute("SELECT year FROM songs WHERE title = ?", (wanted,)).fetchone()
    return None if row is None else int(row[0])


def add_song(database: sqlite3.Connection, guard: Guard, new: str, year: int) -> None:
    """The guard learns of the song before the database commits it."""
    with guard.transaction(database.commit) as changes:
        database.execute("INSERT INTO songs VALUES (?, ?)", (new, year))
        changes.insert(new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="20,000 songs instead of a million")
    songs = 20_000 if parser.parse_args().small else 1_000_000
    database, guard = build(songs)
    add_song(database, guard, "Sinnerman", 1965)

    # One title in ten is there.
    asked = [title(random.randrange(10 * songs)) for _ in range(songs // 10)]
    start = time.perf_counter()
    without = [year_of(database, wanted) for wanted in asked]
    unguarded = time.perf_counter() - start
    start = time.perf_counter()
    maybe = guard.may_contain_many(asked)
    guarded = [year_of(database, wanted) if may else None for wanted, may in zip(asked, maybe, strict=True)]
    elapsed = time.perf_counter() - start
    if guarded != without or year_of(database, "Sinnerman") != 1965 or "Sinnerman" not in guard:
        raise SystemExit("the guard was wrong")
    print(f"{len(asked):,} titles, of which {sum(y is not None for y in without):,} are in the catalogue")
    print(f"without the guard: {len(asked):,} queries, {unguarded:.2f} s")
    print(f"with the guard:    {int(maybe.sum()):,} queries, {elapsed:.2f} s")
    guard.close()
    database.close()


if __name__ == "__main__":
    main()
