"""Decides the next step for a record of a share group whose handler failed (KIP-932).

Plain functions on plain data; times and `chance` are passed in. The broker counts the deliveries of
a record, over all members: `Retries.attempts` limits them, as it limits the retries in a group of
the other kinds.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .failure_policy import Forward, Retry, find_stop, next_step
from .settings import RunSettings

__all__ = ["Accept", "DeadLetter", "Reject", "Release", "ShareStep", "share_step"]


class Accept(NamedTuple):
    """Accepts the record; with `stops` the run stops."""

    stops: bool


class Release(NamedTuple):
    """Releases the record after `wait_ms`, so that it is delivered again; `stops` stops the run."""

    wait_ms: float
    stops: bool = False


class Reject(NamedTuple):
    """Rejects the record, which is never delivered again."""

    stops: bool = False


class DeadLetter(NamedTuple):
    """Sends the record to `topic`, then accepts it."""

    topic: str
    stops: bool = False


ShareStep: TypeAlias = Accept | Release | Reject | DeadLetter


def share_step(
    settings: RunSettings,
    error: BaseException,
    delivery_count: int,
    chance: float,
    *,
    is_decoded: bool,
) -> ShareStep:
    """Returns the next step for a record that was delivered `delivery_count` times.

    A `Stop` accepts the record if it is done, and otherwise releases it. A record with retries left
    is released; other records are dead letters, or are rejected without a dead letter topic.
    """
    stop = find_stop(error)
    if stop is not None:
        return Accept(stops=True) if stop.done else Release(0.0, stops=True)
    step = next_step(settings, "", error, delivery_count, chance, is_decoded=is_decoded)
    if isinstance(step, Retry):
        return Release(step.wait_ms)
    if isinstance(step, Forward):
        return DeadLetter(step.topic)
    return Reject()
