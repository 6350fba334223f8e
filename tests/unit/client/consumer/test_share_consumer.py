"""Tests the share consumer with a scripted broker: modes, errors, cancellation and the close."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import kproto
from kproto import (
    AcknowledgeResult,
    Client,
    ConfigurationError,
    LockLostError,
    ShareConsumer,
    TopicPattern,
)
from kproto.broker import Broker, BrokerSettings
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.messages import (
    ApiVersionsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareGroupHeartbeatRequest,
)
from kproto.protocol.error_codes import code_of
from tests.unit.client.scripted_broker import HANG_UP, api_versions, quick

from .scripted_share import TOPIC, ShareBroker

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


@asynccontextmanager
async def sharing(
    broker: ShareBroker, acknowledgement: Any = "implicit", **settings: Any
) -> AsyncIterator[ShareConsumer]:
    """Yields a consumer of the broker's topic, within the blocks of client and consumer."""
    its = quick(metadata_wait_ms=5_000, delivery_timeout_ms=10_000)
    settings = {"max_wait_ms": 50, "acknowledgement": acknowledgement, **settings}
    async with (
        Client(broker.bootstrap, its) as client,
        client.share_consumer(TOPIC, group="g", **settings) as consumer,
    ):
        yield consumer


async def test_asking_for_the_next_record_accepts_the_previous_one() -> None:
    async with ShareBroker() as broker:
        broker.produce(6)
        async with sharing(broker) as consumer:
            values = []
            async for record in consumer:
                values.append(int(record.value or b""))
                assert record.delivery_count == 1
                if len(values) == 6:
                    break
        assert values == [0, 1, 2, 3, 4, 5]
        assert sorted(broker.acks) == [(at, ACCEPT) for at in range(6)]
        assert len(broker.left) == 1
        assert not broker.sessions


async def test_exception_in_the_block_releases_the_record_in_processing() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)

        async def read() -> None:
            async with sharing(broker) as consumer:
                async for record in consumer:
                    if record.offset == 1:
                        raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await read()
        assert broker.acks == [(0, ACCEPT)]
        assert broker.states == {0: "acknowledged", 1: "available", 2: "available"}


async def test_slow_implicit_consumer_accepts_records_before_the_end_of_its_list() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker) as consumer:
            iteration = aiter(consumer)
            await anext(iteration)
            await anext(iteration)
            await broker.until(lambda: broker.acks == [(0, ACCEPT)])


async def test_explicit_acknowledgements_reach_the_broker() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        results: list[AcknowledgeResult] = []
        async with sharing(broker, "explicit", on_acknowledged=results.append) as consumer:
            iteration = aiter(consumer)
            records = [await anext(iteration) for _ in range(3)]
            await consumer.accept(records[0])
            await consumer.release(records[1])
            await consumer.reject(records[2])
            (result,) = await consumer.commit()
            assert (result.topic, result.partition, result.error) == (TOPIC, 0, None)
            assert [offset for each in result.offsets for offset in each] == [0, 1, 2]
            again = await anext(iteration)
            assert (again.offset, again.delivery_count) == (1, 2)
        assert broker.acks == [(0, ACCEPT), (1, RELEASE), (2, REJECT)]
        assert results[0] == result
        assert broker.states[1] == "available"  # not acknowledged, and so released


async def test_several_records_are_acknowledged_at_once() -> None:
    async with ShareBroker() as broker:
        broker.produce(6)
        async with sharing(broker, "explicit") as consumer:
            async for records in consumer.record_lists():
                await consumer.accept(records)
                if records[-1].offset == 5:
                    break
        assert sorted(broker.acks) == [(at, ACCEPT) for at in range(6)]


async def test_poll_returns_records_by_partition_and_accepts_the_previous_ones() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker) as consumer:
            found = await consumer.poll(5_000, max_records=2)
            assert [record.offset for record in found[TOPIC, 0]] == [0, 1]
            found = await consumer.poll(5_000, max_records=2)
            assert [record.offset for record in found[TOPIC, 0]] == [2]
            assert await consumer.poll(0) == {}
            await broker.until(lambda: len(broker.acks) == 3)


async def test_renewed_record_is_acknowledged_later() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit") as consumer:
            record = await anext(aiter(consumer))
            await consumer.renew(record)
            await consumer.accept(record)  # at once: the renewal is not necessary any more
            await consumer.commit()
            record = await anext(aiter(consumer))
            await consumer.renew(record)
            await consumer.commit()
            await consumer.accept(record)
        assert broker.acks == [(0, ACCEPT), (1, RENEW), (1, ACCEPT)]


