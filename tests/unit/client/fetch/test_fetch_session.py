"""Tests the consumer's fetch sessions (KIP-227): the requests, and the effects of responses."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.fetch.fetch_requests import fetch_request
from kproto.client.fetch.fetch_session import (
    FINAL_EPOCH,
    FetchSession,
    ForgottenPartition,
    RequestedPartition,
    SessionFetch,
)
from kproto.client.fetch.fetcher import fetched_partitions
from kproto.client.metadata.cluster import TopicPartition
from kproto.messages import FetchRequest, FetchResponse
from kproto.messages.fetch_request import FetchPartition
from kproto.messages.fetch_response import PartitionData
from kproto.protocol.error_codes import code_of
from kproto.wire.uuid import ZERO_UUID, Uuid
from tests.unit.client.broker_sessions import BrokerSessions

ID = Uuid(bytes(15) + b"\x01")
OTHER = Uuid(bytes(15) + b"\x02")

NOT_FOUND = code_of("FETCH_SESSION_ID_NOT_FOUND")
BAD_EPOCH = code_of("INVALID_FETCH_SESSION_EPOCH")
TOPIC_ID = code_of("FETCH_SESSION_TOPIC_ID_ERROR")


def at(offset: int, topic_id: Uuid = ID, **epochs: int) -> RequestedPartition:
    return RequestedPartition(topic_id, offset, 1000, **epochs)


def build(
    session: FetchSession, requested: dict[TopicPartition, RequestedPartition], version: int
) -> SessionFetch:
    """Updates the partitions of the session to `requested`, and builds the fetch."""
    for tp in session.partitions.keys() - requested.keys():
        session.update(tp, None)
    for tp, each in requested.items():
        session.update(tp, each)
    fetch = session.build_fetch(version)
    return fetch._replace(to_send=dict(fetch.to_send))


def opened(requested: dict[TopicPartition, RequestedPartition], version: int = 18) -> FetchSession:
    """Returns a fetch session with id 7 that has the partitions in `requested`."""
    session = FetchSession()
    assert build(session, requested, version) == SessionFetch(0, 0, requested, [])
    assert session.handle_response(0, 7, requested)
    return session


def test_first_fetch_has_all_partitions_and_later_ones_the_changed() -> None:
    requested = {("t", 0): at(5), ("t", 1): at(6)}
    session = opened(requested)
    assert build(session, dict(requested), 18) == SessionFetch(7, 1, {}, [])
    assert session.handle_response(0, 7, [])
    requested["t", 1] = at(9)
    assert build(session, requested, 18) == SessionFetch(7, 2, {("t", 1): at(9)}, [])
    assert session.handle_response(0, 7, [("t", 1)])
    requested["t", 0] = at(5, leader_epoch=3)
    assert build(session, requested, 18) == SessionFetch(7, 3, {("t", 0): requested["t", 0]}, [])


def test_removed_partition_is_forgotten_and_new_one_is_added() -> None:
    session = opened({("t", 0): at(5), ("t", 1): at(6)})
    requested = {("t", 0): at(5), ("u", 0): at(0)}
    to_forget = [ForgottenPartition("t", ID, 1)]
    assert build(session, requested, 18) == SessionFetch(7, 1, {("u", 0): at(0)}, to_forget)
    assert session.handle_response(0, 7, [("u", 0)])
    assert build(session, {("t", 0): at(5)}, 18).to_forget == [ForgottenPartition("u", ID, 0)]


@pytest.mark.parametrize(("version", "forgets"), [(12, False), (13, True)])
def test_recreated_topic_is_added_and_the_old_id_is_forgotten(version: int, forgets: bool) -> None:
    session = opened({("t", 0): at(5)}, version)
    requested = {("t", 0): at(0, OTHER)}
    to_forget = [ForgottenPartition("t", ID, 0)] if forgets else []
    assert build(session, requested, version) == SessionFetch(7, 1, requested, to_forget)


def test_session_by_name_is_replaced_by_one_by_id() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested, 12)
    assert build(session, requested, 13) == SessionFetch(7, 0, requested, [])
    assert session.handle_response(0, 8, requested)
    assert build(session, requested, 12) == SessionFetch(8, 0, requested, [])


def test_unknown_session_is_replaced_at_once() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    build(session, requested, 18)
    assert not session.handle_response(NOT_FOUND, 0, [])
    assert build(session, requested, 18) == SessionFetch(0, 0, requested, [])
    # The fetch is not sent again at once if it was sent without a session.
    assert session.handle_response(NOT_FOUND, 0, [])
    assert build(session, requested, 18) == SessionFetch(0, 0, requested, [])


def test_invalid_epoch_closes_the_session() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    build(session, requested, 18)
    assert not session.handle_response(BAD_EPOCH, 0, [])
    assert build(session, requested, 18) == SessionFetch(7, 0, requested, [])


@pytest.mark.parametrize("code", [TOPIC_ID, -1])
def test_other_error_closes_the_session_and_is_left_to_the_caller(code: int) -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    build(session, requested, 18)
    assert session.handle_response(code, 0, [])
    assert build(session, requested, 18) == SessionFetch(7, 0, requested, [])


def test_lost_response_closes_the_session() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    build(session, {("t", 0): at(9)}, 18)
    session.handle_error()
    assert build(session, requested, 18) == SessionFetch(7, 0, requested, [])
    # A fetch whose response was never handled closes the session, too.
    assert build(session, requested, 18) == SessionFetch(7, 0, requested, [])


def test_response_without_a_session_id_ends_the_session() -> None:
    requested = {("t", 0): at(5)}
    session = FetchSession()
    for _ in range(2):
        assert build(session, requested, 18) == SessionFetch(0, 0, requested, [])
        assert session.handle_response(0, 0, requested)
    session = opened(requested)
    build(session, requested, 18)
    assert session.handle_response(0, 0, requested)
    assert build(session, requested, 18) == SessionFetch(0, 0, requested, [])


def test_response_for_a_foreign_partition_closes_the_session() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    build(session, requested, 18)
    assert session.handle_response(0, 7, [("u", 3)])
    assert build(session, requested, 18) == SessionFetch(7, 0, requested, [])


def test_session_epoch_wraps_to_one() -> None:
    session = opened({})
    session._epoch = 0x7FFFFFFF
    assert build(session, {}, 18).epoch == 0x7FFFFFFF
    session.handle_response(0, 7, [])
    assert build(session, {}, 18).epoch == 1


@pytest.mark.parametrize(("version", "is_used"), [(6, True), (18, False)])
def test_fetch_without_a_session_has_the_final_epoch(version: int, is_used: bool) -> None:
    session = FetchSession(is_used=is_used)
    requested = {("t", 0): at(5)}
    for _ in range(2):
        assert build(session, requested, version) == SessionFetch(0, FINAL_EPOCH, requested, [])
        assert session.handle_response(0, 0, requested)
    assert session.close() is None


def test_closing_returns_the_session_id_once() -> None:
    requested = {("t", 0): at(5)}
    session = opened(requested)
    assert session.close() == 7
    assert session.close() is None
    assert build(session, requested, 18) == SessionFetch(0, 0, requested, [])


# Random schedules: each record is read once and in order


@dataclass
class ModelCluster:
    """Partitions of two topics on three brokers; a record's value is its offset in eight bytes."""

    logs: dict[TopicPartition, int] = field(default_factory=dict)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    ids: dict[str, Uuid] = field(default_factory=dict)
    brokers: list[BrokerSessions] = field(
        default_factory=lambda: [BrokerSessions(), BrokerSessions(), BrokerSessions(room=0)]
    )

    def fetch(self, node: int, request: FetchRequest, version: int) -> FetchResponse:
        room = 3

        def read(topic: str, topic_id: Uuid, requested: FetchPartition) -> PartitionData:
            nonlocal room
            names = [name for name, known in self.ids.items() if known == topic_id]
            if version >= 13:
                if not names:
                    return PartitionData(
                        partition_index=requested.partition, error_code=code_of("UNKNOWN_TOPIC_ID")
                    )
                topic = names[0]
            tp = (topic, requested.partition)
            if self.leaders[tp] != node:
                code = code_of("NOT_LEADER_OR_FOLLOWER")
                return PartitionData(partition_index=requested.partition, error_code=code)
            offsets = range(requested.fetch_offset, self.logs[tp])[:room]
            room -= len(offsets)
            return PartitionData(
                partition_index=requested.partition,
                high_watermark=self.logs[tp],
                records=b"".join(struct.pack(">q", offset) for offset in offsets),
            )

        return self.brokers[node].fetch(request, version, read)


