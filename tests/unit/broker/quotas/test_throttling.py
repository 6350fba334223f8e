"""Tests quotas of a running broker: throttle times, and how long a connection is muted."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import Client
from kproto.broker import Broker, BrokerSettings
from kproto.broker.quotas import QuotaTable
from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_topics_request import DeleteTopicsRequest
from kproto.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from tests.support.batches import batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection


def table(broker: Broker) -> QuotaTable:
    return broker._cluster.quota_manager.table


def alteration(
    user: str | None, changes: dict[str, float | None], **settings: Any
) -> AlterClientQuotasRequest:
    ops = [
        OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()
    ]
    of = [EntityData(entity_type="user", entity_name=user)]
    return AlterClientQuotasRequest(entries=[EntryData(entity=of, ops=ops)], **settings)


def produce(acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(records=batch_bytes())
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def fetch() -> FetchRequest:
    wanted = FetchPartition(partition_max_bytes=1 << 20)
    return FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=[wanted])])


class Case:
    """A broker with a manual clock, one connection to it, and a topic."""

    def __init__(self, broker: ThreadedBroker, connection: RawConnection) -> None:
        self.broker = broker
        self.connection = connection

    def rests(self, clock: ManualClock, ms: int) -> None:
        """Checks that the broker mutes the connection for exactly `ms`."""
        self.connection.send(ApiVersionsRequest(), 0)
        self.connection._socket.settimeout(0.1)
        self.broker.until(lambda _: clock.next_timer_ms is not None)
        self.broker.advance(clock, ms - 1)
        with pytest.raises(TimeoutError):
            self.connection._socket.recv(1)
        self.connection._socket.settimeout(20)
        self.broker.advance(clock, 1)
        self.connection.receive()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def case(clock: ManualClock) -> Any:
    with (
        threaded_broker(clock=clock) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(lambda it: it.create_topic("t"))
        yield Case(broker, connection)


def exchange(case: Case, request: Any, version: int) -> Any:
    return case.connection.exchange(request, version)


def set_quota(case: Case, **changes: float | None) -> None:
    (entry,) = exchange(case, alteration("ANONYMOUS", changes), 1).entries
    assert entry.error_code == 0


@pytest.mark.parametrize("version", [3, 9])
def test_producer_over_quota_is_throttled(case: Case, clock: ManualClock, version: int) -> None:
    set_quota(case, producer_byte_rate=5)
    answer = exchange(case, produce(), version)
    assert answer.responses[0].partition_responses[0].error_code == 0, (
        "the records are written nevertheless"
    )
    assert answer.throttle_time_ms > 1000, "in bytes a second, the request is more than 50"
    case.rests(clock, answer.throttle_time_ms)


def test_producer_with_acks_0_is_muted(case: Case, clock: ManualClock) -> None:
    set_quota(case, producer_byte_rate=10)
    size = len(batch_bytes())
    case.connection.send(produce(acks=0), 9)
    case.broker.until(lambda it: it.end_offset("t") > 0)
    with RawConnection(case.broker.bootstrap) as other:
        throttle_ms = other.exchange(produce(), 9).throttle_time_ms
    assert throttle_ms > size / 10 * 1000 / 2, "both connections count"
    case.connection.send(ApiVersionsRequest(), 0)
    case.connection._socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        case.connection._socket.recv(1)


def test_fetch_over_quota_is_empty_and_throttled(case: Case, clock: ManualClock) -> None:
    exchange(case, produce(), 9)
    size = len(exchange(case, fetch(), 11).responses[0].partitions[0].records)
    set_quota(case, consumer_byte_rate=size // 10)
    answer = exchange(case, fetch(), 11)
    assert list(answer.responses) == []
    assert answer.throttle_time_ms > 0
    case.rests(clock, answer.throttle_time_ms)
    set_quota(case, consumer_byte_rate=size)
    assert exchange(case, fetch(), 11).responses[0].partitions[0].records, (
        "the empty response is not counted"
    )


def test_mutations_over_quota_are_rejected(case: Case, clock: ManualClock) -> None:
    set_quota(case, controller_mutation_rate=1)
    topics = [
        CreatableTopic(name=name, num_partitions=12, replication_factor=1) for name in ("a", "b")
    ]
    answer = exchange(case, CreateTopicsRequest(topics=topics), 7)
    names = [error_code(topic.error_code).name for topic in answer.topics]
    assert names == ["NONE", "THROTTLING_QUOTA_EXCEEDED"]
    assert answer.throttle_time_ms == 1000
    case.rests(clock, 1000)


def test_old_versions_are_throttled_without_error(case: Case, clock: ManualClock) -> None:
    set_quota(case, controller_mutation_rate=1)
    topic = CreatableTopic(name="a", num_partitions=12, replication_factor=1)
    answer = exchange(case, CreateTopicsRequest(topics=[topic]), 5)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 1000)
    case.rests(clock, 1000)
    answer = exchange(case, DeleteTopicsRequest(topic_names=["a"]), 4)
    assert (answer.responses[0].error_code, answer.throttle_time_ms) == (0, 12_000)


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_altered_and_described(case: Case, version: int) -> None:
    changes: dict[str, float | None] = {"producer_byte_rate": 1e9, "request_percentage": 50.5}
    for user in ("u", None):
        exchange(case, alteration(user, changes), version)
    exchange(case, alteration("v", changes, validate_only=True), version)
    exchange(case, alteration("u", {"producer_byte_rate": None}), version)
    described = exchange(case, DescribeClientQuotasRequest(), version)
    assert {
        entry.entity[0].entity_name: {it.key: it.value for it in entry.values}
        for entry in described.entries
    } == {"u": {"request_percentage": 50.5}, None: changes}
    only_default = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="user", match_type=1, match=None)], strict=True
    )
    (entry,) = exchange(case, only_default, version).entries
    assert entry.entity[0].entity_name is None


@pytest.mark.parametrize(
    ("components", "name"),
    [
        ([("user", 0, None)], "INVALID_REQUEST"),
        ([("user", 1, "x")], "INVALID_REQUEST"),
        ([("user", 2, "x")], "INVALID_REQUEST"),
        ([("user", 7, None)], "INVALID_REQUEST"),
        ([("", 2, None)], "INVALID_REQUEST"),
        ([("blub", 2, None)], "UNSUPPORTED_VERSION"),
        ([("user", 2, None), ("user", 0, "u")], "INVALID_REQUEST"),
        ([("user", 2, None), ("ip", 2, None)], "INVALID_REQUEST"),
        ([("ip", 2, None)], "NONE"),
    ],
)
def test_invalid_filters_are_rejected(
    case: Case, components: list[tuple[str, int, str | None]], name: str
) -> None:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=k, match_type=m, match=n) for k, m, n in components]
    )
    answer = exchange(case, request, 1)
    assert error_code(answer.error_code).name == name
    assert (answer.entries is None) == (name != "NONE")


def test_rejected_request_does_not_change_session(case: Case) -> None:
    wrong = alteration("u", {"producer_byte_rate": 5.0, "nope": 5.0})
    (entry,) = exchange(case, wrong, 1).entries
    assert error_code(entry.error_code).name == "INVALID_REQUEST"
    assert case.broker.call(lambda it: len(table(it))) == 0


def test_first_entry_of_duplicate_entity_counts(case: Case) -> None:
    changes = [alteration("w", {"producer_byte_rate": value}) for value in (5.0, 6.0)]
    twice = AlterClientQuotasRequest(entries=[it.entries[0] for it in changes])
    (entry,) = exchange(case, twice, 1).entries
    assert error_code(entry.error_code).name == "INVALID_REQUEST"
    limit = case.broker.call(lambda it: table(it).limit("producer_byte_rate", "w", ""))
    assert limit is not None
    assert limit.value == 5.0


async def test_client_completes_under_throttling() -> None:
    async with Broker(BrokerSettings(max_throttle_ms=50)) as broker:
        broker.create_topic("t")
        table(broker).set((("user", "ANONYMOUS"),), "producer_byte_rate", 100.0)
        table(broker).set((("user", "ANONYMOUS"),), "request_percentage", 0.001)
        async with Client(broker.bootstrap) as client, client.producer() as producer:
            for number in range(5):
                await producer.send("t", b"%d" % number)
        assert [record.value for record in broker.records("t")] == [b"0", b"1", b"2", b"3", b"4"]


def test_throttled_fetch_keeps_its_error(case: Case) -> None:
    set_quota(case, consumer_byte_rate=1)
    answer = exchange(case, FetchRequest(session_id=7, session_epoch=5), 12)
    assert answer.throttle_time_ms > 0
    assert error_code(answer.error_code).name == "FETCH_SESSION_ID_NOT_FOUND"
