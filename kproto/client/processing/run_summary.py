"""`RunSummary`: the result of `GroupConsumer.run`."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RunSummary"]


class RunSummary(NamedTuple):
    """The result of a `run`: numbers of records, and of retries.

    `handled` counts the records for which the handler returned, or raised `Stop(done=True)`.
    `retried` counts retries of the handler in this run. `sent_to_retry` counts the records sent to
    a retry topic, and `dead_letters` counts the records sent to the dead letter topic. `handled`
    does not count these records.
    """

    handled: int = 0
    retried: int = 0
    sent_to_retry: int = 0
    dead_letters: int = 0
