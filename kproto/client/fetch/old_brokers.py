"""What brokers before 0.11 cannot tell a reader. Plain functions on requests and responses."""

from __future__ import annotations

from typing import Final

from ...messages.fetch_request import FetchRequest
from ...messages.fetch_response import FetchResponse, PartitionData
from ...messages.list_offsets_request import ListOffsetsRequest
from ...records import read_batches
from ...wire.errors import ConfigurationError, UnsupportedVersionError

__all__ = ["check_fetch", "check_first_is_whole", "check_list_offsets"]

#: From these versions of Fetch and ListOffsets on brokers know transactions (KIP-98).
FETCH_COMMITTED: Final = 4
LIST_COMMITTED: Final = 2

#: From this version of ListOffsets on it finds a record by its time (KIP-79).
LIST_BY_TIME: Final = 1

#: From this version of Fetch on the first batch comes whole however large it is (KIP-74).
FIRST_IS_WHOLE: Final = 3

#: What brokers since 0.11 put in place of what an old reader is not to see, such as markers of
#: transactions: the offset -1 of a message that never comes whole.
NOTHING_TO_SEE: Final = b"\xff" * 8


def check_fetch(request: FetchRequest, version: int) -> None:
    """Refuse what a broker that takes no later `version` cannot do: UnsupportedVersionError."""
    if request.isolation_level and version < FETCH_COMMITTED:
        raise UnsupportedVersionError(
            f"read_committed wants Fetch v{FETCH_COMMITTED} (Kafka 0.11), and this broker takes "
            f"v{version}; it has no transactions: read without read_committed"
        )


def check_list_offsets(request: ListOffsetsRequest, version: int) -> None:
    """The same for ListOffsets."""
    if request.isolation_level and version < LIST_COMMITTED:
        raise UnsupportedVersionError(
            f"read_committed wants ListOffsets v{LIST_COMMITTED} (Kafka 0.11), and this broker "
            f"takes v{version}; it has no transactions: ask without read_committed"
        )
    if version >= LIST_BY_TIME:
        return
    for topic in request.topics:
        for part in topic.partitions:
            if part.timestamp >= 0:
                raise UnsupportedVersionError(
                    f"an offset by time wants ListOffsets v{LIST_BY_TIME} (Kafka 0.10.1), and this "
                    f"broker takes v{version}, which knows segments of the log alone; ask for "
                    f"'earliest' or 'latest' of {topic.name}[{part.partition_index}]"
                )


def check_first_is_whole(request: FetchRequest, response: FetchResponse, version: int) -> None:
    """Refuse a partition whose first message was cut, as it would be for ever.

    Brokers fill a response in the order of the request, up to a limit of their own. What was cut
    behind a partition that brought records had no room left: it is taken out of the response, and
    comes with a later fetch. Raises ConfigurationError: `max_partition_fetch_bytes` must be larger.
    """
    if version >= FIRST_IS_WHOLE:
        return
    brought = {
        (answer.topic, data.partition_index): data
        for answer in response.responses
        for data in answer.partitions
    }
    has_records = False
    for topic in request.topics:
        for asked in topic.partitions:
            data = brought.get((topic.topic, asked.partition))
            if data is None:
                continue
            if not _is_cut(data, asked.fetch_offset):
                has_records = has_records or bool(data.records)
            elif has_records:
                data.records = b""
            else:
                raise ConfigurationError(
                    f"{topic.topic}[{asked.partition}]: the message at offset "
                    f"{asked.fetch_offset} is larger than max_partition_fetch_bytes, which is "
                    f"{asked.partition_max_bytes}, and a broker before Kafka 0.10.1 sends no more "
                    "than that: give a larger max_partition_fetch_bytes"
                )


def _is_cut(data: PartitionData, offset: int) -> bool:
    """True where the first message did not fit; brokers since 0.11 send nothing of it."""
    records = data.records or b""
    if data.error_code:
        return False
    if not records:
        return data.high_watermark > offset
    return not records.startswith(NOTHING_TO_SEE) and next(read_batches(records), None) is None
