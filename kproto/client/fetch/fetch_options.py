"""`FetchOptions`: the fetch settings of a consumer, and its offset reset policy."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from ...wire.checks import check_bool, check_whole_number

__all__ = ["DEFAULT_FETCH_OPTIONS", "FETCH_BYTES", "FetchOptions", "OffsetSpec", "ResetPolicy"]

#: The log start, the log end, or a time in ms since 1970: the offset of the first record with a
#: timestamp at or after that time.
OffsetSpec: TypeAlias = Literal["earliest", "latest"] | int

#: The default limit of one partition in a fetch response; a larger first batch is sent whole.
FETCH_BYTES: Final = 1_048_576

#: The largest int32, in bytes or in ms.
_MAX_VALUE: Final = 0x7FFFFFFF

#: The fetches of all brokers together may request `queued_max_bytes` divided by this number. While
#: a response is decoded, its frame and the batches that were cut from the frame are both in memory,
#: and the batches of the previous response may still be buffered: together these have three times
#: the size of a response.
_FETCH_SHARE: Final = 4

#: A response is as large as this number of partitions with `max_partition_fetch_bytes` each. The
#: allocator keeps the memory of such responses for the next ones. Responses of 16 MB need new
#: memory from the system each time: consuming took 10 % more CPU and twice the memory.
_FULL_PARTITIONS: Final = 4

#: A response has room for this many bytes of each partition. For each fetch a broker looks at all
#: partitions, which takes about 2 ms for 1,000 partitions: with responses of 2 MB, consuming from
#: 9,000 partitions took 1.4 times as long.
_PARTITION_BYTES: Final = 2_048


class ResetPolicy(Enum):
    """The new position of a partition whose position is out of range (auto.offset.reset)."""

    EARLIEST = "the start of the log"
    LATEST = "the end of the log; or its start, if the log start has overtaken the position"
    BY_TIME = "the first record at or after a time; or the log start, as for LATEST"
    NONE = "none: the poll raises the error"


class FetchOptions(NamedTuple):
    """The settings of fetch requests, fetched records and polls. Sizes are in bytes."""

    #: The most bytes of one partition in a response; a larger first batch is sent whole.
    max_partition_fetch_bytes: int = FETCH_BYTES
    #: How long a broker delays its response if it has fewer than `fetch_min_bytes`, in ms.
    max_wait_ms: int = 500
    #: Leave out the records of aborted transactions, and those after the last stable offset.
    read_committed: bool = False
    reset_policy: ResetPolicy = ResetPolicy.EARLIEST
    #: A broker delays its response until it has this many bytes, for `max_wait_ms` at most.
    fetch_min_bytes: int = 1
    #: The most bytes of a whole response; a larger first batch is sent whole (KIP-74). See also
    #: `response_limit`.
    fetch_max_bytes: int = 52_428_800
    #: The most bytes of fetches in flight, fetched batches and, with `run`, queued records: one
    #: limit for all partitions of a consumer. librdkafka has the same default.
    queued_max_bytes: int = 67_108_864
    #: The most records that a call of `poll` returns (max.poll.records, with Java's default).
    max_poll_records: int = 500
    #: If a topic that the user names is missing, let brokers with auto.create.topics.enable create
    #: the topic (allow.auto.create.topics). A misspelt name would become a topic: therefore the
    #: default is False, unlike Java's default.
    allow_auto_create_topics: bool = False

    def check(self) -> None:
        """Raises ConfigurationError if a number is out of range for a fetch request."""
        check_whole_number("queued_max_bytes", self.queued_max_bytes, 1)
        check_whole_number("max_poll_records", self.max_poll_records, 1)
        check_bool("allow_auto_create_topics", self.allow_auto_create_topics)
        for name in ("max_partition_fetch_bytes", "fetch_max_bytes"):
            check_whole_number(name, getattr(self, name), 1, _MAX_VALUE)
        for name in ("max_wait_ms", "fetch_min_bytes"):
            check_whole_number(name, getattr(self, name), 0, _MAX_VALUE)

    def response_limit(self, brokers: int, partitions: int) -> int:
        """Returns the maximum size in bytes of a fetch response of one broker.

        The smallest of three limits applies: `fetch_max_bytes`; the broker's share of
        `queued_max_bytes`, which is smaller if there are more `brokers` to fetch from; and the size
        that suits a fetch of so many `partitions`.
        """
        share = self.queued_max_bytes // (_FETCH_SHARE * max(1, brokers))
        suitable = max(
            _FULL_PARTITIONS * self.max_partition_fetch_bytes, _PARTITION_BYTES * partitions
        )
        return max(1, min(self.fetch_max_bytes, share, suitable))

    @property
    def processing_limit(self) -> int:
        """The most bytes of records that `run` queues: half of `queued_max_bytes`.

        At least the other half is left for fetches. A poll adds no list to lists of this size.
        """
        return max(1, self.queued_max_bytes // 2)

    @property
    def decompressed_limit(self) -> int:
        """The most bytes of decompressed batches that are kept and are not being read."""
        return max(1, self.queued_max_bytes // 8)


#: The default fetch options.
DEFAULT_FETCH_OPTIONS: Final = FetchOptions()
