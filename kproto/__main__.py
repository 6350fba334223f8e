"""Makes `python -m kproto` run the command `kproto`, and is its entry point."""

from __future__ import annotations

import sys

__all__ = ["process"]


def process() -> int:
    """Runs the command of `sys.argv`; returns the exit code: 130 after Ctrl-C.

    Ctrl-C may come while modules are still imported, so that the import is in this function.
    """
    try:
        from .cli import main

        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(process())
