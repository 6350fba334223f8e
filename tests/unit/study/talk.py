"""Provides conversations for tests: the frames of a client's requests and a broker's responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kproto.protocol.connection import ClientConnection, ServerConnection

Step = tuple[Request[Any], Response | None, int]

STEPS: Sequence[Step] = (
    (
        ApiVersionsRequest(client_software_name="t", client_software_version="1"),
        ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=13)]),
        3,
    ),
    (
        MetadataRequest(topics=[]),
        MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b1", port=9092)]),
        12,
    ),
    (
        ProduceRequest(
            acks=-1,
            topic_data=[
                TopicProduceData(
                    name="t", partition_data=[PartitionProduceData(records=b"\0\1\2" * 40)]
                )
            ],
        ),
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="t", partition_responses=[PartitionProduceResponse(error_code=6)]
                )
            ]
        ),
        9,
    ),
    (
        FetchRequest(),
        FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic="t",
                    partitions=[
                        PartitionData(error_code=1, records=None),
                        PartitionData(error_code=1, records=b"\0\0\0\5" * 30),
                    ],
                )
            ]
        ),
        12,
    ),
)


def frames(steps: Sequence[Step] = STEPS, times: int = 1) -> list[tuple[bytes, bytes]]:
    """Returns (request frame, response frame) for each step.

    The response frame is empty if the step has no response.
    """
    client, server = ClientConnection("me"), ServerConnection()
    pairs = []
    for request, response, version in [*steps] * times:
        _, asked = client.send(request, version)
        received = server.receive(asked[4:])
        answer = b"" if response is None else server.send(received, response)
        pairs.append((asked, answer))
    return pairs
