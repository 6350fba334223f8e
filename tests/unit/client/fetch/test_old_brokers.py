"""Tests fetches from brokers before 0.11: unsupported requests, and truncated messages.

A message that does not fit into a response is an error, or is left to a later fetch.
"""

from __future__ import annotations

import pytest

from kproto.client.fetch.old_brokers import (
    check_fetch,
    check_first_batch_is_whole,
    check_list_offsets,
)
from kproto.messages import FetchRequest, FetchResponse, ListOffsetsRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.records import encode_message_set
from kproto.wire.errors import ConfigurationError, UnsupportedVersionError

REQUEST = FetchRequest(
    topics=[
        FetchTopic(
            topic="t",
            partitions=[FetchPartition(partition=0, fetch_offset=7, partition_max_bytes=1_000)],
        )
    ]
)
MESSAGE = encode_message_set([(None, b"v" * 100, (), 0)], magic=0)
MARKER = b"\xff" * 8 + (61).to_bytes(4, "big")


def response_with(
    records: bytes | None, *, high_watermark: int = 8, error_code: int = 0
) -> FetchResponse:
    data = PartitionData(
        partition_index=0, high_watermark=high_watermark, error_code=error_code, records=records
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])


@pytest.mark.parametrize("records", [MESSAGE[:-1], MESSAGE[:5], b"", None])
def test_first_message_beyond_the_fetch_size_raises(records: bytes | None) -> None:
    with pytest.raises(ConfigurationError, match=r"t\[0\]: the message at offset 7 is"):
        check_first_batch_is_whole(REQUEST, response_with(records), 2)
    check_first_batch_is_whole(REQUEST, response_with(records), 3)


@pytest.mark.parametrize("records", [MESSAGE, MESSAGE + MESSAGE[:20], MARKER])
def test_complete_or_pending_first_message_is_no_error(records: bytes) -> None:
    check_first_batch_is_whole(REQUEST, response_with(records), 0)


def test_end_of_the_log_or_an_error_is_no_truncated_message() -> None:
    check_first_batch_is_whole(REQUEST, response_with(b"", high_watermark=7), 0)
    check_first_batch_is_whole(REQUEST, response_with(b"", error_code=6), 0)


@pytest.mark.parametrize("records", [MESSAGE[:-1], MESSAGE[:5], b"", None])
def test_message_cut_off_after_other_partitions_is_fetched_later(records: bytes | None) -> None:
    parts = [FetchPartition(partition=at, fetch_offset=7) for at in (1, 0)]
    asked = FetchRequest(topics=[FetchTopic(topic="t", partitions=parts)])
    answer = response_with(records)
    full = PartitionData(partition_index=1, high_watermark=8, records=MESSAGE)
    answer.responses[0].partitions.append(full)
    check_first_batch_is_whole(asked, answer, 2)
    assert [part.records or b"" for part in answer.responses[0].partitions] == [b"", MESSAGE]
    full.records, full.high_watermark = b"", 7
    with pytest.raises(ConfigurationError, match=r"t\[0\]: the message at offset 7 is"):
        check_first_batch_is_whole(asked, response_with(records), 2)


def test_read_committed_is_refused_at_old_versions() -> None:
    check_fetch(FetchRequest(isolation_level=1), 4)
    check_fetch(FetchRequest(isolation_level=0), 0)
    with pytest.raises(UnsupportedVersionError, match="supports v3"):
        check_fetch(FetchRequest(isolation_level=1), 3)
    with pytest.raises(UnsupportedVersionError, match="supports v1"):
        check_list_offsets(ListOffsetsRequest(isolation_level=1, topics=[]), 1)


@pytest.mark.parametrize(("timestamp", "refused"), [(-1, False), (-2, False), (0, True), (5, True)])
def test_timestamp_lookup_is_refused_at_version_0(timestamp: int, refused: bool) -> None:
    part = ListOffsetsPartition(partition_index=3, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[part])])
    check_list_offsets(request, 1)
    if refused:
        with pytest.raises(UnsupportedVersionError, match=r"of t\[3\]"):
            check_list_offsets(request, 0)
    else:
        check_list_offsets(request, 0)
