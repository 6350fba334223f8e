"""Computes, from responses, until when the session of a member certainly lasts. Plain data.

Knows no phase and no request. Times are in seconds of the client's clock. A broker starts the
session at the arrival of a request. The client does not know that time, so it uses the earlier time
of sending.
"""

from __future__ import annotations

from typing import Final

from ..core.retry import TICK_S
from .assignors.subscriptions import NO_GENERATION
from .settings import GroupSettings

__all__ = ["Session"]

_NEVER: Final = float("inf")

#: The time that is reserved for JoinGroup: `max_poll_interval_ms` divided by this number, but at
#: most a heartbeat interval.
_MARGIN: Final = 10


class Session:
    """The session of one member; it `reads_on` if it keeps reading while the group rebalances.

    `needs_beat` while only a heartbeat can show that the session is alive; `interval_s` is the
    heartbeat interval.
    """

    def __init__(self, settings: GroupSettings, *, reads_on: bool) -> None:
        self._reads_on = reads_on
        #: The session timeout in ms, as far as it is known.
        self.session_ms = settings.session_timeout_ms
        self.interval_s = settings.beat_interval_s
        self._poll_s = settings.max_poll_interval_ms / 1000
        self._session_start = -_NEVER  # the broker started the session then or later
        self._last_calm_at = -_NEVER  # no rebalance had started by then
        self._generation = NO_GENERATION  # the last generation, even if it was lost since
        self.needs_beat = False

    @property
    def until(self) -> float:
        """Returns when the session may end, unless a heartbeat is answered before.

        The result is a timer tick before the broker may end the session, because timers are not
        more precise. The broker also removes a member that `reads_on` during a rebalance if its
        JoinGroup does not arrive in time (KIP-429).
        """
        return self.calm_until if self._reads_on else self._silent_until

    @property
    def calm_until(self) -> float:
        """Returns when the session of a member that knows of no rebalance may end: a rebalance may
        have started and ended without it.
        """
        return min(self._silent_until, self._last_calm_at + self._poll_s - TICK_S)

    @property
    def _silent_until(self) -> float:
        return self._session_start + self.session_ms / 1000 - TICK_S

    def is_silent(self, now: float) -> bool:
        """Returns True if the session timed out without a response to a heartbeat; False for a
        session that a missed rebalance has ended.
        """
        return now >= self._silent_until

    def heard(self, sent_at: float, *, calm: bool) -> None:
        """Renews the session after the response to a heartbeat sent at `sent_at`; `calm` if no
        rebalance had started.
        """
        self.needs_beat = False
        self._session_start = max(self._session_start, sent_at)
        if calm:
            self.calm(sent_at)

    def calm(self, sent_at: float) -> None:
        """Notes a response that shows that no rebalance had started when its request was sent."""
        self._last_calm_at = max(self._last_calm_at, sent_at)

    def given_up_by(self, now: float) -> float:
        """Returns until when a revocation may wait for records in flight, so that JoinGroup arrives
        in time.

        The broker removes members that have not joined `max_poll_interval_ms` after the start of
        the rebalance, which started after the last request whose response announced none.
        """
        margin_s = min(self.interval_s, self._poll_s / _MARGIN)
        return max(now, self._last_calm_at + self._poll_s - margin_s)

    def begin(self, generation: int, sent_at: float, now: float, *, reads_on: bool) -> None:
        """Starts a generation, after the response to a JoinGroup sent at `sent_at`.

        The member `reads_on` if it kept its partitions from the previous generation. The broker
        starts the session at the end of the join, at an unknown time before the response. If the
        response has the previous generation, or the member waited longer than a heartbeat interval,
        no partition is started before a heartbeat is answered.
        """
        is_new = generation != self._generation
        self._generation = generation
        self.needs_beat = False
        if is_new and (reads_on or now - sent_at <= self.interval_s):
            self.heard(sent_at, calm=True)
        elif not reads_on:
            self._session_start = self._last_calm_at = now
            self.needs_beat = True
