"""Tests codecs of blocking producers and consumers: sends, iterations, dead letters of `run`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import GenericAlias
from typing import Any, get_args

import pytest

import kproto
import kproto.sync
from kproto import ProducerRecord, Record, Undecodable, UndecodableRecordError
from kproto.codecs import DecodeContext, EncodeContext, IntCodec, JsonCodec, StringCodec
from tests.support.embedded import ThreadedBroker


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    with kproto.sync.Client(broker.bootstrap) as opened:
        yield opened


class ThreadCodec:
    """Encodes and decodes text, and collects the names of the threads that call it."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def encode(self, value: str, context: EncodeContext, /) -> bytes:
        self.threads.add(threading.current_thread().name)
        return value.encode()

    def decode(self, data: bytes, context: DecodeContext, /) -> str:
        self.threads.add(threading.current_thread().name)
        return data.decode()


def values(broker: ThreadedBroker, topic: str = "one") -> list[bytes | None]:
    return [each.value for each in broker.call(lambda it: it.records(topic))]


def send_bytes(client: kproto.sync.Client, *sent: bytes) -> None:
    with client.producer() as producer:
        producer.send_many("one", [*sent])


@pytest.mark.parametrize("name", ["Producer", "Consumer", "GroupConsumer", "ShareConsumer"])
def test_annotations_take_the_types_of_codecs(name: str) -> None:
    alias: Any = getattr(kproto.sync, name)[str]
    assert isinstance(alias, GenericAlias)
    assert get_args(alias) == (str,)
    assert alias.__origin__ is getattr(kproto.sync, name)