async def test_misuse_is_refused_and_others_go_on() -> None:
    async with ShareBroker() as broker, ShareBroker() as other:
        broker.produce(3)
        other.produce(3)
        async with sharing(broker, "explicit") as consumer, sharing(other, "explicit") as foreign:
            iteration = aiter(consumer)
            record = await anext(iteration)
            await consumer.accept(record)
            with pytest.raises(ConfigurationError, match="is acknowledged already"):
                await consumer.release(record)
            theirs = await anext(aiter(foreign))
            for wrong in (theirs, [theirs], kproto.Record(1)):
                with pytest.raises(ConfigurationError, match="no record that this consumer has"):
                    await consumer.accept(wrong)  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="neither a record nor several"):
                await consumer.accept(7)  # type: ignore[arg-type]
            await consumer.accept(await anext(iteration))
            last = await anext(iteration)
        with pytest.raises(ConfigurationError, match="the consumer is closed"):
            await consumer.accept(last)
        with pytest.raises(ConfigurationError, match="the consumer is closed"):
            await consumer.commit()
        with pytest.raises(ConfigurationError, match="the consumer is closed"):
            await consumer.poll(0)
        assert broker.acks == [(0, ACCEPT), (1, ACCEPT)]


async def test_implicit_consumer_refuses_explicit_calls() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker) as consumer:
            record = await anext(aiter(consumer))
            with pytest.raises(ConfigurationError, match="acknowledges implicitly"):
                await consumer.accept(record)

            async def handle(record: object) -> None: ...

            with pytest.raises(ConfigurationError, match='acknowledgement="explicit"'):
                await consumer.run(handle)


async def test_lock_that_has_ended_is_reported() -> None:
    async with ShareBroker(lock_ms=150) as broker:
        broker.produce(3)
        async with sharing(broker, "explicit", acquire_mode="record_limit") as consumer:
            record = await anext(aiter(consumer))
            await asyncio.sleep(0.2)
            broker.expire()
            with pytest.raises(LockLostError, match="renew the record while it is processed"):
                await consumer.accept(record)
            again = await anext(aiter(consumer))  # the buffered records are not returned
            assert (again.offset, again.delivery_count) == (0, 2)
            await consumer.accept(again)
            (result,) = await consumer.commit()
            assert result.error is None


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
async def test_lock_counts_from_the_fetch_and_not_from_its_late_response(mode: str) -> None:
    """A suspended member processes a response late, when the broker may have ended the locks."""
    async with ShareBroker(lock_ms=150) as broker:
        broker.produce(3)
        broker.delay_s = 0.2
        async with sharing(broker, mode) as consumer:
            iteration = aiter(consumer)
            polled = asyncio.create_task(anext(iteration))
            await broker.until(lambda: len(broker.waits) > 1)  # the first fetch is answered
            assert not polled.done()
            broker.delay_s, broker.lock_ms = 0.0, 30_000
            broker.expire()
            record = await polled
            assert (record.offset, record.delivery_count) == (0, 2)


async def test_lock_counts_from_the_renewal_and_not_from_its_late_response() -> None:
    async with ShareBroker(lock_ms=2_000) as broker:
        broker.produce(3)
        async with sharing(broker, "explicit") as consumer:
            record = await anext(aiter(consumer))
            broker.delay_s, broker.lock_ms = 0.3, 200
            await consumer.renew(record)
            (result,) = await consumer.commit()
            assert result.error is None
            with pytest.raises(LockLostError):
                await consumer.accept(record)


async def test_fetch_waits_for_a_part_of_the_lock_duration_only() -> None:
    async with (
        ShareBroker(lock_ms=1_000) as broker,
        sharing(broker, max_wait_ms=5_000) as consumer,
    ):
        assert await consumer.poll(1_500) == {}
        assert broker.waits[:2] == [500, 250]


