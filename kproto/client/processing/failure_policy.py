"""Decides the next step for a record whose handler failed: retry, forward or raise.

Plain functions on plain data; times and `chance` are passed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .handlers import Stop
from .settings import RunSettings

__all__ = ["Forward", "Raise", "Retry", "Step", "find_stop", "next_step"]


class Retry(NamedTuple):
    """Retries the record after a backoff of `wait_ms`."""

    wait_ms: float


class Forward(NamedTuple):
    """Forwards the record to `topic`; `delay_ms` is the delay of a retry topic.

    `delay_ms` is None for the dead letter topic. The record counts as processed once the brokers
    have acked it in `topic`.
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
    """Returns the next step for a record of `topic` that has failed `attempts` times in `run`.

    The step is `Retry`, or `Forward` to a retry topic or the dead letter topic, or `Raise`. The
    record is never retried if `decode` raised `error` (`is_decoded` is False), or if `error` is an
    `Exception` that is not in `settings.retries.exceptions`. Such a record is a dead letter at
    once, or `run` raises the error if there is no dead letter topic.
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
    """Returns `error` if it is a `Stop`, or the `Stop` in an exception group; otherwise None.

    The record of an exception group counts as processed only if all exceptions in the group are
    `Stop(done=True)`. Returns None for a group that has a KeyboardInterrupt, or another exception
    that is no `Exception`.
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
