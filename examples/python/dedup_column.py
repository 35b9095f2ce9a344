"""Removes the rows of a CSV or Parquet file whose value in a column was seen before, here or in an earlier run.

    python dedup_column.py INPUT COLUMN OUTPUT [--seen DIR]
    python dedup_column.py --small

Reads and writes with pyarrow, a batch at a time, so that a file need not fit into memory. What was seen is a
store, so a second file, or the rest of an interrupted one, can follow another day. `--small` makes a file of
its own and checks the result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import sidebloom


def batches(path: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if path.endswith(".parquet"):
        file = pq.ParquetFile(path)
        return file.schema_arrow, file.iter_batches()
    reader = pyarrow.csv.open_csv(path)
    return reader.schema, iter(reader)


def dedup(source: str, column: str, target: str, seen_in: str) -> tuple[int, int]:
    """Returns how many rows it read, and how many of them were new."""
    schema, rows = batches(source)
    read = written = 0
    with sidebloom.Store(seen_in) as seen:
        writer: pq.ParquetWriter | pyarrow.csv.CSVWriter
        parquet = target.endswith(".parquet")
        writer = pq.ParquetWriter(target, schema) if parquet else pyarrow.csv.CSVWriter(target, schema)
        with writer:
            for batch in rows:
                new = seen.insert_new_keys(batch.column(column))
                writer.write(pa.Table.from_batches([batch.filter(pa.array(new))]))
                read, written = read + len(batch), written + int(new.sum())
    return read, written


def small() -> None:
    urls = [f"https://example.com/{n * n % 1009}" for n in range(5000)]
    pq.write_table(pa.table({"url": urls, "line": range(5000)}), "visits.parquet")
    read, written = dedup("visits.parquet", "url", "first.parquet", "seen")
    kept = pq.read_table("first.parquet").to_pydict()
    first = {url: line for line, url in reversed(list(enumerate(urls)))}
    if dict(zip(kept["url"], kept["line"], strict=True)) != first or written != len(first):
        raise SystemExit("wrong rows")
    pyarrow.csv.write_csv(pa.table({"url": [*urls[:100], "https://example.com/new"]}), "more.csv")
    if dedup("more.csv", "url", "new.csv", "seen") != (101, 1):
        raise SystemExit("the second file was not compared with the first")
    print(f"{read:,} rows, {written:,} of them new")


def main() -> None:
    if sys.argv[1:] == ["--small"]:
        return small()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("input")
    parser.add_argument("column")
    parser.add_argument("output")
    parser.add_argument("--seen", default="seen", help="directory of the store (default: seen)")
    given = parser.parse_args()
    read, written = dedup(given.input, given.column, given.output, given.seen)
    print(f"{read:,} rows, {written:,} of them new")


if __name__ == "__main__":
    main()