async def test_implicit_acceptance_of_an_ended_lock_is_a_result_with_an_error() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        results: list[AcknowledgeResult] = []
        async with sharing(broker, on_acknowledged=results.append) as consumer:
            iteration = aiter(consumer)
            records = [await anext(iteration) for _ in range(3)]
            assert {each.delivery_count for each in records} == {1}
            broker.expire()  # the fetch in advance acquires the records again
            await broker.until(lambda: set(broker.deliveries.values()) == {2})
            await broker.until(lambda: consumer._buffer.has_fetched)
            failed = [each for each in await consumer.commit() if each.error is not None]
            assert failed == [each for each in results if each.error is not None]
            offsets = [at for each in failed for its in each.accepted for at in its]
            assert offsets == [0, 1, 2]
            assert {type(each.error) for each in failed} <= {
                LockLostError,
                kproto.InvalidRecordStateError,
            }
            again = [await anext(iteration) for _ in range(3)]
            assert [(each.offset, each.delivery_count) for each in again] == [
                (0, 2),
                (1, 2),
                (2, 2),
            ]
            assert [each.error for each in await consumer.commit()] == [None]


async def test_acknowledgements_of_interleaved_acquisitions_are_sent_in_the_order_of_offsets() -> (
    None
):
    """A broker refuses a request whose batches do not ascend, with INVALID_REQUEST."""
    settings = BrokerSettings(
        group_share_min_heartbeat_interval_ms=50, group_share_heartbeat_interval_ms=50
    )
    async with Broker(settings=settings) as broker, Client(broker.bootstrap) as client:
        await client.create_topics("t")
        group = ConfigResource(ConfigResourceType.GROUP, "g")
        await client.admin.incremental_alter_configs(
            {group: {"share.auto.offset.reset": "earliest"}}
        )
        async with client.producer() as producer:
            await producer.send_many("t", [b"%d" % at for at in range(5)])
        async with client.share_consumer("t", group="g", acknowledgement="explicit") as consumer:
            iteration = aiter(consumer)
            records = [await anext(iteration) for _ in range(5)]
            await consumer.release(records[1])
            await consumer.commit()
            again = await anext(iteration)
            assert (again.offset, again.delivery_count) == (1, 2)
            await consumer.accept([records[3], again])
            (result,) = await consumer.commit()
            assert result.error is None
            assert result.accepted == result.offsets == (range(1, 2), range(3, 4))


@pytest.mark.parametrize("turns", range(8))
async def test_renewal_is_not_sent_with_a_fetch_that_starts_at_the_same_time(turns: int) -> None:
    """A broker refuses a ShareFetch with renewals and without IsRenewAck: INVALID_REQUEST."""
    settings = BrokerSettings(
        group_share_min_heartbeat_interval_ms=50, group_share_heartbeat_interval_ms=50
    )
    async with Broker(settings=settings) as broker, Client(broker.bootstrap) as client:
        await client.create_topics("t")
        group = ConfigResource(ConfigResourceType.GROUP, "g")
        await client.admin.incremental_alter_configs(
            {group: {"share.auto.offset.reset": "earliest"}}
        )
        async with client.producer() as producer:
            await producer.send_many("t", [b"a", b"b"])
        async with client.share_consumer(
            "t",
            group="g",
            acknowledgement="explicit",
            acquire_mode="record_limit",  # nothing is fetched in advance
            max_poll_records=1,
        ) as consumer:
            iteration = aiter(consumer)
            record = await anext(iteration)
            polling = asyncio.ensure_future(anext(iteration))
            for _ in range(turns):
                await asyncio.sleep(0)
            await consumer.renew(record)
            assert [each.error for each in await consumer.commit()] == [None]
            assert (await polling).offset == 1


async def test_refused_acknowledgement_is_a_result_with_an_error() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit") as consumer:
            record = await anext(aiter(consumer))
            broker.expire()
            await consumer.accept(record)
            (result,) = await consumer.commit()
            assert isinstance(result.error, kproto.InvalidRecordStateError)


async def test_acknowledgement_with_a_retriable_error_is_sent_again() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit") as consumer:
            record = await anext(aiter(consumer))
            broker.ack_fault = code_of("COORDINATOR_LOAD_IN_PROGRESS")
            await consumer.accept(record)
            (result,) = await consumer.commit()
            assert result.error is None
        assert broker.acks == [(0, ACCEPT)]


@pytest.mark.parametrize(
    "name",
    ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"],
)
async def test_lost_session_is_opened_again(name: str) -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker) as consumer:
            iteration = aiter(consumer)
            for _ in range(3):
                await anext(iteration)
            broker.fault = code_of(name)
            await broker.until(lambda: not broker.fault)
            broker.produce(3)
            while (await anext(iteration)).offset < 5:
                pass


