"""Implements the command line, `kproto COMMAND`. Each command has two modules in this package.

The first module, such as `broker`, has `add_command(commands)`, which adds the command and its
arguments to the parser, and sets `runs_in` to the name of the second module. The second module,
such as `run_broker`, has `run(options)`, which returns the exit code. `main` imports the second
module only when the command runs, so that `kproto --help` does not load all of kproto.

The exit code is 0 for success, 1 for an error, which is printed in one line, and 2 for wrong
arguments. It is 130 after Ctrl-C, except for `kproto broker` and `kproto proxy`, which return 0.
`kproto fuzz` also returns 1 for findings that are not harmless, and if the tested command was
restarted too often.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ..version import __version__
from ..wire.errors import KprotoError
from .admin.verbs import verb_first

__all__ = ["main"]

#: Errors of a write that are reported in one line: a full disk, a quota, a failing device, a file
#: that is too large.
_OUTPUT_ENDED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)

#: The module of each command, in the order of `kproto --help`.
_COMMANDS: Final = {
    "produce": "produce",
    "consume": "consume",
    "topics": "admin.topics",
    "groups": "admin.groups",
    "configs": "admin.configs",
    "cluster": "admin.cluster",
    "acls": "admin.acls",
    "users": "admin.users",
    "quotas": "admin.quotas",
    "tokens": "admin.tokens",
    "transactions": "admin.transactions",
    "request": "request",
    "broker": "broker",
    "inspect": "inspect",
    "diff": "diff",
    "explorer": "explorer",
    "decode": "decode",
    "proxy": "proxy",
    "capture": "capture",
    "fuzz": "fuzz",
    "vectors": "vectors",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (default: `sys.argv[1:]`); returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes characters that the encoding lacks
            stream.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="kproto", description="Tools for Kafka and its protocol.")
    version = f"kproto {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    given = list(sys.argv[1:] if arguments is None else arguments)
    # A command needs only its own module, so that it starts fast.
    for command in [given[0]] if given and given[0] in _COMMANDS else _COMMANDS:
        module = import_module(f"{__name__}.{_COMMANDS[command]}")
        module.add_command(commands)
        if command in given[:1] and hasattr(module, "VERBS"):
            given[1:] = verb_first(given[1:], [verb.name for verb in module.VERBS])
    for described in commands.choices.values():
        if described.get_default("takes_version"):  # its --version is that of a message
            continue
        described.add_argument("--version", action="version", version=version)
    options = parser.parse_args(given)
    try:
        code: int = import_module(f"{__name__}.{options.runs_in}").run(options)
        sys.stdout.flush()  # raises BrokenPipeError now, not at exit, if the pipe is closed
    except KprotoError as error:
        print(f"kproto: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in _OUTPUT_ENDED:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"kproto: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # the exit code of a shell after Ctrl-C
    return code
