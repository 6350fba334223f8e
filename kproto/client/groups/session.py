"""Computes, from responses, until when the session of a member certainly lasts. Does no I/O.

Times are in seconds of the client's clock. A broker starts the session at the arrival of a request.
The client does not know that time, so it uses the earlier time of sending.
"""

from __future__ import annotations

from typing import Final

from ..core.retry import TIMER_RESOLUTION_S
from .assignors.subscriptions import NO_GENERATION
from .settings import GroupSettings

__all__ = ["MemberSession"]

_NEVER: Final = float("inf")

#: The time that is reserved for JoinGroup: `max_poll_interval_ms` divided by this number, but at
#: most a heartbeat interval.
_MARGIN: Final = 10


class MemberSession:
    """The session of one member.

    If `keeps_partitions` is True, the member continues to read while the group rebalances.
    `needs_heartbeat` is True while only a heartbeat can show that the session is alive.
    `interval_s` is the heartbeat interval.
    """

    def __init__(self, settings: GroupSettings, *, keeps_partitions: bool) -> None:
        self._keeps_partitions = keeps_partitions
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
        """Returns the time until which the member certainly keeps its partitions.

        The time is the end of the session, which each answered heartbeat extends. If the member
        keeps its partitions during a rebalance (KIP-429), the time is `stable_until`, because the
        broker also removes a member whose JoinGroup does not arrive in time. The time is one timer
        tick early, because timers are not more precise.
        """
        return self.stable_until if self._keeps_partitions else self._session_deadline

    @property
    def stable_until(self) -> float:
        """Returns the time until which the member keeps its partitions if it sees no rebalance.

        This is the end of the session, or `max_poll_interval_ms` after the last response that
        reported no rebalance, whichever is earlier. A rebalance may have started right after that
        response; such a rebalance may end without the member.
        """
        return min(
            self._session_deadline,
            self._last_stable_at + self._max_poll_interval_s - TIMER_RESOLUTION_S,
        )

    @property
    def _session_deadline(self) -> float:
        return self._session_start + self.session_ms / 1000 - TIMER_RESOLUTION_S

    def has_timed_out(self, now: float) -> bool:
        """Returns True if no heartbeat was answered within the session timeout.

        Does not check `stable_until`: a rebalance that the member has missed may have ended its
        membership earlier.
        """
        return now >= self._session_deadline

    def on_heartbeat_answered(self, sent_at: float, *, stable: bool) -> None:
        """Renews the session after the response to a heartbeat that was sent at `sent_at`.

        `stable` is True if the response shows that no rebalance had started.
        """
        self.needs_heartbeat = False
        self._session_start = max(self._session_start, sent_at)
        if stable:
            self.on_stable(sent_at)

    def on_stable(self, sent_at: float) -> None:
        """Stores that no rebalance had started at `sent_at`, in seconds of the clock.

        `sent_at` is the time at which the member sent the request whose response shows this.
        """
        self._last_stable_at = max(self._last_stable_at, sent_at)

    def revoke_deadline(self, now: float) -> float:
        """Returns the time until which a revocation may wait for the processing of records.

        The broker removes a member that does not rejoin within `max_poll_interval_ms` after the
        start of a rebalance. The rebalance started after the member sent the last request whose
        response announced no rebalance. So the deadline is `max_poll_interval_ms` after the member
        sent that request, minus a margin for JoinGroup, and never before `now`.
        """
        margin_s = min(self.interval_s, self._max_poll_interval_s / _MARGIN)
        return max(now, self._last_stable_at + self._max_poll_interval_s - margin_s)

    def start_generation(
        self, generation: int, sent_at: float, now: float, *, keeps_partitions: bool
    ) -> None:
        """Starts a generation, after the response to a JoinGroup sent at `sent_at`.

        `keeps_partitions` is True if the member kept its partitions from the previous generation.
        The broker starts the session when the join ends, at a time that the client does not know.
        So a member that kept no partitions may need a heartbeat before it starts its partitions:
        `needs_heartbeat` becomes True if the member waited for the response longer than a heartbeat
        interval, or if the response has the previous generation.

        No rebalance of the new generation had started when the member sent its last heartbeat of
        the previous generation, because the response showed that the join had not ended.
        """
        is_new = generation != self._generation
        if is_new and keeps_partitions:
            sent_at = max(sent_at, self._session_start)
        self._generation = generation
        self.needs_heartbeat = False
        if is_new and (keeps_partitions or now - sent_at <= self.interval_s):
            self.on_heartbeat_answered(sent_at, stable=True)
        elif not keeps_partitions:
            self._session_start = self._last_stable_at = now
            self.needs_heartbeat = True
