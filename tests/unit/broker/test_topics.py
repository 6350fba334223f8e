"""Names, sizes and settings of topics; the errors are those of a 4.4.0 broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto import BrokerResponseError
from kproto.broker import BrokerSettings
from kproto.broker.state import BrokerState
from kproto.broker.topic_configs import TopicConfig
from kproto.broker.topics import check_topic_name, partition_count


def name_of_error(act: Callable[[], object]) -> str:
    with pytest.raises(BrokerResponseError) as caught:
        act()
    return caught.value.name


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "_"])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "ü", "a/b", "a\n"])
def test_illegal_names(name: str) -> None:
    assert name_of_error(lambda: check_topic_name(name)) == "INVALID_TOPIC_EXCEPTION"


def count(
    partitions: int = -1, replicas: int = -1, assignments: dict[int, list[int]] | None = None
) -> int:
    return partition_count(
        partitions, replicas, assignments or {}, node_id=1, default=3, most=10_000
    )


def test_how_many_partitions() -> None:
    assert count() == 3
    assert count(5, 1) == 5
    assert count(10_000) == 10_000
    assert count(assignments={0: [1], 1: [1]}) == 2


@pytest.mark.parametrize(
    ("partitions", "replicas", "assignments", "name"),
    [
        (0, 1, {}, "INVALID_PARTITIONS"),
        (-2, 1, {}, "INVALID_PARTITIONS"),
        (10_001, 1, {}, "POLICY_VIOLATION"),
        (1, 0, {}, "INVALID_REPLICATION_FACTOR"),
        (1, -2, {}, "INVALID_REPLICATION_FACTOR"),
        (1, 2, {}, "INVALID_REPLICATION_FACTOR"),
        (1, -1, {0: [1]}, "INVALID_REQUEST"),
        (-1, 1, {0: [1]}, "INVALID_REQUEST"),
        (-1, -1, {1: [1]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: [9]}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: []}, "INVALID_REPLICA_ASSIGNMENT"),
        (-1, -1, {0: [1, 1]}, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_sizes_that_cannot_be(
    partitions: int, replicas: int, assignments: dict[int, list[int]], name: str
) -> None:
    assert name_of_error(lambda: count(partitions, replicas, assignments)) == name


def test_names_are_taken_once() -> None:
    state = BrokerState(BrokerSettings())
    state.topics.add(state.plan_topic("c.o"))
    assert name_of_error(lambda: state.plan_topic("c.o")) == "TOPIC_ALREADY_EXISTS"
    assert name_of_error(lambda: state.plan_topic("c_o")) == "INVALID_TOPIC_EXCEPTION"
    assert name_of_error(lambda: state.plan_topic("__cluster_metadata")) == "INVALID_REQUEST"
    state.topics.remove(state.topics.named("c.o"))
    assert state.plan_topic("c_o").name == "c_o"


def test_a_deleted_topic_is_gone_by_name_and_by_id() -> None:
    state = BrokerState(BrokerSettings())
    topic = state.plan_topic("t")
    state.topics.add(topic)
    assert state.topics.with_id(topic.topic_id) is state.topics.named("t") is topic
    state.topics.remove(topic)
    assert name_of_error(lambda: state.topics.named("t")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of_error(lambda: state.topics.with_id(topic.topic_id)) == "UNKNOWN_TOPIC_ID"


def test_settings_that_act() -> None:
    config = TopicConfig(
        {
            "max.message.bytes": "5",
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.after.max.ms": "7",
        },
        1000,
    )
    assert (config.max_message_bytes, config.log_append_time) == (5, True)
    assert config.timestamp_after_max_ms == 7
    assert TopicConfig({}, 1000).max_message_bytes == 1000


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("nope", "1"),
        ("max.message.bytes", None),
        ("max.message.bytes", "x"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", "9" * 5000),
        ("message.timestamp.type", "Foo"),
        ("compression.type", "brotli"),
        ("compression.type", "none"),
        ("cleanup.policy", "forget"),
        ("cleanup.policy", "compact,"),
        ("retention.ms", "x"),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "half"),
    ],
)
def test_settings_that_cannot_be(setting: str, value: str | None) -> None:
    assert name_of_error(lambda: TopicConfig({setting: value}, 1000)) == "INVALID_CONFIG"


def test_the_level_of_the_topics_codec() -> None:
    assert TopicConfig({}, 1000).compression is None
    assert TopicConfig({"compression.type": "uncompressed"}, 1000).compression == "none"
    config = TopicConfig({"compression.type": "gzip", "compression.gzip.level": "9"}, 1000)
    assert (config.compression, config.compression_level) == ("gzip", 9)
    config = TopicConfig({"compression.type": "gzip", "compression.zstd.level": "9"}, 1000)
    assert (config.compression, config.compression_level) == ("gzip", None)
    wrong = {"compression.type": "gzip", "compression.gzip.level": "0"}
    assert name_of_error(lambda: TopicConfig(wrong, 1000)) == "INVALID_CONFIG"


def test_other_settings_are_kept_and_shown() -> None:
    config = TopicConfig({"cleanup.policy": "compact", "retention.bytes": "-1"}, 1000)
    assert config["cleanup.policy"] == "compact"
    assert config["segment.bytes"] == "1073741824"
    assert config.given == {"cleanup.policy": "compact", "retention.bytes": "-1"}
