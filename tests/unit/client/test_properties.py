"""Tests `Client.from_properties`: settings, overrides, and defaults of producers and consumers."""

from __future__ import annotations

import ssl
import struct
import traceback
from pathlib import Path
from typing import Any

import pytest
import trustme

from kproto import AuthenticationError, Client, ClientSettings, ConfigurationError
from kproto.broker import Broker
from kproto.client.commits.errors import NoCommittedOffsetError
from kproto.client.properties import client_arguments
from kproto.messages import DescribeGroupsRequest
from kproto.security import Plain, Tls
from kproto.testing.clock import ManualClock
from tests.unit.client.secured_broker import SECRET, SecuredBroker, client_ca, server_tls

SECURED = {
    "bootstrap.servers": "b1:9093,b2:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "hunter2",
    "ssl.endpoint.identification.algorithm": "",
    "request.timeout.ms": "7",
}


def test_tls_and_sasl_properties_become_settings(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in SECURED.items()))
    for source in (SECURED, path, str(path)):
        client = Client.from_properties(source)
        assert client.settings == ClientSettings(
            request_timeout_ms=7,
            tls=Tls(check_hostname=False),
            sasl=Plain("alice", "hunter2"),
        )
        assert "hunter" not in repr(client.settings) + repr(client)


def test_arguments_override_the_properties() -> None:
    context = ssl.create_default_context()
    wrong = {**SECURED, "sasl.mechanism": "AWS_MSK_IAM", "ssl.truststore.location": "trust.jks"}
    arguments = client_arguments(
        wrong, {"bootstrap": "c:1", "tls": context, "sasl": Plain("a", "b"), "client_id": "me"}
    )
    assert arguments.bootstrap == "c:1"
    assert arguments.settings == ClientSettings(
        client_id="me", request_timeout_ms=7, tls=context, sasl=Plain("a", "b")
    )


@pytest.mark.parametrize(
    ("properties", "overrides", "words"),
    [
        ({}, {}, "^the properties have no bootstrap.servers"),
        ({}, {"bootstrap": "a:b"}, "is no address of a broker"),
        (SECURED, {"client": "x"}, "^ClientSettings has no 'client'; the nearest: client_id"),
        (SECURED, {"request_timeout_ms": 0}, "^request_timeout_ms is 0"),
        ({**SECURED, "linger": 1}, {}, "no client of Kafka has; the nearest: linger.ms"),
    ],
)
def test_wrong_property_or_argument_is_refused(
    properties: dict[str, str], overrides: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Client.from_properties(properties, clock=ManualClock(), **overrides)


def codecs(batches: bytes) -> list[int]:
    """Returns the compression codec of each batch, from the batch attributes."""
    found = []
    while batches:
        (length,) = struct.unpack_from(">i", batches, 8)
        found.append(struct.unpack_from(">h", batches, 21)[0] & 7)
        batches = batches[12 + length :]
    return found


async def test_properties_are_defaults_of_producers_and_consumers() -> None:
    async with Broker() as broker:
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": "gzip",
            "auto.offset.reset": "latest",
            "batch.size": "0",
        }
        with pytest.raises(ConfigurationError, match=r"batch\.size is '0'"):
            Client.from_properties(properties)
        del properties["batch.size"]
        async with Client.from_properties(properties) as client:
            await client.create_topics("greetings")
            async with client.producer() as producer, client.producer(compression="none") as plain:
                await producer.send("greetings", b"a" * 1000)
                await plain.send("greetings", b"b" * 1000)
            fetched = await client.fetch("greetings", 0, 0)
            assert codecs(fetched.records) == [1, 0]  # gzip, none
            here = [record async for record in client.consumer("greetings", stop_at_end=True)]
            assert here == []
            consumer = client.consumer("greetings", start="earliest", stop_at_end=True)
            assert len([record async for record in consumer]) == 2