@dataclass
class ModelReader:
    """Fetches in one session per broker.

    `assumed_leaders` has the leader that the reader assumes for each partition.
    """

    cluster: ModelCluster
    version: int
    sessions: list[FetchSession] = field(default_factory=lambda: [FetchSession() for _ in "abc"])
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    assumed_leaders: dict[TopicPartition, int] = field(default_factory=dict)
    seen: dict[TopicPartition, list[int]] = field(default_factory=dict)

    def fetch(self, node: int, fate: str, paused: TopicPartition, dropped: TopicPartition) -> None:
        ids = self.cluster.ids
        requested = {
            tp: RequestedPartition(ids[tp[0]], self.positions[tp], 1000)
            for tp, leader in self.assumed_leaders.items()
            if leader == node and tp != paused
        }
        session = self.sessions[node]
        version = min(self.version, 12) if ZERO_UUID in ids.values() else self.version
        asked = build(session, requested, version)
        request = fetch_request(
            asked, max_bytes=1, min_bytes=1, max_wait_ms=0, read_committed=False, version=version
        )
        if fate == "request lost":
            session.handle_error()
            return
        data = request.encode(version)
        response = self.cluster.fetch(node, FetchRequest.decode(data, version), version)
        if fate == "response lost":
            session.handle_error()
            return
        found = dict(fetched_partitions(response, session.topic_names))
        if not session.handle_response(response.error_code, response.session_id, found):
            return
        if response.error_code:
            return
        if asked.is_full:
            assert found.keys() == requested.keys()
        for tp, part in found.items():
            if part.error_code:
                self.assumed_leaders[tp] = self.cluster.leaders[tp]
            elif tp != dropped:
                offsets = [offset for (offset,) in struct.iter_unpack(">q", part.records or b"")]
                assert offsets == list(range(self.positions[tp], self.positions[tp] + len(offsets)))
                self.seen.setdefault(tp, []).extend(offsets)
                self.positions[tp] += len(offsets)


