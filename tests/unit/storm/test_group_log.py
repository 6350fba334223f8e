"""Tests reading a group's log: commits, protocol conversions, and members left in the group."""

from __future__ import annotations

import pytest

import kproto
from kproto.broker import Broker
from kproto.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kproto.messages.group_metadata_value import MemberMetadata
from kproto.stored.coordinator_records import CoordinatorRecord
from tools.storm.group_log import (
    Conversions,
    GroupRecord,
    commits_of,
    conversions_of,
    left_behind,
    read_group_log,
)
from tools.storm.sightings import Commit

CONSUMER = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue())
NO_CONSUMER = CoordinatorRecord(ConsumerGroupMetadataKey(group_id="g"))
NO_CLASSIC = CoordinatorRecord(GroupMetadataKey(group="g"))


def classic(*members: str) -> CoordinatorRecord:
    value = GroupMetadataValue(members=[MemberMetadata(member_id=each) for each in members])
    return CoordinatorRecord(GroupMetadataKey(group="g"), value)


def written(*records: CoordinatorRecord) -> list[GroupRecord]:
    return [GroupRecord(at, float(at), record) for at, record in enumerate(records)]


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ((), Conversions()),
        ((classic(), classic("a"), classic("a", "b")), Conversions()),
        ((CONSUMER, CONSUMER), Conversions()),
        ((classic("a"), NO_CLASSIC, CONSUMER), Conversions(to_consumer=1)),
        ((CONSUMER, NO_CONSUMER, classic("a")), Conversions(to_classic=1)),
        ((classic("a"), classic(), NO_CLASSIC, CONSUMER), Conversions(while_empty=1)),
        ((CONSUMER, NO_CONSUMER, classic()), Conversions(while_empty=1)),
        ((classic("a"), NO_CLASSIC, classic("b")), Conversions()),
        (
            (classic("a"), NO_CLASSIC, CONSUMER, NO_CONSUMER, classic("a"), NO_CLASSIC, CONSUMER),
            Conversions(to_consumer=2, to_classic=1),
        ),
    ],
)
def test_conversions_differ_from_groups_that_are_created_again(
    records: tuple[CoordinatorRecord, ...], found: Conversions
) -> None:
    assert conversions_of(written(*records)) == found


def test_conversions_after_the_storm_are_ignored() -> None:
    log = written(classic("a"), NO_CLASSIC, CONSUMER, NO_CONSUMER, classic("a"))
    assert conversions_of(log, until=3.0) == Conversions(to_consumer=1)


def test_commits_of_one_topic_are_returned_in_order() -> None:
    def committed(topic: str, partition: int, offset: int) -> CoordinatorRecord:
        key = OffsetCommitKey(group="g", topic=topic, partition=partition)
        return CoordinatorRecord(key, OffsetCommitValue(offset=offset, commit_timestamp=2_500))

    log = written(
        committed("t", 1, 7),
        committed("other", 1, 9),
        CONSUMER,
        CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=1)),
        committed("t", 0, 3),
    )
    assert list(commits_of(log, "t")) == [Commit(1, 7, 2.5), Commit(0, 3, 2.5)]


async def test_the_log_of_one_group_is_read_from_a_broker() -> None:
    async with Broker() as broker, kproto.Client(broker.bootstrap) as client:
        await client.create_topics(kproto.NewTopic("t", partitions=1))
        for group in ("one", "two"):
            async with client.consumer([("t", 0)], group=group) as consumer:
                await consumer.commit({("t", 0): 0})
        log = await read_group_log(client, "one")
    assert [(each.partition, each.offset) for each in commits_of(log, "t")] == [(0, 0)]
    assert all(getattr(each.record.key, "group", None) == "one" for each in log)


def epoch(member: str, epoch: int | None) -> CoordinatorRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member)
    if epoch is None:
        return CoordinatorRecord(key)
    return CoordinatorRecord(key, ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch))


def generation(number: int, *members: str) -> CoordinatorRecord:
    its = [MemberMetadata(member_id=each, client_id=f"client-{each}") for each in members]
    value = GroupMetadataValue(generation=number, members=its)
    return CoordinatorRecord(GroupMetadataKey(group="g"), value)


def test_members_below_the_epoch_of_the_new_generation_are_left_behind() -> None:
    before = (generation(16, "a", "b"), NO_CLASSIC, CONSUMER, epoch("a", 16), epoch("b", 16))
    after = (epoch("a", None), epoch("b", None), NO_CONSUMER, generation(18, "a", "b"))
    assert left_behind(written(*before, *after)) == {"client-a": [8.0], "client-b": [8.0]}
    assert left_behind(written(*before, epoch("b", 18), *after)) == {"client-a": [9.0]}
    both = (epoch("a", 17), epoch("a", 18), epoch("b", 18))
    assert left_behind(written(*before, *both, *after)) == {}


def test_generations_of_a_classic_group_leave_no_member_behind() -> None:
    assert left_behind(written(generation(1, "a"), generation(2, "a", "b"))) == {}
    again = (CONSUMER, epoch("a", 3), NO_CONSUMER, generation(3, "a"), generation(4, "a"))
    assert left_behind(written(*again)) == {}