async def test_limit_of_share_sessions_is_logged_as_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker) as consumer:
            iteration = aiter(consumer)
            broker.fault = code_of("SHARE_SESSION_LIMIT_REACHED")
            await anext(iteration)
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [each for each in warnings if "group.share.max.share.sessions" in each] == warnings
    assert len(warnings) == 1
    assert warnings[0].startswith("group g: broker 0 opens no further share session")


async def test_lost_connection_drops_buffered_records_and_fetches_again() -> None:
    async with ShareBroker() as broker:
        broker.produce(6)
        async with sharing(broker, "explicit") as consumer:
            iteration = aiter(consumer)
            first = await anext(iteration)
            broker.sessions.clear()
            broker.expire()
            broker.hang_up()
            await consumer.accept(first)
            results = await consumer.commit()
            assert [each.error is None for each in results] in ([False], [True])
            seen = [(await anext(iteration)).offset for _ in range(6)]
            assert set(seen) >= {1, 2, 3, 4, 5}


async def test_unanswered_fetch_does_not_hold_up_a_cancelled_caller() -> None:
    async with ShareBroker() as broker, sharing(broker) as consumer:
        iteration = aiter(consumer)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(iteration), 0.1)
        broker.produce(3)
        assert (await anext(iteration)).offset == 0  # the cancelled call lost nothing


async def test_cancelled_block_releases_its_records_and_leaves() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)

        async def read() -> None:
            async with sharing(broker, "explicit") as consumer:
                await anext(aiter(consumer))
                await asyncio.sleep(60)

        task = asyncio.create_task(read())
        await broker.until(lambda: broker.deliveries.get(0) == 1)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert set(broker.states.values()) == {"available"}
        assert len(broker.left) == 1


async def test_close_ends_an_iteration_of_another_task() -> None:
    async with ShareBroker() as broker, sharing(broker) as consumer:
        task = asyncio.create_task(anext(aiter(consumer), None))
        await broker.until(lambda: broker.count(ShareFetchRequest) > 0)
        await consumer.close()
        assert await task is None
        await consumer.close()  # again, without effect


async def test_no_task_is_left_after_the_close() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        before = asyncio.all_tasks()
        async with sharing(broker) as consumer:
            await anext(aiter(consumer))
        left = {each for each in asyncio.all_tasks() - before if "_serve" not in repr(each)}
        assert not left


async def test_dropped_consumer_is_closed_in_the_background() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        its = quick(metadata_wait_ms=5_000, delivery_timeout_ms=10_000)
        async with Client(broker.bootstrap, its) as client:
            held = [client.share_consumer(TOPIC, group="g", max_wait_ms=50)]
            await held[0].poll(5_000)
            with pytest.warns(ResourceWarning, match="share group 'g' was not closed"):
                held.clear()
            await broker.until(lambda: bool(broker.left))
        assert set(broker.states.values()) == {"available"}


async def test_coordinator_without_share_groups_is_a_clear_error() -> None:
    async with ShareBroker() as broker:
        versions = api_versions()
        share = ShareGroupHeartbeatRequest.API_KEY
        versions.api_keys[:] = [each for each in versions.api_keys if each.api_key != share]
        broker.answers[ApiVersionsRequest] = lambda asked: versions
        async with sharing(broker) as consumer:
            for _ in range(2):  # each poll raises it
                with pytest.raises(kproto.UnsupportedVersionError, match=r"Kafka 4\.2"):
                    await consumer.poll(5_000)


async def test_fatal_error_of_the_group_is_raised_by_each_poll() -> None:
    async with ShareBroker() as broker:
        answer = broker.heartbeat

        def refuse(asked: Any) -> Any:
            found = answer(asked)
            if asked.message.member_epoch == 0:
                found.error_code = code_of("GROUP_ID_NOT_FOUND")
                found.error_message = "not a share group"
            return found

        broker.answers[ShareGroupHeartbeatRequest] = refuse
        async with sharing(broker) as consumer:
            for _ in range(2):
                with pytest.raises(kproto.GroupIdNotFoundError, match="a group of another kind"):
                    await consumer.poll(5_000)


