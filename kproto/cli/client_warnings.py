"""Prints the warnings that the client logs as lines of a command, on standard error."""

from __future__ import annotations

import logging
import sys

from .terminal_words import terminal_text

__all__ = ["print_client_warnings", "stop_client_warnings"]


class _Lines(logging.Handler):
    """Prints each message as `kproto: warning: …`; on a terminal, replaces a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        text = terminal_text(RuntimeError(record.getMessage()))
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        print(f"{start}kproto: {record.levelname.lower()}: {text}", file=sys.stderr)


def print_client_warnings(*, quiet: bool) -> None:
    """Prints warnings of the client, such as retries; with `quiet`, prints only errors."""
    stop_client_warnings()
    logger = logging.getLogger("kproto")
    logger.addHandler(_Lines(logging.ERROR if quiet else logging.WARNING))


def stop_client_warnings() -> None:
    """Ends `print_client_warnings`, because later warnings are not those of the command."""
    logger = logging.getLogger("kproto")
    for handler in list(logger.handlers):
        if isinstance(handler, _Lines):
            logger.removeHandler(handler)
