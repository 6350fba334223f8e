"""Implements the command line, `kproto COMMAND`. Each command has two modules in this package.

The first module, such as `broker`, has `add_command(commands)`, which adds the command and its
arguments to the parser, and sets `runs_in` to the name of the second module. The second module,
such as `run_broker`, has `run(options)`, which returns the exit code. `main` imports the second
module only when the command runs, so that `kproto --help` does not load all of kproto.
`whole_parser` lists the commands. Those for administrators, which have verbs, are in `admin`.

The exit code is 0 for success, 1 for an error, which is printed in one line, and 2 for wrong
arguments, such as an invalid time or property. `kproto request` returns 1 for a response with an
error code, `kproto consume` for a record that is no event, and a destructive command that was not
confirmed. It is 130 after Ctrl-C, except for `kproto broker` and `kproto proxy`, which return 0.
`kproto fuzz` also returns 1 for findings that are not harmless, and if the tested command was
restarted too often.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ..wire.errors import ConfigurationError, KprotoError
from .event_loop import import_asyncio
from .terminal_words import terminal_text
from .whole_parser import parse

__all__ = ["main"]

#: Errors of a write that are reported in one line: a full disk, a quota, a failing device, a file
#: that is too large.
_OUTPUT_ENDED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (default: `sys.argv[1:]`); returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell has closed it: `>&-`
            number = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes characters that the encoding lacks
            stream.reconfigure(errors="backslashreplace")
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        import_asyncio(options, os.environ)
        code: int = import_module(f"{__name__}.{options.runs_in}").run(options)
        sys.stdout.flush()  # raises BrokenPipeError now, not at exit, if the pipe is closed
    except KprotoError as error:
        print(f"kproto: error: {terminal_text(error)}", file=sys.stderr)
        return _exit_code(error)
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
    finally:
        warnings = sys.modules.get(f"{__name__}.client_warnings")
        if warnings is not None:  # the command had a client
            warnings.stop_client_warnings()
    return code


def _exit_code(error: KprotoError) -> int:
    """Returns 2 for an error of the arguments, 1 for any other error."""
    from ..schema.unknown_names import UnknownNameError  # here, so that commands start faster

    return 2 if isinstance(error, ConfigurationError | UnknownNameError) else 1