async def test_refused_fetches_stop_until_the_next_poll_and_commits_get_results() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        refusals = 0

        def refuse(asked: Any) -> ShareFetchResponse:
            nonlocal refusals
            refusals += 1
            broker.sessions.clear()
            return ShareFetchResponse(error_code=code_of("GROUP_AUTHORIZATION_FAILED"))

        async with sharing(broker, "explicit") as consumer:
            iteration = aiter(consumer)
            record = await anext(iteration)
            fetch, broker.answers[ShareFetchRequest] = broker.fetch, refuse
            await broker.until(lambda: refusals > 0)  # of a fetch in advance
            await consumer.accept(record)
            (result,) = await consumer.commit()
            assert isinstance(result.error, kproto.ShareSessionNotFoundError)
            assert refusals == 1
            with pytest.raises(kproto.GroupAuthorizationError):
                await consumer.poll(5_000)
            broker.answers[ShareFetchRequest] = fetch
            broker.expire()
            async for again in iteration:  # after the other records of the first fetch
                if again.offset == record.offset:
                    break
            assert again.delivery_count == 2


async def test_exception_of_the_result_callback_is_raised_by_the_next_poll() -> None:
    def fail(result: object) -> None:
        raise ZeroDivisionError

    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit", on_acknowledged=fail) as consumer:
            await consumer.accept(await anext(aiter(consumer)))
            await consumer.commit()
            with pytest.raises(ZeroDivisionError):
                await consumer.poll(5_000)
            assert await consumer.poll(5_000)


async def test_fetch_takes_the_acknowledgements_that_wait() -> None:
    async with ShareBroker() as broker:
        broker.produce(30)
        async with sharing(broker, max_poll_records=3) as consumer:
            count = 0
            async for _ in consumer:
                count += 1
                if count == 30:
                    break
        assert len(broker.acks) == 30
        assert broker.count(ShareAcknowledgeRequest) <= 4


async def test_broker_that_hangs_up_during_the_close_does_not_hold_it_up() -> None:
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit") as consumer:
            await consumer.accept(await anext(aiter(consumer)))
            broker.answers[ShareAcknowledgeRequest] = lambda asked: HANG_UP
        assert len(broker.left) == 1


@pytest.mark.parametrize(
    ("topics", "settings", "words"),
    [
        ("t", {"acknowledgement": "both"}, "acknowledgement is 'both'"),
        ("t", {"acquire_mode": "all"}, "acquire_mode is 'all'"),
        ("t", {"max_poll_records": 0}, "max_poll_records"),
        ("t", {"group": ""}, "it must be a str, not empty"),
        (re.compile("t"), {}, "is a pattern"),
        (TopicPattern("t"), {}, "is a pattern"),
        ([], {}, "needs a topic; its close ends"),
        (["t", "a b"], {}, "'a b' is no name of a topic"),
        ("..", {}, "is no name of a topic"),
        ("t", {"on_acknowledged": 7}, "must be a plain function"),
        ("t", {"group": None}, "set group"),
    ],
)
def test_invalid_arguments_are_refused(topics: Any, settings: dict[str, Any], words: str) -> None:
    client = Client("localhost:9")
    with pytest.raises(ConfigurationError, match=words):
        client.share_consumer(topics, **{"group": "g", **settings})


def test_properties_set_the_defaults_of_a_share_consumer() -> None:
    client = Client.from_properties(
        {
            "bootstrap.servers": "localhost:9",
            "group.id": "workers",
            "share.acknowledgement.mode": "explicit",
            "share.acquire.mode": "record_limit",
            "max.poll.records": "7",
            "max.poll.interval.ms": "1000",
            "fetch.max.wait.ms": "9",
        }
    )
    its = client.share_consumer("t")._settings
    assert (its.group_id, its.acknowledgement, its.acquire_mode) == (
        "workers",
        "explicit",
        "record_limit",
    )
    assert (its.max_poll_records, its.max_poll_interval_ms, its.max_wait_ms) == (7, 1_000, 9)
    its = client.share_consumer("t", share_acquire_mode="batch_optimized")._settings
    assert its.acquire_mode == "batch_optimized"


async def test_close_after_a_lost_session_reports_no_release() -> None:
    results: list[AcknowledgeResult] = []
    async with ShareBroker() as broker:
        broker.produce(3)
        async with sharing(broker, "explicit", on_acknowledged=results.append) as consumer:
            await anext(aiter(consumer))
            await broker.until(lambda: broker.count(ShareFetchRequest) > 1)
            broker.answers[ShareFetchRequest] = lambda asked: HANG_UP
            await broker.until(lambda: not consumer._fetcher._nodes[0].session.is_open)
    assert results == []
