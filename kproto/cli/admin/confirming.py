"""Asks before a command deletes or overwrites."""

from __future__ import annotations

import argparse
import sys

from ..command_error import CommandError

__all__ = ["confirm"]


def confirm(options: argparse.Namespace, action: str) -> bool:
    """Prints what the command will do, such as `delete 2 topics: a, b`; returns True if it may.

    Asks on a terminal. Raises CommandError if standard input is no terminal and `--yes` is
    missing.
    """
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError(f"this would {action}; --yes is needed without a terminal")
    print(f"This will {action}.", file=sys.stderr)
    print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("nothing was changed", file=sys.stderr)
    return False
