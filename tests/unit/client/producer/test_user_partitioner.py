"""Tests the setting `partitioner`: named partitioners, and functions of the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kproto import Client, ConfigurationError, EncodeError, Hooks, ProducerRecord
from kproto.broker import Broker
from kproto.client import ClientSettings
from kproto.client.producer.settings import ProducerSettings
from tests.unit.client.producer.test_partitioner import LIBRDKAFKA


def by_first_byte(
    topic: str, key: bytes | None, partitions: Sequence[int], available: Sequence[int]
) -> int:
    return partitions[key[0] % len(partitions)] if key else partitions[-1]


def values(broker: Broker, count: int = 3) -> list[list[bytes | None]]:
    return [[each.value for each in broker.records("t", at)] for at in range(count)]


@pytest.mark.parametrize("name", LIBRDKAFKA)
async def test_named_partitioner_chooses_the_partitions(name: Any) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=6)
        async with client.producer(partitioner=name) as producer:
            records = [ProducerRecord(b"", b"key-%d" % at) for at in range(24)]
            acks = await producer.send_many("t", records)
            single = await producer.send("t", b"", key=b"key-3")
        assert [ack.partition for ack in acks] == LIBRDKAFKA[name]
        assert single.partition == LIBRDKAFKA[name][3]


async def test_properties_set_the_partitioner() -> None:
    client = Client.from_properties({"bootstrap.servers": "b:1", "partitioner": "consistent"})
    assert client.producer().settings.partitioner == "consistent"
    assert client.producer(partitioner=by_first_byte).settings.partitioner is by_first_byte
    with pytest.raises(ConfigurationError, match="partitioner is 'crc32'; it must be random"):
        Client.from_properties({"bootstrap.servers": "b:1", "partitioner": "crc32"})


@pytest.mark.parametrize("wrong", ["crc32", 1, b"random", ("random",), None])
def test_unknown_partitioner_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"partitioner is .*a function, or one of murmur2"):
        ProducerSettings(partitioner=wrong)


async def test_function_chooses_the_partition_of_each_record() -> None:
    asked: list[tuple[str, bytes | None, Sequence[int], Sequence[int]]] = []

    def choose(*arguments: Any) -> int:
        asked.append(arguments)
        return by_first_byte(*arguments)

    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=3)
        async with client.producer(partitioner=choose) as producer:
            assert (await producer.send("t", b"1", key=b"\0")).partition == 0
            assert (await (await producer.enqueue("t", b"2", key=b"\1"))).partition == 1
            records: list[Any] = [b"3", ProducerRecord(b"4", b"\0"), ProducerRecord(b"5"), b"6"]
            records.append(ProducerRecord(b"7", b"\2", partition=0))
            acks = await producer.send_many("t", records)
        assert [ack.partition for ack in acks] == [2, 0, 2, 2, 0]
        assert values(broker) == [[b"1", b"4", b"7"], [b"2"], [b"3", b"5", b"6"]]
        keys = [b"\0", b"\1", None, b"\0", None, None]
        every = (0, 1, 2)
        assert asked == [("t", key, every, every) for key in keys]


async def test_function_that_changes_its_choice_is_called_for_each_keyless_record() -> None:
    calls = 0

    def round_robin(
        topic: str, key: bytes | None, every: Sequence[int], some: Sequence[int]
    ) -> int:
        nonlocal calls
        calls += 1
        return calls % len(every)

    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=3)
        async with client.producer(partitioner=round_robin) as producer:
            await producer.send_many("t", [b"%d" % at for at in range(300)])
        assert [len(each) for each in values(broker)] == [100, 100, 100]
        assert calls == 300


def fails_at_two(topic: str, key: bytes | None, every: Sequence[int], some: Sequence[int]) -> int:
    if key == b"2":
        raise LookupError("no such customer")
    return 0


@pytest.mark.parametrize("way", ["send", "enqueue"])
async def test_error_of_the_function_concerns_its_record_alone(way: str) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=3)
        async with client.producer(partitioner=fails_at_two) as producer:
            await producer.enqueue("t", b"before", key=b"1")
            words = (
                r"raised LookupError\('no such customer'\) for a record for topic 't' with a key"
            )
            with pytest.raises(EncodeError, match=words) as raised:
                await getattr(producer, way)("t", b"lost", key=b"2")
            assert isinstance(raised.value.__cause__, LookupError)
            await producer.send("t", b"after", key=b"3")
        assert values(broker)[0] == [b"before", b"after"]


@pytest.mark.parametrize("first", [0, 3])
async def test_error_of_the_function_names_the_element_of_a_list(first: int) -> None:
    """The records before the element are sent."""
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=3)
        async with client.producer(partitioner=fails_at_two) as producer:
            records = [ProducerRecord(b"%d" % at, b"k") for at in range(first)]
            records += [ProducerRecord(b"lost", b"2"), ProducerRecord(b"unread", b"k")]
            with pytest.raises(
                EncodeError, match=f"element {first}, counted from 0: the partition"
            ):
                await producer.send_many("t", records)
            await producer.send("t", b"next", key=b"k")
        assert values(broker)[0] == [*(b"%d" % at for at in range(first)), b"next"]


@pytest.mark.parametrize("wrong", [3, -1, None, True, 1.0, "0", b"\0"], ids=repr)
@pytest.mark.parametrize("count", [1, 3])
async def test_invalid_result_is_refused(wrong: Any, count: int) -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", partitions=count)
        async with client.producer(partitioner=lambda *_: wrong) as producer:
            words = "the partitioner returned .* for a record for topic 't' with no key; it must"
            with pytest.raises(EncodeError, match=words):
                await producer.send("t", b"")
            with pytest.raises(EncodeError, match=words):
                await producer.send_many("t", [b"", b""])
            await producer.send("t", b"v", partition=0)
        assert values(broker, count)[0] == [b"v"]


async def test_hooks_learn_of_a_record_whose_partitioner_failed() -> None:
    outcomes: list[tuple[bytes | None, str | None]] = []

    class Outcomes(Hooks):
        def on_ack(self, event: Any) -> None:
            outcomes.append((event.record.value, event.error and type(event.error).__name__))

    async with Broker() as broker:
        broker.create_topic("t", partitions=3)
        settings = ClientSettings(hooks=Outcomes())
        async with (
            Client(broker.bootstrap, settings) as client,
            client.producer(partitioner=fails_at_two) as producer,
        ):
            records = [ProducerRecord(b"1", b"1"), ProducerRecord(b"2", b"2")]
            with pytest.raises(EncodeError):
                await producer.send_many("t", records)
    assert sorted(outcomes, key=str) == [(b"1", None), (b"2", "EncodeError")]
