"""Tests blocking share consumers: acknowledgements, interruptions and `run`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kproto
import kproto.sync
from kproto import (
    AcknowledgeResult,
    ConfigurationError,
    ShareRecord,
    Undecodable,
    UndecodableRecordError,
)
from kproto.codecs import DecodeContext, StringCodec
from kproto.sync.loop_thread import LoopThread
from tests.support.embedded import ThreadedBroker
from tests.unit.sync.share_group_clients import client_of_share_group

RECORDS = 20


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[kproto.sync.Client]:
    with client_of_share_group(broker, range(RECORDS)) as opened:
        yield opened


def sharing(
    client: kproto.sync.Client, acknowledgement: Any = "implicit", **settings: Any
) -> kproto.sync.ShareConsumer[Any, Any, Any]:
    return client.share_consumer(
        "one", group="g", acknowledgement=acknowledgement, max_wait_ms=50, **settings
    )


def even(data: bytes, context: DecodeContext) -> int:
    """Decodes an even number, and raises for an odd one."""
    number = int(data)
    if number % 2:
        raise ValueError(number)
    return number


def left(client: kproto.sync.Client) -> list[tuple[int, int]]:
    """Returns the offsets and delivery counts of the records that the group delivers now."""
    with sharing(client, "explicit") as consumer:
        polled = consumer.poll(1_000)
        return [(each.offset, each.delivery_count) for each in polled.get(("one", 0), [])]


def test_asking_for_the_next_record_accepts_the_previous_one(client: kproto.sync.Client) -> None:
    offsets: list[int] = []
    with sharing(client) as consumer:
        for record in consumer:
            offsets.append(record.offset)
            if record.offset == 9:
                break
        assert consumer.partitions == [("one", 0)]
        assert consumer.lock_timeout_ms == 30_000
    assert offsets == [*range(10)]
    assert [offset for offset, _ in left(client)] == [*range(10, RECORDS)]


def test_exception_in_the_block_releases_the_record_in_processing(
    client: kproto.sync.Client,
) -> None:
    with pytest.raises(LookupError), sharing(client) as consumer:  # noqa: PT012
        for record in consumer:
            if record.offset == 3:
                raise LookupError
    assert left(client)[0] == (3, 2)


def test_each_acknowledgement_has_its_effect(client: kproto.sync.Client) -> None:
    results: list[AcknowledgeResult] = []
    with sharing(client, "explicit", on_acknowledged=results.append) as consumer:
        first, second, third, fourth, *others = next(consumer.record_lists())
        consumer.accept(first)
        consumer.release(second)
        consumer.reject(third)
        consumer.renew(fourth)
        consumer.accept([fourth, *others])
        assert {each.error for each in consumer.commit()} == {None}
        with pytest.raises(ConfigurationError, match="acknowledged"):
            consumer.accept(first)
    assert results
    ((offset, delivery_count),) = left(client)
    assert offset == 1
    assert delivery_count >= 2


def test_polls_return_lists_by_partition(client: kproto.sync.Client) -> None:
    with sharing(client) as consumer:
        polled = consumer.poll(5_000, max_records=4)
        assert [each.offset for each in polled["one", 0]] == [0, 1, 2, 3]
        assert next(iter(consumer)).offset == 4
        assert next(consumer.record_lists())[0].offset == 5
        consumer.subscribe("t")
        with pytest.raises(ConfigurationError, match="timeout_ms"):
            consumer.poll(-1)
    with pytest.raises(ConfigurationError, match="closed"):
        consumer.poll(1)


def test_records_of_an_interrupted_poll_are_delivered_again(
    client: kproto.sync.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(poll: Callable[[], object]) -> None:
        """Makes a poll that has succeeded raise KeyboardInterrupt in its caller."""
        thread = LoopThread.call

        def call(self: LoopThread, function: Any, *args: Any, undo: Any, **kwargs: Any) -> Any:
            thread(self, function, *args, undo=undo, **kwargs)
            self.call_plain(undo)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):  # noqa: PT012
            patched.setattr(LoopThread, "call", call)
            poll()

    accepted: list[int] = []
    with sharing(client, "explicit") as consumer:
        interrupt(lambda: next(iter(consumer)))
        polled = consumer.poll(5_000, max_records=3)["one", 0]
        interrupt(lambda: consumer.poll(5_000, max_records=4))
        interrupt(lambda: next(consumer.record_lists()))
        consumer.accept(polled)
        accepted += [each.offset for each in polled]
        for records in consumer.record_lists():
            consumer.accept(records)
            accepted += [each.offset for each in records]
            if len(accepted) >= RECORDS:
                break
    assert sorted(accepted) == [*range(RECORDS)]
    assert left(client) == []


def test_run_calls_handlers_in_threads_and_acknowledges(
    client: kproto.sync.Client, broker: ThreadedBroker
) -> None:
    broker.call(lambda it: it.create_topic("dead"))
    threads: set[str] = set()
    handled: set[int] = set()
    together = threading.Barrier(4)

    def handle(number: int) -> None:
        threads.add(threading.current_thread().name)
        if number < 4:
            together.wait(10)
        if number == 7:
            raise LookupError("seven")
        handled.add(number)
        if len(handled) == RECORDS - 2:
            raise kproto.Stop(done=True)

    def number_of(record: ShareRecord) -> int:
        if record.offset == 5:
            raise ValueError("five")
        return int(record.value or b"")

    with sharing(client, "explicit") as consumer:
        summary = consumer.run(
            handle, decode=number_of, workers=4, retries=0, dead_letter_topic="dead"
        )
    assert handled == {*range(RECORDS)} - {5, 7}
    assert len(threads) == 4
    assert summary.dead_letters == 2
    assert summary.handled == RECORDS - 2
    dead = broker.call(lambda it: it.records("dead"))
    assert {each.value for each in dead} == {b"5", b"7"}
    assert left(client) == []


def test_signal_stops_run_and_releases_records_that_have_not_started(
    client: kproto.sync.Client,
) -> None:
    handled: list[int] = []

    def handle(record: ShareRecord) -> None:
        handled.append(record.offset)
        if len(handled) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            stopped.wait(0.2)

    stopped = threading.Event()
    with sharing(client, "explicit") as consumer:
        consumer.run(handle, workers=1)
    assert handled[:3] == [0, 1, 2]
    assert len(handled) < RECORDS
    assert [offset for offset, _ in left(client)] == [*range(len(handled), RECORDS)]


def test_handler_that_closes_its_consumer_is_refused(client: kproto.sync.Client) -> None:
    errors: list[Exception] = []
    with sharing(client, "explicit") as consumer:

        def handle(record: ShareRecord) -> None:
            try:
                consumer.close()
            except ConfigurationError as error:
                errors.append(error)
            raise kproto.Stop(done=True)

        consumer.run(handle, workers=1)
    assert "a handler cannot close its consumer" in str(errors[0])


def test_handler_that_is_async_is_refused(client: kproto.sync.Client) -> None:
    async def handle(record: ShareRecord) -> None: ...

    with (
        sharing(client, "explicit") as consumer,
        pytest.raises(ConfigurationError, match="handler is an async function"),
    ):
        consumer.run(handle)


def test_calling_thread_decodes_single_records(client: kproto.sync.Client) -> None:
    threads: set[str] = set()

    def decode(data: bytes, context: DecodeContext) -> str:
        threads.add(threading.current_thread().name)
        return data.decode()

    found: list[str | None] = []
    with sharing(client, key=StringCodec(), value=decode) as consumer:
        for record in consumer:
            assert isinstance(record, ShareRecord)
            found.append(record.value)
            if len(found) == RECORDS:
                break
    assert found == [str(number) for number in range(RECORDS)]
    assert threads == {threading.current_thread().name}
    assert left(client) == []


def test_undecodable_record_raises_once_and_is_never_delivered_again(
    client: kproto.sync.Client,
) -> None:
    found: list[object] = []
    with sharing(client, value=even) as consumer:
        iteration = iter(consumer)
        while len(found) < RECORDS:
            try:
                found.append(next(iteration).value)
            except UndecodableRecordError as error:
                found.append(-int(error.raw or b""))
    assert found == [-number if number % 2 else number for number in range(RECORDS)]
    assert left(client) == []


def test_undecodable_records_are_acknowledged_and_the_rest_of_a_list_follows(
    client: kproto.sync.Client,
) -> None:
    with sharing(client, "explicit", value=even, undecodable=Undecodable) as consumer:
        records = next(consumer.record_lists())
        assert [isinstance(each, Undecodable) for each in records] == [False, True] * 10
        consumer.accept(records[::2])
        consumer.reject(records[1])
        consumer.release(records[3::2])
        assert {each.error for each in consumer.commit()} == {None}
    assert [offset for offset, _ in left(client)] == [*range(3, RECORDS, 2)]


def test_records_of_an_interrupted_poll_of_a_decoding_consumer_are_released(
    client: kproto.sync.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = LoopThread.call

    def call(self: LoopThread, function: Any, *args: Any, undo: Any, **kwargs: Any) -> Any:
        thread(self, function, *args, undo=undo, **kwargs)
        self.call_plain(undo)
        raise KeyboardInterrupt

    with sharing(client, "explicit", value=even, undecodable=Undecodable) as consumer:
        with monkeypatch.context() as patched:
            patched.setattr(LoopThread, "call", call)
            for poll in (lambda: consumer.poll(5_000), lambda: next(iter(consumer))):
                with pytest.raises(KeyboardInterrupt):
                    poll()
        accepted: list[int] = []
        for records in consumer.record_lists():
            consumer.accept(records)
            accepted += [each.offset for each in records]
            if len(accepted) >= RECORDS:
                break
    assert sorted(accepted) == [*range(RECORDS)]


@pytest.mark.parametrize("lists", [False, True])
def test_undecodable_record_of_an_interrupted_poll_is_delivered_again(
    client: kproto.sync.Client, monkeypatch: pytest.MonkeyPatch, lists: bool
) -> None:
    thread = LoopThread.call

    def call(self: LoopThread, function: Any, *args: Any, undo: Any, **kwargs: Any) -> Any:
        try:
            return thread(self, function, *args, undo=undo, **kwargs)
        except UndecodableRecordError:
            self.call_plain(undo)
            raise KeyboardInterrupt from None

    def poll_all() -> None:
        for _ in range(RECORDS):
            next(iter(consumer.record_lists())) if lists else consumer.poll(5_000)

    with sharing(client, "explicit", value=even) as consumer, monkeypatch.context() as patched:
        patched.setattr(LoopThread, "call", call)
        with pytest.raises(KeyboardInterrupt):
            poll_all()
    assert [offset for offset, _ in left(client)] == [*range(RECORDS)]


def test_run_rejects_undecodable_records_without_a_dead_letter_topic(
    client: kproto.sync.Client,
) -> None:
    handled: list[int | None] = []

    def handle(record: ShareRecord[bytes, int]) -> None:
        handled.append(record.value)
        if len(handled) == RECORDS // 2:
            raise kproto.Stop(done=True)

    with sharing(client, "explicit", value=even) as consumer:
        summary = consumer.run(handle, workers=1)
    assert handled == [*range(0, RECORDS, 2)]
    assert summary.rejected == RECORDS // 2 - 1
    assert [offset for offset, _ in left(client)] == [RECORDS - 1]


@pytest.mark.parametrize("given", [{"value": "utf-8"}, {"undecodable": Undecodable}])
def test_invalid_codecs_are_refused(client: kproto.sync.Client, given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        sharing(client, **given)
