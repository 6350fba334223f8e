"""What becomes of a record whose handler has failed: again, to another topic, or to whoever asked.

Plain functions on plain data; `chance` and times are passed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .settings import RunSettings, Stop

__all__ = ["Forward", "Raise", "Retry", "Step", "next_step", "stop_in"]


class Retry(NamedTuple):
    """The same again, after a wait."""

    wait_ms: float


class Forward(NamedTuple):
    """It is done here once `topic` has it, to be due after `delay_ms`; None: a dead letter."""

    topic: str
    delay_ms: int | None


class Raise(NamedTuple):
    """It is not done, and nothing mends it: `run` ends with the error."""


Step = Retry | Forward | Raise


def next_step(
    settings: RunSettings,
    topic: str,
    error: BaseException,
    attempts: int,
    chance: float,
    *,
    is_readable: bool,
) -> Step:
    """What follows when a record of `topic` has failed for the `attempts`th time in a row here.

    One that is not readable, as `decode` has refused it, never will be: a dead letter at once.
    """
    if is_readable:
        retries = settings.retries
        # A handler that was cancelled from within, as something that it waited for was.
        is_mendable = isinstance(error, retries.exceptions) or not isinstance(error, Exception)
        if is_mendable and attempts <= retries.attempts:
            return Retry(retries.wait_ms(attempts, chance))
        if is_mendable:
            names = [each.topic for each in settings.retry_topics]
            for each in settings.retry_topics[names.index(topic) + 1 if topic in names else 0 :]:
                return Forward(each.topic, each.delay_ms)
    if settings.dead_letter_topic is not None:
        return Forward(settings.dead_letter_topic, None)
    return Raise()


def stop_in(error: BaseException) -> Stop | None:
    """The `Stop` that a handler has raised, also in a group, as from a TaskGroup; None for others.

    Of a group it is done where nothing else is in it, and each says so. One that has what is no
    Exception is none: that is raised.
    """
    if isinstance(error, Stop):
        return error
    if not isinstance(error, ExceptionGroup):
        return None
    stops, others = error.split(Stop)
    if stops is None:
        return None
    return Stop(done=others is None and all(each.done for each in _leaves(stops)))


def _leaves(group: ExceptionGroup[Stop]) -> Iterator[Stop]:
    for each in group.exceptions:
        if isinstance(each, ExceptionGroup):
            yield from _leaves(each)
        else:
            yield each
