"""Implements fetch sessions (KIP-227), whose incremental requests name only changed partitions.

The session epoch in a Fetch request has three ranges:

    0           a full request: names all partitions, creates a session, and ends the session that
                it names
    1, 2, 3 …   an incremental request: names the partitions that the client changes; the response
                has the partitions that have changed on the broker
    -1          a full request that creates no session, and ends the session that it names

A broker has one `FetchSessionCache` for all of its clients. Times are parameters, in ms.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ..messages.fetch_request import FetchPartition, FetchRequest
from ..messages.fetch_response import FetchResponse, PartitionData
from ..wire.uuid import ZERO_UUID, Uuid
from .api_error import api_error

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "NO_SESSION",
    "CachedPartition",
    "FetchContext",
    "FetchSessionCache",
    "next_epoch",
]

#: The session id of a request without a session.
NO_SESSION: Final = 0
#: The epoch of a request that creates a session.
INITIAL_EPOCH: Final = 0
#: The epoch of a request without a session, or of a request that ends its session.
FINAL_EPOCH: Final = -1

_LAST_EPOCH: Final = 2**31 - 1
_LAST_ID: Final = 2**31 - 1
_UNKNOWN: Final = -1
_NO_REPLICA: Final = -1
_SLOTS: Final = 1000
_EVICTION_MS: Final = 120_000
_RANDOM: Final = random.SystemRandom()

#: The key of a partition in a session: topic name, topic id and partition index. Either the name is
#: empty or the topic id is zero.
_Key: TypeAlias = tuple[str, Uuid, int]


def next_epoch(epoch: int) -> int:
    """Returns the epoch after `epoch`: 1 after 2**31 - 1, and -1 after a negative epoch."""
    if epoch < INITIAL_EPOCH:
        return FINAL_EPOCH
    return 1 if epoch == _LAST_EPOCH else epoch + 1


@dataclass(slots=True, eq=False)
class CachedPartition:
    """Holds a partition of a Fetch, and the offsets that the client last received for it.

    `topic` is the topic's name, or empty if the client uses `topic_id`. `name` is the name that
    `topic_id` had at its first lookup; None before the first lookup.
    """

    topic: str
    topic_id: Uuid
    requested: FetchPartition
    name: str | None = None
    high_watermark: int = _UNKNOWN
    log_start_offset: int = _UNKNOWN

    @property
    def key(self) -> _Key:
        """Returns the key of the partition in a session."""
        return self.topic, self.topic_id, self.requested.partition

    def has_topic_of(self, other: CachedPartition) -> bool:
        """Returns True if both partitions name the same topic in the same way."""
        return (
            self.topic == other.topic
            and self.name == other.name
            and self.topic_id == other.topic_id
        )

    def is_changed(self, data: PartitionData) -> bool:
        """Returns True if the response must include the partition with `data`.

        The response must include a partition with records, an error, a preferred replica or a
        diverging epoch, and a partition whose high watermark or log start offset differs from the
        value that the client last received.
        """
        return (
            bool(data.records)
            or data.error_code != 0
            or not self.was_sent(data.high_watermark, data.log_start_offset)
            or data.preferred_read_replica != _NO_REPLICA
            or data.diverging_epoch.epoch != _UNKNOWN
        )

    def was_sent(self, high_watermark: int, log_start_offset: int) -> bool:
        """Returns True if the client last received these offsets."""
        return self.high_watermark == high_watermark and self.log_start_offset == log_start_offset

    def mark_sent(self, data: PartitionData) -> None:
        """Stores the high watermark and the log start offset that `data` sends to the client.

        After an error the high watermark counts as unknown, so that the next response includes the
        partition.
        """
        self.high_watermark = _UNKNOWN if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset


@dataclass(slots=True, eq=False)
class _FetchSession:
    """Holds a session of one client; `epoch` is the session epoch of the client's next request.

    `size` is the number of partitions at the session's last use. `is_evictable` is True if the time
    from the creation to the last use of the session exceeds the eviction time.
    """

    session_id: int
    by_id: bool
    partitions: dict[_Key, CachedPartition]
    created_ms: int
    used_ms: int
    epoch: int = next_epoch(INITIAL_EPOCH)
    size: int = 0
    is_evictable: bool = False

    def update(self, requested: Iterable[CachedPartition], forgotten: Iterable[_Key]) -> None:
        """Adds or changes the `requested` partitions, and removes the `forgotten` ones."""
        for cached in requested:
            known = self.partitions.setdefault(cached.key, cached)
            known.requested = cached.requested
        for key in forgotten:
            self.partitions.pop(key, None)


class FetchContextResponse(NamedTuple):
    """Holds a response: the name of a top-level error or None, the session id, the partitions."""

    error: str | None
    session_id: int
    partitions: list[tuple[CachedPartition, PartitionData]]


@dataclass(slots=True, eq=False)
class FetchContext:
    """Holds the partitions that one Fetch reads, and selects the partitions of the response."""

    partitions: list[CachedPartition]
    _sessions: FetchSessionCache
    _session: _FetchSession | None = None
    _epoch: int = FINAL_EPOCH
    _by_id: bool = False
    _creates_session: bool = False

    @property
    def is_incremental(self) -> bool:
        """Returns True if the response need not include all partitions."""
        return self._session is not None

    def is_unchanged(
        self, cached: CachedPartition, high_watermark: int, log_start_offset: int
    ) -> bool:
        """Returns True if the response need not include a partition that has nothing to send.

        In the response to an incremental request, only a high watermark or log start offset that
        the client does not know must be sent. A caller that leaves out the partition need not
        create its part of the response; `answer` would leave it out, too.
        """
        return self._session is not None and cached.was_sent(high_watermark, log_start_offset)

    def answer(
        self, read: list[tuple[CachedPartition, PartitionData]], now_ms: int
    ) -> FetchContextResponse:
        """Returns the response for the partitions that were read, in the order of `read`.

        The response to a full request has all partitions. If the request creates a session, the
        response also has the id of the session. The id is NO_SESSION if the cache is full, and no
        session can be evicted.

        The response to an incremental request has only the partitions that have changed. If the
        session has received another request since this one, the response has only the error
        INVALID_FETCH_SESSION_EPOCH.
        """
        session = self._session
        if session is None:
            session_id = NO_SESSION
            if self._creates_session:
                session_id = self._sessions.create_session(read, by_id=self._by_id, now_ms=now_ms)
            return FetchContextResponse(None, session_id, read)
        if session.epoch != self._epoch:
            # Another request of the session arrived while this request waited.
            return FetchContextResponse("INVALID_FETCH_SESSION_EPOCH", session.session_id, [])
        changed = []
        for cached, data in read:
            known = session.partitions.get(cached.key)
            if known is None or not known.is_changed(data):
                continue
            known.mark_sent(data)
            if data.records:
                # The next fetch reads the other partitions first: a partition that fills each
                # response must not starve them.
                session.partitions[cached.key] = session.partitions.pop(cached.key)
            changed.append((cached, data))
        return FetchContextResponse(None, session.session_id, changed)


def _random_id() -> int:
    return _RANDOM.randint(1, _LAST_ID)


@dataclass(slots=True, eq=False)
class FetchSessionCache:
    """Holds the fetch sessions of one broker.

    `slots` is the maximum number of sessions (max.incremental.fetch.session.cache.slots). If the
    cache is full, a new session evicts

    1. the least recently used session, if it was not used for `eviction_ms`
       (min.incremental.fetch.session.eviction.ms);
    2. else, of the sessions that were older than `eviction_ms` at their last use, the session with
       the fewest partitions, if it has fewer partitions than the new session.

    If no session may be evicted, no session is created, and the client must name all partitions in
    its next request again. Unlike in Kafka, sessions of followers are not privileged. `new_id`
    generates session ids from 1 to 2**31 - 1.
    """

    slots: int = _SLOTS
    eviction_ms: int = _EVICTION_MS
    new_id: Callable[[], int] = _random_id
    #: The sessions by id; the least recently used session comes first.
    _by_id: OrderedDict[int, _FetchSession] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._by_id)

    def partitions_of(self, session_id: int) -> list[tuple[str, int]]:
        """Returns the topic name and the index of each partition of a session.

        Returns an empty list for an unknown session. A topic name is "" if the topic id of the
        partition has not been looked up.
        """
        session = self._by_id.get(session_id)
        partitions = () if session is None else session.partitions.values()
        return [(each.name or each.topic, each.requested.partition) for each in partitions]

    def new_context(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> FetchContext:
        """Returns the context of a request; `by_id` is True if the request has topic ids.

        Applies an incremental request to its session. Ends the session if the request leaves no
        partition in the session. A full request ends the session that it names. If a partition is
        named twice, the last entry is effective. Raises FETCH_SESSION_ID_NOT_FOUND,
        INVALID_FETCH_SESSION_EPOCH and FETCH_SESSION_TOPIC_ID_ERROR.
        """
        requested = _requested_partitions(request, by_id)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._by_id.pop(request.session_id, None)
            creates_session = request.session_epoch == INITIAL_EPOCH
            return FetchContext(
                list(requested.values()), self, _by_id=by_id, _creates_session=creates_session
            )
        session = self._by_id.get(request.session_id)
        if session is None:
            raise api_error(
                "FETCH_SESSION_ID_NOT_FOUND", f"there is no fetch session {request.session_id}"
            )
        if session.epoch != request.session_epoch:
            raise api_error(
                "INVALID_FETCH_SESSION_EPOCH",
                f"the next epoch of the session is {session.epoch}, not {request.session_epoch}",
            )
        if session.by_id != by_id:
            how = "ids" if session.by_id else "names"
            raise api_error(
                "FETCH_SESSION_TOPIC_ID_ERROR", f"the session was created with topic {how}"
            )
        session.update(requested.values(), _forgotten(request, by_id))
        if not session.partitions:
            del self._by_id[session.session_id]
            return FetchContext(list(requested.values()), self)
        self._touch(session, now_ms)
        session.epoch = next_epoch(session.epoch)
        return FetchContext(list(session.partitions.values()), self, session, session.epoch)

    def create_session(
        self, read: Iterable[tuple[CachedPartition, PartitionData]], *, by_id: bool, now_ms: int
    ) -> int:
        """Creates a session with the partitions of a response; returns the session id.

        Returns NO_SESSION if the cache is full and no session can be evicted.
        """
        partitions = {}
        for cached, data in read:
            cached.high_watermark = data.high_watermark
            cached.log_start_offset = data.log_start_offset
            partitions[cached.key] = cached
        if len(self._by_id) >= self.slots and not self._try_evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = self.new_id()
        while session_id in self._by_id:
            session_id = self.new_id()
        session = _FetchSession(session_id, by_id, partitions, now_ms, now_ms)
        self._by_id[session_id] = session
        self._touch(session, now_ms)
        return session_id

    def on_throttled(self, request: FetchRequest, response: FetchResponse) -> int:
        """Returns the session id to send with a throttled response.

        `response` is the response that was computed; its partitions are not sent, and the next
        response of the session includes them. If `request` created the session, removes the session
        and returns NO_SESSION. Also returns NO_SESSION if there is no session.
        """
        session = self._by_id.get(response.session_id)
        if session is None or request.session_epoch == INITIAL_EPOCH:
            self._by_id.pop(response.session_id, None)
            return NO_SESSION
        for topic in response.responses:
            for partition in topic.partitions:
                key = topic.topic, Uuid(topic.topic_id), partition.partition_index
                known = session.partitions.get(key)
                if known is not None:
                    known.high_watermark = _UNKNOWN
        return session.session_id

    def _touch(self, session: _FetchSession, now_ms: int) -> None:
        session.used_ms = now_ms
        session.size = len(session.partitions)
        session.is_evictable = now_ms - session.created_ms > self.eviction_ms
        self._by_id.move_to_end(session.session_id)

    def _try_evict(self, size: int, now_ms: int) -> bool:
        """Evicts a session to make room for a new session of `size` partitions (KIP-227).

        Returns False if no session may be evicted.
        """
        if not self._by_id:
            return False
        victim = next(iter(self._by_id.values()))
        if now_ms - victim.used_ms <= self.eviction_ms:
            evictable = [session for session in self._by_id.values() if session.is_evictable]
            if not evictable:
                return False
            victim = min(evictable, key=lambda it: (it.size, it.session_id))
            if size <= victim.size:
                return False
        del self._by_id[victim.session_id]
        return True


def _requested_partitions(request: FetchRequest, by_id: bool) -> dict[_Key, CachedPartition]:
    found: dict[_Key, CachedPartition] = {}
    for topic in request.topics:
        name, topic_id = _identity(topic.topic, topic.topic_id, by_id)
        for requested in topic.partitions:
            cached = CachedPartition(name, topic_id, requested)
            found.setdefault(cached.key, cached).requested = requested
    return found


def _forgotten(request: FetchRequest, by_id: bool) -> list[_Key]:
    return [
        (*_identity(topic.topic, topic.topic_id, by_id), index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


def _identity(name: str, topic_id: bytes, by_id: bool) -> tuple[str, Uuid]:
    return ("", Uuid(topic_id)) if by_id else (name, ZERO_UUID)
