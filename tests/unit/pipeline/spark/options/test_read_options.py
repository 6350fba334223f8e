"""Tests read options, named as in Spark's Kafka connector; errors name the option.

No error shows a secret.
"""

from __future__ import annotations

import re

import pytest
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.offset_spec import EARLIEST, LATEST
from kproto_pipeline.spark.options.option_table import parse_read_options
from kproto_pipeline.spark.options.timestamp_spec import TimestampSpec
from kproto_pipeline.spark.options.topic_selection import TopicSelection, parse_subscribe

GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "flights"}


def test_defaults_are_those_of_the_connector() -> None:
    options = parse_read_options(GIVEN)
    assert dict(options.client.properties) == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "kproto-spark",
    }
    assert options.selection == TopicSelection(topics=("flights",))
    assert (options.starting_offsets, options.ending_offsets) == (EARLIEST, LATEST)
    assert not options.include_headers
    assert options.fail_on_data_loss
    assert options.min_partitions is None


def test_kafka_options_are_passed_to_the_client() -> None:
    given = GIVEN | {"kafka.client.id": "me", "kafka.request.timeout.ms": "7"}
    client = parse_read_options(given).client.client()
    assert (client.settings.client_id, client.settings.request_timeout_ms) == ("me", 7)


def test_option_names_ignore_case() -> None:
    options = parse_read_options(
        {
            "KAFKA.BOOTSTRAP.SERVERS": "a:1, b:2",
            "assign": '{"t": [0, 2], "u": [1]}',
            "startingoffsets": '{"t": {"0": 5, "2": -2}, "u": {"1": 0}}',
            "includeheaders": "TRUE",
            "minpartitions": "8",
            "cloudevents": "true",
        }
    )
    assert dict(options.client.properties)["bootstrap.servers"] == "a:1, b:2"
    assert options.selection.partitions == (("t", 0), ("t", 2), ("u", 1))
    assert options.starting_offsets == {("t", 0): 5, ("t", 2): EARLIEST, ("u", 1): 0}
    assert (options.include_headers, options.cloud_events) == (True, True)
    assert options.min_partitions == 8


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger"])
def test_stream_limits_in_a_batch_are_parsed_with_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    parse_read_options({**GIVEN, name: "5"})
    assert caplog.messages == [f"option {name} has no effect in a batch read"]
    with pytest.raises(OptionError, match=f"option {name} is 'x'"):
        parse_read_options({**GIVEN, name: "x"})


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"startingOfsets": "earliest"}, "option startingOfsets is not known"),
        (
            {"kafka.sasl.jaas.config": "hunter2", "kafka.security.protocol": "SASL_SSL"},
            "option kafka.sasl.mechanism is not set",
        ),
        ({"startingOfsets": "earliest"}, "the nearest: startingOffsets"),
        ({"topic": "t"}, "option topic is not known .* of a read; it is an option of a write"),
        ({"provider": "kproto"}, "instead of CREATE TABLE, use CREATE TEMPORARY VIEW"),
        ({"startingTimestamp": "-1"}, "option startingTimestamp is '-1'"),
        ({"startingOffsetsByTimestamp": "1"}, "option startingOffsetsByTimestamp is '1'; it must"),
        ({"endingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "t-0 has -1; a timestamp is a"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "must be error or latest"),
        ({"commitOffsets": "true"}, "commitOffsets has no meaning in a batch read"),
        ({"kafka.isolation.level": "x"}, "must be read_committed or read_uncommitted"),
        ({"kafka.auto.offset.reset": "latest"}, "auto.offset.reset is not accepted: set starting"),
        ({"kafka.bootstrap.servers": " , "}, "option kafka.bootstrap.servers: no bootstrap server"),
        ({"kafka.bootstrap.servers": "h:99999"}, "kafka.bootstrap.servers: 'h:99999' is no addr"),
        ({"kafka.bootstrap.servers": "a:1,::1:9092"}, r"'::1:9092' is no .* \[address\]:port"),
        ({"subscribe": " , "}, "option subscribe is ' , '"),
        ({"assign": '{"t": [0]}'}, "exactly one of the options .* set are: subscribe, assign"),
        ({"includeHeaders": "yes"}, "option includeHeaders is 'yes'; it must be true or false"),
        ({"kafkaConsumer.pollTimeoutMs": "x"}, "option kafkaConsumer.pollTimeoutMs is 'x'"),
        ({"fetchOffset.numRetries": "-1"}, "option fetchOffset.numRetries is '-1'"),
        ({"fetchOffset.retryIntervalMs": "1s"}, "option fetchOffset.retryIntervalMs is '1s'"),
        ({"minPartitions": "0"}, "option minPartitions is '0'"),
        ({"minPartitions": "²"}, "option minPartitions is '²'"),
        ({"startingOffsets": "latest"}, "option startingOffsets cannot be 'latest'"),
        ({"endingOffsets": "earliest"}, "option endingOffsets cannot be 'earliest'"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "option endingOffsets: t-0 cannot be -2"),
    ],
)
def test_wrong_option_of_a_batch_is_named(changed: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what) as caught:
        parse_read_options(GIVEN | changed)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets has no meaning in a stream read"),
        ({"endingTimestamp": "1"}, "endingTimestamp has no meaning in a stream read"),
        ({"maxTriggerDelay": "5 weeks"}, "maxTriggerDelay is '5 weeks'; it must be a duration"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is '0'"),
        (
            {"maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "3"},
            "minOffsetsPerTrigger is 3, and maxOffsetsPerTrigger 2",
        ),
        ({"commitOffsets": "true"}, "commitOffsets needs kafka.group.id"),
    ],
)
def test_wrong_option_of_a_stream_is_named(changed: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        parse_read_options(GIVEN | changed, streaming=True)


def test_stream_starts_at_latest_by_default() -> None:
    options = parse_read_options(GIVEN, streaming=True)
    assert options.starting_offsets == LATEST
    assert options.max_trigger_delay_ms == 900_000


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("7", 7), ("2 s", 2_000), ("1h", 3_600_000), ("9ms", 9)]
)
def test_durations_are_those_of_spark(text: str, ms: int) -> None:
    options = parse_read_options(GIVEN | {"maxTriggerDelay": text}, streaming=True)
    assert options.max_trigger_delay_ms == ms


