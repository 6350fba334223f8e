"""Tests OffsetCommit, OffsetFetch and OffsetDelete in each version, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import Broker
from kproto.clock import SYSTEM_CLOCK
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.protocol.error_codes import error_code
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from kproto.wire.uuid import ZERO_UUID
from tests.support.embedded import UNKNOWN_TOPIC_ID, ThreadedBroker
from tests.support.raw_connection import RawConnection

OFFSETS_TOPIC = "__consumer_offsets"
#: A date before the year 2002.
LONG_AGO_MS = 1_000_000_000_000


@pytest.fixture(autouse=True)
def _topics(broker: ThreadedBroker, connection: RawConnection) -> None:
    """Creates topics t and u. Sends FindCoordinator, which creates the offsets topic."""
    broker.call(lambda it: (it.create_topic("t", 2), it.create_topic("u")))
    connection.exchange(FindCoordinatorRequest(key="g"), 0)


def commit(
    broker: ThreadedBroker,
    connection: RawConnection,
    version: int,
    *offsets: tuple[str, int, int],
    **fields: Any,
) -> list[tuple[str, int, str]]:
    """Commits the offsets; returns (topic, partition, error) of each, in the response's order."""
    of_partition = {
        name: fields.pop(name)
        for name in ("committed_leader_epoch", "commit_timestamp", "committed_metadata")
        if name in fields
    }
    request = OffsetCommitRequest(**{"group_id": "g", **fields})
    request.topics = [
        OffsetCommitRequestTopic(
            **named(broker, name, version),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, **of_partition
                )
            ],
        )
        for name, index, offset in offsets
    ]
    answer = connection.exchange(request, version)
    return [
        (name_of(broker, topic), partition.partition_index, error_code(partition.error_code).name)
        for topic in answer.topics
        for partition in topic.partitions
    ]


def named(broker: ThreadedBroker, name: str, version: int) -> dict[str, Any]:
    if version < 10:
        return {"name": name}
    return {"topic_id": broker.topic_id(name) if name in ("t", "u") else UNKNOWN_TOPIC_ID}


def name_of(broker: ThreadedBroker, topic: Any) -> str:
    if topic.topic_id == ZERO_UUID:
        return str(topic.name)
    assert not topic.name, "a response has either the name or the id"
    ids = {broker.topic_id(name): name for name in ("t", "u")}
    return ids.get(topic.topic_id, "nope")


def stored(broker: ThreadedBroker) -> list[CoordinatorRecord]:
    def read(it: Broker) -> Iterator[CoordinatorRecord]:
        for partition in it.topics[OFFSETS_TOPIC].partitions:
            for record in it.records(OFFSETS_TOPIC, partition.index):
                found = decode_coordinator_record(record, topic=OFFSETS_TOPIC)
                assert isinstance(found, CoordinatorRecord)
                yield found

    return broker.call(lambda it: list(read(it)))


@pytest.mark.parametrize("version", OffsetCommitRequest.VALID_VERSIONS)
def test_offset_commit(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    unknown = "UNKNOWN_TOPIC_ID" if version >= 10 else "UNKNOWN_TOPIC_OR_PARTITION"
    before_ms = SYSTEM_CLOCK.now_ms()
    assert commit(broker, connection, version, ("t", 0, 5), ("nope", 0, 1), ("t", 2, 1)) == [
        ("nope", 0, unknown),
        ("t", 2, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", 0, "NONE"),
    ]
    (first,) = stored(broker)
    assert isinstance(first.value, OffsetCommitValue)
    assert first.version == 4
    assert (first.value.offset, first.value.metadata) == (5, "")
    assert first.value.commit_timestamp >= before_ms
    assert first.value.topic_id == broker.topic_id("t"), "for every id in the request"
    if version >= 1:
        fields = {"member_id": "x", "generation_id_or_member_epoch": 3}
        assert commit(broker, connection, version, ("t", 0, 6), **fields) == [
            ("t", 0, "UNKNOWN_MEMBER_ID")
        ]
        assert commit(broker, connection, version, ("t", 0, 6), group_id="other", **fields) == [
            ("t", 0, "GROUP_ID_NOT_FOUND" if version >= 9 else "ILLEGAL_GENERATION")
        ]
    if version >= 7:
        fields = {"group_instance_id": "i", "generation_id_or_member_epoch": 3}
        assert commit(broker, connection, version, ("t", 0, 6), **fields) == [
            ("t", 0, "UNKNOWN_MEMBER_ID")
        ]
    long = {"committed_metadata": "x" * 4097}
    assert commit(broker, connection, version, ("u", 0, 7), **long) == [
        ("u", 0, "OFFSET_METADATA_TOO_LARGE")
    ]
    assert len(stored(broker)) == 1


@pytest.mark.parametrize("version", [1])
def test_commit_has_own_timestamp(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    now_ms = SYSTEM_CLOCK.now_ms()
    commit(broker, connection, version, ("t", 0, 5), commit_timestamp=now_ms - 1000)
    (kept,) = stored(broker)
    assert isinstance(kept.value, OffsetCommitValue)
    assert kept.value.commit_timestamp == now_ms - 1000
    assert fetch(broker, connection, 1, [("t", [0])])[1] == [("t", 0, 5, -1, "", "NONE")]
    commit(broker, connection, version, ("t", 0, 6), commit_timestamp=LONG_AGO_MS)
    assert fetch(broker, connection, 1, [("t", [0])])[1] == [("t", 0, -1, -1, "", "NONE")]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_commit_has_own_retention(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    before_ms = SYSTEM_CLOCK.now_ms()
    commit(broker, connection, version, ("t", 0, 5), retention_time_ms=3_600_000)
    (kept,) = stored(broker)
    assert isinstance(kept.value, OffsetCommitValue)
    assert kept.version == 1
    assert kept.value.expire_timestamp >= before_ms + 3_600_000
    assert kept.value.expire_timestamp - kept.value.commit_timestamp == 3_600_000
    commit(broker, connection, version, ("t", 1, 5), retention_time_ms=0)
    assert fetch(broker, connection, 2, None)[1] == [("t", 0, 5, -1, "", "NONE")]


def fetch(
    broker: ThreadedBroker,
    connection: RawConnection,
    version: int,
    topics: list[tuple[str, list[int]]] | None,
    *,
    group: str = "g",
    **fields: Any,
) -> tuple[str, list[tuple[str, int, int, int, str | None, str]]]:
    """Returns the error of the group, and a tuple for each partition.

    The tuple has topic, partition, offset, leader epoch, metadata and error.
    """
    found: Any
    if version >= 8:
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(**named(broker, name, version), partition_indexes=indexes)
                for name, indexes in topics
            ],
        )
        for name in ("member_id", "member_epoch"):
            if name in fields:
                setattr(wanted, name, fields.pop(name))
        request = OffsetFetchRequest(groups=[wanted], **fields)
        (found,) = connection.exchange(request, version).groups
        assert found.group_id == group
    else:
        request = OffsetFetchRequest(group_id=group, **fields)
        request.topics = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics
            ]
        )
        found = connection.exchange(request, version)
    return error_code(found.error_code).name, [
        (
            name_of(broker, topic) if version >= 8 else topic.name,
            it.partition_index,
            it.committed_offset,
            it.committed_leader_epoch,
            it.metadata,
            error_code(it.error_code).name,
        )
        for topic in found.topics
        for it in topic.partitions
    ]


