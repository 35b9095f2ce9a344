"""Fixtures of the tests, which run against the installed package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sidebloom


@pytest.fixture
def store(tmp_path: Path) -> Iterator[sidebloom.Store[bytes]]:
    with sidebloom.Store(tmp_path / "store") as store:
        yield store
