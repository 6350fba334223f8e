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
from ...wire.uuid import ZERO_UUID, Uuid
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

#: From this version on, Fetch names topics by id alone (KIP-516). If such a fetch has opened a
#: session, the session names topics by id, too.
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
    """Tracks the partitions of the fetches from one broker, and the session with the broker.

    `partitions` has the partitions of the next fetch, in the order of a full fetch; while a fetch
    is in flight, these are its partitions. Call `handle_response` or `handle_error` after each
    `build_fetch`. If `is_used` is False, every fetch is full, and opens no session.
    """

    __slots__ = (
        "_by_id",
        "_epoch",
        "_id",
        "_in_flight",
        "_is_used",
        "_partitions_by_id",
        "_previous",
        "partitions",
        "topic_names",
    )

    def __init__(self, *, is_used: bool = True) -> None:
        self._is_used = is_used
        self._id = _NO_SESSION
        self._epoch = INITIAL_EPOCH  # of the next fetch
        self.partitions: dict[TopicPartition, RequestedPartition] = {}
        #: The names of the topics in `partitions` by topic id, without topics of unknown id.
        self.topic_names: dict[Uuid, str] = {}
        self._partitions_by_id: dict[Uuid, int] = {}
        #: The partitions that changed since the last fetch, with their fields in the last fetch.
        self._previous: dict[TopicPartition, RequestedPartition | None] = {}
        self._by_id = False
        self._in_flight: SessionFetch | None = None

    def update(self, tp: TopicPartition, requested: RequestedPartition | None) -> None:
        """Sets the fields of a partition in the next fetch; None removes the partition.

        Moves the partition to the end of the order. Call it only while no fetch is in flight.
        """
        before = self.partitions.pop(tp, None)
        if requested is not None:
            self.partitions[tp] = requested
        if before != requested:
            if self._epoch != INITIAL_EPOCH:  # a full fetch names all partitions
                self._previous.setdefault(tp, before)
            self._count(tp[0], before, requested)

    def _count(
        self, topic: str, before: RequestedPartition | None, now: RequestedPartition | None
    ) -> None:
        counts = self._partitions_by_id
        if now is not None and now.topic_id in counts:
            counts[now.topic_id] += 1
        elif now is not None:
            counts[now.topic_id] = 1
            if now.topic_id != ZERO_UUID:
                self.topic_names[now.topic_id] = topic
        if before is not None:
            counts[before.topic_id] -= 1
            if not counts[before.topic_id]:
                del counts[before.topic_id]
                self.topic_names.pop(before.topic_id, None)

    @property
    def highest_version(self) -> int | None:
        """The highest version of the next fetch; None if there is no limit.

        A topic whose id is unknown can be fetched by name only.
        """
        return BY_TOPIC_ID - 1 if ZERO_UUID in self._partitions_by_id else None

    def build_fetch(self, version: int) -> SessionFetch:
        """Returns the fetch of `partitions`, to be sent in `version`.

        In an open fetch session the fetch is incremental: it names only new partitions, and
        partitions whose fields have changed. Otherwise the fetch names all partitions. The number
        of steps of an incremental fetch depends on the changed partitions only.
        """
        if self._in_flight is not None:
            self.handle_error()
        if not self._is_used or version < _FIRST_VERSION:
            fetch = without_session(self.partitions)
        else:
            by_id = version >= BY_TOPIC_ID
            if self._by_id != by_id:
                self._epoch = INITIAL_EPOCH
                self._by_id = by_id
            if self._epoch == INITIAL_EPOCH:
                fetch = SessionFetch(self._id, INITIAL_EPOCH, self.partitions, [])
            else:
                fetch = self._changes()
        self._previous = {}
        self._in_flight = fetch
        return fetch

    def _changes(self) -> SessionFetch:
        to_send: dict[TopicPartition, RequestedPartition] = {}
        to_forget: list[ForgottenPartition] = []
        for tp, before in self._previous.items():
            now = self.partitions.get(tp)
            if now is not None and now != before:
                to_send[tp] = now
            if before is None:
                continue
            # A session by topic names has one partition for the old and the recreated topic: it
            # stays.
            is_other = self._by_id and now is not None and now.topic_id != before.topic_id
            if now is None or is_other:
                topic, partition = tp
                to_forget.append(ForgottenPartition(topic, before.topic_id, partition))
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
            self._epoch = INITIAL_EPOCH
            return fetch.is_full or error_code not in _REPAIRED_BY_NEW_SESSION
        if not fetch.is_full and any(tp not in self.partitions for tp in tps):
            self._epoch = INITIAL_EPOCH  # the session of the broker has other partitions
        elif session_id == _NO_SESSION:
            self._id = _NO_SESSION  # the broker has no room for a session, or has closed it
            self._epoch = INITIAL_EPOCH
        else:
            self._id = session_id
            self._epoch = fetch.epoch % _LAST_EPOCH + 1
        return True

    def handle_error(self) -> None:
        """Makes the next fetch open a new session, because the last fetch has no response.

        The broker closes the present session when it opens the new session.
        """
        self._in_flight = None
        self._epoch = INITIAL_EPOCH

    def close(self) -> int | None:
        """Forgets the session; returns its id, for the closing request; None if there is none."""
        session_id = self._id
        self._id = _NO_SESSION
        self.handle_error()
        return session_id or None
