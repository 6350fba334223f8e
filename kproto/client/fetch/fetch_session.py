"""`FetchSession`: the fetch session of this consumer at one broker (KIP-227). Without I/O.

A full fetch opens a session and names every partition. The incremental fetches after it name only
the partitions that are new or have another topic id, offset, limit or epoch, and the partitions
that the broker must remove from the session. The broker returns only partitions that have something
new. The client compares the fields of each partition with the fields that it sent last. If the
client drops fetched records, it fetches them again. If the offset to fetch from differs from the
offset in the session, the next fetch names the partition with the new offset. The rules are those
of Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition

__all__ = [
    "BY_TOPIC_ID",
    "FINAL_EPOCH",
    "FetchSession",
    "ForgottenPartition",
    "RequestedPartition",
    "SessionFetch",
    "without_session",
]

#: The first version of Fetch with sessions.
_FIRST_VERSION: Final = 7

#: From this version on, Fetch names topics by id alone (KIP-516). A session that such a fetch has
#: opened names them by id, too.
BY_TOPIC_ID: Final = 13

_NO_SESSION: Final = 0

#: The session epoch of a fetch without a session, and of a fetch that closes its session.
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_LAST_EPOCH: Final = 0x7FFFFFFF

_NOT_FOUND: Final = code_of("FETCH_SESSION_ID_NOT_FOUND")
_REPAIRED_BY_NEW_SESSION: Final = (_NOT_FOUND, code_of("INVALID_FETCH_SESSION_EPOCH"))


class RequestedPartition(NamedTuple):
    """The fields of one partition in a fetch request.

    `leader_epoch` is the epoch of the current leader, and `last_epoch` is the leader epoch of the
    last fetched record; each is -1 if unknown.
    """

    topic_id: Uuid
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_epoch: int = -1


class ForgottenPartition(NamedTuple):
    """A partition that the broker removes from the session."""

    topic: str
    topic_id: Uuid
    partition: int


class SessionFetch(NamedTuple):
    """The session id and epoch of a fetch, and its partitions.

    `to_send` has the partitions that the request names. `to_forget` has the partitions that the
    broker removes from the session (KIP-227).
    """

    session_id: int
    epoch: int
    to_send: Mapping[TopicPartition, RequestedPartition]
    to_forget: list[ForgottenPartition]

    @property
    def is_full(self) -> bool:
        """True for a full fetch: the broker responds with every requested partition."""
        return self.epoch in (FINAL_EPOCH, INITIAL_EPOCH)


def without_session(requested: Mapping[TopicPartition, RequestedPartition]) -> SessionFetch:
    """Returns a full fetch that opens no session."""
    return SessionFetch(_NO_SESSION, FINAL_EPOCH, requested, [])


class FetchSession:
    """Tracks the session with one broker.

    Call `handle_response` or `handle_error` after each `build_fetch`. If `is_used` is False, every
    fetch is full, and opens no session.
    """

    __slots__ = ("_by_id", "_epoch", "_id", "_in_flight", "_is_used", "_partitions")

    def __init__(self, *, is_used: bool = True) -> None:
        self._is_used = is_used
        self._id = _NO_SESSION
        self._epoch = INITIAL_EPOCH  # of the next fetch
        self._partitions: dict[TopicPartition, RequestedPartition] = {}
        self._by_id = False
        self._in_flight: SessionFetch | None = None

    def build_fetch(
        self, requested: Mapping[TopicPartition, RequestedPartition], version: int
    ) -> SessionFetch:
        """Returns the fetch of the `requested` partitions, to be sent in `version`.

        In an open fetch session the fetch is incremental: it names only new partitions, and
        partitions whose fields have changed. Otherwise the fetch names all partitions.
        """
        if self._in_flight is not None:
            self.handle_error()
        if not self._is_used or version < _FIRST_VERSION:
            fetch = without_session(requested)
        else:
            by_id = version >= BY_TOPIC_ID
            if self._by_id != by_id:
                self._reset()
                self._by_id = by_id
            if self._epoch == INITIAL_EPOCH:
                fetch = SessionFetch(self._id, INITIAL_EPOCH, requested, [])
            else:
                fetch = self._changes(requested)
            self._partitions = dict(requested)
        self._in_flight = fetch
        return fetch

    def _changes(self, requested: Mapping[TopicPartition, RequestedPartition]) -> SessionFetch:
        previous = self._partitions
        to_send = {tp: each for tp, each in requested.items() if previous.get(tp) != each}
        to_forget: list[ForgottenPartition] = []
        if len(requested) - len(to_send) != len(previous) or to_send:
            for (topic, partition), each in previous.items():
                now = requested.get((topic, partition))
                # A session by topic names has one partition for the old and the recreated topic: it
                # stays.
                is_other = self._by_id and now is not None and now.topic_id != each.topic_id
                if now is None or is_other:
                    to_forget.append(ForgottenPartition(topic, each.topic_id, partition))
        return SessionFetch(self._id, self._epoch, to_send, to_forget)

    def handle_response(
        self, error_code: int, session_id: int, tps: Collection[TopicPartition]
    ) -> bool:
        """Updates the session by a response, which has the partitions `tps`.

        Returns False if the broker refused an incremental fetch because of its session: the next
        fetch opens another session, and may be sent at once. The caller handles other error codes.
        """
        fetch, self._in_flight = self._in_flight, None
        if fetch is None or fetch.epoch == FINAL_EPOCH:
            return True
        if error_code:
            if error_code == _NOT_FOUND:
                self._id = _NO_SESSION
            self._reset()
            return fetch.is_full or error_code not in _REPAIRED_BY_NEW_SESSION
        if not fetch.is_full and any(tp not in self._partitions for tp in tps):
            self._reset()  # the session of the broker has other partitions
        elif session_id == _NO_SESSION:
            self._id = _NO_SESSION  # the broker has no room for a session, or has closed it
            self._reset()
        else:
            self._id = session_id
            self._epoch = fetch.epoch % _LAST_EPOCH + 1
        return True

    def handle_error(self) -> None:
        """Makes the next fetch open another session, because the last fetch has no response."""
        self._in_flight = None
        self._reset()

    def close(self) -> int | None:
        """Forgets the session; returns its id, for the closing request; None if there is none."""
        session_id = self._id
        self._id = _NO_SESSION
        self._reset()
        self._in_flight = None
        return session_id or None

    def _reset(self) -> None:
        """Makes the next fetch open a new session; the broker then closes the present session."""
        self._epoch = INITIAL_EPOCH
        self._partitions = {}
