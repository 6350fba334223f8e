"""Tests the stream reader: calls its methods in Spark's order, with log offsets set by the test."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kproto_pipeline.columns import RECORD_SCHEMA
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.planning.offset_ranges import DataLossError, LogOffsets
from kproto_pipeline.spark.planning.offset_reader import starting_offsets
from kproto_pipeline.spark.streaming import group_commits, stream_reader
from kproto_pipeline.spark.streaming.stream_reader import KprotoStreamReader

from kproto.wire.errors import KprotoError
from kproto.wire.uuid import ZERO_UUID, Uuid

A, B = ("t", 0), ("t", 1)


class Logs:
    """The log offsets that the stream reader gets from the cluster in a test.

    `asked` counts how often the stream reader has requested log offsets.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.now = LogOffsets({}, {}, {})
        self.by_time: dict[Any, int] | None = None
        self.lags = 0  # number of further answers from a lagging leader

    def are(self, latest: dict[Any, int], ids: Uuid = ZERO_UUID, **earliest: int) -> None:
        first = {part: earliest.get(f"p{part[1]}", 0) for part in latest}
        self.now = LogOffsets(dict.fromkeys(latest, ids), first, latest)

    async def retrying(self, operation: Callable[[], Awaitable[Any]]) -> Any:
        return await operation()


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Logs:
    found = Logs()

    async def state(
        client: Any, options: Any, *, skip_missing: bool, await_topics: bool
    ) -> LogOffsets:
        assert skip_missing
        found.asked += 1
        if found.lags:
            found.lags -= 1
            if not found.lags:
                found.are({A: 110})
                return LogOffsets(found.now.topic_ids, {A: 0}, {A: 90})
        return found.now

    async def starts(client: Any, options: Any, now: Any) -> Any:
        return found.by_time or await starting_offsets(client, options, now)

    monkeypatch.setattr(stream_reader, "list_log_offsets", state)
    monkeypatch.setattr(stream_reader, "starting_offsets", starts)
    for module in (stream_reader, group_commits):
        monkeypatch.setattr(
            module,
            "with_client",
            lambda options, work, *, retry=False: asyncio.run(work(found)),
        )
    monkeypatch.setattr(stream_reader, "_RETRY_INTERVAL_S", 0)
    return found


def reader(**others: str) -> KprotoStreamReader:
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t", **others}
    return KprotoStreamReader(parse_read_options(given, streaming=True), RECORD_SCHEMA)


def json(offsets: dict[Any, int]) -> dict[str, Any]:
    return {"t": {str(part[1]): offset for part, offset in sorted(offsets.items())}}


def ranges(planned: list[Any]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for p in planned for each in p.value]


def test_first_micro_batch_checkpoints_the_latest_offsets(logs: Logs) -> None:
    logs.are({A: 100})
    first = reader()
    begun = first.initialOffset()
    logs.are({A: 150})
    end = first.latestOffset(begun, first.getDefaultReadLimit())
    assert begun == end == json({A: 100})
    after = first.latestOffset(end, first.getDefaultReadLimit())
    assert ranges(first.partitions(end, after)) == [(0, 100, 150)]
    # After a restart Spark plans the batch again; the log has grown, and a partition was added.
    logs.are({A: 170, B: 3})
    again = reader()
    assert again.initialOffset() == json({A: 170, B: 3})
    assert ranges(again.partitions(again.initialOffset(), end)) == []
    following = again.latestOffset(end, again.getDefaultReadLimit())
    assert ranges(again.partitions(end, following)) == [(0, 100, 170), (1, 0, 3)]


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_replayed_first_micro_batch_includes_an_added_partition(logs: Logs, start: str) -> None:
    logs.are({A: 100, B: 5})
    again = reader(startingOffsets=start)
    planned = again.partitions(again.initialOffset(), json({A: 100}))
    assert ranges(planned) == ([(0, 0, 100)] if start == "earliest" else [])


def test_replayed_first_micro_batch_with_a_later_start_is_empty(logs: Logs) -> None:
    logs.are({A: 110})
    logs.by_time = {A: 105}
    again = reader(startingTimestamp="5", startingOffsetsByTimestampStrategy="latest")
    assert ranges(again.partitions(again.initialOffset(), json({A: 100}))) == []


def test_first_micro_batch_obeys_the_rate_limit(logs: Logs) -> None:
    logs.are({A: 1_000_000, B: 7})
    begun = '{"t": {"0": -2, "1": -1}}'
    first = reader(startingOffsets=begun, maxOffsetsPerTrigger="10")
    end = first.latestOffset(first.initialOffset(), first.getDefaultReadLimit())
    assert end == json({A: 10, B: 7})


