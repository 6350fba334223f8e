"""Tests groups with members and offsets: commits, subscriptions, and coordinator moves."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kproto.broker.groups import ClassicGroupState
from kproto.broker.groups.group_coordinator import OFFSETS_TOPIC
from kproto.broker.registry import DelayedResponse
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.leave_group_request import LeaveGroupRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.stored.coordinator_records import decode_coordinator_record
from tests.unit.broker.test_group_handlers import Nodes, error

#: JoinGroup metadata of a consumer that subscribes to topic t.
READS_T = struct.pack(">hih", 0, 1, 1) + b"t" + struct.pack(">i", -1)
SESSION_MS = 10_000
MINUTE_MS = 60_000


class Play(Nodes):
    """Sends requests for group g; topics t and u exist."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name in ("t", "u"):
            self.cluster.topics.add(self.cluster.plan_topic(name))

    def member(self, **fields: Any) -> Any:
        """Joins and syncs a member; returns its JoinGroup response."""
        answer = self.join(**fields)
        assert error(self.sync(answer)) == "NONE"
        return answer

    def reader(self) -> Any:
        return self.member(metadata=READS_T)

    def commit(self, member: Any = None, *names: str, offset: int = 5) -> list[str]:
        """Commits `offset` for partition 0 of each topic in `names`; returns the error names.

        If `member` is None, commits as a consumer that is not a member of the group.
        """
        request = OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name=name, partitions=[OffsetCommitRequestPartition(committed_offset=offset)]
                )
                for name in names or ("t",)
            ],
        )
        if member is not None:
            request.member_id = member.member_id
            request.generation_id_or_member_epoch = member.generation_id
        answer: Any = self.ask(self.coordinator, request, 8)
        return [error(partition) for topic in answer.topics for partition in topic.partitions]

    def fetch(self) -> dict[str, int]:
        wanted = OffsetFetchRequestGroup(group_id="g", topics=None)
        answer: Any = self.ask(self.coordinator, OffsetFetchRequest(groups=[wanted]), 8)
        (group,) = answer.groups
        assert error(group) == "NONE"
        return {
            topic.name: partition.committed_offset
            for topic in group.topics
            for partition in topic.partitions
        }

    def delete(self, *names: str) -> list[str]:
        request = OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()])
                for name in names
            ],
        )
        answer: Any = self.ask(self.coordinator, request, 0)
        assert error(answer) == "NONE"
        return [error(partition) for topic in answer.topics for partition in topic.partitions]

    def leave(self, member: Any) -> None:
        request = LeaveGroupRequest(group_id="g", member_id=member.member_id)
        assert error(self.ask(self.coordinator, request, 2)) == "NONE"

    def state(self) -> str:
        described: Any = self.ask(self.coordinator, DescribeGroupsRequest(groups=["g"]), 5)
        return str(described.groups[0].group_state)

    def move(self) -> None:
        """Moves the group's partition of `__consumer_offsets` to another leader."""
        self.cluster.move_leader(OFFSETS_TOPIC, self.index, self.coordinator % 3 + 1)

    @property
    def index(self) -> int:
        partition = self.cluster.group_coordinator.partition("g")
        assert partition is not None
        return partition.index

    def written(self) -> list[str]:
        log = self.cluster.topics.named(OFFSETS_TOPIC).partition(self.index).log
        found: list[Any] = [
            decode_coordinator_record(record, topic=OFFSETS_TOPIC)
            for batch in log
            if not batch.is_control
            for record in batch.records()
        ]
        return [
            f"{getattr(it.key, 'topic', it.key.group)}{'' if it.value else ' gone'}" for it in found
        ]


def test_members_commit_in_their_generation() -> None:
    play = Play()
    member = play.member()
    assert play.commit(member) == ["NONE"]
    assert play.commit() == ["UNKNOWN_MEMBER_ID"], "there are members now"
    play.join()  # another member joins, which starts a rebalance
    assert play.state() == ClassicGroupState.PREPARING_REBALANCE
    assert play.commit(member, offset=6) == ["NONE"], "what it has done before it joins again"
    again = play.join(member.member_id)
    assert play.commit(member) == ["ILLEGAL_GENERATION"]
    assert play.state() == ClassicGroupState.COMPLETING_REBALANCE
    assert play.commit(again) == ["REBALANCE_IN_PROGRESS"]
    assert play.fetch() == {"t": 6}
    assert error(play.sync(again)) == "NONE"
    assert play.commit(again, offset=7) == ["NONE"]
    assert play.fetch() == {"t": 7}


