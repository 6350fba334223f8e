"""Tests CloudEvents on a real broker with confluent-kafka and Kafka's Java client.

The other clients have no CloudEvents support. The tests compare each record's key, value and
headers, in order, and distinguish null from empty.
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import (
    CloudEvent,
    InvalidEvent,
    KafkaRecord,
    NotAnEvent,
    OpaqueEvent,
    events,
    from_kafka,
    partition_key,
    to_kafka,
)

from kproto import Client, NewTopic
from tests.support.availability import not_available
from tests.support.brokers import RunningKafka
from tools.kafka import VERSIONS
from tools.reference.classes import ReferenceUnavailableError, class_path
from tools.setup.java import java_home

pytestmark = [pytest.mark.kafka, pytest.mark.peers]

SCRIPT = Path(__file__).parent / "peer_scripts" / "records_with_confluent_kafka.py"
TIMEOUT_S = 90

#: Runs another client with these arguments and this standard input; returns its output.
Peer = Callable[[Sequence[str], str], str]

EVENT = CloudEvent(
    id="grün",
    source="/shop?q=1#f",
    type="order.placed",
    time="2018-04-05T03:56:24.10+02:00",
    datacontenttype="application/json; charset=utf-8",
    partitionkey="customer-7",
    n=5,
    data=b'{"total": 1.10}',
)
EMPTY = EVENT.replace(id="empty", datacontenttype=None, data=b"")
NOTHING = EVENT.replace(id="nothing", datacontenttype=None, data=None)
FOREIGN = (("trace", b"1"), ("trace", b""), ("trace", None), ("", b"\x00\xff"), ("grün", b"x"))

#: Events that kproto sends, and the options of `send_event`.
SENT: list[tuple[CloudEvent, dict[str, Any]]] = [
    (EVENT, {}),
    (EVENT, {"mode": "structured", "key": b""}),
    (EVENT, {"mode": "structured", "repeat_attributes": True, "headers": FOREIGN}),
    (EVENT, {"key_mapper": partition_key, "headers": FOREIGN}),
    (EMPTY, {"key": b"k"}),
    (NOTHING, {"key": b"k"}),
    (NOTHING, {"mode": "structured"}),
    (EVENT.to_version("0.3"), {}),
]
#: Records that only another client writes, and the type of kproto's result.
THEIRS: list[tuple[KafkaRecord, type]] = [
    (
        KafkaRecord(
            b"k",
            b"v",
            (
                ("ce_type", b"t"),
                ("mine", None),
                ("ce_specversion", b"1.0"),
                ("ce_subject", None),
                ("ce_id", b"1"),
                ("mine", b""),
                ("ce_source", b"/s"),
                ("ce_datacontenttype", b"a/b"),
            ),
        ),
        CloudEvent,
    ),
    (
        KafkaRecord(
            None,
            b' {"id":"1", "source":"/s","type":"t","specversion":"1.0","data":1e400}\n',
            (("content-type", b"APPLICATION/cloudevents+JSON;charset=UTF-8"), ("x", None)),
        ),
        CloudEvent,
    ),
    (KafkaRecord(b"k", b"\x00", (("content-type", b"application/cloudevents+xml"),)), OpaqueEvent),
    (KafkaRecord(None, b"", (("ce_specversion", b"9.9"),)), OpaqueEvent),
    (KafkaRecord(b"k", None, ()), NotAnEvent),
    (KafkaRecord(None, b"", (("content-type", b"text/plain"),)), NotAnEvent),
    (KafkaRecord(None, b"v", (("ce_specversion", b"1.0"),)), InvalidEvent),
]


# --- the other clients --------------------------------------------------------------------------


@pytest.fixture(params=["confluent-kafka", "Java"])
def peer(request: pytest.FixtureRequest, kafka: RunningKafka, peers_python: Path) -> Peer:
    """Returns a function that runs confluent-kafka, or Java's client of the broker's release."""
    if request.param == "confluent-kafka":
        command = [str(peers_python), str(SCRIPT)]
    else:
        release = kafka.version if kafka.version in VERSIONS else VERSIONS[0]
        try:
            command = [str(java_home() / "bin" / "java"), "-cp", class_path(release), "Client"]
        except ReferenceUnavailableError as error:
            not_available("Kafka's Java client", error)

    def run(arguments: Sequence[str], given: str) -> str:
        done = subprocess.run(
            [*command, kafka.bootstrap, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


def encoded(part: bytes | None) -> str:
    return "-" if part is None else "=" + base64.b64encode(part).decode()


def line_of(record: KafkaRecord) -> str:
    pairs = [f"{encoded(name.encode())}:{encoded(value)}" for name, value in record.headers]
    return " ".join([encoded(record.key), encoded(record.value), *pairs])


async def new_topic(client: Client) -> str:
    name = f"events-{uuid.uuid4().hex[:8]}"
    await client.create_topics(NewTopic(name, 1, 1))
    await client.topic(name)
    return name


# --- the tests ----------------------------------------------------------------------------------


async def test_another_client_reads_the_expected_records(kafka: RunningKafka, peer: Peer) -> None:
    async with Client(kafka.bootstrap) as client:
        topic = await new_topic(client)
        async with client.producer() as producer:
            for event, options in SENT:
                await producer.send_event(topic, event, **options)
            for record, outcome in THEIRS:
                if outcome in (OpaqueEvent, NotAnEvent):
                    await producer.send_event(topic, from_kafka(*record))
        forwarded = [record for record, kind in THEIRS if kind in (OpaqueEvent, NotAnEvent)]
        expected = [to_kafka(event, **options) for event, options in SENT] + forwarded
        found = peer([topic, "read", str(len(expected))], "").splitlines()
        assert found == [line_of(record) for record in expected]
        # kproto reads the same events.
        stream = events(client.consumer(topic, stop_at_end=True))
        outcomes = [received.outcome async for received in stream]
        for (event, _), ours in zip(SENT, outcomes, strict=False):
            assert ours == event
        await client.delete_topics(topic)


async def test_events_of_another_client_are_read(kafka: RunningKafka, peer: Peer) -> None:
    records = [*THEIRS, *((to_kafka(event, **options), CloudEvent) for event, options in SENT)]
    async with Client(kafka.bootstrap) as client:
        topic = await new_topic(client)
        offsets = peer([topic, "write"], "".join(line_of(record) + "\n" for record, _ in records))
        assert [int(offset) for offset in offsets.split()] == list(range(len(records)))
        stream = events(client.consumer(topic, start="earliest", stop_at_end=True))
        found = [received async for received in stream]
        assert [received.record.offset for received in found] == list(range(len(records)))
        for received, (record, kind) in zip(found, records, strict=True):
            outcome = received.outcome
            assert type(outcome) is kind
            if isinstance(outcome, InvalidEvent):
                assert outcome.record == record
            else:
                assert to_kafka(outcome) == record
        for received, (event, _) in zip(found[len(THEIRS) :], SENT, strict=True):
            assert received.outcome == event
        await client.delete_topics(topic)
