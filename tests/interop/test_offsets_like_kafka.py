"""Tests that the embedded broker writes the same records to `__consumer_offsets` as a real broker.

Also tests that the embedded broker decodes the records of a real broker and encodes them unchanged,
and that its coordinators move as in a real cluster. In the test of expired offsets, the real broker
removes expired offsets every 300 ms.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kproto
from kproto.broker import BrokerSettings
from kproto.broker.groups.coordinator_records import (
    group_record,
    group_tombstone,
    load,
    offset_record,
    offset_tombstone,
)
from kproto.messages.base import Request
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.group_metadata_value import MemberMetadata
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.offset_commit_key import OffsetCommitKey
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.records import Record
from kproto.stored.coordinator_records import (
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from tests.support.brokers import RunningKafka, StartCluster, StartKafka
from tests.support.embedded import threaded_broker, threaded_cluster
from tests.support.raw_connection import ClosedByBrokerError, RawConnection
from tests.support.transactions import Transaction

from .offset_conversations import Commit, Offsets, offset_records, stored_offsets
from .talk import PATIENCE_S, Talk, error, ranges

pytestmark = pytest.mark.kafka


def written_again(record: Record) -> tuple[bytes, bytes | None]:
    """Returns a record's key and value after the embedded broker has decoded and encoded them."""
    found = decode_coordinator_record(record, topic="__consumer_offsets")
    assert isinstance(found, CoordinatorRecord)
    key: Any = found.key
    if isinstance(key, OffsetCommitKey):
        tp = key.group, key.topic, key.partition
        if found.value is None:
            return encode_coordinator_record(offset_tombstone(*tp))
        ((_, committed),) = load([record])[key.group].offsets
        return encode_coordinator_record(offset_record(*tp, committed))
    assert isinstance(key, GroupMetadataKey)
    if found.value is None:
        return encode_coordinator_record(group_tombstone(key.group))
    metadata = load([record])[key.group].metadata
    assert metadata is not None
    return encode_coordinator_record(group_record(key.group, metadata))


def storing_members(talk: Talk) -> list[object]:
    """Returns the `__consumer_offsets` records of a group with members and of a deleted group.

    Numbers replace the member ids, which differ between brokers.
    """
    name = talk.create("members", 2)
    they = Offsets(talk, name)
    group, gone = they.group("members"), they.group("members-gone")
    for instance in (None, "i"):
        live_and_leave(talk, they, group, name, instance)
    live_and_leave(talk, they, gone, name, None)
    they.commit(9, gone, (name, 1, 6, 3, ""))
    deleted = talk.ask(DeleteGroupsRequest(groups_names=[gone]), 2)
    assert not deleted.results[0].error_code
    known: dict[str, str] = {}
    return [plain(it, known) for each in (group, gone) for it in stored_offsets(talk, each, they)]


def plain(shown: Any, known: dict[str, str]) -> Any:
    """Returns `shown` without the member ids and timestamps of this run.

    Numbers replace the member ids; each timestamp becomes True if it is positive.
    """
    if isinstance(shown, MemberMetadata):
        shown = {name: getattr(shown, name) for name in shown._names()}
    if isinstance(shown, dict):
        return {name: _plain_field(name, value, known) for name, value in shown.items()}
    if isinstance(shown, list | tuple):
        return [plain(it, known) for it in shown]
    return shown


def _plain_field(name: str, value: Any, known: dict[str, str]) -> Any:
    if name in ("member_id", "leader") and value is not None:
        return known.setdefault(value, f"m{len(known)}")
    return value > 0 if name == "current_state_timestamp" else plain(value, known)


def test_group_records_equal_those_of_kafka(newest_kafka: RunningKafka) -> None:
    if newest_kafka.version == "external":
        pytest.skip("the release of this broker is unknown")
    both = ranges(newest_kafka.bootstrap)
    theirs = storing_members(Talk(newest_kafka.bootstrap, both))
    with threaded_broker() as broker:
        ours = storing_members(Talk(broker.bootstrap, both))
    assert ours == theirs
    assert len(ours) >= 9