async def test_a_commit_is_a_heartbeat() -> None:
    play = Play()
    member = play.member()
    for _ in range(3):
        await play.clock.advance(SESSION_MS - 1)
        assert play.commit(member) == ["NONE"]
    assert play.beat(member) == "NONE"
    await play.clock.advance(SESSION_MS)
    assert play.commit(member) == ["UNKNOWN_MEMBER_ID"]
    assert play.commit() == ["NONE"], "nobody is a member any more"


def test_subscribed_offsets_are_not_deleted() -> None:
    play = Play()
    member = play.reader()
    play.commit(member, "t", "u")
    assert play.delete("t", "u") == ["GROUP_SUBSCRIBED_TO_TOPIC", "NONE"]
    assert play.fetch() == {"t": 5}
    play.leave(member)
    assert play.delete("t") == ["NONE"]
    assert play.fetch() == {}


async def test_subscribed_offsets_do_not_expire() -> None:
    play = Play(offsets_retention_minutes=1)
    member = play.reader()
    play.commit(member, "t", "u")
    for _ in range(12):
        await play.clock.advance(SESSION_MS / 2)
        assert play.beat(member) == "NONE"
    assert play.fetch() == {"t": 5}
    play.leave(member)
    await play.clock.advance(MINUTE_MS - 1)
    assert play.fetch() == {"t": 5}
    await play.clock.advance(1)
    assert play.fetch() == {}
    assert play.state() == ClassicGroupState.DEAD
    assert play.written()[-4:] == ["u gone", "g", "t gone", "g gone"]


def test_new_coordinator_has_members_and_offsets() -> None:
    play = Play()
    member = play.reader()
    play.commit(member)
    play.move()
    assert play.state() == ClassicGroupState.STABLE
    assert play.beat(member) == "NONE"
    assert play.commit(member, offset=6) == ["NONE"]
    assert play.delete("t") == ["GROUP_SUBSCRIBED_TO_TOPIC"]
    stopped = play.coordinator
    play.cluster.stop(stopped)
    assert play.beat(member) == "NONE"
    assert play.fetch() == {"t": 6}
    play.leave(member)
    play.cluster.start(stopped)
    play.move()
    assert play.state() == ClassicGroupState.EMPTY
    assert play.commit(offset=7) == ["NONE"]
    play.move()
    assert play.fetch() == {"t": 7}


def lost_by_move(play: Play) -> None:
    play.move()


def lost_by_stop(play: Play) -> None:
    play.cluster.stop(play.coordinator)


def lost_by_truncation(play: Play) -> None:
    play.cluster.truncate(OFFSETS_TOPIC, play.index, 0)


def lost_by_deletion(play: Play) -> None:
    play.cluster.topics.remove(play.cluster.topics.named(OFFSETS_TOPIC))


@pytest.mark.parametrize("lose", [lost_by_move, lost_by_stop, lost_by_truncation, lost_by_deletion])
def test_waiting_join_without_coordinator_gets_not_coordinator(lose: Any) -> None:
    play = Play(group_initial_rebalance_delay_ms=3_000)
    waits = play.join()
    assert isinstance(waits, DelayedResponse)
    woken: list[None] = []
    for watched in waits.watched:
        watched.watchers.add(lambda: woken.append(None))
    lose(play)
    assert woken
    answer: Any = waits.try_complete(False)
    assert error(answer) == "NOT_COORDINATOR"
    assert play.state() in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)


def test_group_is_deleted_with_its_offsets() -> None:
    play = Play()
    play.commit(None, "t", "u")
    request = DeleteGroupsRequest(groups_names=["g"])
    deleted: Any = play.ask(play.coordinator, request, 2)
    assert error(deleted.results[0]) == "NONE"
    assert play.written() == ["t", "u", "t gone", "u gone", "g gone"]
    assert play.fetch() == {}
    play.move()
    assert play.fetch() == {}
    assert play.state() == ClassicGroupState.DEAD


def test_group_whose_tombstones_cannot_be_stored_is_not_deleted() -> None:
    play = Play()
    play.commit()
    play.cluster.storage_limit.limit = play.cluster.storage_limit.used
    request = DeleteGroupsRequest(groups_names=["g"])
    deleted: Any = play.ask(play.coordinator, request, 2)
    assert error(deleted.results[0]) == "NOT_COORDINATOR"
    assert play.fetch() == {"t": 5}
