"""Tests records whose handler fails: retries, retry topics and dead letters."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, event_of

from kproto import (
    ConfigurationError,
    DeliveryError,
    NewTopic,
    ProducerRecord,
    Record,
    Retries,
    RetryTopic,
    RunSummary,
    Stop,
    TopicPattern,
    failure_of,
)
from kproto.broker import BrokerSettings
from kproto.client.processing.failure_headers import FAILURE_HEADERS
from kproto.clock import SYSTEM_CLOCK
from tests.unit.client.processing.orders import DEAD, TOPIC, orders, read_all

SOON = Retries(2, backoff_ms=1)


class NotPaidError(Exception):
    pass


async def test_dead_letter_has_the_unchanged_record_and_the_reason() -> None:
    async with orders(0) as it:
        headers = [("trace", b"\x00\xff"), ("trace", None), ("kproto.group", b"of another")]
        await it.send([b"0", ProducerRecord(b"\x00value", b"\xffkey", headers, 1_234), b"2"])
        async with it.consumer() as consumer:

            async def handle(record: Record) -> None:
                it.note(record)
                if record.offset == 1:
                    raise NotPaidError("no money\nat all")
                if record.offset == 2:
                    raise Stop(done=True)

            done = await consumer.run(handle, retries=SOON, dead_letter_topic=DEAD)
        assert done == RunSummary(2, retried=2, dead_letters=1)
        assert [offset for _, offset in it.handled] == [0, 1, 1, 1, 2]
        (dead,) = await read_all(it.client, DEAD)
        assert (dead.value, dead.key) == (b"\x00value", b"\xffkey")
        assert dead.headers[:3] == headers
        assert tuple(name for name, _ in dead.headers[3:]) == FAILURE_HEADERS
        failure = failure_of(dead)
        assert failure is not None
        assert (failure.topic, failure.partition, failure.offset) == (TOPIC, 0, 1)
        assert (failure.timestamp, failure.group, failure.attempts) == (1_234, "billing", 3)
        assert failure.error_type == f"{__name__}.NotPaidError"
        assert failure.error_message == "no money\nat all"
        assert failure.due_ms is None
        assert failure.headers == tuple(headers)
        assert await it.committed(0) == [3]


async def test_without_dead_letter_topic_the_error_is_raised_and_no_record_is_skipped() -> None:
    async with orders(9, 9) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            if (record.partition, record.offset) == (0, 4):
                raise NotPaidError
            it.note(record)

        with pytest.raises(NotPaidError) as raised:
            await consumer.run(handle, retries=SOON)
        assert "orders[0] at offset 4, which is not processed" in raised.value.__notes__[0]
        assert await it.committed(0, 1) == [4, it.count(1) or None]


@pytest.mark.parametrize("order", ["partition", "key", "none"])
async def test_record_waiting_for_a_retry_blocks_only_records_after_it_in_order(
    order: Any,
) -> None:
    async with orders(12, 3) as it, it.consumer() as consumer:
        failures = 0

        async def handle(record: Record) -> None:
            nonlocal failures
            if (record.partition, record.offset) == (0, 0) and len(it.handled) < limit:
                failures += 1
                raise NotPaidError
            it.note(record)
            if len(it.handled) == 15:
                raise Stop(done=True)

        # Records processed meanwhile: of the other partition, of other keys too, or all.
        limit = {"partition": 3, "key": 3 + 8, "none": 14}[order]
        await consumer.run(handle, order=order, retries=Retries(10_000, backoff_ms=1))
        assert failures > 0
        assert it.handled.index((0, 0)) == limit
        assert await it.committed(0, 1) == [12, 3]


async def test_only_the_named_exceptions_are_retried() -> None:
    async with orders(2) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            raise ConnectionError if record.offset == 0 else NotPaidError

        retries = Retries(2, backoff_ms=1, exceptions=(OSError,))
        done: dict[str, Any] = {"retries": retries, "dead_letter_topic": DEAD}

        async def stopping(record: Record) -> None:
            if record.offset == 1 and it.count(0) == 4:
                raise Stop
            await handle(record)

        await it.send([b"end"])

        async def until_the_end(record: Record) -> None:
            if record.value == b"end":
                raise Stop
            await stopping(record)

        assert (await consumer.run(until_the_end, **done)).dead_letters == 2
        assert it.handled == [(0, 0)] * 3 + [(0, 1)]


async def test_undeliverable_dead_letter_is_raised_and_not_skipped() -> None:
    async with orders(0, topics=()) as it:
        await it.client.create_topics(NewTopic(DEAD, 1, configs={"max.message.bytes": "500"}))
        await it.send([b"0", b"v" * 600])
        async with it.consumer() as consumer:

            async def handle(record: Record) -> None:
                if record.offset == 1:
                    raise NotPaidError

            with pytest.raises(DeliveryError) as raised:
                await consumer.run(handle, retries=0, dead_letter_topic=DEAD)
            assert "because its handler failed: NotPaidError" in raised.value.__notes__[0]
        assert await it.committed(0) == [1]


RIGHTS = ("create cluster kafka-cluster", f"all topic {TOPIC}", "all group billing")


@pytest.mark.parametrize("right", ["write", "read", None])
async def test_missing_write_right_is_raised_before_any_handler_runs(
    right: str | None,
) -> None:
    rights = [*RIGHTS, *([f"{right} topic {DEAD}"] if right else ())]
    settings = BrokerSettings(
        authorizer=True, acls=tuple(f"allow User:ANONYMOUS {right}" for right in rights)
    )
    async with orders(2, broker_settings=settings) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            raise NotPaidError if record.offset == 0 else Stop(done=True)

        running = consumer.run(handle, retries=0, dead_letter_topic=DEAD)
        if right == "write":
            assert (await running).dead_letters == 1
        else:
            with pytest.raises(ConfigurationError, match="needs WRITE"):
                await running
            assert it.handled == []


async def test_decoder_can_stop_run() -> None:
    def decode(record: Record) -> Record:
        if record.offset == 2:
            raise Stop
        return record

    async with orders(4) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)

        done = await consumer.run(handle, decode=decode, dead_letter_topic=DEAD)
        assert done == RunSummary(2)
        assert await it.committed(0) == [2]


async def test_record_is_committed_after_its_dead_letter_is_stored() -> None:
    async with orders(3) as it, it.consumer(auto_commit_interval_ms=10) as consumer:

        async def handle(record: Record) -> None:
            if record.offset == 2:
                raise Stop(done=True)
            if record.offset == 1:
                assert [each.value for each in await read_all(it.client, DEAD)] == [b"0"]
                await consumer.commit()
                assert await it.committed(0) == [1]
                return
            raise NotPaidError

        await consumer.run(handle, retries=0, dead_letter_topic=DEAD)


async def test_undecodable_record_becomes_a_dead_letter_without_retries() -> None:
    async with orders(3) as it:
        await it.send([b"{", b'{"end": true}'])
        async with it.consumer() as consumer:
            found: list[Any] = []

            async def handle(order: Any) -> None:
                if order == {"end": True}:
                    raise Stop(done=True)
                found.append(order)
                if order == 1:
                    raise NotPaidError

            done = await consumer.run(
                handle,
                decode=lambda record: json.loads(record.value or b""),
                retries=SOON,
                dead_letter_topic=DEAD,
            )
        assert found == [0, 1, 1, 1, 2]
        assert done == RunSummary(3, retried=2, dead_letters=2)
        failures = [failure_of(each) for each in await read_all(it.client, DEAD)]
        assert [each and each.error_type.rpartition(".")[2] for each in failures] == [
            "NotPaidError",
            "JSONDecodeError",
        ]
        assert failures[1] is not None
        assert failures[1].attempts == 1


async def test_handler_of_events_gets_only_events_and_others_become_dead_letters() -> None:
    async with orders(0) as it:
        none = [
            ProducerRecord(b"none", b"k", [("a", b"b")]),
            ProducerRecord(None, b"k"),
            ProducerRecord(b"broken", None, [("ce_specversion", b"1.0")]),
            ProducerRecord(b"unknown", None, [("ce_specversion", b"9")]),
        ]
        async with it.client.producer() as producer:
            await producer.send_event(TOPIC, CloudEvent(id="1", source="/s", type="first"))
            await producer.send_many(TOPIC, none)
            await producer.send_event(TOPIC, CloudEvent(id="2", source="/s", type="last"))
        async with it.consumer() as consumer:
            types = []

            async def handle(event: CloudEvent) -> None:
                types.append(event.type)
                if event.type == "last":
                    raise Stop(done=True)

            await consumer.run(handle, decode=event_of, retries=SOON, dead_letter_topic=DEAD)
        assert types == ["first", "last"]
        letters = await read_all(it.client, DEAD)
        failures = [failure_of(each) for each in letters]
        assert [
            (each.value, each.key, list(failure.headers))
            for each, failure in zip(letters, failures, strict=True)
            if failure is not None
        ] == [(each.value, each.key, list(each.headers)) for each in none]
        assert {each and each.error_type for each in failures} == {
            "kproto_cloudevents.errors.CloudEventError"
        }


# Retry topics

RETRY = [RetryTopic("orders.retry.30ms", 30), RetryTopic("orders.retry.60ms", 60)]
NAMES = [each.topic for each in RETRY]


async def test_failing_record_passes_all_retry_topics_to_the_dead_letters() -> None:
    async with orders(0, topics=[DEAD, *NAMES]) as it:
        headers = [("a", b"b")]
        await it.send([b"0", ProducerRecord(b"bad", b"key", headers, 5_678), b"2"])
        async with it.consumer() as consumer:
            found: list[tuple[str, bytes | None]] = []
            times: list[int] = []

            async def handle(record: Record) -> None:
                found.append((record.topic, record.value))
                if record.value == b"bad":
                    failure = failure_of(record)
                    times.append(SYSTEM_CLOCK.now_ms())
                    if failure is not None:
                        assert failure.due_ms is not None
                        assert times[-1] >= failure.due_ms
                        assert failure.headers == tuple(headers)
                        assert (failure.topic, failure.offset) == (TOPIC, 1)
                    raise NotPaidError(record.topic)
                if record.value == b"end":
                    raise Stop(done=True)

            running = asyncio.create_task(
                consumer.run(handle, retry_topics=NAMES, dead_letter_topic=DEAD)
            )
            while not (dead := await read_all(it.client, DEAD)):  # noqa: ASYNC110 - a topic
                await asyncio.sleep(0.02)
            await it.send([b"end"])
            done = await running
        assert done == RunSummary(3, sent_to_retry=2, dead_letters=1)
        assert [topic for topic, value in found if value == b"bad"] == [TOPIC, *NAMES]
        assert [value for topic, value in found if topic == TOPIC] == [b"0", b"bad", b"2", b"end"]
        (letter,) = dead
        assert (letter.key, letter.value, letter.headers[:1]) == (b"key", b"bad", headers)
        failure = failure_of(letter)
        assert failure is not None
        assert (failure.topic, failure.offset, failure.timestamp) == (TOPIC, 1, 5_678)
        assert (failure.attempts, failure.error_message) == (3, NAMES[1])
        assert await it.committed(0) == [4]
        for name in NAMES:
            assert await it.committed(0, topic=name) == [1]


@pytest.mark.parametrize("start", ["latest", timedelta(0), "none"])
async def test_retry_topics_are_read_from_the_beginning_with_any_start(start: Any) -> None:
    async with orders(1, topics=["later.0ms"]) as it:
        async with it.consumer([(TOPIC, 0)]) as consumer:
            await consumer.commit({(TOPIC, 0): 1})
        await it.send([b"put off"], topic="later.0ms")  # an earlier member has sent the record

        async def handle(record: Record) -> None:
            assert record.value == b"put off"
            raise Stop(done=True)

        async with it.consumer(start=start) as consumer:
            assert (await consumer.run(handle, retry_topics=["later.0ms"])).handled == 1
        assert await it.committed(0, topic="later.0ms") == [1]


async def test_record_that_is_not_due_blocks_nothing_and_is_not_committed() -> None:
    async with orders(3, topics=["later.1h"]) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if record.topic != TOPIC or record.offset == 1:
                raise NotPaidError
            if record.offset == 2:
                while not consumer.positions.keys() >= {("later.1h", 0)}:
                    await consumer.lag()
                raise Stop(done=True)

        done = await consumer.run(handle, retry_topics=["later.1h"])
        assert done == RunSummary(2, sent_to_retry=1)
        assert await it.committed(0) == [3]
        assert await it.committed(0, topic="later.1h") in ([None], [0])


async def test_after_run_only_the_topics_of_the_user_are_read() -> None:
    async with orders(2, topics=["later.0ms"]) as it, it.consumer() as consumer:

        async def handle(record: Record) -> None:
            it.note(record)
            if len(it.handled) == 1:
                raise NotPaidError
            if record.topic == "later.0ms":
                raise Stop

        await consumer.run(handle, retry_topics=["later.0ms"])
        await it.send([b"2"])
        records = aiter(consumer)
        found = await anext(records)
        while found.offset < 2:
            found = await anext(records)
        assert found.topic == TOPIC
        assert {topic for topic, _ in consumer.assignment} == {TOPIC}


async def test_topic_pattern_works_with_retry_topics() -> None:
    async with (
        orders(3, topics=["later.0ms", DEAD]) as it,
        it.consumer(TopicPattern(f"{TOPIC}|x\\z")) as consumer,
    ):

        async def handle(record: Record) -> None:
            it.note(record)
            if record.topic != TOPIC:
                raise Stop(done=True)
            if record.offset == 1:
                raise NotPaidError

        done = await consumer.run(handle, retry_topics=["later.0ms"], dead_letter_topic=DEAD)
        assert done.sent_to_retry == 1
        assert await it.committed(0, topic="later.0ms") == [1]


async def test_topic_pattern_that_matches_the_dead_letter_topic_is_refused() -> None:
    async with orders(1) as it, it.consumer(TopicPattern(".*")) as consumer:

        async def handle(record: Record) -> None:
            raise Stop

        with pytest.raises(ConfigurationError, match="would be handled"):
            await consumer.run(handle, dead_letter_topic=DEAD)


async def test_retry_topics_need_a_subscription_that_includes_them() -> None:
    async with orders(1, topics=NAMES) as it:
        for topics, why in (
            ([(TOPIC, 0)], "need a subscription"),
            (re.compile("orders"), "does not match"),
        ):
            async with it.consumer(topics) as consumer:

                async def handle(record: Record) -> None:
                    raise Stop

                with pytest.raises(ConfigurationError, match=why):
                    await consumer.run(handle, retry_topics=NAMES)


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_no_record_is_processed_between_unsubscribe_and_subscribe(
    group_protocol: Any,
) -> None:
    async with (
        orders(9, topics=["later.0ms"]) as it,
        it.consumer(group_protocol=group_protocol) as consumer,
    ):
        tried: list[tuple[str, int]] = []

        async def handle(record: Record) -> None:
            tried.append((record.topic, record.offset))
            if tried[-1] in [(TOPIC, 1), (TOPIC, 6)]:
                raise ValueError
            if tried[-1] == (TOPIC, 3):
                consumer.unsubscribe()
            if len(tried) == 11:
                raise Stop(done=True)

        running = asyncio.create_task(consumer.run(handle, retry_topics=["later.0ms"]))
        while (TOPIC, 3) not in tried or consumer.assignment:
            await it.committed(0)
        before = [offset for topic, offset in tried if topic == TOPIC]
        # The commit of a revoked partition may end after the assignment has lost it.
        while await it.committed(0) != [len(before)]:
            assert [offset for topic, offset in tried if topic == TOPIC] == before
        consumer.subscribe(TOPIC)
        assert await running == RunSummary(9, sent_to_retry=2)
        assert [offset for topic, offset in tried if topic == TOPIC] == list(range(9))
        assert sorted(it for it in tried if it[0] != TOPIC) == [("later.0ms", 0), ("later.0ms", 1)]
