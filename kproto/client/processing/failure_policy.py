"""Decides the next step for a record whose handler failed: retry, forward or raise.

Plain functions on plain data; times and `chance` are passed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .settings import RunSettings, Stop

__all__ = ["Forward", "Raise", "Retry", "Step", "find_stop", "next_step"]


class Retry(NamedTuple):
    """Retries the record after a backoff."""

    wait_ms: float


class Forward(NamedTuple):
    """Forwards the record to `topic`, with a retry after `delay_ms`; None for a dead letter.

    The record counts as processed once the brokers have acked it in `topic`.
    """

    topic: str
    delay_ms: int | None


class Raise(NamedTuple):
    """Ends `run` with the error; the record is not processed."""


Step = Retry | Forward | Raise


def next_step(
    settings: RunSettings,
    topic: str,
    error: BaseException,
    attempts: int,
    chance: float,
    *,
    is_decoded: bool,
) -> Step:
    """Returns the step for a record of `topic` that has failed `attempts` times in this `run`.

    A record that `decode` refused is never retried: it is a dead letter at once, or, without a dead
    letter topic, an error of `run`.
    """
    if is_decoded:
        retries = settings.retries
        # A CancelledError here comes from a future that the handler awaited: it is retried, too.
        is_retriable = isinstance(error, retries.exceptions) or not isinstance(error, Exception)
        if is_retriable and attempts <= retries.attempts:
            return Retry(retries.wait_ms(attempts, chance))
        if is_retriable:
            names = [each.topic for each in settings.retry_topics]
            for each in settings.retry_topics[names.index(topic) + 1 if topic in names else 0 :]:
                return Forward(each.topic, each.delay_ms)
    if settings.dead_letter_topic is not None:
        return Forward(settings.dead_letter_topic, None)
    return Raise()


def find_stop(error: BaseException) -> Stop | None:
    """Returns the `Stop` that a handler raised, also in an exception group; None for other errors.

    With a group the record counts as processed only if all its exceptions are `Stop(done=True)`. A
    group with a BaseException that is no Exception is no stop: it is raised.
    """
    if isinstance(error, Stop):
        return error
    if not isinstance(error, ExceptionGroup):
        return None
    stops, others = error.split(Stop)
    if stops is None:
        return None
    return Stop(done=others is None and all(each.done for each in _flatten(stops)))


def _flatten(group: ExceptionGroup[Stop]) -> Iterator[Stop]:
    for each in group.exceptions:
        if isinstance(each, ExceptionGroup):
            yield from _flatten(each)
        else:
            yield each