TPS: list[TopicPartition] = [("t", 0), ("t", 1), ("t", 2), ("u", 0), ("u", 1)]
NO_TP: TopicPartition = ("none", 0)

STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(TPS), st.integers(1, 7)),
    st.tuples(st.just("move"), st.sampled_from(TPS), st.integers(0, 2)),
    st.tuples(st.just("evict"), st.integers(0, 2)),
    st.tuples(st.just("version"), st.sampled_from([6, 7, 11, 12, 13, 18])),
    st.tuples(st.just("recreated"), st.sampled_from(["t", "u"])),
    st.tuples(
        st.just("fetch"),
        st.integers(0, 2),
        st.sampled_from(["", "", "", "request lost", "response lost"]),
        st.sampled_from([NO_TP, NO_TP, *TPS]),
        st.sampled_from([NO_TP, NO_TP, *TPS]),
    ),
)


@given(st.lists(STEPS, max_size=60))
def test_each_record_is_read_once_and_in_order(steps: list[tuple[object, ...]]) -> None:
    cluster = ModelCluster(
        logs=dict.fromkeys(TPS, 3),
        leaders=dict.fromkeys(TPS, 0),
        ids={"t": ID, "u": OTHER},
    )
    reader = ModelReader(cluster, 18)
    reader.positions = dict.fromkeys(TPS, 0)
    reader.assumed_leaders = dict(cluster.leaders)
    next_id = 3
    for step in steps:
        match step:
            case ("append", (str(topic), int(partition)), int(count)):
                cluster.logs[topic, partition] += count
            case ("move", (str(topic), int(partition)), int(node)):
                cluster.leaders[topic, partition] = node
            case ("evict", int(node)):
                cluster.brokers[node].sessions.clear()
            case ("version", int(version)):
                reader.version = version
            case ("recreated", str(topic)):
                cluster.ids[topic] = Uuid(bytes(15) + bytes([next_id]))
                next_id += 1
                for tp in TPS:
                    if tp[0] == topic:
                        cluster.logs[tp] = 2
                        reader.positions[tp] = 0
                        reader.seen.pop(tp, None)
            case ("fetch", int(node), str(fate), paused, dropped):
                reader.fetch(node, fate, paused, dropped)  # type: ignore[arg-type]
    for _ in range(1 + sum(cluster.logs.values())):
        for node in range(3):
            reader.fetch(node, "", NO_TP, NO_TP)
    for tp, end in cluster.logs.items():
        assert reader.seen.get(tp, []) == list(range(end))
