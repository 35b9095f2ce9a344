"""The package: its README, types, documentation, import and examples."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sidebloom

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
EXAMPLES = HERE.parents[2] / "examples" / "python"


def test_the_code_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(example: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLES / example), "--small"], cwd=tmp_path, check=True)


def test_types_are_strict_and_those_of_the_code() -> None:
    mypy = [sys.executable, "-m", "mypy"]
    checked = [str(HERE), *map(str, sorted(EXAMPLES.glob("*.py")))]
    for command in [
        [*mypy, "--strict", "-p", "sidebloom"],
        [*mypy, "--config-file", str(HERE.parent / "pyproject.toml"), *checked],
        [sys.executable, "-m", "mypy.stubtest", "sidebloom", "--allowlist", str(HERE / "stubtest.txt")],
    ]:
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYPYPATH": ""})
        assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_documented() -> None:
    for name in sidebloom.__all__:
        item = getattr(sidebloom, name)
        if name.startswith("__"):
            continue
        assert inspect.getdoc(item), name
        if inspect.isclass(item):
            for member, value in vars(item).items():
                if not member.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
                    assert inspect.getdoc(value), f"{name}.{member}"


def test_the_import_brings_nothing_heavy() -> None:
    code = "import sidebloom, sys; print([m for m in ('numpy', 'pyarrow', 'polars', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_mapped_filter_takes_little_memory(tmp_path: Path) -> None:
    """A filter of 100 MB: opened and asked, less than 25 MB are resident (Python included)."""
    sidebloom.Filter.build([], kind="bloom", capacity=80_000_000).save(tmp_path / "f")
    assert (tmp_path / "f").stat().st_size > 90 << 20
    code = f"""
import sidebloom
f = sidebloom.Filter.open({str(tmp_path / "f")!r})
assert "x" not in f
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 25_000
