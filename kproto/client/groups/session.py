"""How long a broker surely counts a member, by what was heard of it. Plain data.

Knows no phase and no request. Times are in seconds of the client's clock. A broker counts from when
it got a request, which is not known here; from when it was sent is safe.
"""

from __future__ import annotations

from typing import Final

from ..core.retry import TICK_S
from .assignors.subscriptions import NO_GENERATION
from .settings import GroupSettings

__all__ = ["Session"]

_NEVER: Final = float("inf")

#: What is left for JoinGroup: that part of `max_poll_interval_ms`, a heartbeat interval at most.
_MARGIN: Final = 10


class Session:
    """That of one member, who `reads_on` while the group rebalances, or does not.

    `needs_beat` while only a heartbeat can tell that it is not over; `interval_s` lies between two.
    """

    def __init__(self, settings: GroupSettings, *, reads_on: bool) -> None:
        self._reads_on = reads_on
        #: How long a broker counts a member that says nothing, in ms, as far as that is known.
        self.session_ms = settings.session_timeout_ms
        self.interval_s = settings.beat_interval_s
        self._poll_s = settings.max_poll_interval_ms / 1000
        self._heard_at = -_NEVER  # the broker counts its session from then on, or from later
        self._calm_at = -_NEVER  # no rebalance had begun by then
        self._generation = NO_GENERATION  # the last one, also where it was lost since
        self.needs_beat = False

    @property
    def until(self) -> float:
        """When it may be over, unless a heartbeat comes through before.

        A tick before the broker may count it as over: timers are no more exact than that. Who
        reads on in a rebalance is put out where JoinGroup does not arrive, too (KIP-429).
        """
        return self.calm_until if self._reads_on else self._silent_until

    @property
    def calm_until(self) -> float:
        """The same of who knows of no rebalance: one may have begun, and ended without him."""
        return min(self._silent_until, self._calm_at + self._poll_s - TICK_S)

    @property
    def _silent_until(self) -> float:
        return self._heard_at + self.session_ms / 1000 - TICK_S

    def is_silent(self, now: float) -> bool:
        """Whether no heartbeat came through for too long; else it was a rebalance that may be."""
        return now >= self._silent_until

    def heard(self, sent_at: float, *, calm: bool) -> None:
        """A heartbeat, sent then, shows that the broker counts the session anew; `calm` that it had
        begun no rebalance."""
        self.needs_beat = False
        self._heard_at = max(self._heard_at, sent_at)
        if calm:
            self.calm(sent_at)

    def calm(self, sent_at: float) -> None:
        """What was sent then shows that no other rebalance had begun; no session begins by it."""
        self._calm_at = max(self._calm_at, sent_at)

    def given_up_by(self, now: float) -> float:
        """When what is in hands is waited for no more: JoinGroup is to be there in time.

        The broker puts out who has not joined by `max_poll_interval_ms` after the rebalance began,
        and gives to others what he read. It began no earlier than this member was last calm.
        """
        margin_s = min(self.interval_s, self._poll_s / _MARGIN)
        return max(now, self._calm_at + self._poll_s - margin_s)

    def begin(self, generation: int, sent_at: float, now: float, *, reads_on: bool) -> None:
        """JoinGroup, sent then, brought a generation; the member `reads_on` from the one before.

        The broker counts the session from when all had joined, which was while this waited. Not so
        where it answers with the generation that was: then only a heartbeat tells. Where what is
        surely known is not enough to go on, nothing is taken on before one has.
        """
        is_new = generation != self._generation
        self._generation = generation
        self.needs_beat = False
        if is_new and (reads_on or now - sent_at <= self.interval_s):
            self.heard(sent_at, calm=True)
        elif not reads_on:
            self._heard_at = self._calm_at = now
            self.needs_beat = True
