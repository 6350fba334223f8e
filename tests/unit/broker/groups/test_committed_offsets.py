"""What is kept of commits, and which have had their time (KIP-211)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kproto.broker.groups.committed_offsets import (
    CommittedOffset,
    Offsets,
    TopicPartition,
    expired,
    too_long,
)
from kproto.wire.uuid import ZERO_UUID, Uuid

MINE, OTHER = Uuid(b"m" * 16), Uuid(b"o" * 16)
RETENTION_MS = 1000


def test_commits_by_topic_and_partition() -> None:
    offsets = Offsets()
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
def test_of_which_topic_a_commit_is(committed: Uuid, asked: Uuid, *, expected: bool) -> None:
    assert CommittedOffset(1, topic_id=committed).is_of(asked) is expected


def test_what_goes_with_a_deleted_topic() -> None:
    offsets = Offsets()
    offsets.put("t", 0, CommittedOffset(1, topic_id=MINE))
    offsets.put("t", 1, CommittedOffset(1, topic_id=OTHER))
    offsets.put("t", 2, CommittedOffset(1))
    offsets.put("u", 0, CommittedOffset(1, topic_id=MINE))
    assert offsets.of_deleted("t", MINE) == [("t", 0), ("t", 2)]
    assert offsets.of_deleted("v", MINE) == []
    assert len(offsets) == 4


@dataclass
class Group:
    """What expiry asks of one."""

    protocol_type: str | None
    state: str
    last_empty_at: int | None = None
    subscribed: tuple[str, ...] = ()
    offsets: Offsets = field(default_factory=Offsets)
    type: str = "classic"

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed


@pytest.mark.parametrize(
    ("group", "over_at"),
    [
        pytest.param(Group(None, "Empty", 500), 1100, id="simple: from the commit"),
        pytest.param(Group("consumer", "Empty", 500), 1500, id="empty: since it is"),
        pytest.param(Group("connect", "Empty", 500), 1500, id="empty, of another type"),
        pytest.param(Group("consumer", "Empty", None), 1100, id="empty, nobody knows since when"),
        pytest.param(Group("consumer", "Stable"), 1100, id="stable: from the commit"),
        pytest.param(Group("consumer", "Stable", subscribed=("t",)), None, id="subscribed"),
        pytest.param(
            Group("consumer", "Empty", 500, type="consumer"), 1100, id="of the consumer protocol"
        ),
        pytest.param(
            Group("consumer", "Assigning", subscribed=("t",), type="consumer"),
            None,
            id="of the consumer protocol, subscribed",
        ),
        pytest.param(Group("connect", "Stable"), None, id="stable, of another type"),
        pytest.param(Group("consumer", "PreparingRebalance"), None, id="preparing"),
        pytest.param(Group("consumer", "CompletingRebalance"), None, id="completing"),
    ],
)
def test_when_offsets_have_had_their_time(group: Group, over_at: int | None) -> None:
    group.offsets.put("t", 0, CommittedOffset(1, commit_ms=100))
    if over_at is None:
        assert expired(group, 10**15, RETENTION_MS) == []
        return
    assert expired(group, over_at - 1, RETENTION_MS) == []
    assert expired(group, over_at, RETENTION_MS) == [("t", 0)]


@pytest.mark.parametrize("group", [Group(None, "Empty"), Group("consumer", "Empty", 0)])
def test_an_end_of_its_own_counts_before_all(group: Group) -> None:
    group.offsets.put("t", 0, CommittedOffset(1, commit_ms=100, expire_ms=5000))
    group.offsets.put("t", 1, CommittedOffset(1, commit_ms=4000, expire_ms=4500))
    assert expired(group, 4499, RETENTION_MS) == []
    assert expired(group, 4500, RETENTION_MS) == [("t", 1)]
    assert expired(group, 5000, RETENTION_MS) == [("t", 0), ("t", 1)]


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
def test_metadata_is_measured_as_java_does(metadata: str | None, *, expected: bool) -> None:
    assert too_long(metadata, 4) is expected
