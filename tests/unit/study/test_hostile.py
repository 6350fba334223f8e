"""Tests that any bytes yield a tree: without an error, in bounded memory and linear time."""

from __future__ import annotations

import json
import random
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from kproto.messages import FetchResponse, MetadataResponse, ProduceRequest
from kproto.messages.base import Message, Request, Response
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header, encode_response_header
from kproto.records import encode_batch
from kproto.stored.coordinator_records import COORDINATOR_TOPICS
from kproto.stored.metadata_log import METADATA_TOPICS
from kproto.study import (
    annotate,
    annotate_frame,
    annotate_records,
    faults,
    guess,
    nodes,
    to_json,
    to_text,
)
from kproto.study.node import Node
from kproto.testing.instances import Fill, instance
from tests.support.selection import rest_slow, seeds
from tests.unit.messages.catalogue import NAMES, class_of
from tests.unit.messages.test_broken_bytes import mutations

from .agreement import check_every_byte, message_fault

TOPICS = (*COORDINATOR_TOPICS, *METADATA_TOPICS, "greetings", "")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def records(source: random.Random) -> bytes:
    rows = [
        (source.randbytes(source.randrange(9)), source.randbytes(source.randrange(30)), (), 0)
        for _ in range(source.randrange(1, 4))
    ]
    return encode_batch(rows, compression=source.choice(CODECS))


def with_records(source: random.Random) -> tuple[Message, int]:
    """Returns a Produce request or a Fetch response of an internal topic, and its version."""
    topic = source.choice(TOPICS)
    if source.random() < 0.5:
        data = PartitionProduceData(records=records(source))
        sent = ProduceRequest(topic_data=[TopicProduceData(name=topic, partition_data=[data])])
        return sent, 9
    held = PartitionData(records=records(source))
    answer = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[held])])
    return answer, 12


def frames(source: random.Random) -> Iterator[tuple[bytes, type[Message], int]]:
    """Yields an endless series of frames of random requests and responses."""
    classes: list[type[Message]] = [
        cls for cls in map(class_of, NAMES) if issubclass(cls, Request | Response)
    ]
    while True:
        cls = source.choice(classes)
        version = source.choice(list(cls.VALID_VERSIONS))
        message: Message = instance(cls, version, source.choice([Fill.FULL, Fill.LEAST, Fill.LOW]))
        if source.random() < 0.3:
            message, version = with_records(source)
            cls = type(message)
        if issubclass(cls, Request):
            header = encode_request_header(cls, version, 7, "tester")
        else:
            header = encode_response_header(cls, version, 7)
        yield frame(header, message.encode(version)), cls, version


def answer(data: bytes, cls: type[Message], version: int, source: random.Random) -> Node:
    """Returns the tree of the bytes, made by one of the `annotate` functions at random."""
    topic = source.choice(TOPICS)
    match source.randrange(4):
        case 0 if issubclass(cls, Request):
            return annotate_frame(data, records_of=topic)
        case 1:
            return annotate(data, cls, version, records_of=topic)
        case 2:
            return annotate_records(data, records_of=topic)
        case _:
            return annotate_frame(data, cls, version, records_of=topic)


def play(seed: int, count: int) -> None:
    source = random.Random(seed)
    done = 0
    for whole, cls, version in frames(source):
        for data in mutations(whole, source, 8):
            root = answer(data, cls, version, source)
            check_every_byte(root, data)
            if done % 16 == 0:
                json.dumps(to_json(root))
                shown = "".join(to_text(root, width=source.choice([40, 100, 200])))
                assert shown.isprintable()
            if done % 1000 == 0:
                guess(data)
            done += 1
        if done >= count:
            return


@pytest.mark.slow
def test_mutated_frames() -> None:
    play(1, 1500)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", seeds(0, 1, 20))
def test_a_million_mutated_frames(seed: int) -> None:
    play(100 + seed, 50_000)


@pytest.mark.slow
def test_random_bytes() -> None:
    source = random.Random(3)
    for _ in range(1500):
        data = source.randbytes(source.randrange(80))
        check_every_byte(annotate_frame(data), data)
        check_every_byte(annotate_records(data, records_of=source.choice(TOPICS)), data)


def repeated(size: int) -> list[tuple[str, int, bytes]]:
    """Returns several (message, version, bytes); the bytes repeat a small element up to `size`."""
    count, topics = size // 3, size // 6
    many_tags = b"".join(
        (0x80 | tag & 0x7F).to_bytes(1, "big") + (tag >> 7).to_bytes(1, "big") + b"\0"
        for tag in range(1000, 1000 + min(size // 3, 9000))
    )
    number = len(many_tags) // 3
    return [
        ("MetadataRequest", 0, count.to_bytes(4, "big") + b"\0\1a" * count),
        ("OffsetFetchRequest", 0, b"\0\0" + topics.to_bytes(4, "big") + bytes(6) * topics),
        ("ApiVersionsRequest", 3, b"\1\1" + bytes([number & 127 | 128, number >> 7]) + many_tags),
        ("StopReplicaRequest", 1, bytes(13) + (size - 17).to_bytes(4, "big") + bytes(size)),
    ]


def calls(name: str, version: int, data: bytes) -> int:
    """Returns the number of function calls to make the tree; the machine's load has no effect."""
    cls = class_of(name)
    count = 0

    def counted(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event.endswith("call")

    annotate(data, cls, version, max_nodes=1000)  # fills the caches
    sys.setprofile(counted)
    try:
        annotate(data, cls, version, max_nodes=1000)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("index", rest_slow(range(4), 0, 1))
@pytest.mark.slow
def test_work_is_linear(index: int) -> None:
    name, version, small = repeated(6_000)[index]
    _, _, large = repeated(24_000)[index]
    assert calls(name, version, large) < 4.5 * calls(name, version, small)


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    data = (30_000).to_bytes(4, "big") + b"\0\1a" * 30_000
    tracemalloc.start()
    try:
        root = annotate(data, class_of("MetadataRequest"), 0, max_nodes=1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert root.child("topics").left_out > 28_000
    assert peak < 2_000_000


def test_control_characters_of_a_terminal_are_escaped() -> None:
    response = MetadataResponse(cluster_id="\x1b]0;owned\x07\x1b[2J\u202e", brokers=[])
    root = annotate(response.encode(9), MetadataResponse, 9)
    for width in (40, 100, 200):
        for line in to_text(root, width=width):
            assert line.isprintable()
    batch = encode_batch([(b"\x1b[2J", b"ok\x9b", [("\x1b", b"\x07")], 0)])
    assert all(line.isprintable() for line in to_text(annotate_records(batch)))


def test_a_huge_count_takes_nothing() -> None:
    for count in (b"\x7f\xff\xff\xff", b"\x00\x0f\x42\x40"):
        root = annotate(count + bytes(10), class_of("MetadataRequest"), 0)
        fault = message_fault(root)
        assert fault is not None
        assert fault.path == "topics"
        assert len(list(nodes(root))) < 5
    assert faults(annotate(b"", class_of("MetadataRequest"), 0))
