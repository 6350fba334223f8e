"""Chooses the records that `kproto consume` prints, and their form."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable

from ..records.record import Record
from ..wire.errors import ConfigurationError

__all__ = ["formatter", "is_value_only", "record_filter"]


def is_value_only(options: argparse.Namespace) -> bool:
    """Returns True if the command prints the values of all records, and needs nothing else."""
    needs_records = (
        options.is_tail
        or options.json
        or options.format is not None
        or options.cloudevents
        or options.key_separator is not None
        or options.keys
        or options.grep is not None
    )
    return not needs_records


def formatter(options: argparse.Namespace) -> Callable[[Record], bytes]:
    """Returns the function that prints a record, with its delimiter.

    A format by `-f` has no delimiter of its own. Raises ConfigurationError for an invalid format.
    """
    if options.is_tail:
        import shutil

        from .tail_lines import tail_line

        is_terminal = sys.stdout.isatty()
        cut = is_terminal and not options.wrap
        width = shutil.get_terminal_size().columns if cut else None
        return tail_line(options.topics, width=width, colored=is_terminal)
    null = options.null.encode("utf-8", "surrogateescape")
    if options.format is not None:
        from .record_format import compile_format

        return compile_format(options.format, null)
    end: bytes = options.delimiter
    if null and (options.json or options.cloudevents):
        raise ConfigurationError("--null has no effect on JSON, which has null: omit it")
    if options.json:
        from .record_json import record_line

        return lambda record: record_line(record) + end
    if options.cloudevents:
        from .event_lines import event_line

        return lambda record: event_line(record) + end
    separator = options.key_separator

    def text(data: bytes | None) -> bytes:
        return null if data is None else data

    if separator is not None:
        return lambda record: b"".join([text(record.key), separator, text(record.value), end])
    return lambda record: text(record.value) + end


def record_filter(options: argparse.Namespace) -> Callable[[Record], bool] | None:
    """Returns the function that decides whether a record is printed; None if all are.

    Raises ConfigurationError for an invalid regular expression.
    """
    if not options.keys and options.grep is None:
        return None
    keys = {key.encode("utf-8", "surrogateescape") for key in options.keys}
    pattern = None
    if options.grep is not None:
        try:
            pattern = re.compile(options.grep.encode("utf-8", "surrogateescape"))
        except re.error as error:
            raise ConfigurationError(f"--grep is no regular expression: {error}") from None

    def matches(record: Record) -> bool:
        if keys and record.key not in keys:
            return False
        return pattern is None or bool(record.value and pattern.search(record.value))

    return matches
