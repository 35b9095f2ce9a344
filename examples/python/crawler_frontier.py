"""A crawler's frontier: which pages to fetch next, each of them once, also after a crash.

    python crawler_frontier.py [--small]

Crawls an imaginary web. A page is noted as seen and queued in one transaction, so that it is neither fetched
twice nor forgotten. Pages are seen anew after a month: their keyspace has a window. The frontier is in
`frontier.db`, in the current directory.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Iterable
from datetime import timedelta

import sidebloom


class Frontier:
    """Pages to fetch, the oldest first."""

    def __init__(self, path: str) -> None:
        self.store = sidebloom.Store(path, text=True)
        if "seen" in self.store.keyspaces():
            self.seen = self.store.keyspace("seen")
        else:
            self.seen = self.store.create_keyspace("seen", window=timedelta(days=30))

    def add(self, urls: Iterable[str]) -> int:
        """Queues those that were not seen. Returns how many."""
        new = [url for url in dict.fromkeys(urls) if url not in self.seen]  # Mostly answered by filters.

        def enqueue(tx: sidebloom.Transaction[str]) -> int:
            seen = tx.keyspace(self.seen)
            number = int(tx.get("next", "0"))
            first = number
            for url in new:
                if seen.insert_new(url, ""):
                    tx[f"queue {number:016}"] = url
                    number += 1
            tx["next"] = str(number)
            return number - first

        return sidebloom.transact(self.store, enqueue)

    def take(self) -> str | None:
        """The next page, which leaves the queue."""
        for key, url in self.store.items("queue "):
            if self.store.compare_and_set(key, url, None):
                return url
        return None


def links(url: str, pages: int) -> list[str]:
    web = random.Random(url)
    return [f"https://example.com/{int(pages * web.random() ** 2)}" for _ in range(20)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="1,000 pages instead of 100,000")
    pages = 1_000 if parser.parse_args().small else 100_000
    shutil.rmtree("frontier.db", ignore_errors=True)
    frontier = Frontier("frontier.db")
    frontier.add(["https://example.com/0"])
    fetched: set[str] = set()
    found = 0
    while (url := frontier.take()) is not None:
        if url in fetched:
            raise SystemExit(f"{url} was fetched twice")
        fetched.add(url)
        found += len(outgoing := links(url, pages))
        frontier.add(outgoing)
        if len(fetched) == pages // 2:  # As after a crash.
            frontier.store.close()
            frontier = Frontier("frontier.db")
    print(f"{len(fetched):,} pages fetched, {found:,} links found, {len(frontier.seen):,} seen")
    if len(fetched) != len(frontier.seen):
        raise SystemExit("a page was forgotten")
    frontier.store.close()


if __name__ == "__main__":
    main()
