"""Compares how Java's consumer and kproto's consumer read the records that a real broker stores.

The test sends the batches in Produce requests, without a producer. The embedded broker must accept
and refuse the same batches as the real broker.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import subprocess

import pytest

from kproto import Client, Record, UnreadableRecordError
from kproto.records.header_block import decode_as_java
from kproto.records.varints import encode_varint
from tests.kafka.odd_batches import OddBatch, odd_batches
from tests.support.brokers import RunningKafka
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import RawConnection
from tests.support.raw_topic import RawTopic
from tests.unit.records.batches import batch_bytes, record_bytes
from tools.reference import KafkaJavaProgram
from tools.reference.classes import class_path
from tools.reference.records import read
from tools.setup.java import java_home

pytestmark = [pytest.mark.slow, pytest.mark.reference]

JAVA_TIMEOUT_S = 90.0


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 400), pytest.param(2, 5_000, marks=pytest.mark.exhaustive)]
)
def test_odd_batches_are_stored_and_read_as_by_kafka(
    kafka: RunningKafka, topic_name: str, seed: int, count: int
) -> None:
    batches = odd_batches(seed, count)
    if kafka.version.startswith("3."):
        # Kafka 3.9 does not refuse negative lengths of compressed records, 4.4 does.
        batches = [batch for batch in batches if "record length -" not in batch.shape]
    stored: list[OddBatch] = []
    differences: list[str] = []
    with (
        RawConnection(kafka.bootstrap) as connection,
        threaded_broker() as embedded,
        RawConnection(embedded.bootstrap) as to_embedded,
    ):
        topic = RawTopic.create(connection, topic_name)
        ours = RawTopic.create(to_embedded, topic_name)
        for batch in batches:
            expected, found = topic.produce(batch.data).error, ours.produce(batch.data).error
            if (expected == "NONE") != (found == "NONE"):
                differences.append(f"{batch.shape}: Kafka {expected}, embedded broker {found}")
            if expected == "NONE":
                stored.append(batch)
        assert differences == []
        assert len(stored) > len(batches) // 3
        records, errors = asyncio.run(read_all(kafka.bootstrap, topic_name))
        refused = refused_by_java(stored)
        broken = broken_batches(stored, errors)
        assert broken == refused
        assert errors, "the broker has stored unreadable records"
        # Java's consumer cannot read past an unreadable record, so it reads the other batches.
        readable = RawTopic.create(connection, f"{topic_name}-readable")
        for number, batch in enumerate(stored):
            if number not in refused:
                readable.append(batch.data)
    again, no_errors = asyncio.run(read_all(kafka.bootstrap, readable.name))
    assert no_errors == []
    assert read_by_java(kafka, readable.name, len(again)) == [line_of(record) for record in again]
    assert len(records) >= len(again)


def test_offsets_outside_of_a_batch_are_stored_only_without_compression(
    kafka: RunningKafka, topic_name: str
) -> None:
    """Both brokers store the same batches; only the misplaced records are unreadable."""
    deltas = (-(2**31), -1, 0, 2, 3, 1000, 2**31 - 1)
    with threaded_broker() as embedded:
        for bootstrap in (kafka.bootstrap, embedded.bootstrap):
            with RawConnection(bootstrap) as connection:
                topic = RawTopic.create(connection, topic_name)
                for delta in deltas:
                    payload = b"".join(
                        record_bytes(offset_delta=encode_varint(each)) for each in (0, delta, 2)
                    )
                    plain = batch_bytes(payload, record_count=3, last_offset_delta=2)
                    packed = batch_bytes(
                        gzip.compress(payload), attributes=1, record_count=3, last_offset_delta=2
                    )
                    assert topic.produce(plain).error == "NONE"
                    assert topic.produce(packed).error != "NONE"
            records, errors = asyncio.run(read_all(bootstrap, topic_name))
            count = 3 * len(deltas)
            assert [error.record_offset for error in errors] == [*range(1, count, 3)]
            assert [record.offset for record in records] == [
                offset for offset in range(count) if offset % 3 != 1
            ]


async def read_all(bootstrap: str, topic: str) -> tuple[list[Record], list[UnreadableRecordError]]:
    """Returns all records of a topic, and the errors of unreadable records, in order."""
    records: list[Record] = []
    errors: list[UnreadableRecordError] = []
    async with Client(bootstrap) as client, client.consumer(topic, stop_at_end=True) as consumer:
        iteration = consumer.record_lists()
        while True:
            try:
                records += (await anext(iteration)).records
            except UnreadableRecordError as error:
                errors.append(error)
            except StopAsyncIteration:
                break
    offsets = [record.offset for record in records] + [error.record_offset for error in errors]
    assert len(set(offsets)) == len(offsets)
    return records, errors


def broken_batches(stored: list[OddBatch], errors: list[UnreadableRecordError]) -> set[int]:
    """Returns the indexes of the batches that have an unreadable record."""
    found = set()
    base_offset = 0
    unreadable = {error.record_offset for error in errors}
    for number, batch in enumerate(stored):
        next_offset = base_offset + int.from_bytes(batch.data[57:61], "big")
        if unreadable & set(range(base_offset, next_offset)):
            found.add(number)
        base_offset = next_offset
    return found


def refused_by_java(stored: list[OddBatch]) -> set[int]:
    """Returns the indexes of the batches that Java's MemoryRecords refuses.

    Java's consumer reads batches by MemoryRecords.
    """
    with KafkaJavaProgram("4.4.0") as program:
        described = read(program, [batch.data for batch in stored])
        return {number for number, each in enumerate(described) if each.error is not None}


def read_by_java(kafka: RunningKafka, topic: str, count: int) -> list[str]:
    java = str(java_home() / "bin" / "java")
    done = subprocess.run(
        [java, "-cp", class_path("4.4.0"), "Client", kafka.bootstrap, topic, "read", str(count)],
        capture_output=True,
        text=True,
        timeout=JAVA_TIMEOUT_S,
        check=True,
    )
    return done.stdout.splitlines()


def line_of(record: Record) -> str:
    """Returns a record in the format of tools/reference/java/Client.java."""
    headers = [f"{encoded(java_name(name))}:{encoded(value)}" for name, value in record.headers]
    return " ".join([encoded(record.key), encoded(record.value), *headers])


def java_name(name: str) -> bytes:
    """Returns a header name as Java writes it: U+FFFD for bytes that are not UTF-8."""
    return decode_as_java(name.encode("utf-8", "surrogateescape")).encode()


def encoded(content: bytes | None) -> str:
    return "-" if content is None else "=" + base64.b64encode(content).decode()
