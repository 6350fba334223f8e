"""`RunSummary` and `ShareRunSummary`: the results of `run` of both kinds of groups."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RunSummary", "ShareRunSummary"]


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


class ShareRunSummary(NamedTuple):
    """The result of `ShareConsumer.run`: numbers of records.

    `handled` counts the accepted records, `released` and `rejected` the failed records that were
    released or rejected, and `dead_letters` those that were sent to the dead letter topic. A record
    that was released several times counts each time.
    """

    handled: int = 0
    released: int = 0
    rejected: int = 0
    dead_letters: int = 0