async def test_consumers_join_the_group_of_the_properties() -> None:
    async with Broker() as broker:
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "billing",
            "group.instance.id": "till-1",
            "group.protocol": "classic",
            "enable.auto.commit": False,
            "auto.offset.reset": "none",
        }
        async with Client.from_properties(properties) as client:
            await client.create_topics("orders")
            async with client.producer() as producer:
                await producer.send("orders", b"one")
            alone = client.consumer("orders", group=None, stop_at_end=True)
            assert [record.value async for record in alone] == [b"one"]
            with pytest.raises(ConfigurationError, match=r"\(billing\) has no end.* group=None$"):
                client.consumer("orders", stop_at_end=True)
            for group in ("billing", "shipping"):
                options: dict[str, Any] = {} if group == "billing" else {"group": group}
                consumer: Any = client.consumer("orders", **options)
                async with consumer:
                    with pytest.raises(NoCommittedOffsetError, match=group):
                        await anext(aiter(consumer))
                answer = await client.request(DescribeGroupsRequest(groups=[group]))
                (member,) = answer.groups[0].members
                assert member.group_instance_id == "till-1"
                assert answer.groups[0].protocol_type == "consumer"


async def test_member_properties_are_checked_with_a_group_only() -> None:
    async with Broker() as broker:
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "session.timeout.ms": 7000,
            "heartbeat.interval.ms": 7000,
        }
        async with Client.from_properties(properties) as client:
            await client.create_topics("orders")
            consumer = client.consumer("orders", stop_at_end=True)
            assert [record async for record in consumer] == []
            with pytest.raises(ConfigurationError, match="heartbeat_interval_ms is 7000"):
                client.consumer("orders", group="billing")
            client.consumer("orders", group="billing", heartbeat_interval_ms=2000)


KAFKA = "org.apache.kafka.common.security."

#: Property files as vendors offer them, without the address; tests fill in {secret}, {token}, {ca}.
FILES = {
    "PLAIN": f"""
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={KAFKA}plain.PlainLoginModule required username="alice" password="{{secret}}";
ssl.truststore.type=PEM
ssl.truststore.certificates={{ca}}
""",
    "SCRAM-SHA-512": f"""
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={KAFKA}scram.ScramLoginModule required \\
    username="alice" \\
    password="{{secret}}";
ssl.ca.pem={{ca}}
""",
    "SCRAM-SHA-256": """
security.protocol=sasl_ssl
sasl.mechanisms=SCRAM-SHA-256
sasl.username=alice
sasl.password={secret}
ssl.ca.pem={ca}
""",
    "OAUTHBEARER": """
security.protocol=SASL_SSL
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.token.endpoint.url={token}
ssl.truststore.type=PEM
ssl.truststore.certificates={ca}
""",
}


@pytest.mark.parametrize("mechanism", FILES)
@pytest.mark.parametrize("secret", [SECRET, "wrong-4711"])
async def test_unchanged_vendor_file_connects(
    mechanism: str, secret: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = trustme.CA()
    token = tmp_path / "token"
    token.write_text(secret)
    path = tmp_path / "client.properties"
    inline = client_ca(ca).replace("\n", " ")  # PEM in one line, which Java clients accept
    words = FILES[mechanism].format(secret=secret, token=token.as_uri(), ca=inline)
    async with SecuredBroker(
        {"greetings": 1}, tls=server_tls(ca, "127.0.0.1"), mechanisms=(mechanism,)
    ) as broker:
        path.write_text(f"bootstrap.servers={broker.bootstrap}\n{words}")
        client = Client.from_properties(path)
        if secret == SECRET:
            async with client:
                assert client.cluster.cluster_id == "scripted"
        else:
            with pytest.raises(AuthenticationError, match="refused") as caught:
                await client.__aenter__()
            assert secret not in "".join(traceback.format_exception(caught.value))
        assert broker.authentications == (secret == SECRET)
    assert secret not in caplog.text + repr(client.settings)


@pytest.mark.parametrize(
    ("name", "value", "config"),
    [
        ("auto.offset.reset", "earliest", "share.auto.offset.reset"),
        ("auto.offset.reset", "by_duration:PT1H", "share.auto.offset.reset"),
        ("auto.offset.reset", "latest", None),
        ("isolation.level", "read_committed", "share.isolation.level"),
        ("isolation.level", "read_uncommitted", None),
    ],
)
def test_share_consumer_warns_of_properties_that_are_configs_of_its_group(
    name: str, value: str, config: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client.from_properties({"bootstrap.servers": "b1:1", "group.id": "g", name: value})
    caplog.clear()
    client.share_consumer("jobs")
    lines = [each.getMessage() for each in caplog.records]
    words = f"the property {name} has no effect on a share group: set the config {config} of the"
    assert lines == ([] if config is None else [f"group g: {words} group"])
