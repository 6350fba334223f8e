"""Tests `from_properties`: names and values, valid and invalid; no text shows a secret."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.security import Plain
from kproto.security.properties import (
    ClientProperties,
    from_properties,
    known_names,
    read_values,
)
from kproto.security.property_table import ROWS
from kproto.wire.errors import ConfigurationError

PLAIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "hunter2",
}


def test_every_name_of_the_table_is_known_to_some_client() -> None:
    names = [name for row in ROWS for name in row.names]
    assert len(names) == len(set(names))
    assert set(names) <= known_names() - {"no.such.name"}
    assert len({(row.part, row.name) for row in ROWS}) == len(ROWS)
    assert {"key.serializer", "group.id", "statistics.interval.ms"} <= known_names()


def test_settings_of_the_three() -> None:
    found = read_values(
        {
            "bootstrap.servers": ["b1:9092", "b2:9092"],
            "client.id": "",
            "socket.connection.setup.timeout.ms": 1,
            "socket.timeout.ms": 2,
            "message.timeout.ms": "3",
            "default.api.timeout.ms": 18,
            "retry.backoff.ms": " 4 ",
            "retry.backoff.max.ms": 5,
            "metadata.max.age.ms": 6,
            "receive.message.max.bytes": 7000,
            "max.request.size": 8,
            "compression.codec": "zstd",
            "linger.ms": 9,
            "batch.size": 10,
            "buffer.memory": 11,
            "max.in.flight": 3,
            "enable.idempotence": True,
            "acks": -1,
            "auto.offset.reset": "smallest",
            "max.partition.fetch.bytes": 12,
            "fetch.wait.max.ms": 13,
            "fetch.min.bytes": 0,
            "fetch.max.bytes": 19,
            "queued.max.messages.kbytes": 20,
            "isolation.level": "READ_COMMITTED",
            "group.id": "billing",
            "group.instance.id": "till-1",
            "session.timeout.ms": 14,
            "heartbeat.interval.ms": 15,
            "max.poll.interval.ms": 16,
            "enable.auto.commit": "False",
            "auto.commit.interval.ms": 17,
            "partition.assignment.strategy": "roundrobin, range",
        }
    )
    assert found == ClientProperties(
        "b1:9092,b2:9092",
        {
            "client_id": "",
            "connect_timeout_ms": 1,
            "request_timeout_ms": 2,
            "delivery_timeout_ms": 3,
            "api_timeout_ms": 18,
            "retry_backoff_ms": 4,
            "retry_backoff_max_ms": 5,
            "metadata_max_age_ms": 6,
            "max_frame_bytes": 7000,
            "max_request_bytes": 8,
        },
        {
            "compression": "zstd",
            "linger_ms": 9,
            "batch_bytes": 10,
            "buffer_bytes": 11,
            "max_in_flight": 3,
            "acks": "all",
            "idempotent": True,
        },
        {
            "start": "earliest",
            "max_partition_fetch_bytes": 12,
            "max_wait_ms": 13,
            "fetch_min_bytes": 0,
            "fetch_max_bytes": 19,
            "queued_max_bytes": 20_480,
            "read_committed": True,
        },
        {
            "group": "billing",
            "instance_id": "till-1",
            "session_timeout_ms": 14,
            "heartbeat_interval_ms": 15,
            "max_poll_interval_ms": 16,
            "auto_commit": False,
            "auto_commit_interval_ms": 17,
            "assignors": ("roundrobin", "range"),
        },
    )


def test_no_position_can_be_missing_but_that_of_a_group() -> None:
    for none in ("none", "error"):
        found = read_values({"auto.offset.reset": none, "max.partition.fetch.bytes": 1})
        assert found.consumer == {"max_partition_fetch_bytes": 1}
        assert found.group == {"start": "none"}


def test_the_protocol_of_groups() -> None:
    """Without the property, kproto uses "auto" (KIP-848), a value that Kafka does not have."""
    found = read_values({"group.protocol": "CONSUMER", "group.remote.assignor": "uniform"})
    assert found.group == {"group_protocol": "consumer", "server_assignor": "uniform"}
    assert read_values({"group.protocol": "classic"}).group == {"group_protocol": "classic"}
    with pytest.raises(ConfigurationError, match=r"group\.protocol"):
        read_values({"group.protocol": "auto"})


def test_assignors_go_by_their_names_and_by_kafkas_classes() -> None:
    kafka = "org.apache.kafka.clients.consumer."
    classes = ("Range", "RoundRobin", "Sticky", "CooperativeSticky")
    named = ",".join(f"{kafka}{each}Assignor" for each in classes)
    found = read_values({"partition.assignment.strategy": named})
    names = ("range", "roundrobin", "sticky", "cooperative-sticky")
    assert found.group == {"assignors": names}
    assert read_values({"partition.assignment.strategy": list(names)}).group == found.group
    for wrong in ("com.example.Mine", "", "range,mine"):
        with pytest.raises(
            ConfigurationError,
            match=r"^partition\.assignment\.strategy is .*some of range, .*separated by commas$",
        ):
            read_values({"partition.assignment.strategy": wrong})


@pytest.mark.parametrize(
    ("properties", "producer"),
    [
        ({"max.in.flight.requests.per.connection": 6}, {"max_in_flight": 6, "idempotent": False}),
        (
            {"max.in.flight": 6, "enable.idempotence": True},
            {"max_in_flight": 6, "idempotent": True},
        ),
        ({"max.in.flight": 5}, {"max_in_flight": 5}),
        ({"acks": "1"}, {"acks": 1}),
        ({"request.required.acks": "0"}, {"acks": 0}),
        ({"acks": "-1"}, {"acks": "all"}),
    ],
)
def test_idempotence_gives_way_as_with_kafkas_client(
    properties: dict[str, Any], producer: dict[str, Any]
) -> None:
    assert read_values(properties).producer == producer


def test_properties_without_effect_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    found = from_properties(
        {
            "interceptor.classes": "hunter2",
            "key.serializer": object,
            "metrics.recording.level": "1",
            "schema.registry.basic.auth.user.info": "a:hunter2",
            "basic.auth.user.info": "a:hunter2",
            "bearer.auth.token": "hunter2",
            "ssl.protocol": "TLSv1.3",
            "ssl.key.password": "hunter2",
            "sasl.password": "hunter2",
            "linger.ms": 5,
        }
    )
    assert found.producer == {"linger_ms": 5}
    assert caplog.record_tuples == [
        (
            "kproto.security",
            logging.WARNING,
            (
                "properties: no effect here: interceptor.classes, key.serializer,"
                " metrics.recording.level,"
                " schema.registry.basic.auth.user.info, basic.auth.user.info, bearer.auth.token,"
                " ssl.protocol; security.protocol disables ssl.key.password, sasl.password"
            ),
        )
    ]


def test_a_name_that_stands_twice_in_a_file_is_told_where_its_values_differ(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=al\n"
        "sasl.mechanism=PLAIN \nsasl.password=hunter1\nsasl.password=hunter2\n"
        "sasl.password=hunter2\nlinger.ms=1\nlinger.ms=2\n"
    )
    assert from_properties(path).settings["sasl"] == Plain("al", "hunter2")
    told = "sasl.password (lines 5 and 7), linger.ms (lines 8 and 9)"
    assert caplog.messages == [f"{path}: more than one value, the last one applies: {told}"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sasl.mechnism", "^no client of Kafka has a property 'sasl.mechnism'; the nearest: sasl"),
        ("bootstrap.server", "the nearest: bootstrap.servers"),
        ("Security.Protocol", "^a property has a name that no client .*: security.protocol, "),
        ("hunter2", "^a property has a name that no client of Kafka has"),
        ("zzz.qqq", "^no client of Kafka has a property 'zzz.qqq'$"),
        ("hunter2" * 100, "^a property has a name that no client of Kafka has$"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_values({name: "x", "linger.ms": "also wrong"})
    assert "hunter" not in str(caught.value)


def test_an_unknown_name_of_a_file_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# x\nlinger.ms=1\nsasl.jaas.confg=hunter2\n")
    with pytest.raises(ConfigurationError, match=r"client\.properties, line 3: .*'sasl\.jaas\.con"):
        from_properties(path)


@pytest.mark.parametrize(
    "text",
    [
        "sasl.jaas.config=x.PlainLoginModule required\n  username=alice\n  password=hunter2;\n",
        "ssl.key.pem=-----BEGIN KEY-----\nMIIEvHUNTER2hunter2\n-----END KEY-----\n",
        "sasl.password:\nhunter2\n",
    ],
)
def test_a_line_that_lost_its_backslash_is_told_without_its_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"line 2: .*lack the '\\'") as caught:
        from_properties(path)
    assert "hunter" not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"linger.ms": "soon"}, "^linger.ms is 'soon'; it must be a whole number from 0 to 2147"),
        ({"linger.ms": "0.5"}, "^linger.ms is '0.5'; it must be a whole number"),
        ({"linger.ms": -1}, "^linger.ms is '-1'"),
        ({"linger.ms": "9" * 5000}, "^linger.ms is '9{40}'…; it must be"),
        ({"linger.ms": None}, "^linger.ms is a NoneType; it must be text"),
        ({"linger.ms": True}, "^linger.ms is 'true'"),
        ({"request.timeout.ms": 0}, "a whole number from 1"),
        ({"compression.type": "brotli"}, "it must be none, gzip, snappy, lz4 or zstd"),
        ({"enable.idempotence": "yes"}, "it must be true or false"),
        ({"security.protocol": "TLS"}, "must be plaintext, ssl, sasl_plaintext or sasl_ssl"),
        ({"bootstrap.servers": ""}, "^bootstrap.servers is ''; it must be text, and not empty"),
        ({"bootstrap.servers": b"\xff"}, "^bootstrap.servers holds bytes that are not UTF-8"),
        ({"bootstrap.servers": 1.5}, "^bootstrap.servers is a float; it must be text"),
        ({7: "x"}, "^a property has a int for a name"),
        (
            {"bootstrap.servers": "a", "metadata.broker.list": "b"},
            "^bootstrap.servers and metadata.broker.list set the same thing, and differ",
        ),
        (
            {"linger.ms": 5, "queue.buffering.max.ms": 6},
            "^linger.ms and queue.buffering.max.ms set the same thing",
        ),
        ({"config.providers": "file"}, "^config.providers is set, and kproto runs none"),
    ],
)
def test_a_wrong_value_is_told_with_what_it_may_be(
    properties: Mapping[Any, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_values(properties)


@pytest.mark.parametrize("source", [None, 5, ["a"], b"client.properties"])
def test_invalid_source_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError, match="pass the path of a file, or a mapping"):
        from_properties(source)


def test_prefixes_of_addresses_are_left_to_the_client() -> None:
    text = "SASL_SSL://b1:9092, EXTERNAL://b2:2"
    assert read_values({"bootstrap.servers": text}).bootstrap == text


def test_empty_parts_of_lists_are_dropped() -> None:
    found = read_values({"group.id": "g", "partition.assignment.strategy": "range, ,roundrobin,"})
    assert found.group["assignors"] == ("range", "roundrobin")
    with pytest.raises(ConfigurationError, match="it must be some of range"):
        read_values({"group.id": "g", "partition.assignment.strategy": " , "})


def test_names_that_agree_may_stand_beside_each_other() -> None:
    found = read_values({"bootstrap.servers": "a", "metadata.broker.list": "a"})
    assert found.bootstrap == "a"


def test_properties_of_settings_set_by_the_caller_are_ignored() -> None:
    iam = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallback",
        "ssl.truststore.location": "trust.jks",
        "client.id": "there",
        "bootstrap.servers": "",
        "sasl.oauthbearer.client.id": "not the same",
    }
    found = read_values(iam, set_by_caller={"sasl", "tls", "bootstrap", "client_id"})
    assert (found.bootstrap, found.settings) == (None, {})
    assert found.unused == ("sasl.client.callback.handler.class",)


def test_properties_outside_the_security_protocol_are_inactive() -> None:
    assert read_values({**PLAIN, "security.protocol": "sasl_plaintext"}).settings == {
        "sasl": Plain("alice", "hunter2")
    }
    found = read_values({**PLAIN, "security.protocol": "SSL"})
    assert found.settings == {"tls": True}
    assert found.inactive == ("sasl.mechanism", "sasl.username", "sasl.password")


# Secrets

KAFKA = "org.apache.kafka.common.security."
SECRET = "Geheim-4711/+=x"
PEM_SECRET = "-----BEGIN PRIVATE KEY-----\nR2VoZWltLTQ3MTEvKz14\n-----END PRIVATE KEY-----"
SECRETS = (SECRET, "4711", "R2VoZWlt")

VALUES = st.sampled_from(
    [
        SECRET,
        PEM_SECRET,
        PEM_SECRET[:40],
        f'org.apache.kafka.common.security.plain.PlainLoginModule required password="{SECRET}";',
        f"org.apache.kafka.common.security.scram.ScramLoginModule required a b {SECRET}",
        (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'clientId="a" clientSecret="{SECRET}" unsecuredLoginNumberClaim_a="{SECRET}";'
        ),
        f"{SECRET} required;",
        f"file://{SECRET}/x",
        "",
        "\0" + SECRET,
    ]
)
#: Errors show no value of properties with these prefixes.
HIDDEN = ("sasl.", "ssl.", "https.")
NAMES = [name for row in ROWS for name in row.names if name.startswith(HIDDEN)]
#: Properties whose value no repr shows; user names, paths and trusted certificates are not secret.
SECRET_NAMES = [
    name
    for row in ROWS
    for name in row.names
    if row.kind.is_secret and row.name not in ("truststore_pem", "ca_pem", "https_ca_pem")
]


def said_of(named: dict[str, str]) -> tuple[str, str]:
    """Returns the settings of `named` as text and "", or "" and the error with its traceback."""
    try:
        return repr(read_values(named)), ""
    except ConfigurationError as error:
        return "", "".join(traceback.format_exception(error))


@given(
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(SECRET_NAMES), VALUES, max_size=4),
    st.sampled_from(["SASL_SSL", "SSL", "SASL_PLAINTEXT", "PLAINTEXT"]),
    st.sampled_from(["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"]),
)
def test_no_secret_comes_out_of_a_mapping(
    any_names: dict[str, str], secret_names: dict[str, str], protocol: str, mechanism: str
) -> None:
    named = {"security.protocol": protocol, "sasl.mechanism": mechanism, **secret_names}
    result, error = said_of(named)
    assert [each for each in SECRETS if each in result + error] == []
    _, error = said_of({**named, **any_names})
    assert [each for each in SECRETS if each in error] == []


@given(
    st.lists(
        st.sampled_from(
            [
                f"sasl.jaas.config={KAFKA}plain.PlainLoginModule required \\",
                f'  username="alice" password="{SECRET}";',
                f"  password='{SECRET}'",
                f"sasl.password={SECRET}",
                f"sasl.password = \\u{SECRET}",
                f"{SECRET}",
                f"{SECRET}=x",
                "ssl.key.pem=\\",
                *PEM_SECRET.splitlines(),
                "security.protocol=SASL_SSL",
                "sasl.mechanism=PLAIN",
                "group.id=x",
            ]
        ),
        max_size=8,
    )
)
def test_no_secret_comes_out_of_a_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "secrets.properties"
    path.write_text("\n".join(lines))
    heard: list[str] = []
    listening = logging.Handler()
    listening.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("kproto").addHandler(listening)
    try:
        said = repr(from_properties(path))
    except ConfigurationError as error:
        said = "".join(traceback.format_exception(error))
    finally:
        logging.getLogger("kproto").removeHandler(listening)
    assert [each for each in SECRETS if each in said + "".join(heard)] == []