def test_records_of_a_real_broker_are_reencoded_unchanged(
    newest_kafka: RunningKafka,
) -> None:
    if newest_kafka.version == "external":
        pytest.skip("the release of this broker is unknown")
    talk = Talk(newest_kafka.bootstrap, ranges(newest_kafka.bootstrap))
    name = talk.create("rewritten", 2)
    they = Offsets(talk, name)
    group = they.group("rewritten")
    for instance in (None, "i"):
        live_and_leave(talk, they, group, name, instance)
    they.commit(4, group, (name, 0, 5, -1, "h"), retention_ms=3_600_000)
    they.commit(9, group, (name, 1, 6, 3, "\U0001f600"))
    they.delete(group, (name, [0]))
    checked: set[tuple[str, bool, int | None]] = set()
    for record, _ in offset_records(talk):
        found = decode_coordinator_record(record, topic="__consumer_offsets")
        if not isinstance(found, CoordinatorRecord):
            continue
        key: Any = found.key
        if not isinstance(key, OffsetCommitKey | GroupMetadataKey) or key.group != group:
            continue
        assert written_again(record) == (record.key, record.value)
        members = len(getattr(found.value, "members", ()))
        checked.add((type(key).__name__, bool(members), found.version))
    assert checked == {
        ("OffsetCommitKey", False, None),
        ("OffsetCommitKey", False, 1),
        ("OffsetCommitKey", False, 4),
        ("GroupMetadataKey", False, 3),
        ("GroupMetadataKey", True, 3),
    }


def test_transaction_markers_are_no_coordinator_records(newest_kafka: RunningKafka) -> None:
    """Other tests may leave markers in `__consumer_offsets`; `stored_offsets` must skip markers."""
    talk = Talk(newest_kafka.bootstrap, ranges(newest_kafka.bootstrap))
    name = talk.create("marked")
    they = Offsets(talk, name)
    group = they.group("marked")

    async def commit() -> None:
        async with kproto.Client(newest_kafka.bootstrap) as client:
            transaction = Transaction(client, group)
            await transaction.begin()
            await transaction.commit_offset(group, name, 0, 5)
            await transaction.end(committed=True)
            async with client.consumer([(name, 0)], group=group, auto_commit=False) as consumer:
                assert await consumer.position((name, 0)) == 5  # waits (KIP-447)

    asyncio.run(commit())
    (stored,) = stored_offsets(talk, group, they)
    assert stored[0] == "OffsetCommitKey"


def live_and_leave(talk: Talk, they: Offsets, group: str, topic: str, instance: str | None) -> None:
    """Runs one member: it joins, gets an assignment, commits an offset and leaves."""

    def join(member_id: str) -> Any:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\1metadata")
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[protocol],
        )
        return talk.ask(request, 9)

    joined = join("")
    if error(joined.error_code) == "MEMBER_ID_REQUIRED":
        joined = join(joined.member_id)
    assert not joined.error_code
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"assigned")
    synced = talk.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment],
        ),
        5,
    )
    assert not synced.error_code
    they.commit(
        9,
        group,
        (topic, 0, 1, -1, ""),
        generation=joined.generation_id,
        member=joined.member_id,
        instance=instance,
    )
    identity = MemberIdentity(member_id=joined.member_id, group_instance_id=instance, reason=None)
    left = talk.ask(LeaveGroupRequest(group_id=group, members=[identity]), 5)
    assert not left.error_code


def expiring(talk: Talk) -> list[object]:
    """Returns the results of three groups: all offsets, some offsets and no offsets expire.

    The results of a group are the remaining offsets, the response to OffsetDelete, the group's
    records in `__consumer_offsets`, and the response to a later commit.
    """
    name = talk.create("expiring", 2)
    they = Offsets(talk, name)
    fine: Commit = (name, 0, 5, -1, "m")
    every, some, none = (they.group(start) for start in ("all", "some", "none"))
    they.commit(4, every, fine, (name, 1, 6, -1, "m"), retention_ms=1)
    they.commit(4, some, (name, 1, 6, -1, "m"))
    they.commit(4, some, fine, retention_ms=1)
    they.commit(4, none, (name, 0, 5, -1, "x" * 5000))
    deadline = time.monotonic() + PATIENCE_S
    for group, count in ((every, 2), (some, 1), (none, 0)):
        tombstones = count if group == some else count + 1
        while sum(is_tombstone(it) for it in stored_offsets(talk, group, they)) < tombstones:
            they.fetch(9, group, None)  # a request makes the embedded broker expire offsets
            assert time.monotonic() < deadline, "expired offsets are still there"
            time.sleep(0.05)
    return [
        [
            they.fetch(9, group, None),
            they.delete(group, (name, [0])),
            [it[:4] for it in stored_offsets(talk, group, they)],
            they.commit(9, group, fine, generation=0),
        ]
        for group in (every, some, none)
    ]


