"""`ShareNode`: decides the next request of one share session. Does no I/O.

The fetcher sends one request of a session at a time: `next_request` decides which one is due, by
the table `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final

from ...core.retry import Attempts
from ...settings import ClientSettings
from .acquisition import AcknowledgeType, Acquisition
from .session import ShareSession, TopicIdPartition

__all__ = ["ACK_DELAY_S", "CHOICES", "RequestKind", "ShareNode", "Situation"]

#: Acknowledgements wait for this many seconds for further ones, or for a fetch that takes them.
ACK_DELAY_S: Final = 0.05

_NEVER: Final = float("inf")
_LONG_AGO: Final = float("-inf")


class RequestKind(Enum):
    """The next request of a session."""

    NONE = "no request is due"
    OPEN = "a ShareFetch that opens the session, without acknowledgements"
    FETCH = "a ShareFetch, with the acknowledgements of the partitions that it fetches"
    ACKNOWLEDGE = "a ShareAcknowledge"
    REFUSE = "no request: without a session the acknowledgements fail"


class Situation(Enum):
    """The acknowledgements that wait to be sent."""

    NONE = "none"
    WAITING = "some, which may wait for more"
    DUE = "some that are due: after the delay, for a commit, or because they renew locks"


#: Session is open, records are wanted, acknowledgements -> the next request.
CHOICES: Final[dict[tuple[bool, bool, Situation], RequestKind]] = {
    (False, False, Situation.NONE): RequestKind.NONE,
    (False, False, Situation.WAITING): RequestKind.NONE,
    (False, False, Situation.DUE): RequestKind.REFUSE,
    (False, True, Situation.NONE): RequestKind.OPEN,
    (False, True, Situation.WAITING): RequestKind.OPEN,
    (False, True, Situation.DUE): RequestKind.OPEN,
    (True, False, Situation.NONE): RequestKind.NONE,
    (True, False, Situation.WAITING): RequestKind.NONE,
    (True, False, Situation.DUE): RequestKind.ACKNOWLEDGE,
    (True, True, Situation.NONE): RequestKind.FETCH,
    (True, True, Situation.WAITING): RequestKind.FETCH,
    # A broker may delay the response to a fetch.
    (True, True, Situation.DUE): RequestKind.ACKNOWLEDGE,
}


class ShareNode:
    """The share session at one broker, and the acquisitions with acknowledgements to send to it.

    `pending_since` is the time of the first of these acknowledgements, in seconds of the clock.
    `sent_count` counts the requests with acknowledgements, `answered_count` those that have ended.
    `is_urgent` is True while a commit waits for the acknowledgements.
    """

    __slots__ = (
        "answered_count",
        "attempts",
        "connection",
        "is_busy",
        "is_fetching",
        "is_urgent",
        "node",
        "pending",
        "pending_since",
        "sent_count",
        "session",
    )

    def __init__(self, node: int, settings: ClientSettings) -> None:
        self.node = node
        self.session = ShareSession()
        self.connection: object = None  # the connection of the session
        self.attempts = Attempts(settings)
        self.pending: list[Acquisition] = []
        self.pending_since = _NEVER
        self.sent_count = 0
        self.answered_count = 0
        self.is_urgent = False
        self.is_busy = False  # a request is in flight
        self.is_fetching = False

    def add_pending(self, acquisition: Acquisition, now: float) -> None:
        """Adds an acquisition with acknowledgements to send."""
        if not acquisition.is_pending:
            acquisition.is_pending = True
            if not self.pending:
                self.pending_since = now
            self.pending.append(acquisition)

    def release_open(self, acquisitions: Iterable[Acquisition], now: float) -> None:
        """Releases all offsets of acquisitions that are not acknowledged."""
        for each in acquisitions:
            if each.acknowledge_open(AcknowledgeType.RELEASE, each.first):
                self.add_pending(each, now)

    def situation(self, now: float) -> Situation:
        """Returns the situation of the acknowledgements to send."""
        if not self.pending:
            return Situation.NONE
        is_due = self.is_urgent or now >= self.pending_since + ACK_DELAY_S
        if is_due or any(each.has_renewals for each in self.pending):
            return Situation.DUE
        return Situation.WAITING

    def next_request(self, now: float, *, wants_records: bool) -> RequestKind:
        """Returns the request that is due now, if none is in flight."""
        if self.is_busy or now < self.attempts.not_before:
            return RequestKind.NONE
        return CHOICES[self.session.is_open, wants_records, self.situation(now)]

    def next_at(self) -> float:
        """Returns the time at which a request may be due, if no event arrives before."""
        if self.is_busy:
            return _NEVER
        due = self.pending_since + ACK_DELAY_S if self.pending else _NEVER
        backoff = self.attempts.not_before
        return backoff if backoff > _LONG_AGO and (due < backoff or due == _NEVER) else due

    def take_pending(self) -> list[Acquisition]:
        """Removes and returns the acquisitions with acknowledgements to send."""
        pending, self.pending = self.pending, []
        self.pending_since = _NEVER
        return pending

    def take_pending_of(self, tps: Collection[TopicIdPartition]) -> list[Acquisition]:
        """Removes and returns those acquisitions of `take_pending` that are of partitions `tps`.

        Leaves acquisitions with renewals, which a fetch cannot send.
        """
        wanted, since = frozenset(tps), self.pending_since
        taken = []
        for each in self.take_pending():
            if (each.topic_id, each.partition) in wanted and not each.has_renewals:
                taken.append(each)
            else:
                each.is_pending = False
                self.add_pending(each, since)
        return taken
