"""Logs failed records, and errors that no call raises."""

from __future__ import annotations

import logging

from ...records import Record
from ..observing.log_lines import log
from .failure_headers import error_text

__all__ = ["log_failure", "log_unraised"]


def log_failure(
    record: Record, error: BaseException, what: str, level: int = logging.WARNING
) -> None:
    """Logs a failed record and the error of its handler; `what` describes the next step."""
    origin = (record.topic, record.partition, record.offset)
    kind = type(error).__name__
    log(level, "%s[%d] at offset %d %s: %s: %s", *origin, what, kind, error_text(error))


def log_unraised(error: BaseException) -> None:
    """Logs an error that `run` does not raise, because `run` raises another error."""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    log(
        logging.WARNING,
        "not raised: %s: %s%s",
        type(error).__name__,
        error_text(error),
        notes,
    )
