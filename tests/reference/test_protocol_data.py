"""Subscriptions and assignments: ours are the bytes of Kafka's ConsumerProtocol, and read alike."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kproto.client.groups.assignors.subscriptions import Subscription
from kproto.client.groups.protocol_data import (
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from kproto.client.metadata.cluster import TopicPartition
from kproto.wire.errors import DecodeError
from tests.unit.client.groups.golden_data import ASSIGNMENTS, SUBSCRIPTIONS
from tools.reference import Reference
from tools.reference.member_data import (
    read_assignments,
    read_subscriptions,
    write_assignments,
    write_subscriptions,
)
from tools.reference.pairs import RELEASES

pytestmark = [pytest.mark.reference, pytest.mark.slow]

SEED = 18
COUNT = 400
VERSIONS = range(4)

#: Names in whose order UTF-16 and code points differ, and plain ones.
NAMES = ("t", "T", "orders.eu-west", "a", "z", "\uffee", "\U0001f600", "ä")


def places(chance: random.Random) -> list[TopicPartition]:
    every = [(topic, number) for topic in NAMES for number in range(6)]
    return chance.sample(every, chance.randrange(9))


def subscriptions(count: int) -> Iterator[Subscription]:
    chance = random.Random(SEED)
    for _ in range(count):
        yield Subscription(
            chance.sample(NAMES, chance.randrange(5)),
            places(chance),
            chance.choice((-1, 0, 7, 0x7FFF_FFFF)),
            chance.choice((None, "a", "rack-1")),
            None,
            chance.choice((None, b"", chance.randbytes(9))),
        )


def assignments(count: int) -> Iterator[list[TopicPartition]]:
    chance = random.Random(SEED)
    return (places(chance) for _ in range(count))


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_written_is_what_kafka_writes(judges: dict[str, Reference], release: str) -> None:
    told = list(subscriptions(COUNT))
    ours = [subscription_bytes(each) for each in told]
    assert ours == list(write_subscriptions(judges[release], told))
    given = list(assignments(COUNT))
    assert [*map(assignment_bytes, given)] == list(write_assignments(judges[release], given))


@pytest.mark.parametrize("version", [*VERSIONS, None])
@pytest.mark.parametrize("release", RELEASES)
def test_what_kafka_writes_in_any_version_is_read(
    judges: dict[str, Reference], release: str, version: int | None
) -> None:
    judge = judges[release]
    written = list(write_subscriptions(judge, subscriptions(COUNT), version))
    for data, theirs in zip(written, read_subscriptions(judge, written), strict=True):
        assert read_subscription(data) == theirs
    written = list(write_assignments(judge, assignments(COUNT), version, b"mine"))
    for data, places in zip(written, read_assignments(judge, written), strict=True):
        assert read_assignment(data) == places


@pytest.mark.parametrize("release", RELEASES)
def test_broken_bytes_are_refused_where_kafka_refuses_them(
    judges: dict[str, Reference], release: str
) -> None:
    """Ours refuse bad UTF-8 and lengths below -1, too, as of all messages."""
    chance = random.Random(SEED)
    broken = []
    for whole in map(subscription_bytes, subscriptions(COUNT)):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 0x7F))
        kept = chance.choice((len(damaged), chance.randrange(1, len(damaged))))
        broken.append(bytes(damaged[:kept]))
    seen = {"alike": 0, "refused": 0}
    for data, theirs in zip(broken, read_subscriptions(judges[release], broken), strict=True):
        try:
            ours = read_subscription(data)
        except DecodeError as error:
            stricter = "a length of -" in str(error) or "UTF-8" in str(error)
            assert theirs is None or stricter, data.hex()
            seen["refused"] += 1
        else:
            assert ours == theirs, data.hex()
            seen["alike"] += 1
    assert min(seen.values()) > COUNT // 10


@pytest.mark.parametrize("release", RELEASES)
def test_the_golden_bytes_are_those_of_kafka(judges: dict[str, Reference], release: str) -> None:
    judge = judges[release]
    for version, told, data in SUBSCRIPTIONS:
        assert [bytes.fromhex(data)] == list(write_subscriptions(judge, [told], version))
    for version, places, data in ASSIGNMENTS:
        assert [bytes.fromhex(data)] == list(write_assignments(judge, [places], version))
