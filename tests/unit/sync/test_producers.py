"""Tests blocking producers: deliveries, iterators, transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import kproto
import kproto.sync
from kproto.broker import Slow
from kproto.messages import ProduceRequest
from tests.support.embedded import ThreadedBroker


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    with kproto.sync.Client(broker.bootstrap) as opened:
        yield opened


def values(broker: ThreadedBroker, topic: str = "one") -> list[bytes | None]:
    return [each.value for each in broker.call(lambda it: it.records(topic))]


def test_delivery_waits_for_its_ack(client: kproto.sync.Client) -> None:
    with client.producer(linger_ms=20) as producer:
        delivery = producer.enqueue("one", b"x")
        called: list[kproto.sync.Delivery] = []
        delivery.add_done_callback(called.append)
        assert delivery.result() == kproto.Ack("one", 0, 0, delivery.result().timestamp)
        assert delivery.done()
        assert delivery.exception() is None
        assert delivery.record.value == b"x"
        producer.flush()
        assert called == [delivery]
        assert "done" in repr(delivery)


def test_delivery_that_takes_too_long_raises_a_timeout(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    broker.call(lambda it: it.control(Slow(300), request=ProduceRequest))
    with client.producer() as producer:
        delivery = producer.enqueue("one", b"x")
        with pytest.raises(kproto.RequestTimeoutError, match="not acknowledged within 1 ms"):
            delivery.result(timeout_ms=1)
        assert delivery.result().offset == 0


def test_failed_delivery_raises_its_error(client: kproto.sync.Client) -> None:
    with client.producer() as producer:
        delivery = producer.enqueue("one", b"x" * 2_000_000)
        assert isinstance(delivery.exception(), kproto.DeliveryError)
        with pytest.raises(kproto.DeliveryError):
            delivery.result()


def test_generator_is_read_in_the_calling_thread(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    threads: set[str] = set()

    def records() -> Iterator[bytes]:
        for number in range(1_700):
            threads.add(threading.current_thread().name)
            if number == 600:
                assert client.topic("t").name == "t"  # a blocking call
            yield b"%d" % number

    with client.producer() as producer:
        acks = producer.send_many("one", records())
    assert [each.offset for each in acks] == [*range(1_700)]
    assert values(broker) == [b"%d" % number for number in range(1_700)]
    assert threads == {threading.current_thread().name}


def test_records_before_the_error_of_a_generator_are_sent(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    def records() -> Iterator[bytes]:
        yield b"first"
        yield b"second"
        raise LookupError("no third")

    with client.producer() as producer:
        with pytest.raises(LookupError, match="no third"):
            producer.send_many("one", records())
        assert values(broker) == [b"first", b"second"]
        elements: list[Any] = [b"x"] * 502
        with pytest.raises(kproto.EncodeError, match="element 502"):
            producer.send_many("one", iter([*elements, 5]))
        assert len(values(broker)) == 504
        with pytest.raises(TypeError):
            producer.send_many("one", 5)  # type: ignore[arg-type]


def test_generator_is_read_no_further_after_a_failed_record(client: kproto.sync.Client) -> None:
    def records() -> Iterator[bytes]:
        yield from (b"x", b"x", b"x" * 2_000_000)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            yield b"x"
        raise LookupError("the call still reads")

    with client.producer() as producer, pytest.raises(kproto.DeliveryError):
        producer.send_many("one", records())


def test_transaction_commits_and_aborts(client: kproto.sync.Client, broker: ThreadedBroker) -> None:
    with client.producer(transactional_id="tx") as producer:
        assert producer.settings.transactional_id == "tx"
        with producer.transaction() as transaction:
            producer.send("one", b"committed")
        assert transaction.is_committed
        with pytest.raises(LookupError), producer.transaction() as aborted:  # noqa: PT012
            producer.send("one", b"aborted")
            raise LookupError
        assert aborted.is_committed is False
        with client.consumer("one", group="g") as consumer, producer.transaction() as offsets:
            next(iter(consumer))
            offsets.commit_offsets(consumer)
    assert client.committed_offsets("g")[("one", 0)].offset in (1, 2)
    with client.consumer("one", stop_at_end=True, read_committed=True) as reader:
        assert [record.value for record in reader] == [b"committed"]


def test_producers_and_clients_close_after_an_exception(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    with pytest.raises(LookupError), client.producer(linger_ms=60_000) as producer:  # noqa: PT012
        producer.enqueue("one", b"x")
        raise LookupError
    assert values(broker) == [b"x"]
    assert producer.is_closed
    assert producer.undelivered == {}
