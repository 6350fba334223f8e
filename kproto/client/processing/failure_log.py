"""Logs failed records, and errors that no call raises."""

from __future__ import annotations

import logging

from ...records import Record
from ..observing.lines import log
from .failure_headers import text_of

__all__ = ["log_failed", "log_unraised"]


def log_failed(
    record: Record, error: BaseException, what: str, level: int = logging.WARNING
) -> None:
    """Logs the step for a failed record, `what`, and the error of its handler."""
    origin = (record.topic, record.partition, record.offset)
    kind = type(error).__name__
    log(level, "%s[%d] at offset %d %s: %s: %s", *origin, what, kind, text_of(error))


def log_unraised(error: BaseException) -> None:
    """Logs an error that `run` does not raise, because it raises another one."""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    log(
        logging.WARNING,
        "not raised: %s: %s%s",
        type(error).__name__,
        text_of(error),
        notes,
    )