def test_available_now_ends_at_the_offsets_of_its_start(logs: Logs) -> None:
    logs.are({A: 100})
    first = reader()
    first.prepareForTriggerAvailableNow()
    logs.are({A: 103, B: 9})
    begun = first.initialOffset()
    end = first.latestOffset(begun, first.getDefaultReadLimit())
    assert end["t"]["0"] == 103
    assert ranges(first.partitions(begun, end)) == []


def test_missing_partition_is_retried_in_the_first_micro_batch_only(logs: Logs) -> None:
    logs.are({A: 100, B: 100})
    running = reader(startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="10")
    running.prepareForTriggerAvailableNow()
    at = running.initialOffset()
    logs.are({A: 100})
    looks = []
    for _ in range(3):
        logs.asked = 0
        end = running.latestOffset(at, running.getDefaultReadLimit())
        running.partitions(at, end)
        looks.append(logs.asked)
        at = end
    assert looks == [25, 1, 1]


def test_one_task_reads_a_few_offsets_of_many_partitions(logs: Logs) -> None:
    parts = {("t", number): 300 + number for number in range(10)}
    logs.are(parts | {("t", 10): 5_000})
    for given, counts in (({}, [3, 3, 3, 1, 1]), ({"minPartitions": "2"}, [1] * 11)):
        running = reader(startingOffsets="earliest", **given)
        begun = running.initialOffset()
        end = running.latestOffset(begun, running.getDefaultReadLimit())
        planned = running.partitions(begun, end)
        assert [len(each.value) for each in planned] == counts
        assert ranges(planned) == [(n, 0, 300 + n) for n in range(10)] + [(10, 0, 5_000)]


def test_lagging_leader_is_retried_without_a_start_from_spark(logs: Logs) -> None:
    logs.are({A: 100})
    running = reader()  # PySpark 4.0 and 4.1 pass no start
    assert running.latestOffset() == json({A: 100})
    logs.are({A: 90})
    before = logs.asked
    logs.lags = 3
    assert running.latestOffset() == json({A: 110})
    assert logs.asked == before + 4


def test_offsets_are_listed_once_a_trigger(logs: Logs) -> None:
    logs.are({A: 100})
    running = reader(startingOffsets="earliest")
    begun = running.initialOffset()
    logs.asked = 0
    end = running.latestOffset(begun, running.getDefaultReadLimit())
    assert ranges(running.partitions(begun, end)) == [(0, 0, 100)]
    assert logs.asked == 1
    assert running.reportLatestOffset() == json({A: 100})


@pytest.mark.parametrize("fails", ["true", "false"])
def test_recreated_topic_is_data_loss_or_read_from_earliest(logs: Logs, fails: str) -> None:
    logs.are({A: 100}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss=fails)
    at = running.latestOffset(running.initialOffset(), running.getDefaultReadLimit())
    running.partitions(running.initialOffset(), at)
    logs.are({A: 120}, Uuid.random())
    if fails == "true":
        with pytest.raises(DataLossError, match="t-0: the topic was recreated"):
            running.latestOffset(at, running.getDefaultReadLimit())
        return
    start = running.latestOffset(at, running.getDefaultReadLimit())
    assert (start, ranges(running.partitions(at, start))) == (json({A: 0}), [])
    end = running.latestOffset(start, running.getDefaultReadLimit())
    assert ranges(running.partitions(start, end)) == [(0, 0, 120)]
    logs.are({A: 130}, logs.now.topic_ids[A])
    after = running.latestOffset(end, running.getDefaultReadLimit())
    assert ranges(running.partitions(end, after)) == [(0, 120, 130)]


