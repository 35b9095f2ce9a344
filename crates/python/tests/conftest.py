"""Fixtures of the tests, which run against the installed package."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidebloom


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    """Threads that wait for each other end the run with their tracebacks."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sidebloom.Store[bytes]]:
    with sidebloom.Store(tmp_path / "store") as store:
        yield store
