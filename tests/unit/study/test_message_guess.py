"""Tests guesses: the right message is among the first guesses, and each guess has right reasons."""

from __future__ import annotations

import random

import pytest

from kproto.messages import (
    FetchResponse,
    FindCoordinatorResponse,
    HeartbeatRequest,
    JoinGroupResponse,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceResponse,
)
from kproto.messages.base import Message, Request
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header, encode_response_header
from kproto.records import encode_batch
from kproto.study import guess
from kproto.study.message_guess import MAX_GUESSED_BYTES, MAX_GUESSED_NODES
from kproto.testing.instances import Fill, instance
from kproto.wire.errors import ConfigurationError
from tests.support.selection import rest_slow
from tests.unit.messages.catalogue import NAMES, class_of

NOW = 1_700_000_000_000

#: Responses as brokers send them, each with its version.
ANSWERS: list[tuple[Message, int]] = [
    (
        MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="broker-1", port=9092)],
            cluster_id="5L6g3nShT-eMCtK--X86sw",
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="greetings",
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                        )
                    ],
                )
            ],
        ),
        9,
    ),
    (
        FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic="greetings",
                    partitions=[
                        PartitionData(
                            high_watermark=1, records=encode_batch([(b"k", b"v", (), NOW)])
                        )
                    ],
                )
            ]
        ),
        11,
    ),
    (
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="greetings", partition_responses=[PartitionProduceResponse(base_offset=7)]
                )
            ]
        ),
        9,
    ),
    (
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name="greetings",
                    partitions=[ListOffsetsPartitionResponse(timestamp=NOW, offset=5)],
                )
            ]
        ),
        7,
    ),
    (
        JoinGroupResponse(
            generation_id=1,
            protocol_name="range",
            leader="m",
            member_id="consumer-1",
            members=[JoinGroupResponseMember(member_id="consumer-1", metadata=b"")],
        ),
        5,
    ),
    (
        FindCoordinatorResponse(
            coordinators=[Coordinator(key="billing", node_id=1, host="broker-1", port=9092)]
        ),
        4,
    ),
]


@pytest.mark.parametrize(("message", "version"), ANSWERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("part", rest_slow(["frame", "body", "message"], 0, 1))
@pytest.mark.slow
def test_responses_of_brokers_are_guessed(message: Message, version: int, part: str) -> None:
    data = message.encode(version)
    if part != "body":
        data = encode_response_header(type(message), version, 7) + data
    if part == "frame":
        data = frame(data)
    first = guess(data)[0]
    assert first.message == type(message).__name__
    assert version in first.versions
    assert first.part == part
    assert first.exact
    assert f"all {len(data)} bytes are read" in first.reasons


@pytest.mark.parametrize(
    "name", rest_slow([name for name in NAMES if name.endswith("Request")][::6], 0, 2)
)
@pytest.mark.slow
def test_a_request_with_its_header_is_the_first_guess(name: str) -> None:
    cls = class_of(name)
    assert issubclass(cls, Request)
    version = cls.VALID_VERSIONS[-1]
    content = encode_request_header(cls, version, 7, "tester")
    content += instance(cls, version, Fill.LEAST).encode(version)
    for data in (frame(content), content):
        first = guess(data)[0]
        assert (first.message, first.versions) == (name, (version,))
        assert any(reason.startswith(f"api key {cls.API_KEY} is") for reason in first.reasons)


def test_guesses_are_ranked_and_few() -> None:
    data = HeartbeatRequest(group_id="billing", member_id="consumer-1", generation_id=3).encode(4)
    found = guess(data, most=5)
    assert len(found) <= 5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert "HeartbeatRequest" in [one.message for one in found]


def test_nearest_messages_are_guessed_if_none_reads_all_bytes() -> None:
    data = ANSWERS[0][0].encode(9)
    broken = data[:-3] + b"\xff\xff\xff\xff"
    found = guess(broken)
    assert found
    assert "MetadataResponse" in [one.message for one in found]
    if not found[0].exact:
        assert any(reason.startswith("reads ") for reason in found[0].reasons)


@pytest.mark.slow
def test_any_bytes_are_guessed_at_in_bounded_work() -> None:
    source = random.Random(5)
    for size in (0, 1, 3, 4, 8, 64, 1000):
        for _ in range(2):
            for one in guess(source.randbytes(size)):
                assert one.versions
                assert one.reasons
    assert guess(bytes(100_000)) is not None
    with pytest.raises(ConfigurationError, match="guess accepts at most 4194304"):
        guess(bytes(MAX_GUESSED_BYTES + 1))


@pytest.mark.slow
def test_reason_tells_that_only_the_first_nodes_are_read() -> None:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(MAX_GUESSED_NODES)]
    for found in guess(MetadataRequest(topics=topics).encode(9)):
        assert f"the first {MAX_GUESSED_NODES} nodes are read, without a fault" in found.reasons


def test_keys_of_stored_records_are_guessed() -> None:
    found = guess(bytes.fromhex("0002000762696c6c696e67"))[0]
    assert (found.message, found.part, found.records_of) == (
        "GroupMetadataKey",
        "key",
        "__consumer_offsets",
    )


def test_guesses_are_limited_to_messages_and_a_version() -> None:
    data = MetadataRequest(topics=[]).encode(4)
    names = {found.message for found in guess(data, most=50)}
    assert len(names) > 3
    limited = guess(data, messages=["MetadataRequest"])
    assert {found.message for found in limited} == {"MetadataRequest"}
    assert {version for found in guess(data, version=4) for version in found.versions} == {4}
    assert guess(data, messages=["MetadataRequest"], version=99) == []