def test_starting_options_have_the_connectors_precedence() -> None:
    given = GIVEN | {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"flights": {"0": 5}}',
        "endingOffsetsByTimestamp": '{"flights": {"0": 9}}',
    }
    options = parse_read_options(given)
    assert options.starting_offsets == TimestampSpec(
        "startingOffsetsByTimestamp", {("flights", 0): 5}
    )
    assert options.ending_offsets == TimestampSpec("endingOffsetsByTimestamp", {("flights", 0): 9})
    options = parse_read_options(given | {"startingTimestamp": "7"})
    assert options.starting_offsets == TimestampSpec("startingTimestamp", 7)


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets", "assign"])
def test_duplicate_topic_in_json_is_an_error(option: str) -> None:
    """If a name occurs twice, Python's `json` would ignore the first value without an error."""
    one = "[0]" if option == "assign" else '{"0": 0}'
    options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t1"}
    if option == "assign":
        del options["subscribe"]
    with pytest.raises(OptionError, match=rf"^option {option} names 't1' twice"):
        parse_read_options(options | {option: f'{{"t1": {one}, "t2": {one}, "t1": {one}}}'})


@pytest.mark.parametrize("value", ["9" * 5_000, "1" * 20], ids=len)
def test_huge_number_is_an_error(value: str) -> None:
    with pytest.raises(OptionError, match="option minPartitions is"):
        parse_read_options(
            {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "minPartitions": value}
        )


DEEP, LONG = "[" * 100_000, '{"t": [' + "9" * 5_000 + "]}"


@pytest.mark.parametrize(
    "assign",
    [
        *("t", "{}", '{"t": 0}', '{"t": []}', '{"t": [-1]}', '["t"]'),
        pytest.param(DEEP, id="deep"),
        pytest.param(LONG, id="long"),
    ],
)
def test_wrong_assign_is_an_error(assign: str) -> None:
    with pytest.raises(OptionError, match="option assign is"):
        parse_read_options({"kafka.bootstrap.servers": "h:1", "assign": assign})


def test_empty_names_in_subscribe_are_dropped() -> None:
    assert parse_subscribe("subscribe", "t, ,u,t,").topics == ("t", "u")


def test_prefix_of_a_bootstrap_server_is_accepted() -> None:
    servers = "SASL_SSL://h:1,EXTERNAL://i:2"
    parse_read_options({"kafka.bootstrap.servers": servers, "subscribe": "t"})


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a(", r"'a\(' cannot be used as a regular expression of Java: '\(' near index 1: "),
        ("(?P<n>a)", r"'\(\?P' near index 0: "),
        (r"t\G", r"'\\\\G' near index 1: "),
        ("", "it must be a regular expression"),
        (" \n", "it must be a regular expression"),
    ],
)
def test_wrong_subscribe_pattern_is_an_error(pattern: str, complaint: str) -> None:
    with pytest.raises(OptionError, match=f"option subscribePattern.*{complaint}"):
        parse_read_options({"kafka.bootstrap.servers": "h:1", "subscribePattern": pattern})


def test_subscribe_pattern_is_an_expression_of_java() -> None:
    options = parse_read_options(
        {"kafka.bootstrap.servers": "h:1", "subscribePattern": " ^[a-z&&[^x]]$\n"}
    )
    assert options.selection.pattern is not None
    names = [name for name in ("a", "x", "&", "[") if re.search(options.selection.pattern, name)]
    assert names == ["a"]


def test_query_of_a_table_without_options_names_the_view() -> None:
    with pytest.raises(OptionError, match=r"no option is set.* use CREATE TEMPORARY VIEW"):
        parse_read_options({})


def test_brokers_and_topics_are_required() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        parse_read_options({"subscribe": "t"})
    with pytest.raises(OptionError, match="set are: none"):
        parse_read_options({"kafka.bootstrap.servers": "h:1"})


def test_librdkafka_names_are_aliases() -> None:
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}
    names = {"kafka.fetch.message.max.bytes": "100000", "kafka.fetch.wait.max.ms": "50"}
    options = parse_read_options(given | names)
    assert (options.max_partition_fetch_bytes, options.fetch_max_wait_ms) == (100_000, 50)


@pytest.mark.parametrize("name", ["cloudEventsWithoutHeaders", "cloudEventsEventGrid"])
def test_option_of_events_needs_cloud_events(name: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", name: "true"}
    with pytest.raises(OptionError, match=f"option {name} has no meaning without cloudEvents"):
        parse_read_options(given).for_batch()
    options = parse_read_options({**given, "cloudEvents": "true"}).for_batch()
    assert options.event_grid_dataschema is (name == "cloudEventsEventGrid")
    assert options.events_without_headers is not options.event_grid_dataschema
