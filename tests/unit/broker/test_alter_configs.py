"""Tests AlterConfigs, IncrementalAlterConfigs and ListConfigResources, over a socket."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.broker import BrokerSettings, Listener
from kproto.messages.alter_configs_request import AlterableConfig as NewConfig
from kproto.messages.alter_configs_request import AlterConfigsRequest
from kproto.messages.alter_configs_request import AlterConfigsResource as Replaced
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.list_config_resources_request import ListConfigResourcesRequest
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from tests.support.batches import batch_bytes
from tests.support.embedded import (
    ThreadedBroker,
    ThreadedCluster,
    threaded_broker,
    threaded_cluster,
)
from tests.support.raw_connection import RawConnection

from .raw_requests import produce_request

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, int, str | None]


def alter(
    connection: RawConnection,
    kind: int,
    name: str,
    *changes: Change,
    version: int = 1,
    validate_only: bool = False,
) -> tuple[str, str | None]:
    configs = [
        AlterableConfig(name=config, config_operation=operation, value=value)
        for config, operation, value in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (found,) = connection.exchange(request, version).responses
    assert (found.resource_type, found.resource_name) == (kind, name)
    return error_code(found.error_code).name, found.error_message


def replace(
    connection: RawConnection, kind: int, name: str, version: int = 2, **configs: str
) -> str:
    resource = Replaced(
        resource_type=kind,
        resource_name=name,
        configs=[NewConfig(name=it.replace("_", "."), value=configs[it]) for it in configs],
    )
    (found,) = connection.exchange(AlterConfigsRequest(resources=[resource]), version).responses
    return error_code(found.error_code).name


def describe(connection: RawConnection, kind: int, name: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (found,) = connection.exchange(request, 4).results
    assert found.error_code == 0, found
    return {it.name: it for it in found.configs}


def produce(connection: RawConnection) -> str:
    answer = connection.exchange(produce_request(records=batch_bytes(1)), 9)
    return error_code(answer.responses[0].partition_responses[0].error_code).name


def told(config: Any) -> list[tuple[str, str | None, int]]:
    return [(it.name, it.value, it.source) for it in config.synonyms]


@pytest.fixture
def topic(broker: ThreadedBroker) -> str:
    broker.call(lambda it: it.create_topic("t"))
    return "t"


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with threaded_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("version", IncrementalAlterConfigsRequest.VALID_VERSIONS)
def test_incremental_changes_of_a_topic(
    connection: RawConnection, topic: str, version: int
) -> None:
    def change(*changes: Change, validate_only: bool = False) -> str:
        return alter(
            connection, TOPIC, topic, *changes, version=version, validate_only=validate_only
        )[0]

    def value(name: str) -> tuple[str, int]:
        config = describe(connection, TOPIC, topic)[name]
        return config.value, config.config_source

    assert change(("retention.ms", SET, " 5000 "), ("max.message.bytes", SET, "70")) == "NONE"
    assert value("retention.ms") == ("5000", 1)
    assert change(("retention.ms", SET, "1"), validate_only=True) == "NONE"
    assert value("retention.ms") == ("5000", 1)
    assert change(("retention.ms", DELETE, None)) == "NONE"
    assert value("retention.ms") == ("604800000", 5)
    assert value("max.message.bytes") == ("70", 1)
    assert change(("cleanup.policy", APPEND, "compact")) == "NONE"
    assert value("cleanup.policy") == ("delete,compact", 1)
    assert change(("cleanup.policy", SUBTRACT, "delete")) == "NONE"
    assert value("cleanup.policy") == ("compact", 1)


@pytest.mark.parametrize(
    ("kind", "name", "changes", "expected"),
    [
        (TOPIC, "t", [("nope", SET, "1")], "INVALID_CONFIG"),
        (TOPIC, "t", [("nope", DELETE, None)], "NONE"),
        (TOPIC, "t", [("retention.ms", SET, None)], "INVALID_REQUEST"),
        (TOPIC, "t", [("retention.ms", APPEND, "1")], "INVALID_CONFIG"),
        (TOPIC, "t", [("retention.ms", 7, "1")], "UNKNOWN_SERVER_ERROR"),
        (TOPIC, "t", [("retention.ms", SET, "1")] * 2, "INVALID_REQUEST"),
        (TOPIC, "t", [("segment.bytes", SET, "1")], "INVALID_CONFIG"),
        (TOPIC, "t", [("compression.gzip.level", SET, "-1")], "NONE"),
        (TOPIC, "t", [("compression.gzip.level", SET, "0")], "INVALID_CONFIG"),
        (TOPIC, "t", [("remote.storage.enable", SET, "true")], "INVALID_CONFIG"),
        (TOPIC, "t", [("leader.replication.throttled.replicas", SET, "0:1,1:1")], "NONE"),
        (TOPIC, "t", [("leader.replication.throttled.replicas", SET, "x")], "INVALID_CONFIG"),
        (TOPIC, "nope", [("retention.ms", SET, "1")], "UNKNOWN_TOPIC_OR_PARTITION"),
        (TOPIC, "a b", [("retention.ms", SET, "1")], "INVALID_TOPIC_EXCEPTION"),
        (TOPIC, "", [("retention.ms", SET, "1")], "INVALID_REQUEST"),
        (BROKER, "1", [("num.partitions", SET, "9")], "INVALID_REQUEST"),
        (BROKER, "", [("listeners", SET, "PLAINTEXT://:1")], "INVALID_REQUEST"),
        (BROKER, "", [("log.retention.ms", SET, "x")], "INVALID_REQUEST"),
        (BROKER, "1", [("ssl.keystore.password", SET, "x")], "INVALID_REQUEST"),
        (BROKER, "1", [("min.insync.replicas", SET, "2")], "INVALID_CONFIG"),
        (BROKER, "", [("min.insync.replicas", DELETE, None)], "INVALID_CONFIG"),
        (BROKER, "1", [("num.io.threads", SET, "16")], "NONE"),
        (BROKER, "1", [("num.io.threads", SET, "17")], "INVALID_REQUEST"),
        (BROKER, "1", [("num.io.threads", SET, "3")], "INVALID_REQUEST"),
        (BROKER, "", [("log.cleaner.threads", SET, "3")], "INVALID_REQUEST"),
        (BROKER, "", [("log.retention.ms", SET, "0")], "INVALID_REQUEST"),
        (BROKER, "7", [("message.max.bytes", SET, "9")], "INVALID_REQUEST"),
        (BROKER, "x", [("message.max.bytes", SET, "9")], "INVALID_REQUEST"),
        (LOGGER, "1", [("kafka", SET, "DEBUG")], "NONE"),
        (LOGGER, "1", [("kafka", SET, "debug")], "INVALID_CONFIG"),
        (LOGGER, "1", [("nope", SET, "DEBUG")], "INVALID_CONFIG"),
        (LOGGER, "1", [("root", DELETE, None)], "INVALID_REQUEST"),
        (LOGGER, "1", [("root", APPEND, "INFO")], "INVALID_REQUEST"),
        (LOGGER, "7", [("root", SET, "INFO")], "INVALID_REQUEST"),
        (METRICS, "m", [("interval.ms", SET, "1000")], "NONE"),
        (METRICS, "m", [("interval.ms", SET, "10")], "INVALID_REQUEST"),
        (METRICS, "m", [("nope", SET, "10")], "INVALID_REQUEST"),
        (METRICS, "m", [("match", SET, "foo")], "INVALID_CONFIG"),
        (METRICS, "m", [("metrics", APPEND, "a")], "INVALID_CONFIG"),
        (METRICS, "", [("interval.ms", SET, "1000")], "INVALID_REQUEST"),
        (GROUP, "g", [("share.session.timeout.ms", SET, "50000")], "NONE"),
        (GROUP, "g", [("share.session.timeout.ms", SET, "70000")], "INVALID_CONFIG"),
        (GROUP, "g", [("nope", SET, "1")], "INVALID_CONFIG"),
        (0, "x", [], "INVALID_REQUEST"),
        (99, "x", [], "INVALID_REQUEST"),
    ],
)
def test_changes_that_kafka_accepts_or_refuses(
    connection: RawConnection,
    topic: str,
    kind: int,
    name: str,
    changes: list[Change],
    expected: str,
) -> None:
    error, message = alter(connection, kind, name, *changes)
    assert (error, bool(message)) == (expected, expected != "NONE")


@pytest.mark.parametrize("version", AlterConfigsRequest.VALID_VERSIONS)
def test_alter_configs_replaces_all_configs(
    connection: RawConnection, topic: str, version: int
) -> None:
    def own(kind: int, name: str, source: int) -> dict[str, str]:
        configs = describe(connection, kind, name).values()
        return {it.name: it.value for it in configs if it.config_source == source}

    assert replace(connection, TOPIC, topic, version, retention_ms="5", segment_ms="7") == "NONE"
    assert own(TOPIC, topic, 1) == {"retention.ms": "5", "segment.ms": "7"}
    assert replace(connection, TOPIC, topic, version, segment_ms="8") == "NONE"
    assert own(TOPIC, topic, 1) == {"segment.ms": "8"}
    assert replace(connection, TOPIC, topic, version, nope="8") == "INVALID_CONFIG"
    assert own(TOPIC, topic, 1) == {"segment.ms": "8"}
    assert replace(connection, BROKER, "1", version, message_max_bytes="5000") == "NONE"
    assert own(BROKER, "1", 2) == {"message.max.bytes": "5000"}
    assert replace(connection, BROKER, "1", version) == "NONE"
    assert own(BROKER, "1", 2) == {}
    assert replace(connection, BROKER, "", version) == "INVALID_CONFIG", "the ISR needs a minimum"
    assert replace(connection, LOGGER, "1", version, root="INFO") == "INVALID_REQUEST"
    assert replace(connection, METRICS, "m", version, metrics="org.") == "NONE"
    assert own(METRICS, "m", 7) == {"metrics": "org."}
    assert replace(connection, GROUP, "g", version, consumer_session_timeout_ms="46000") == "NONE"
    assert own(GROUP, "g", 8) == {"consumer.session.timeout.ms": "46000"}


def test_a_broker_config_is_a_default_of_topics(connection: RawConnection, topic: str) -> None:
    assert alter(connection, BROKER, "", ("message.max.bytes", SET, "6000"))[0] == "NONE"
    assert alter(connection, BROKER, "1", ("message.max.bytes", SET, "5000"))[0] == "NONE"
    of_broker = describe(connection, BROKER, "1")["message.max.bytes"]
    assert (of_broker.value, of_broker.config_source) == ("5000", 2)
    assert told(describe(connection, TOPIC, topic)["max.message.bytes"]) == [
        ("message.max.bytes", "5000", 2),
        ("message.max.bytes", "6000", 3),
        ("message.max.bytes", "1048588", 5),
    ]
    assert set(describe(connection, BROKER, "")) == {"message.max.bytes", "min.insync.replicas"}
    assert alter(connection, TOPIC, topic, ("max.message.bytes", SET, "70"))[0] == "NONE"
    assert told(describe(connection, TOPIC, topic)["max.message.bytes"])[0] == (
        ("max.message.bytes", "70", 1)
    )


def test_unknown_broker_configs_are_stored_and_hidden(connection: RawConnection) -> None:
    assert alter(connection, BROKER, "1", ("foo.bar", SET, "baz"))[0] == "NONE"
    found = describe(connection, BROKER, "1")["foo.bar"]
    assert (found.value, found.is_sensitive, found.config_source) == (None, True, 2)


def test_altered_limit_applies_to_the_next_produce(connection: RawConnection, topic: str) -> None:
    assert produce(connection) == "NONE"
    alter(connection, BROKER, "", ("message.max.bytes", SET, "10"))
    assert produce(connection) == "MESSAGE_TOO_LARGE"
    alter(connection, TOPIC, topic, ("max.message.bytes", SET, "1000"))
    assert produce(connection) == "NONE"


def test_altered_retention_deletes_records() -> None:
    clock = ManualClock()
    with threaded_broker(clock=clock) as broker, RawConnection(broker.bootstrap) as connection:
        broker.call(lambda it: it.create_topic("t", configs={"retention.ms": "-1"}))
        assert produce(connection) == "NONE"
        broker.advance(clock, 400_000)
        assert len(broker.call(lambda it: it.records("t"))) == 1
        alter(connection, TOPIC, "t", ("retention.ms", DELETE, None))
        alter(connection, BROKER, "", ("log.retention.ms", SET, "1000"))
        assert broker.call(lambda it: it.records("t")) == []


def test_all_nodes_see_altered_configs(cluster: ThreadedCluster) -> None:
    first, second, _ = cluster.bootstrap.split(",")
    cluster.call(lambda it: it.create_topic("t"))
    with RawConnection(first) as one, RawConnection(second) as other:
        alter(one, TOPIC, "t", ("retention.ms", SET, "5000"))
        alter(one, BROKER, "", ("log.segment.bytes", SET, "2000000"))
        alter(one, BROKER, "1", ("log.retention.bytes", SET, "77"))
        configs = describe(other, TOPIC, "t")
        assert configs["retention.ms"].value == "5000"
        assert configs["segment.bytes"].value == "2000000"
        assert configs["retention.bytes"].value == "-1", "of node 1 only"
        assert describe(one, TOPIC, "t")["retention.bytes"].value == "77"
        assert alter(other, BROKER, "1", ("log.retention.bytes", SET, "7"))[0] == "INVALID_REQUEST"
    cluster.wait_for(lambda it: it.stop_broker(1))
    cluster.wait_for(lambda it: it.start_broker(1))
    with RawConnection(first) as one:
        assert describe(one, TOPIC, "t")["retention.bytes"].value == "77"


def test_the_level_of_the_brokers_logger(connection: RawConnection) -> None:
    logger = logging.getLogger("kproto.broker")
    before = logger.level
    try:
        assert alter(connection, LOGGER, "1", ("kproto.broker", SET, "ERROR"))[0] == "NONE"
        assert logger.level == logging.ERROR
        assert describe(connection, LOGGER, "1")["kproto.broker"].value == "ERROR"
        assert alter(connection, LOGGER, "1", ("kproto.broker", DELETE, ""))[0] == "NONE"
        assert describe(connection, LOGGER, "1")["kproto.broker"].value == "INFO"
    finally:
        logger.setLevel(before)


@pytest.mark.parametrize("version", ListConfigResourcesRequest.VALID_VERSIONS)
def test_list_config_resources(connection: RawConnection, topic: str, version: int) -> None:
    def names(*kinds: int) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        answer = connection.exchange(request, version)
        assert answer.error_code == 0
        return [(it.resource_type, it.resource_name) for it in answer.config_resources]

    assert names() == ([] if version == 0 else [(LOGGER, "1"), (BROKER, "1"), (TOPIC, "t")])
    alter(connection, METRICS, "m", ("interval.ms", SET, "1000"))
    alter(connection, GROUP, "g", ("consumer.session.timeout.ms", SET, "46000"))
    if version == 0:
        assert names() == [(METRICS, "m")]
        return
    assert names()[:2] == [(GROUP, "g"), (METRICS, "m")]
    assert names(TOPIC, GROUP) == [(GROUP, "g"), (TOPIC, "t")]
    answer = connection.exchange(ListConfigResourcesRequest(resource_types=[99]), 1)
    assert error_code(answer.error_code).name == "UNSUPPORTED_VERSION"


def test_settings_are_static_configs() -> None:
    settings = BrokerSettings(transaction_max_timeout_ms=7, log_dirs=("/a", "/b"))
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        configs = describe(connection, BROKER, "1")
    assert "super.users" not in configs
    assert "allow.everyone.if.no.acl.found" not in configs
    assert told(configs["transaction.max.timeout.ms"]) == [
        ("transaction.max.timeout.ms", "7", 4),
        ("transaction.max.timeout.ms", "900000", 5),
    ]
    assert configs["log.dirs"].value == "/a,/b"
    assert told(configs["advertised.listeners"]) == []
    assert told(configs["log.retention.ms"]) == [("log.retention.hours", "168", 5)]


def test_advertised_listeners_are_static_configs() -> None:
    outside = Listener("OUTSIDE", advertised_host="localhost", advertised_port=9092)
    settings = BrokerSettings(listeners=(Listener(), outside))
    with threaded_broker(settings) as broker, RawConnection(broker.bootstrap) as connection:
        configs = describe(connection, BROKER, "1")
    value = "PLAINTEXT://127.0.0.1:0,OUTSIDE://localhost:9092"
    assert told(configs["advertised.listeners"]) == [("advertised.listeners", value, 4)]
