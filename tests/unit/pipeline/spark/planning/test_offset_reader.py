"""Tests which topics and offsets the options of a read select, with a simulated cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.planning.offset_reader import list_log_offsets, plan_batch

from kproto.client.metadata.cluster import PartitionInfo, TopicInfo
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.uuid import ZERO_UUID

UNKNOWN = code_of("UNKNOWN_TOPIC_OR_PARTITION")


class Cluster:
    """A fake client of a cluster, whose topics have one partition each.

    A lookup of an offset by timestamp returns `by_time`.
    """

    def __init__(self, *topics: str, internal: str = "", by_time: int = -1) -> None:
        self.topics = {name: self._info(name, internal=False) for name in topics}
        if internal:
            self.topics[internal] = self._info(internal, internal=True)
        self.by_time = by_time
        self.waited_for: list[str] = []

    def _info(self, name: str, *, internal: bool) -> TopicInfo:
        partition = PartitionInfo(0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        return TopicInfo(name, ZERO_UUID, {0: partition}, internal=internal)

    async def refresh(self, names: Any = None) -> list[TopicInfo]:
        if names is None:
            return list(self.topics.values())
        unknown = TopicInfo("", ZERO_UUID, {}, error_code=UNKNOWN)
        return [self.topics.get(name) or _named(unknown, name) for name in names]

    async def topic(self, name: str) -> TopicInfo:
        if name not in self.topics:
            self.waited_for.append(name)
            raise error_of_code(UNKNOWN, name)
        return self.topics[name]

    async def list_offsets(self, wanted: Any, **_: Any) -> dict[Any, int]:
        known = {"earliest": 0, "latest": 100}
        return {part: known.get(what, self.by_time) for part, what in wanted.items()}


def _named(info: TopicInfo, name: str) -> TopicInfo:
    return TopicInfo(name, info.topic_id, info.partitions, error_code=info.error_code)


def selected(cluster: Cluster, *, await_topics: bool = True, **options: str) -> list[str]:
    given = {"kafka.bootstrap.servers": "localhost:1", **options}
    parsed = parse_read_options(given, streaming=True)
    looking = list_log_offsets(cluster, parsed, skip_missing=True, await_topics=await_topics)  # type: ignore[arg-type]
    return sorted(topic for topic, _ in asyncio.run(looking).topic_ids)


def test_pattern_matches_anywhere_and_skips_internal_topics() -> None:
    cluster = Cluster("flights", "eu-flights-2", "ships", internal="__consumer_offsets")
    assert selected(cluster, subscribePattern="flights") == ["eu-flights-2", "flights"]
    assert selected(cluster, subscribePattern="^flights$") == ["flights"]
    assert selected(cluster, subscribePattern=".*") == ["eu-flights-2", "flights", "ships"]


def test_missing_topic_is_awaited_at_the_start_only() -> None:
    cluster = Cluster("a")
    assert selected(cluster, subscribe="a,b") == ["a"]
    assert cluster.waited_for == ["b"]
    assert selected(cluster, subscribe="a,b", await_topics=False) == ["a"]
    assert cluster.waited_for == ["b"], "a trigger does not wait for it again"


@pytest.mark.parametrize("option", ["startingTimestamp", "endingTimestamp"])
def test_offset_by_timestamp_after_the_listed_end_is_no_data_loss(option: str) -> None:
    """Between listing the end and looking up the timestamp, records have been appended."""
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "a", option: "7"}
    options = parse_read_options(given)
    found = asyncio.run(plan_batch(Cluster("a", by_time=101), options))  # type: ignore[arg-type]
    wanted = [] if option == "startingTimestamp" else [(0, 100)]
    assert [(each.start, each.end) for each in found if each.start < each.end] == wanted


def test_missing_assigned_partition_is_left_out_of_a_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"kafka.bootstrap.servers": "localhost:1", "assign": '{"t": [0, 7]}'}
    planned = plan_batch(Cluster("t"), parse_read_options(given))  # type: ignore[arg-type]
    assert [(each.partition, each.end) for each in asyncio.run(planned)] == [(0, 100)]
    assert caplog.messages == [
        "option assign: the cluster has no t-7; the query reads the other partitions"
    ]