def test_every_kind_of_send_encodes_keys_and_values(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    with client.producer(key=StringCodec(), value=JsonCodec()) as producer:
        producer.send("one", {"n": 1}, key="a")
        assert producer.enqueue("one", [2], key="b").result().offset == 1
        producer.send_many("one", [3, ProducerRecord(4, "c"), None])
        producer.send_many("one", iter([5, ProducerRecord(6, "d", [("h", b"x")]), None]))
    sent = broker.call(lambda it: it.records("one"))
    numbers = [b'{"n":1}', b"[2]", b"3", b"4", None, b"5", b"6", None]
    assert [each.value for each in sent] == numbers
    assert [each.key for each in sent] == [b"a", b"b", None, b"c", None, None, b"d", None]
    assert [*sent[6].headers] == [("h", b"x")]


def test_calling_thread_encodes_lists_and_iterators(client: kproto.sync.Client) -> None:
    codec = ThreadCodec()
    with client.producer(value=codec) as producer:
        producer.send_many("one", ["a", "b"])
        producer.send_many("one", iter(["c", "d"]))
    assert codec.threads == {threading.current_thread().name}


@pytest.mark.parametrize("before", [3, 502])
def test_encode_error_names_the_index_and_iterators_keep_unread_elements(
    client: kproto.sync.Client, broker: ThreadedBroker, before: int
) -> None:
    elements: list[Any] = [*range(before), "text", 7, 8]
    with client.producer(value=IntCodec()) as producer:
        with pytest.raises(kproto.EncodeError) as of_list:
            producer.send_many("one", elements)
        assert f"values[{before}].value" in str(of_list.value)
        assert values(broker) == []
        source = iter(elements)
        with pytest.raises(kproto.EncodeError) as of_iterator:
            producer.send_many("one", source)
        assert f"values[{before}].value" in str(of_iterator.value)
        assert len(values(broker)) == before
        assert [*source] == [7, 8]
        with pytest.raises(kproto.EncodeError):
            producer.send("one", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            producer.send_many("one", b"text")
    assert len(values(broker)) == before


def test_every_kind_of_iteration_decodes(client: kproto.sync.Client) -> None:
    with client.producer(key=StringCodec(), value=IntCodec()) as producer:
        producer.send_many("one", (ProducerRecord(n, f"key {n}") for n in range(1_200)))

    def read() -> kproto.sync.Consumer[str, int]:
        return client.consumer("one", key=StringCodec(), value=IntCodec(), stop_at_end=True)

    records = [*read()]
    assert [each.value for each in records] == [*range(1_200)]
    assert records[7].key == "key 7"
    lists = [each.records for each in read().record_lists()]
    assert [each.value for part in lists for each in part] == [*range(1_200)]
    assert [each for part in read().values() for each in part.values] == [*range(1_200)]
    with read() as consumer:
        assert [each.value for each in consumer.poll(10_000, 3)["one", 0]] == [0, 1, 2]
        assert next(iter(consumer)).value == 3
        assert consumer.positions == {("one", 0): 4}


def test_calling_thread_decodes_single_records(client: kproto.sync.Client) -> None:
    send_bytes(client, b"a", b"b", b"c")
    codec = ThreadCodec()
    with client.consumer("one", value=codec, stop_at_end=True) as consumer:
        assert [each.value for each in consumer] == ["a", "b", "c"]
    assert codec.threads == {threading.current_thread().name}


def test_undecodable_record_raises_and_the_iteration_continues_after_it(
    client: kproto.sync.Client,
) -> None:
    send_bytes(client, b"bad", b"1", b"worse", b"2")
    with client.consumer("one", value=JsonCodec(), stop_at_end=True) as consumer:
        iteration = iter(consumer)
        found: list[object] = []
        for _ in range(4):
            try:
                found.append(next(iteration).value)
            except UndecodableRecordError as error:
                found.append(error.raw)
        assert found == [b"bad", 1, b"worse", 2]
        assert next(iteration, None) is None


def test_undecodable_record_is_returned_if_the_consumer_asks_for_it(
    client: kproto.sync.Client,
) -> None:
    send_bytes(client, b"bad", b"1")
    with client.consumer(
        "one", value=JsonCodec(), undecodable=Undecodable, stop_at_end=True
    ) as consumer:
        bad, good = [*consumer]
    assert isinstance(bad, Undecodable)
    assert (bad.value, bad.error.field) == (b"bad", "value")
    assert good.value == 1


def test_run_sends_undecodable_records_to_the_dead_letter_topic(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    broker.call(lambda it: it.create_topic("dead"))
    send_bytes(client, b"1", b"bad", b"2")
    handled: list[object] = []

    def handle(record: Record[bytes, int]) -> None:
        handled.append(record.value)
        if len(handled) == 2:
            raise kproto.Stop(done=True)

    with client.consumer("one", group="g", value=JsonCodec()) as consumer:
        summary = consumer.run(handle, dead_letter_topic="dead")
    assert handled == [1, 2]
    assert summary.dead_letters == 1
    assert values(broker, "dead") == [b"bad"]
    assert client.committed_offsets("g")[("one", 0)].offset == 3


def test_run_applies_decode_after_the_codecs(client: kproto.sync.Client) -> None:
    send_bytes(client, b"1", b"2")
    handled: list[object] = []

    def handle(number: int) -> None:
        handled.append(number)
        if len(handled) == 2:
            raise kproto.Stop(done=True)

    def tenfold(record: Record[bytes, int]) -> int:
        return (record.value or 0) * 10

    with client.consumer("one", group="g", value=JsonCodec()) as consumer:
        consumer.run(handle, decode=tenfold)
    assert handled == [10, 20]


def test_run_batches_sends_undecodable_records_to_the_dead_letter_topic(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    broker.call(lambda it: it.create_topic("dead"))
    send_bytes(client, b"1", b"bad", b"2")
    handled: list[object] = []

    def handle(records: list[Record[bytes, int]]) -> None:
        handled.extend(each.value for each in records)
        if len(handled) == 2:
            raise kproto.Stop(done=True)

    with client.consumer("one", group="g", value=JsonCodec()) as consumer:
        consumer.run_batches(handle, dead_letter_topic="dead")
    assert handled == [1, 2]
    assert values(broker, "dead") == [b"bad"]


def test_run_in_transactions_decodes_records(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    send_bytes(client, b"1", b"bad", b"2")
    broker.call(lambda it: it.create_topic("dead"))
    broker.call(lambda it: it.create_topic("out"))

    def handle(record: Record[bytes, int], transaction: kproto.sync.HandlerTransaction) -> None:
        transaction.send("out", b"%d" % (record.value or 0))
        if record.value == 2:
            raise kproto.Stop(done=True)

    with client.consumer("one", group="g", value=JsonCodec()) as consumer:
        consumer.run(handle, transactional_id="tx", dead_letter_topic="dead")
    with client.consumer("out", read_committed=True, stop_at_end=True) as reader:
        assert [each.value for each in reader] == [b"1", b"2"]
    with client.consumer("dead", read_committed=True, stop_at_end=True) as reader:
        assert [each.value for each in reader] == [b"bad"]
