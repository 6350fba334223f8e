"""Tests how groups are written to `__consumer_offsets` and loaded from its records."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.coordinator_log import coordinator_batch
from kproto.broker.groups.committed_offsets import CommittedOffset
from kproto.broker.groups.coordinator_records import (
    group_record,
    group_tombstone,
    load,
    offset_record,
    offset_tombstone,
)
from kproto.broker.groups.group_metadata import GroupMetadata, MemberMetadata
from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.group_metadata_value import GroupMetadataValue
from kproto.messages.group_metadata_value import MemberMetadata as MemberValue
from kproto.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kproto.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kproto.messages.offset_commit_key import OffsetCommitKey
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kproto.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kproto.records import Record, RecordBatch
from kproto.stored.coordinator_records import (
    CoordinatorRecord,
    UnknownCoordinatorRecord,
    encode_coordinator_record,
)
from kproto.wire.uuid import Uuid

TOPIC_ID = Uuid(b"t" * 16)
MEMBER = MemberMetadata("m-1", "i", "client", "/10.0.0.1", 60_000, 45_000, b"sub", b"assigned")
STABLE = GroupMetadata("consumer", 3, "range", "m-1", 1234, (MEMBER,))


def records(written: Iterable[CoordinatorRecord | UnknownCoordinatorRecord]) -> list[Record]:
    encoded = (encode_coordinator_record(record) for record in written)
    return [Record(offset, key=key, value=value) for offset, (key, value) in enumerate(encoded)]


def test_a_commit_is_written_as_kafka_4_4_does() -> None:
    committed = CommittedOffset(7, 2, "m", 1234, None, TOPIC_ID)
    assert offset_record("g", "t", 3, committed) == CoordinatorRecord(
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValue(
            offset=7, leader_epoch=2, metadata="m", commit_timestamp=1234, topic_id=TOPIC_ID
        ),
        4,
    )


def test_commit_with_expiration_time_is_version_1() -> None:
    record = offset_record("g", "t", 3, CommittedOffset(7, 2, "m", 1234, 5678, TOPIC_ID))
    assert record.version == 1
    ((place, kept),) = load(records([record]))["g"].offsets
    assert place == ("t", 3)
    assert kept == CommittedOffset(7, -1, "m", 1234, 5678), "which has neither epoch nor topic id"


def test_a_group_is_written_in_version_3() -> None:
    record = group_record("g", STABLE)
    assert (record.key, record.version) == (GroupMetadataKey(group="g"), 3)
    assert isinstance(record.value, GroupMetadataValue)
    (member,) = record.value.members
    assert (member.rebalance_timeout, member.session_timeout) == (60_000, 45_000)
    assert record.value.current_state_timestamp == 1234
    new = group_record("g", GroupMetadata())
    assert new.value == GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=-1,
        members=[],
    )


def test_batch_has_the_given_timestamp() -> None:
    written = [offset_tombstone("g", "t", 0), group_tombstone("g")]
    batch = RecordBatch(coordinator_batch(written, 99))
    batch.check()
    found = list(batch.records())
    assert [record.timestamp for record in found] == [99, 99]
    assert [(record.key, record.value) for record in found] == [
        encode_coordinator_record(record) for record in written
    ]


def test_last_record_of_a_key_counts() -> None:
    old, new = CommittedOffset(1, commit_ms=1), CommittedOffset(2, commit_ms=2)
    groups = load(
        records(
            [
                group_record("g", GroupMetadata(state_ms=1)),
                offset_record("g", "t", 0, old),
                offset_record("simple", "t", 0, old),
                group_record("g", STABLE),
                offset_record("g", "t", 0, new),
                offset_record("g", "t", 1, old),
                offset_tombstone("g", "t", 1),
                offset_tombstone("g", "t", 7),
                offset_tombstone("nobody", "t", 0),
                group_tombstone("nobody"),
            ]
        )
    )
    assert list(groups) == ["g", "simple"]
    assert groups["g"].metadata == STABLE
    assert dict(groups["g"].offsets) == {("t", 0): new}
    assert groups["simple"].metadata is None
    assert dict(groups["simple"].offsets) == {("t", 0): old}


def test_deleted_group_can_be_created_again() -> None:
    gone = [
        group_record("g", STABLE),
        offset_record("g", "t", 0, CommittedOffset(1)),
        offset_tombstone("g", "t", 0),
        group_tombstone("g"),
    ]
    assert load(records(gone)) == {}
    again = load(records([*gone, offset_record("g", "t", 1, CommittedOffset(2))]))["g"]
    assert again.metadata is None
    assert len(again.offsets) == 1
    left = load(records([*gone[:2], group_tombstone("g")]))["g"]
    assert (left.metadata, len(left.offsets)) == (None, 1), "offsets go by their own tombstones"


def test_records_of_older_brokers_are_replayed() -> None:
    old = CoordinatorRecord(
        LegacyOffsetCommitKey(group="g", topic="t", partition=1),
        LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=6),
    )
    value = OffsetCommitValue(offset=8, metadata="", commit_timestamp=9, expire_timestamp=10)
    in_version_1 = CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=2), value, 1)
    members = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=[]
    )
    in_version_0 = CoordinatorRecord(GroupMetadataKey(group="g"), members, 0)
    group = load(records([old, in_version_1, in_version_0]))["g"]
    assert dict(group.offsets) == {
        ("t", 1): CommittedOffset(5, -1, "m", 6),
        ("t", 2): CommittedOffset(8, -1, "", 9, 10),
    }
    assert group.metadata == GroupMetadata("consumer", 1, "range", "m", None, ())


def test_v0_record_uses_session_timeout_as_rebalance_timeout() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m",
        members=[MemberValue(member_id="m", session_timeout=2000)],
    )
    written = records([CoordinatorRecord(GroupMetadataKey(group="g"), value, 0)])
    metadata = load(written)["g"].metadata
    assert metadata is not None
    ((member,),) = (metadata.members,)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (2000, 2000)


def test_records_of_other_group_types_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    newer = CoordinatorRecord(
        StreamsGroupMetadataKey(group_id="new"), StreamsGroupMetadataValue(epoch=1)
    )
    written = records(
        [
            newer,
            UnknownCoordinatorRecord(99, b"\0\x63x", b"y"),
            offset_record("g", "t", 0, CommittedOffset(1)),
        ]
    )
    with caplog.at_level(logging.WARNING, "kproto.broker"):
        assert list(load(written)) == ["g"]
        assert not caplog.messages
        broken = [Record(5, value=b"x"), Record(6, key=b"\0\1x"), *written]
        assert list(load(broken)) == ["g"]
    assert [message.partition(" is skipped")[0] for message in caplog.messages] == [
        "__consumer_offsets: offset 5",
        "__consumer_offsets: offset 6",
    ]


texts = st.text(max_size=10)
times = st.integers(0, 2**62)
commits = st.builds(
    CommittedOffset,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    texts,
    times,
    st.none(),
    st.binary(min_size=16, max_size=16).map(Uuid),
)
members = st.builds(
    MemberMetadata,
    texts,
    st.none() | texts,
    texts,
    texts,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=20),
    st.binary(max_size=20),
)
groups = st.builds(
    GroupMetadata,
    st.none() | st.text(min_size=1, max_size=10),
    st.integers(0, 2**31 - 1),
    st.none() | texts,
    st.none() | texts,
    st.none() | times,
    st.lists(members, max_size=3).map(tuple),
)


@given(texts, groups, st.dictionaries(st.tuples(texts, st.integers(0, 2**31 - 1)), commits))
@pytest.mark.slow
def test_written_records_are_replayed_to_the_same_group(
    group_id: str, metadata: GroupMetadata, offsets: dict[tuple[str, int], CommittedOffset]
) -> None:
    written = [
        group_record(group_id, metadata),
        *(offset_record(group_id, *place, committed) for place, committed in offsets.items()),
    ]
    batch = RecordBatch(coordinator_batch(written, 5))
    ((found_id, found),) = load(batch.records()).items()
    assert (found_id, found.metadata) == (group_id, metadata)
    assert dict(found.offsets) == offsets
