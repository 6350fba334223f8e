"""Tests topic names and configs, and checks of leader and epoch, with the errors of Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto import BrokerResponseError
from kproto.broker import BrokerSettings
from kproto.broker.cluster_state import ClusterState
from kproto.broker.listeners import Endpoint
from kproto.broker.topic_configs import TopicConfig
from kproto.broker.topics import Topic, check_topic_name


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


def cluster() -> ClusterState:
    """Returns a cluster of one node."""
    state = ClusterState(BrokerSettings())
    state.register_endpoint(Endpoint(1, "localhost", 9092))
    return state


def test_names_are_taken_once() -> None:
    state = cluster()
    state.topics.add(state.plan_topic("c.o"))
    assert name_of_error(lambda: state.plan_topic("c.o")) == "TOPIC_ALREADY_EXISTS"
    assert name_of_error(lambda: state.plan_topic("c_o")) == "INVALID_TOPIC_EXCEPTION"
    assert name_of_error(lambda: state.plan_topic("__cluster_metadata")) == "INVALID_REQUEST"
    state.topics.remove(state.topics.named("c.o"))
    assert state.plan_topic("c_o").name == "c_o"


def test_a_deleted_topic_is_gone_by_name_and_by_id() -> None:
    state = cluster()
    topic = state.plan_topic("t")
    state.topics.add(topic)
    assert state.topics.with_id(topic.topic_id) is state.topics.named("t") is topic
    state.topics.remove(topic)
    assert name_of_error(lambda: state.topics.named("t")) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert name_of_error(lambda: state.topics.with_id(topic.topic_id)) == "UNKNOWN_TOPIC_ID"


def test_configs_take_effect() -> None:
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
    assert (config.retention_bytes, config.retention_ms) == (-1, 604_800_000)
    given = {"retention.bytes": "5", "retention.ms": "-1"}
    config = TopicConfig(given, 1000, 17)
    assert (config.retention_bytes, config.retention_ms) == (5, -1)
    assert config.retention_check_interval_ms == 17
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
        ("retention.ms", "-2"),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "half"),
    ],
)
def test_invalid_topic_configs_raise(setting: str, value: str | None) -> None:
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
    assert config.overrides == {"cleanup.policy": "compact", "retention.bytes": "-1"}


@pytest.mark.parametrize(
    ("node", "epoch", "code"),
    [
        (1, 3, None),
        (1, -1, None),
        (1, 2, "FENCED_LEADER_EPOCH"),
        (1, 4, "UNKNOWN_LEADER_EPOCH"),
        (2, 3, "NOT_LEADER_OR_FOLLOWER"),
        (2, 2, "FENCED_LEADER_EPOCH"),
        (2, 4, "UNKNOWN_LEADER_EPOCH"),
        (3, 2, "NOT_LEADER_OR_FOLLOWER"),
        (3, 4, "NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_leader_and_epoch_are_checked(node: int, epoch: int, code: str | None) -> None:
    topic = Topic("t", [(1, 2)], TopicConfig({}, 1_000))
    topic.partition(0).log.epochs.assign(3, 0)
    if code is None:
        topic.check_leader(0, node, epoch)
    else:
        with pytest.raises(BrokerResponseError, match=code):
            topic.check_leader(0, node, epoch)
