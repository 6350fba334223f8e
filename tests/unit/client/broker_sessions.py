"""Simulates a broker's fetch sessions (KIP-227) by the rules of Kafka's FetchManager.

`BrokerSessions.fetch` answers a Fetch; a function of the caller returns the data of each partition.
The broker opens no session if it has `room` sessions already. A test can delete entries of
`sessions`, to simulate an eviction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from kproto.messages import FetchRequest, FetchResponse
from kproto.messages.fetch_request import FetchPartition
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.protocol.error_codes import code_of
from kproto.wire.uuid import Uuid

__all__ = ["BrokerSessions", "ReadPartition"]

Key: TypeAlias = tuple[str, Uuid, int]
ReadPartition: TypeAlias = Callable[[str, Uuid, FetchPartition], PartitionData]


@dataclass
class Cached:
    """A session's partition: the client's last request for it, and the offsets last returned."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass
class Session:
    """A fetch session; `by_id` is true if its fetches name topics by id."""

    by_id: bool
    epoch: int = 1
    partitions: dict[Key, Cached] = field(default_factory=dict)


class BrokerSessions:
    """Holds at most `room` fetch sessions.

    `closed` lists the ids of the sessions that clients closed or replaced.
    """

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.sessions: dict[int, Session] = {}
        self.closed: list[int] = []
        self._last_id = 100

    def fetch(self, request: FetchRequest, version: int, read: ReadPartition) -> FetchResponse:
        by_id = version >= 13
        named: dict[Key, FetchPartition] = {
            (topic.topic, topic.topic_id, part.partition): part
            for topic in request.topics
            for part in topic.partitions
        }
        if request.session_epoch in (0, -1):
            if self.sessions.pop(request.session_id, None) is not None:
                self.closed.append(request.session_id)
            found = {key: read(key[0], key[1], part) for key, part in named.items()}
            if request.session_epoch == -1 or len(self.sessions) >= self.room or version < 7:
                return _response(0, found)
            self._last_id += 1
            session = Session(by_id)
            for key, part in named.items():
                session.partitions[key] = Cached(
                    part, found[key].high_watermark, found[key].log_start_offset
                )
            self.sessions[self._last_id] = session
            return _response(self._last_id, found)
        known = self.sessions.get(request.session_id)
        if known is None:
            return FetchResponse(error_code=code_of("FETCH_SESSION_ID_NOT_FOUND"))
        if known.epoch != request.session_epoch:
            return FetchResponse(error_code=code_of("INVALID_FETCH_SESSION_EPOCH"))
        if known.by_id != by_id:
            return FetchResponse(error_code=code_of("FETCH_SESSION_TOPIC_ID_ERROR"))
        known.epoch = known.epoch % 0x7FFFFFFF + 1
        for key, part in named.items():
            cached = known.partitions.setdefault(key, Cached(part))
            cached.wanted = part
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                known.partitions.pop((topic.topic, topic.topic_id, partition), None)
        found = {}
        for key, cached in list(known.partitions.items()):
            data = read(key[0], key[1], cached.wanted)
            offsets = (data.high_watermark, data.log_start_offset)
            is_new = offsets != (cached.high_watermark, cached.log_start_offset)
            has_hint = data.diverging_epoch.epoch >= 0 or data.preferred_read_replica >= 0
            if not (data.records or data.error_code or is_new or has_hint):
                continue
            found[key] = data
            cached.high_watermark, cached.log_start_offset = offsets
            if data.error_code:
                cached.high_watermark = -1
            if data.records:
                known.partitions[key] = known.partitions.pop(key)
        return _response(request.session_id, found)


def _response(session_id: int, found: dict[Key, PartitionData]) -> FetchResponse:
    topics: dict[tuple[str, Uuid], FetchableTopicResponse] = {}
    for (name, topic_id, _), data in found.items():
        topic = topics.setdefault(
            (name, topic_id), FetchableTopicResponse(topic=name, topic_id=topic_id)
        )
        topic.partitions.append(data)
    return FetchResponse(session_id=session_id, responses=list(topics.values()))
