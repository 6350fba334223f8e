"""Computes, from responses, until when the session of a member certainly lasts. Plain data.

Times are in seconds of the client's clock. A broker starts the session at the arrival of a request.
The client does not know that time, so it uses the earlier time of sending.
"""

from __future__ import annotations

from typing import Final

from ..core.retry import TIMER_RESOLUTION_S
from .assignors.subscriptions import NO_GENERATION
from .settings import GroupSettings

__all__ = ["Session"]

_NEVER: Final = float("inf")

#: The time that is reserved for JoinGroup: `max_poll_interval_ms` divided by this number, but at
#: most a heartbeat interval.
_MARGIN: Final = 10


class Session:
    """The session of one member; it `keeps_partitions` if it keeps reading while the group
    rebalances.

    `needs_heartbeat` while only a heartbeat can show that the session is alive; `interval_s` is the
    heartbeat interval.
    """

    def __init__(self, settings: GroupSettings, *, keeps_partitions: bool) -> None:
        self._reads_on = keeps_partitions
        #: The session timeout in ms; the consumer protocol has a default until the broker discloses
        #: it.
        self.session_ms = settings.session_timeout_ms
        self.interval_s = settings.heartbeat_interval_s
        self._max_poll_interval_s = settings.max_poll_interval_ms / 1000
        self._session_start = -_NEVER  # the broker started the session then or later
        self._last_stable_at = -_NEVER  # no rebalance had started by then
        self._generation = NO_GENERATION  # the last generation, even if it was lost since
        self.needs_heartbeat = False

    @property
    def valid_until(self) -> float:
        """Returns when the session may end, unless a heartbeat is answered before.

        The result is a timer tick before the broker may end the session, because timers are not
        more precise. The broker also removes a member that `keeps_partitions` during a rebalance if
        its JoinGroup does not arrive in time (KIP-429).
        """
        return self.stable_until if self._reads_on else self._session_deadline

    @property
    def stable_until(self) -> float:
        """Returns when the session of a member may end that has seen no rebalance: a rebalance may
        have started and ended without it.
        """
        return min(
            self._session_deadline,
            self._last_stable_at + self._max_poll_interval_s - TIMER_RESOLUTION_S,
        )

    @property
    def _session_deadline(self) -> float:
        return self._session_start + self.session_ms / 1000 - TIMER_RESOLUTION_S

    def has_timed_out(self, now: float) -> bool:
        """Returns True if the session timed out without a response to a heartbeat; False for a
        session that a missed rebalance has ended.
        """
        return now >= self._session_deadline

    def on_heartbeat_answered(self, sent_at: float, *, stable: bool) -> None:
        """Renews the session after the response to a heartbeat sent at `sent_at`; `stable` if no
        rebalance had started.
        """
        self.needs_heartbeat = False
        self._session_start = max(self._session_start, sent_at)
        if stable:
            self.on_stable(sent_at)

    def on_stable(self, sent_at: float) -> None:
        """Processes a response which shows that no rebalance had started at `sent_at`."""
        self._last_stable_at = max(self._last_stable_at, sent_at)

    def revoke_deadline(self, now: float) -> float:
        """Returns until when a revocation may wait for records in flight, so that JoinGroup arrives
        in time.

        The broker removes members that have not joined `max_poll_interval_ms` after the start of
        the rebalance, which started after the last request whose response announced none.
        """
        margin_s = min(self.interval_s, self._max_poll_interval_s / _MARGIN)
        return max(now, self._last_stable_at + self._max_poll_interval_s - margin_s)

    def start_generation(
        self, generation: int, sent_at: float, now: float, *, keeps_partitions: bool
    ) -> None:
        """Starts a generation, after the response to a JoinGroup sent at `sent_at`.

        The member `keeps_partitions` if it kept its partitions from the previous generation. The
        broker starts the session at the end of the join, at an unknown time before the response. If
        the response has the previous generation, or the member waited longer than a heartbeat
        interval, no partition is started before a heartbeat is answered.
        """
        is_new = generation != self._generation
        self._generation = generation
        self.needs_heartbeat = False
        if is_new and (keeps_partitions or now - sent_at <= self.interval_s):
            self.on_heartbeat_answered(sent_at, stable=True)
        elif not keeps_partitions:
            self._session_start = self._last_stable_at = now
            self.needs_heartbeat = True
