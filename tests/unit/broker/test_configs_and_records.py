"""Tests DescribeConfigs and DeleteRecords in every version, over a socket."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import BrokerSettings
from kproto.broker.config_entries import broker_entries
from kproto.broker.config_table import TOPIC as TOPIC_CONFIGS
from kproto.broker.config_table import config_defs
from kproto.broker.dynamic_configs import BrokerConfigManager
from kproto.broker.topic_configs import DEFAULTS
from kproto.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.protocol.error_codes import error_code
from kproto.records import RecordBatch
from tests.support.batches import TIMESTAMP, batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def describe(
    connection: RawConnection,
    version: int,
    kind: int,
    name: str,
    *keys: str,
    synonyms: bool = False,
) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms and version > 0
    )
    (found,) = connection.exchange(request, version).results
    assert (found.resource_type, found.resource_name) == (kind, name)
    return found


@pytest.mark.parametrize("version", DescribeConfigsRequest.VALID_VERSIONS)
def test_the_settings_of_a_topic(
    broker: ThreadedBroker, connection: RawConnection, version: int
) -> None:
    broker.call(lambda it: it.create_topic("t", configs={"retention.ms": "5000"}))
    everything = describe(connection, version, TOPIC, "t")
    assert sorted(it.name for it in everything.configs) == sorted(DEFAULTS)
    found = describe(
        connection, version, TOPIC, "t", "retention.ms", "max.message.bytes", "nope", synonyms=True
    )
    configs = {it.name: it for it in found.configs}
    assert set(configs) == {"retention.ms", "max.message.bytes"}
    mine, default = configs["retention.ms"], configs["max.message.bytes"]
    assert (mine.value, default.value) == ("5000", "1048588")
    assert (mine.read_only, mine.is_sensitive, mine.documentation) == (
        False,
        False,
        None if version >= 3 else "",
    )
    if version == 0:
        assert (mine.is_default, default.is_default) == (False, True)
        return
    assert (mine.config_source, default.config_source) == (1, 5)
    assert [(it.name, it.value, it.source) for it in mine.synonyms] == [
        ("retention.ms", "5000", 1),
        ("log.retention.hours", "168", 5),
    ]
    assert (mine.config_type, default.config_type) == ((5, 3) if version >= 3 else (0, 0))
    assert describe(connection, version, TOPIC, "t", "retention.ms").configs[0].synonyms == []


@pytest.mark.parametrize("version", DescribeConfigsRequest.VALID_VERSIONS)
def test_the_settings_of_a_broker(version: int) -> None:
    settings = BrokerSettings(
        num_partitions=7, message_max_bytes=5000, delegation_token_secret_key="hidden", rack="a"
    )
    with (
        threaded_broker(settings=settings) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(lambda it: it.create_topic("t"))
        found = describe(connection, version, BROKER, "1", synonyms=True)
        configs = {it.name: it for it in found.configs}
        assert configs["num.partitions"].value == "7"
        assert configs["broker.rack"].value == "a"
        assert configs["auto.create.topics.enable"].value == "false"
        secret = configs["delegation.token.secret.key"]
        assert (secret.value, secret.is_sensitive) == (None, True)
        assert "hidden" not in repr(found)
        assert configs["num.partitions"].read_only
        assert not configs["message.max.bytes"].read_only
        if version > 0:
            told = [(it.value, it.source) for it in configs["num.partitions"].synonyms]
            assert told == [("7", 4), ("1", 5)]
            (of_topic,) = describe(
                connection, version, TOPIC, "t", "max.message.bytes", synonyms=True
            ).configs
            assert (of_topic.value, of_topic.config_source) == ("5000", 4)
            assert [(it.name, it.value) for it in of_topic.synonyms] == [
                ("message.max.bytes", "5000"),
                ("message.max.bytes", "1048588"),
            ]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        (TOPIC, "nope", "UNKNOWN_TOPIC_OR_PARTITION"),
        (TOPIC, "a b", "INVALID_TOPIC_EXCEPTION"),
        (TOPIC, "", "INVALID_TOPIC_EXCEPTION"),
        (BROKER, "7", "INVALID_REQUEST"),
        (BROKER, "x", "INVALID_REQUEST"),
        (LOGGER, "", "INVALID_REQUEST"),
        (METRICS, "", "INVALID_REQUEST"),
        (GROUP, "", "INVALID_REQUEST"),
        (0, "x", "INVALID_REQUEST"),
        (99, "x", "INVALID_REQUEST"),
    ],
)
def test_resources_without_configs(
    connection: RawConnection, kind: int, name: str, expected: str
) -> None:
    found = describe(connection, 4, kind, name)
    assert error_code(found.error_code).name == expected
    assert found.configs == []


def test_the_settings_of_a_group() -> None:
    settings = BrokerSettings(group_consumer_session_timeout_ms=50_000)
    session, beat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:

        def alter(name: str, value: str) -> int:
            config = AlterableConfig(name=name, config_operation=0, value=value)
            group = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[config])
            request = IncrementalAlterConfigsRequest(resources=[group])
            return connection.exchange(request, 1).responses[0].error_code

        def told_interval(epoch: int) -> int:
            beat = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=epoch,
                rebalance_timeout_ms=1_000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            )
            return connection.exchange(beat, 1).heartbeat_interval_ms

        coordinator = FindCoordinatorRequest(key="g", key_type=0)
        assert connection.exchange(coordinator, 3).error_code == 0
        assert told_interval(0) == 5_000
        assert alter(session, "55000") == alter(beat, "6000") == 0
        assert told_interval(2) == 6_000
        assert error_code(alter(session, "61000")).name == "INVALID_CONFIG"
        told = {it.name: it for it in describe(connection, 4, GROUP, "g", synonyms=True).configs}
        assert {session, beat, "consumer.assignment.interval.ms"} < told.keys()
        assert [(it.value, it.source) for it in told[session].synonyms] == [
            ("55000", 8),
            ("50000", 4),
            ("45000", 5),
        ]
        other = describe(connection, 4, GROUP, "h", session).configs[0]
        assert (other.value, other.config_source) == ("50000", 4)


def test_unknown_resource_type_fails_the_request(connection: RawConnection) -> None:
    wanted = [
        DescribeConfigsResource(resource_type=kind, resource_name="1", configuration_keys=None)
        for kind in (BROKER, 3)
    ]
    answer = connection.exchange(DescribeConfigsRequest(resources=wanted), 4)
    assert [error_code(it.error_code).name for it in answer.results] == ["INVALID_REQUEST"] * 2


def test_the_table_has_every_setting_of_a_topic() -> None:
    assert set(config_defs(TOPIC_CONFIGS)) == set(DEFAULTS)
    entries = broker_entries(BrokerSettings(), BrokerConfigManager())
    names = [entry.name for entry in entries]
    assert names == sorted(set(names))
    assert len(names) == 350
    defaults = {entry.name for entry in entries if entry.source == 5}
    assert set(names) - defaults == {
        "auto.create.topics.enable",
        "broker.id",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.rebalance.protocols",
        "group.initial.rebalance.delay.ms",
        "group.share.assignment.interval.ms",
        "listeners",
        "log.dirs",
        "node.id",
        "process.roles",
    }, "where we differ from Kafka's defaults"


def delete(connection: RawConnection, version: int, topic: str, *wanted: tuple[int, int]) -> Any:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted
    ]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=1000
    )
    (answered,) = connection.exchange(request, version).topics
    assert answered.name == topic
    return [
        (it.partition_index, error_code(it.error_code).name, it.low_watermark)
        for it in answered.partitions
    ]


def filled(broker: ThreadedBroker, **configs: str) -> None:
    def fill(it: Any) -> None:
        topic = it.create_topic(
            "t",
            partitions=2,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        for _ in range(5):
            topic.partition(0).log.append(RecordBatch(batch_bytes(2)), TIMESTAMP)

    broker.call(fill)


@pytest.mark.parametrize("version", DeleteRecordsRequest.VALID_VERSIONS)
def test_delete_records(broker: ThreadedBroker, connection: RawConnection, version: int) -> None:
    filled(broker, retention_ms="-1")
    assert delete(connection, version, "t", (0, 3)) == [(0, "NONE", 3)]
    assert delete(connection, version, "t", (0, 1)) == [(0, "NONE", 3)], "they are gone already"
    assert delete(connection, version, "t", (0, 2), (0, 4)) == [(0, "NONE", 4)]
    assert delete(connection, version, "t", (0, 11), (1, 0), (2, 0)) == [
        (0, "OFFSET_OUT_OF_RANGE", -1),
        (1, "NONE", 0),
        (2, "UNKNOWN_TOPIC_OR_PARTITION", -1),
    ]
    assert delete(connection, version, "t", (0, -2)) == [(0, "OFFSET_OUT_OF_RANGE", -1)]
    assert delete(connection, version, "t", (0, -1)) == [(0, "NONE", 10)]
    assert broker.call(lambda it: it.records("t")) == []
    assert delete(connection, version, "nope", (0, 0)) == [(0, "UNKNOWN_TOPIC_OR_PARTITION", -1)]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("compact", "POLICY_VIOLATION"), ("compact,delete", "NONE"), ("delete", "NONE")],
)
def test_records_of_compacted_topics(
    broker: ThreadedBroker, connection: RawConnection, policy: str, expected: str
) -> None:
    filled(broker, retention_ms="-1", cleanup_policy=policy)
    ((_, error, _),) = delete(connection, 2, "t", (0, 2))
    assert error == expected


def test_fetch_session_returns_new_log_start(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    filled(broker, retention_ms="-1")
    wanted = FetchPartition(fetch_offset=10, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    first = connection.exchange(FetchRequest(max_wait_ms=0, session_epoch=0, topics=topics), 12)
    delete(connection, 2, "t", (0, 4))
    news = connection.exchange(
        FetchRequest(max_wait_ms=0, session_id=first.session_id, session_epoch=1), 12
    )
    ((part,),) = (topic.partitions for topic in news.responses)
    assert (part.log_start_offset, part.records) == (4, b"")
