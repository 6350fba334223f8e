"""What the log tells of records that failed, and of errors that nobody was told."""

from __future__ import annotations

import logging

from ...records import Record
from ..observing.lines import say
from .failure_headers import text_of

__all__ = ["say_failed", "say_untold"]


def say_failed(
    record: Record, error: BaseException, what: str, level: int = logging.WARNING
) -> None:
    """What becomes of a record, and with which error its handler failed."""
    place = (record.topic, record.partition, record.offset)
    kind = type(error).__name__
    say(level, "%s[%d] at offset %d %s: %s: %s", *place, what, kind, text_of(error))


def say_untold(error: BaseException) -> None:
    """An error that nothing mends and that `run` does not raise, as it raises another one."""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    say(
        logging.WARNING,
        "nobody was told: %s: %s%s",
        type(error).__name__,
        text_of(error),
        notes,
    )