@pytest.mark.parametrize("version", OffsetFetchRequest.VALID_VERSIONS)
def test_offset_fetch(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    fields = {"committed_leader_epoch": 3, "committed_metadata": "m"}
    commit(broker, connection, 9, ("t", 0, 5), ("u", 0, 6), **fields)
    epoch = 3 if version >= 5 else -1
    nope = "UNKNOWN_TOPIC_ID" if version >= 10 else "NONE"
    wanted = [("t", [1, 0, 9]), ("nope", [0]), ("u", [0])]
    answer = fetch(broker, connection, version, wanted)
    told = [
        ("t", 1, -1, -1, "", "NONE"),
        ("t", 0, 5, epoch, "m", "NONE"),
        ("t", 9, -1, -1, "", "NONE"),
        ("u", 0, 6, epoch, "m", "NONE"),
    ]
    told.insert(4 if version >= 10 else 3, ("nope", 0, -1, -1, "", nope))
    assert answer == ("NONE", told)
    nothing = [("t", 0, -1, -1, "", "NONE")]
    assert fetch(broker, connection, version, [("t", [0])], group="none") == ("NONE", nothing)
    if version >= 2:
        every = [("t", 0, 5, epoch, "m", "NONE"), ("u", 0, 6, epoch, "m", "NONE")]
        assert fetch(broker, connection, version, None) == ("NONE", every)
        assert fetch(broker, connection, version, None, group="none") == ("NONE", [])
    if version >= 7:
        assert fetch(broker, connection, version, None, require_stable=True) == ("NONE", every)
    if version >= 9:
        member: dict[str, Any] = {"member_id": "x", "member_epoch": 7}
        assert fetch(broker, connection, version, None, **member) == ("NONE", every)
    broker.call(lambda it: it.delete_topic(OFFSETS_TOPIC))
    failed = fetch(broker, connection, version, [("t", [0])])
    if version >= 2:
        assert failed == ("NOT_COORDINATOR", [])
    else:
        assert failed == ("NONE", [("t", 0, -1, -1, "", "NOT_COORDINATOR")])


@pytest.mark.parametrize("version", [8, 9, 10])
def test_offsets_of_many_groups(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    commit(broker, connection, 9, ("t", 0, 5))
    wanted = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "none", "g")]
    found = connection.exchange(OffsetFetchRequest(groups=wanted), version).groups
    assert [(each.group_id, each.error_code, len(each.topics)) for each in found] == [
        ("g", 0, 1),
        ("none", 0, 0),
        ("g", 0, 1),
    ]
    assert connection.exchange(OffsetFetchRequest(), version).groups == []


def test_offset_delete(broker: ThreadedBroker, connection: RawConnection) -> None:
    def delete(
        *offsets: tuple[str, int], group: str = "g"
    ) -> tuple[str, list[tuple[str, int, str]]]:
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
                )
                for name, index in offsets
            ],
        )
        answer = connection.exchange(request, 0)
        return error_code(answer.error_code).name, [
            (topic.name, it.partition_index, error_code(it.error_code).name)
            for topic in answer.topics
            for it in topic.partitions
        ]

    assert delete(("t", 0)) == ("GROUP_ID_NOT_FOUND", [])
    assert delete(("t", 0), group="") == ("INVALID_GROUP_ID", [])
    commit(broker, connection, 9, ("t", 0, 5), ("u", 0, 6))
    assert delete(("t", 0), ("t", 1), ("nope", 0)) == (
        "NONE",
        [
            ("nope", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
            ("t", 0, "NONE"),
            ("t", 1, "NONE"),
        ],
    )
    assert fetch(broker, connection, 9, None)[1] == [("u", 0, 6, -1, "", "NONE")]
