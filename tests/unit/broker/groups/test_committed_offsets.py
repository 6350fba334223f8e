"""Tests the committed offsets of a group, and the expiration of offsets (KIP-211)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kproto.broker.groups.committed_offsets import (
    CommittedOffset,
    CommittedOffsets,
    TopicPartition,
    exceeds_max_length,
    expired_offsets,
)
from kproto.wire.uuid import ZERO_UUID, Uuid

MINE, OTHER = Uuid(b"m" * 16), Uuid(b"o" * 16)
RETENTION_MS = 1000


def test_commits_by_topic_and_partition() -> None:
    offsets = CommittedOffsets()
    assert not offsets
    first, second = CommittedOffset(1), CommittedOffset(2)
    offsets.put("a", 0, CommittedOffset(0))
    offsets.put("a", 0, first)
    offsets.put("b", 3, second)
    assert len(offsets) == 2
    assert list(offsets) == [(TopicPartition("a", 0), first), (TopicPartition("b", 3), second)]
    assert (offsets.get("a", 0), offsets.get("a", 1), offsets.get("c", 0)) == (first, None, None)
    assert (offsets.topics, offsets.of_topic("b")) == (["a", "b"], {3: second})
    assert offsets.remove("a", 0)
    assert not offsets.remove("a", 0)
    assert not offsets.remove("c", 0)
    assert (offsets.topics, offsets.of_topic("a")) == (["b"], {})


@pytest.mark.parametrize(
    ("committed", "asked", "expected"),
    [
        (MINE, MINE, True),
        (MINE, OTHER, False),
        (ZERO_UUID, MINE, True),
        (MINE, ZERO_UUID, True),
        (ZERO_UUID, ZERO_UUID, True),
    ],
)
def test_commit_belongs_to_its_topic_id(committed: Uuid, asked: Uuid, *, expected: bool) -> None:
    assert CommittedOffset(1, topic_id=committed).is_of(asked) is expected


def test_offsets_of_deleted_topic_are_found() -> None:
    offsets = CommittedOffsets()
    offsets.put("t", 0, CommittedOffset(1, topic_id=MINE))
    offsets.put("t", 1, CommittedOffset(1, topic_id=OTHER))
    offsets.put("t", 2, CommittedOffset(1))
    offsets.put("u", 0, CommittedOffset(1, topic_id=MINE))
    assert offsets.of_deleted_topic("t", MINE) == [("t", 0), ("t", 2)]
    assert offsets.of_deleted_topic("v", MINE) == []
    assert len(offsets) == 4


@dataclass
class FakeGroup:
    """Implements the attributes of a group that offset expiration reads."""

    protocol_type: str | None
    state: str
    last_empty_at: int | None = None
    subscribed: tuple[str, ...] = ()
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    type: str = "classic"

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed


@pytest.mark.parametrize(
    ("group", "over_at"),
    [
        pytest.param(FakeGroup(None, "Empty", 500), 1100, id="simple: from the commit"),
        pytest.param(
            FakeGroup("consumer", "Empty", 500), 1500, id="empty: from the time it became empty"
        ),
        pytest.param(FakeGroup("connect", "Empty", 500), 1500, id="empty, of another type"),
        pytest.param(FakeGroup("consumer", "Empty", None), 1100, id="empty since an unknown time"),
        pytest.param(FakeGroup("consumer", "Stable"), 1100, id="stable: from the commit"),
        pytest.param(FakeGroup("consumer", "Stable", subscribed=("t",)), None, id="subscribed"),
        pytest.param(
            FakeGroup("consumer", "Empty", 500, type="consumer"),
            1100,
            id="of the consumer protocol",
        ),
        pytest.param(
            FakeGroup("consumer", "Assigning", subscribed=("t",), type="consumer"),
            None,
            id="of the consumer protocol, subscribed",
        ),
        pytest.param(FakeGroup("connect", "Stable"), None, id="stable, of another type"),
        pytest.param(FakeGroup("consumer", "PreparingRebalance"), None, id="preparing"),
        pytest.param(FakeGroup("consumer", "CompletingRebalance"), None, id="completing"),
    ],
)
def test_offsets_expire_by_group_state(group: FakeGroup, over_at: int | None) -> None:
    group.offsets.put("t", 0, CommittedOffset(1, commit_ms=100))
    if over_at is None:
        assert expired_offsets(group, 10**15, RETENTION_MS) == []
        return
    assert expired_offsets(group, over_at - 1, RETENTION_MS) == []
    assert expired_offsets(group, over_at, RETENTION_MS) == [("t", 0)]


@pytest.mark.parametrize("group", [FakeGroup(None, "Empty"), FakeGroup("consumer", "Empty", 0)])
def test_own_expiration_time_overrides_retention(group: FakeGroup) -> None:
    group.offsets.put("t", 0, CommittedOffset(1, commit_ms=100, expire_ms=5000))
    group.offsets.put("t", 1, CommittedOffset(1, commit_ms=4000, expire_ms=4500))
    assert expired_offsets(group, 4499, RETENTION_MS) == []
    assert expired_offsets(group, 4500, RETENTION_MS) == [("t", 1)]
    assert expired_offsets(group, 5000, RETENTION_MS) == [("t", 0), ("t", 1)]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, False),
        ("", False),
        ("abcd", False),
        ("abcde", True),
        ("\u20ac" * 4, False),
        ("\U0001f600" * 2, False),
        ("\U0001f600" * 2 + "a", True),
    ],
)
def test_metadata_length_counts_utf16_units(metadata: str | None, *, expected: bool) -> None:
    assert exceeds_max_length(metadata, 4) is expected
