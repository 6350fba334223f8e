"""The command line, `kproto COMMAND`; each command has a module of its own here.

A command's module brings `add_command(commands)`, which describes its arguments, and the function
that runs it, which imports what it needs and returns the exit code. 0 is success, 1 an error that
was said in one line, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from ..wire.errors import KprotoError
from . import broker

__all__ = ["main"]

_COMMANDS = (broker,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` (those of the process by default) name; the exit code."""
    parser = argparse.ArgumentParser(
        prog="kproto", description="Kafka from its own message definitions."
    )
    parser.add_argument("--version", action="version", version=f"kproto {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_command(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except KprotoError as error:
        print(f"kproto: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # as a shell says it of a process that Ctrl-C has ended
    return code
