"""Checks Fetch and ListOffsets requests to brokers before 0.11, and their Fetch responses."""

from __future__ import annotations

from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse, PartitionData
from ...messages.list_offsets_request import ListOffsetsRequest
from ...records import read_batches
from ...wire.errors import ConfigurationError, UnsupportedVersionError

__all__ = ["check_fetch", "check_first_batch_is_whole", "check_list_offsets"]

#: The first versions of Fetch and of ListOffsets that support read_committed (KIP-98).
COMMITTED_FETCH_VERSION: Final = 4
COMMITTED_LIST_VERSION: Final = 2

#: The first version of ListOffsets that finds a record by its timestamp (KIP-79).
LIST_BY_TIME_VERSION: Final = 1

#: The first version of Fetch whose first batch is sent whole, however large it is (KIP-74).
WHOLE_FIRST_BATCH_VERSION: Final = 3

#: Brokers since 0.11 send these bytes to old consumers instead of data that they cannot read, such
#: as transaction markers. The bytes are the offset -1 of a message that is cut off after its
#: offset.
PLACEHOLDER_BATCH: Final = b"\xff" * 8


def check_fetch(request: FetchRequest, version: int) -> None:
    """Raises UnsupportedVersionError if the fetch needs a later version than `version`."""
    if request.isolation_level and version < COMMITTED_FETCH_VERSION:
        raise UnsupportedVersionError(
            f"read_committed needs Fetch v{COMMITTED_FETCH_VERSION} (Kafka 0.11), and this broker "
            f"supports v{version}; it has no transactions: fetch without read_committed"
        )


def check_list_offsets(request: ListOffsetsRequest, version: int) -> None:
    """Raises UnsupportedVersionError if the request needs a later version than `version`."""
    if request.isolation_level and version < COMMITTED_LIST_VERSION:
        raise UnsupportedVersionError(
            f"read_committed needs ListOffsets v{COMMITTED_LIST_VERSION} (Kafka 0.11), and this "
            f"broker supports v{version}; it has no transactions: list without read_committed"
        )
    if version >= LIST_BY_TIME_VERSION:
        return
    for topic in request.topics:
        for part in topic.partitions:
            if part.timestamp >= 0:
                raise UnsupportedVersionError(
                    f"an offset by time needs ListOffsets v{LIST_BY_TIME_VERSION} (Kafka 0.10.1), "
                    f"and this broker supports v{version}, which finds segments, but no records; "
                    f"request 'earliest' or 'latest' of {topic.name}[{part.partition_index}]"
                )


def check_first_batch_is_whole(
    request: FetchRequest, response: FetchResponse, version: int
) -> None:
    """Raises ConfigurationError if `max_partition_fetch_bytes` is too small for a message.

    In Fetch before v3, a broker cuts the first message of a partition if the message is larger than
    `max_partition_fetch_bytes`. A retry would not help, because the broker cuts it again.

    A broker also cuts a message if earlier partitions of the request have filled the response. In
    this case the function removes the message from the response, and a later fetch returns it.
    """
    if version >= WHOLE_FIRST_BATCH_VERSION:
        return
    responses = {
        (answer.topic, data.partition_index): data
        for answer in response.responses
        for data in answer.partitions
    }
    has_records = False
    for topic in request.topics:
        for requested in topic.partitions:
            data = responses.get((topic.topic, requested.partition))
            if data is None:
                continue
            if not _is_truncated(data, requested.fetch_offset):
                has_records = has_records or bool(data.records)
            elif has_records:
                data.records = b""
            else:
                raise ConfigurationError(
                    f"{topic.topic}[{requested.partition}]: the message at offset "
                    f"{requested.fetch_offset} is larger than max_partition_fetch_bytes, which is "
                    f"{requested.partition_max_bytes}, and a broker before Kafka 0.10.1 sends no "
                    "more than that: set a larger max_partition_fetch_bytes"
                )


def _is_truncated(data: PartitionData, offset: int) -> bool:
    """Returns True if the first message did not fit into the response.

    In this case, brokers since 0.11 send no byte of the message, and earlier brokers send a part of
    it.
    """
    records = data.records or b""
    if data.error_code:
        return False
    if not records:
        return data.high_watermark > offset
    return not records.startswith(PLACEHOLDER_BATCH) and next(read_batches(records), None) is None