def is_tombstone(shown: tuple[object, ...]) -> bool:
    return shown[3] is None


def test_expired_offsets_are_written_as_kafka_does(start_kafka: StartKafka) -> None:
    often = {"offsets.retention.check.interval.ms": "300"}
    node = start_kafka(config=often)
    both = ranges(node.bootstrap)
    theirs = expiring(Talk(node.bootstrap, both))
    settings = BrokerSettings(offsets_retention_check_interval_ms=300)
    with threaded_broker(settings) as broker:
        ours = expiring(Talk(broker.bootstrap, both))
    assert ours == theirs


class InternalTopicCoordinators:
    """Three brokers, of which one coordinates group `g`."""

    def __init__(
        self,
        addresses: dict[int, str],
        stop: Callable[[int], object],
        start: Callable[[int], object],
    ) -> None:
        self.addresses = addresses
        self.stop = stop
        self.start = start

    def found(self, asked: int, *, other_than: int = -1) -> int:
        """Returns the node id of group g's coordinator, which node `asked` reports.

        Waits until the reported coordinator has loaded the group. If `other_than` is a node id,
        also waits until the coordinator is another node.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            request = FindCoordinatorRequest(coordinator_keys=["g"])
            (found,) = self.ask(asked, request, 4).coordinators
            node = int(found.node_id)
            if not found.error_code and node != other_than and self.fetched(node)[0] == "NONE":
                return node
            assert time.monotonic() < deadline, (found, other_than)
            time.sleep(0.1)

    def ask(self, node: int, request: Request[Any], version: int) -> Any:
        with RawConnection(self.addresses[node]) as connection:
            return connection.exchange(request, version)

    def committed(self, node: int, offset: int, **how: Any) -> str:
        partition = OffsetCommitRequestPartition(committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
        answer = self.ask(node, OffsetCommitRequest(group_id="g", topics=[topic], **how), 8)
        return error(answer.topics[0].partitions[0].error_code)

    def fetched(self, node: int) -> tuple[str, list[int]]:
        wanted = OffsetFetchRequestGroup(group_id="g", topics=None)
        (group,) = self.ask(node, OffsetFetchRequest(groups=[wanted]), 8).groups
        offsets = [it.committed_offset for topic in group.topics for it in topic.partitions]
        return error(group.error_code), offsets

    def results(self) -> Iterator[tuple[str, object]]:
        wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
        self.ask(1, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 5)
        first = self.found(1)
        others = sorted(set(self.addresses) - {first})
        for offset in (5, 6):
            yield f"commit {offset}", self.committed(first, offset)
        yield "commit at others", [self.committed(node, 9) for node in others]
        yield "fetch at others", [self.fetched(node) for node in others]
        self.stop(first)
        second = self.found(others[0], other_than=first)
        yield "another", second in others
        yield "it knows", self.fetched(second)
        yield "a generation", self.committed(second, 7, generation_id_or_member_epoch=1)
        yield "commit 7", self.committed(second, 7)
        self.start(first)
        yield "the first is back", self.found_again(first)
        yield "all know", self.fetched(self.found(first))

    def found_again(self, first: int) -> tuple[str, list[int]]:
        """Sends OffsetFetch to the restarted node `first` once this node reports g's coordinator.

        The coordinator must also have loaded the group. Returns the error name of the OffsetFetch
        response, and the committed offsets.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.found(first)
                return self.fetched(first)
            except (OSError, ClosedByBrokerError):
                assert time.monotonic() < deadline
                time.sleep(0.2)


@pytest.mark.exhaustive
def test_stopped_coordinators_move_as_in_a_real_cluster(start_cluster: StartCluster) -> None:
    with threaded_cluster(3) as embedded:
        addresses = embedded.call(lambda it: {node: it.broker(node).bootstrap for node in it.nodes})
        ours = dict(
            InternalTopicCoordinators(
                addresses,
                lambda node: embedded.wait_for(lambda it: it.stop_broker(node)),
                lambda node: embedded.wait_for(lambda it: it.start_broker(node)),
            ).results()
        )
    real = start_cluster("4.4.0", config={"auto.leader.rebalance.enable": "false"})
    theirs = dict(
        InternalTopicCoordinators(
            {node: real.node(node).bootstrap for node in (1, 2, 3)},
            lambda node: real.node(node).stop(),
            lambda node: real.node(node).start(),
        ).results()
    )
    assert ours == theirs
    assert ours["it knows"] == ("NONE", [6])
    assert ours["all know"] == ("NONE", [7])