def test_micro_batch_waits_for_min_offsets_up_to_max_trigger_delay(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    logs.are({A: 1})
    running = reader(startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    limit = running.getDefaultReadLimit()
    at = running.latestOffset(running.initialOffset(), limit)
    assert at == json({A: 1}), "the first one waits for nothing"
    logs.are({A: 5})
    assert running.latestOffset(at, limit) == at
    logs.are({A: 11})
    at = running.latestOffset(at, limit)
    assert at == json({A: 11})
    logs.are({A: 12})
    assert running.latestOffset(at, limit) == at
    now[0] += 61
    assert running.latestOffset(at, limit) == json({A: 12})


def test_missing_topic_is_an_error_at_the_start(logs: Logs) -> None:
    """Without the error, a stream of a misspelt topic would run and never return a row."""
    logs.are({})
    with pytest.raises(OptionError, match="option subscribe: the cluster has no t"):
        reader().initialOffset()
    options = parse_read_options(assigned('{"t": [0, 1]}'), streaming=True)
    with pytest.raises(OptionError, match="option assign: the cluster has no t-0, t-1"):
        KprotoStreamReader(options, RECORD_SCHEMA).initialOffset()


def assigned(partitions: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": "localhost:1", "assign": partitions}


def test_missing_assigned_partition_is_left_out(
    logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    logs.are({A: 5})
    options = parse_read_options(assigned('{"t": [0, 1]}'), streaming=True)
    assert KprotoStreamReader(options, RECORD_SCHEMA).initialOffset() == {"t": {"0": 5}}
    assert "option assign: the cluster has no t-1; the query reads the other" in caplog.text


def test_pickled_reader_has_no_query_state(logs: Logs) -> None:
    logs.are({("t", number): 5 for number in range(1_000)})
    running = reader(startingOffsets="earliest")
    bare = len(pickle.dumps(running))
    end = running.latestOffset(running.initialOffset(), running.getDefaultReadLimit())
    running.partitions(running.initialOffset(), end)
    assert len(pickle.dumps(running)) == bare


@pytest.mark.parametrize("fault", ["refused", "silent"])
def test_failed_group_commit_is_a_warning_and_retried(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    asked: list[dict[Any, int]] = []
    is_away = True

    async def commit(group: str, offsets: dict[Any, int], *, topic_ids: Any) -> None:
        asked.append(offsets)
        if is_away and fault == "silent":
            await asyncio.sleep(3600)
        if is_away:
            raise KprotoError("the group has members")

    monkeypatch.setattr(logs, "commit_offsets", commit, raising=False)
    monkeypatch.setattr(group_commits, "_COMMIT_TIMEOUT_S", 0.05)
    logs.are({A: 100})
    following = reader(**{"commitOffsets": "true", "kafka.group.id": "g"})
    following.latestOffset(following.initialOffset(), following.getDefaultReadLimit())
    following.commit(json({A: 100}))
    why = {"refused": "the group has members", "silent": "no response within 0.05 s"}[fault]
    assert f"offsets of the query were not committed for group 'g': {why}" in caplog.text
    caplog.clear()
    is_away = False
    for _ in range(2):
        following.commit(json({A: 100}))
    assert asked == [{A: 100}, {A: 100}]  # committed offsets are not committed again
    assert not caplog.text


@pytest.mark.parametrize(
    ("then", "told"),
    [({A: 100}, "t-1: the topic or partition is gone"), ({A: 100, B: 40}, "t-1")],
    ids=["deleted", "cut"],
)
def test_loss_before_the_first_record_is_reported(
    logs: Logs, then: dict[Any, int], told: str
) -> None:
    """Micro-batch 0 starts at latest and is empty; the loss happens before micro-batch 1.

    Micro-batch 1 starts at the same offsets as micro-batch 0.
    """
    logs.are({A: 100, B: 50})
    running = reader()
    at = running.initialOffset()
    assert running.latestOffset(at, running.getDefaultReadLimit()) == at
    logs.are(then)
    with pytest.raises(DataLossError, match=told):
        running.partitions(at, running.latestOffset(at, running.getDefaultReadLimit()))


def test_recreated_topic_with_equal_end_is_read(logs: Logs) -> None:
    """Spark skips a micro-batch if its end equals its start.

    So the reader must return another end, although the new topic's log reaches the same offset.
    """
    logs.are({A: 400}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="400")
    limit = running.getDefaultReadLimit()
    at = running.latestOffset(running.initialOffset(), limit)
    running.partitions(running.initialOffset(), at)
    logs.are({A: 5_000}, Uuid.random())
    read = []
    for _ in range(3):
        end = running.latestOffset(at, limit)
        assert end != at
        read += ranges(running.partitions(at, end))
        at = end
    assert read == [(0, 0, 400), (0, 400, 800)]


def test_replay_of_a_batch_after_a_recreation_loses_no_record(logs: Logs) -> None:
    """The query ends after Spark has stored the ends of the batch; its next run replays the batch.

    The new run does not know that the topic was recreated.
    """
    logs.are({A: 400}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss="false")
    at = running.latestOffset(running.initialOffset(), running.getDefaultReadLimit())
    running.partitions(running.initialOffset(), at)
    logs.are({A: 5_000}, Uuid.random())
    end = running.latestOffset(at, running.getDefaultReadLimit())
    restarted = reader(startingOffsets="earliest", failOnDataLoss="false")
    read = ranges(restarted.partitions(at, end))
    following = restarted.latestOffset(end, running.getDefaultReadLimit())
    assert read + ranges(restarted.partitions(end, following)) == [(0, 0, 5_000)]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_recreated_topic_with_equal_end_is_read_without_starts_from_spark(
    logs: Logs, is_restarted: bool
) -> None:
    """PySpark 4.0 and 4.1 pass no start to `latestOffset`."""
    logs.are({A: 40}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss="false")
    at = json({A: 0}) if is_restarted else running.initialOffset()
    end = running.latestOffset()
    assert ranges(running.partitions(at, end)) == [(0, 0, 40)]
    logs.are({A: 40}, Uuid.random())
    start = running.latestOffset()
    assert (start, ranges(running.partitions(end, start))) == (json({A: 0}), [])
    end = running.latestOffset()
    assert ranges(running.partitions(start, end)) == [(0, 0, 40)]


def test_recreated_topic_that_the_stream_has_not_read_is_read_at_once(logs: Logs) -> None:
    logs.are({A: 0}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss="false")
    limit = running.getDefaultReadLimit()
    at = running.latestOffset(running.initialOffset(), limit)
    logs.are({A: 7}, Uuid.random())
    end = running.latestOffset(at, limit)
    assert ranges(running.partitions(at, end)) == [(0, 0, 7)]


def test_available_now_reads_a_recreated_topic(logs: Logs) -> None:
    logs.are({A: 1_000}, Uuid.random())
    running = reader(startingOffsets="earliest", failOnDataLoss="false", maxOffsetsPerTrigger="400")
    running.prepareForTriggerAvailableNow()
    limit = running.getDefaultReadLimit()
    begun = running.initialOffset()
    at = running.latestOffset(begun, limit)
    assert ranges(running.partitions(begun, at)) == [(0, 0, 400)]
    logs.are({A: 10}, Uuid.random())
    start = running.latestOffset(at, limit)
    assert (start, ranges(running.partitions(at, start))) == (json({A: 0}), [])
    end = running.latestOffset(start, limit)
    assert ranges(running.partitions(start, end)) == [(0, 0, 10)]
    assert running.latestOffset(end, limit) == end, "that was all there was"


@pytest.mark.parametrize("fails", ["true", "false"])
def test_available_now_reports_a_log_that_ends_before_the_stream(logs: Logs, fails: str) -> None:
    """While the query was stopped, the topic was recreated, and the new log is shorter."""
    logs.are({A: 2, B: 9})
    running = reader(failOnDataLoss=fails, maxOffsetsPerTrigger="400")
    running.prepareForTriggerAvailableNow()
    limit = running.getDefaultReadLimit()
    at = json({A: 13, B: 3})
    end = running.latestOffset(at, limit)
    assert end == json({A: 2, B: 9})
    if fails == "true":
        with pytest.raises(DataLossError, match="t-0: the log was truncated from 13 to 2"):
            running.partitions(at, end)
        return
    assert ranges(running.partitions(at, end)) == [(1, 3, 9)]
    assert running.latestOffset(end, limit) == end


def test_available_now_retries_a_lagging_leader_at_its_start(logs: Logs) -> None:
    logs.are({A: 90})
    running = reader(maxOffsetsPerTrigger="400")
    running.prepareForTriggerAvailableNow()
    logs.lags = 3
    at = json({A: 100})
    assert running.latestOffset(at, running.getDefaultReadLimit()) == at
    assert logs.lags == 0


@pytest.mark.parametrize("fails", ["true", "false"])
def test_available_now_reports_a_truncated_log(logs: Logs, fails: str) -> None:
    logs.are({A: 1_000})
    running = reader(startingOffsets="earliest", failOnDataLoss=fails, maxOffsetsPerTrigger="400")
    running.prepareForTriggerAvailableNow()
    limit = running.getDefaultReadLimit()
    begun = running.initialOffset()
    at = running.latestOffset(begun, limit)
    running.partitions(begun, at)
    logs.are({A: 600})
    if fails == "true":
        with pytest.raises(DataLossError, match="t-0: offsets 600 to 999 are gone"):
            running.latestOffset(at, limit)
        return
    end = running.latestOffset(at, limit)
    assert ranges(running.partitions(at, end)) == [(0, 400, 600)]
    assert running.latestOffset(end, limit) == end


def test_available_now_keeps_the_offset_of_a_partition_seen_late(
    logs: Logs,
) -> None:
    """The first metadata lacks a partition for which the checkpoint already has an offset."""
    logs.are({A: 1_000})
    running = reader()
    running.prepareForTriggerAvailableNow()
    logs.are({A: 1_000, B: 500})
    start = json({A: 900, B: 400})
    end = running.latestOffset(start, running.getDefaultReadLimit())
    assert end == json({A: 1_000, B: 400})
    assert ranges(running.partitions(start, end)) == [(0, 900, 1_000)]
