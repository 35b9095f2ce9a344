"""The command line: python -m sidebloom."""

from __future__ import annotations

import signal
import sys

from ._sidebloom import _main


def main() -> int:
    """Runs the command of this process's arguments, and returns its exit code."""
    # Python would note an interrupt, and wait for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _main(["sidebloom", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
