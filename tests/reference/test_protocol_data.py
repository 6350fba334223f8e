"""Tests that subscriptions and assignments have the bytes of Kafka's ConsumerProtocol.

kproto and Kafka must also decode the bytes equally.
"""

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
from kproto.protocol.consumer_protocol import decode_subscription
from kproto.wire.errors import DecodeError
from tests.unit.client.groups.golden_data import ASSIGNMENTS, SUBSCRIPTIONS
from tools.reference import KafkaJavaProgram
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

#: ASCII names, and names whose order differs between UTF-16 and code points.
NAMES = ("t", "T", "orders.eu-west", "a", "z", "\uffee", "\U0001f600", "ä")


def random_partitions(chance: random.Random) -> list[TopicPartition]:
    every = [(topic, number) for topic in NAMES for number in range(6)]
    return chance.sample(every, chance.randrange(9))


def subscriptions(count: int) -> Iterator[Subscription]:
    chance = random.Random(SEED)
    for _ in range(count):
        yield Subscription(
            chance.sample(NAMES, chance.randrange(5)),
            random_partitions(chance),
            chance.choice((-1, 0, 7, 0x7FFF_FFFF)),
            chance.choice((None, "a", "rack-1")),
            None,
            chance.choice((None, b"", chance.randbytes(9))),
        )


def assignments(count: int) -> Iterator[list[TopicPartition]]:
    chance = random.Random(SEED)
    return (random_partitions(chance) for _ in range(count))


@pytest.mark.parametrize("release", RELEASES)
def test_encoded_bytes_equal_those_of_kafka(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    expected = list(subscriptions(COUNT))
    ours = [subscription_bytes(each) for each in expected]
    assert ours == list(write_subscriptions(judges[release], expected))
    lists = list(assignments(COUNT))
    assert [*map(assignment_bytes, lists)] == list(write_assignments(judges[release], lists))


@pytest.mark.parametrize("version", [*VERSIONS, None])
@pytest.mark.parametrize("release", RELEASES)
def test_every_version_that_kafka_writes_is_decoded(
    judges: dict[str, KafkaJavaProgram], release: str, version: int | None
) -> None:
    judge = judges[release]
    written = list(write_subscriptions(judge, subscriptions(COUNT), version))
    for data, theirs in zip(written, read_subscriptions(judge, written), strict=True):
        assert read_subscription(data) == theirs
    written = list(write_assignments(judge, assignments(COUNT), version, b"mine"))
    for data, partitions in zip(written, read_assignments(judge, written), strict=True):
        assert read_assignment(data) == partitions


@pytest.mark.parametrize("release", RELEASES)
def test_broken_bytes_are_refused_as_in_kafka(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    """Checks bytes that both kproto and Kafka refuse, and the known exceptions.

    Only kproto refuses invalid UTF-8 and lengths below -1, as it does in all messages. Only Kafka
    refuses subscriptions that end before a field; sarama and franz-go also read such subscriptions.
    """
    chance = random.Random(SEED)
    broken = []
    for whole in map(subscription_bytes, subscriptions(COUNT)):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice((0, 1, 0x7F))
        length = chance.choice((len(damaged), chance.randrange(1, len(damaged))))
        broken.append(bytes(damaged[:length]))
    seen = {"alike": 0, "refused": 0}
    for data, theirs in zip(broken, read_subscriptions(judges[release], broken), strict=True):
        try:
            ours = read_subscription(data)
        except DecodeError as error:
            stricter = "a length of -" in str(error) or "UTF-8" in str(error)
            assert theirs is None or stricter, data.hex()
            seen["refused"] += 1
        else:
            if theirs is None:
                with pytest.raises(DecodeError):
                    decode_subscription(data, may_end_early=False)
                continue
            assert ours == theirs, data.hex()
            seen["alike"] += 1
    assert min(seen.values()) > COUNT // 10


@pytest.mark.parametrize("release", RELEASES)
def test_golden_bytes_equal_those_of_kafka(
    judges: dict[str, KafkaJavaProgram], release: str
) -> None:
    judge = judges[release]
    for version, expected, data in SUBSCRIPTIONS:
        assert [bytes.fromhex(data)] == list(write_subscriptions(judge, [expected], version))
    for version, partitions, data in ASSIGNMENTS:
        assert [bytes.fromhex(data)] == list(write_assignments(judge, [partitions], version))
