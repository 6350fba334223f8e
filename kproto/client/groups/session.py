"""Computes until when a broker surely counts a member, by its answers. Plain data.

Knows no phase and no request. Times are in seconds of the client's clock. A broker counts the
session from the arrival of a request, which the client does not know; the time of sending is safe.
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
    """The session of one member; it `reads_on` if it keeps reading while the group rebalances.

    `needs_beat` while only a heartbeat can show that the session is alive; `interval_s` lies
    between two heartbeats.
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
        """Returns when the session may end, unless a heartbeat is answered before.

        That is a tick before the broker may end it, because timers are no more exact. A member that
        `reads_on` during a rebalance is removed too if its JoinGroup does not arrive (KIP-429).
        """
        return self.calm_until if self._reads_on else self._silent_until

    @property
    def calm_until(self) -> float:
        """Returns the same for a member that knows of no rebalance: one may have started and ended
        without it.
        """
        return min(self._silent_until, self._calm_at + self._poll_s - TICK_S)

    @property
    def _silent_until(self) -> float:
        return self._heard_at + self.session_ms / 1000 - TICK_S

    def is_silent(self, now: float) -> bool:
        """True if no heartbeat was answered for too long; otherwise a rebalance may have ended the
        session.
        """
        return now >= self._silent_until

    def heard(self, sent_at: float, *, calm: bool) -> None:
        """Notes the answer to a heartbeat sent then, which renews the session; `calm` without a
        rebalance.
        """
        self.needs_beat = False
        self._heard_at = max(self._heard_at, sent_at)
        if calm:
            self.calm(sent_at)

    def calm(self, sent_at: float) -> None:
        """Notes an answer that shows that no rebalance had started when its request was sent."""
        self._calm_at = max(self._calm_at, sent_at)

    def given_up_by(self, now: float) -> float:
        """Returns until when records in flight are waited for, so that JoinGroup arrives in time.

        The broker removes members that have not joined `max_poll_interval_ms` after the start of
        the rebalance. It started no earlier than this member was last calm.
        """
        margin_s = min(self.interval_s, self._poll_s / _MARGIN)
        return max(now, self._calm_at + self._poll_s - margin_s)

    def begin(self, generation: int, sent_at: float, now: float, *, reads_on: bool) -> None:
        """Notes a generation from a JoinGroup sent then; the member `reads_on` from the one before.

        The broker counts the session from the end of the join, which was while this member waited.
        If it answers with the previous generation, only a heartbeat can tell. If the known rest is
        too short, no partition is started before a heartbeat is answered.
        """
        is_new = generation != self._generation
        self._generation = generation
        self.needs_beat = False
        if is_new and (reads_on or now - sent_at <= self.interval_s):
            self.heard(sent_at, calm=True)
        elif not reads_on:
            self._heard_at = self._calm_at = now
            self.needs_beat = True
