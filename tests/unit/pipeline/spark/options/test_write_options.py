"""Tests sink options: properties that would change a row or a guarantee are refused."""

from __future__ import annotations

import pytest
from kproto_pipeline.spark.options.errors import OptionError
from kproto_pipeline.spark.options.option_table import parse_write_options

GIVEN = {"kafka.bootstrap.servers": "localhost:9092"}


def test_defaults() -> None:
    options = parse_write_options(GIVEN)
    assert (options.topic, options.cloud_events, options.batch_bytes) == (None, None, 1_000_000)


def test_option_names_ignore_case() -> None:
    options = parse_write_options(
        {"KAFKA.Bootstrap.Servers": "a:1", "TOPIC": "T", "cloudevents": "Structured"}
    )
    assert dict(options.client.properties)["bootstrap.servers"] == "a:1"
    assert (options.topic, options.cloud_events) == ("T", "structured")


@pytest.mark.parametrize(
    ("text", "mode"),
    [("true", "default"), ("binary", "binary"), ("structured", "structured"), ("false", None)],
)
def test_content_mode_of_events_is_parsed(text: str, mode: str | None) -> None:
    assert parse_write_options({**GIVEN, "cloudEvents": text}).cloud_events == mode


def test_kafka_options_are_passed_to_the_producer() -> None:
    options = parse_write_options(
        {
            **GIVEN,
            "kafka.batch.size": "5000",
            "kafka.compression.type": "zstd",
            "kafka.linger.ms": "7",
            "kafka.buffer.memory": "100000",
            "kafka.max.in.flight.requests.per.connection": "5",
        }
    )
    assert options.batch_bytes == 5000
    assert options.client.client()._producer_defaults == {
        "batch_bytes": 5000,
        "compression": "zstd",
        "linger_ms": 7,
        "buffer_bytes": 100_000,
        "max_in_flight": 5,
    }


@pytest.mark.parametrize(("acks", "warnings"), [("1", 1), ("0", 1), ("all", 0), (" -1", 0)])
def test_the_sink_always_waits_for_all_in_sync_replicas(
    acks: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    options = parse_write_options({**GIVEN, "kafka.acks": acks})
    assert options.client.client()._producer_defaults == {}
    logged = [each.message for each in caplog.records]
    assert logged == [
        "kafka.acks has no effect: the sink waits for acks by all in-sync replicas"
    ] * (warnings)


def test_options_of_spark_are_ignored() -> None:
    spark = {"checkpointLocation": "/c", "path": "p", "queryName": "q"}
    assert parse_write_options({**GIVEN, **spark}) == parse_write_options(GIVEN)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"topic": " "}, "option topic is empty"),
        ({"subscribe": "t"}, "option subscribe is not known .* it is an option of a read"),
        ({"topics": "t"}, "option topics is not known .*the nearest: topic"),
        ({"cloudEvents": "xml"}, "cloudEvents is 'xml'; it must be false, true, binary"),
        ({"kafka.batch.size": "0"}, "kafka.batch.size is '0'; it must be a whole number from 1 to"),
        ({"kafka.compression.type": "rar"}, "compression.type is 'rar'; it must be none, gzip"),
        ({"kafka.value.serializer": "x"}, "value.serializer is not accepted: values are sent"),
        ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes is not accepted"),
        ({"kafka.transactional.id": "x"}, "not accepted: set exactlyOnce"),
        ({"kafka.enable.idempotence": "false"}, "not accepted: the sink is idempotent in any case"),
        ({"kafka.max.in.flight.requests.per.connection": "6"}, "connection is '6'; .*1 to 5"),
        ({"kafka.max.in.flight": "6"}, "kafka.max.in.flight is '6'; .*1 to 5"),
    ],
)
def test_wrong_value_is_named(changed: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        parse_write_options({**GIVEN, **changed})


def test_bootstrap_servers_are_required() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        parse_write_options({"topic": "t"})


def test_no_secret_is_shown() -> None:
    secret = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": "hunter2"}
    with pytest.raises(OptionError) as raised:
        parse_write_options({**GIVEN, **secret})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(OptionError) as raised:
        parse_write_options({**GIVEN, "pasword": "hunter2"})
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in repr(
        parse_write_options({**GIVEN, "kafka.ssl.key.password": "hunter2"})
    )


@pytest.mark.parametrize("mode", ["structured", "true"])
def test_portable_json_is_parsed(mode: str) -> None:
    given = {**GIVEN, "cloudEvents": mode}
    assert not parse_write_options(given).portable_json
    assert parse_write_options({**given, "cloudEventsPortableJson": "true"}).portable_json


@pytest.mark.parametrize("mode", ["binary", "false"])
def test_portable_json_needs_structured_mode(mode: str) -> None:
    given = {**GIVEN, "cloudEvents": mode, "cloudEventsPortableJson": "true"}
    with pytest.raises(OptionError, match="cloudEventsPortableJson has no meaning without struct"):
        parse_write_options(given)
