"""The settings of a producer, with their defaults and the reasons for the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...records import codec_for_name
from ...records.new_record import MAX_INT32
from ...wire.checks import check_bool, check_least, check_whole_number
from ...wire.errors import ConfigurationError
from .partitioner import PARTITIONER_NAMES, Partitioner, PartitionerName

__all__ = [
    "ACKS_ALL",
    "REMEMBERED_BATCHES",
    "CompressionName",
    "ProducerSettings",
    "RequiredAcks",
]

CompressionName: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]

#: The replicas whose acks a producer awaits: all in-sync replicas ("all" or -1), the leader (1), or
#: none (0).
RequiredAcks: TypeAlias = Literal["all", -1, 0, 1]

_REQUIRED_ACKS: Final = {"all": -1, "-1": -1, "1": 1, "0": 0}

#: The number of batches that a broker remembers of a producer, to detect duplicates (KIP-98).
REMEMBERED_BATCHES: Final = 5

#: The number in a Produce request for acks by all in-sync replicas.
ACKS_ALL: Final = -1

#: The longest string of the protocol (int16).
_MAX_ID_BYTES: Final = 0x7FFF

_LEAST: Final = {
    "batch_bytes": 1,
    "buffer_bytes": 1,
    "linger_ms": 0,
    "max_in_flight": 1,
    "transaction_timeout_ms": 1,
}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of a producer. Times are in ms, sizes in bytes.

    Raises ConfigurationError for a setting that cannot work, MissingCodecError for a compression
    whose package is not installed.
    """

    #: The codec of batches (compression.type).
    compression: CompressionName = "none"
    #: The largest batch before compression (batch.size): brokers refuse a batch of more than
    #: 1,048,588 bytes by default (max.message.bytes). A larger record is sent in a batch of its
    #: own.
    batch_bytes: int = 1_000_000
    #: While more bytes of records than this wait for their acks, further calls wait
    #: (buffer.memory).
    buffer_bytes: int = 33_554_432
    #: The most bytes of failed records that the producer keeps until `flush` or `close` raises
    #: their failures: records of `enqueue` and `send_batch` whose deliveries no caller has awaited.
    #: Beyond this limit the oldest records are dropped: a warning and `DeliveryError.dropped`
    #: report how many. None means the value of `buffer_bytes`; both limits count encoded bytes, so
    #: if all buffered records fail, none is dropped. 0 keeps no failed record. Besides its encoded
    #: bytes, a failed record of `enqueue` needs about 100 bytes of memory.
    undelivered_bytes: int | None = None
    #: How long a batch that is not full waits for more records (linger.ms).
    linger_ms: int = 0
    #: The most requests in flight to one broker (max.in.flight.requests.per.connection): at most 5
    #: with idempotence, because brokers remember only 5 batches of a producer. Without idempotence
    #: at most one batch of each partition is in flight.
    max_in_flight: int = REMEMBERED_BATCHES
    #: True if retries must store no record twice (enable.idempotence); requires `acks` all. None
    #: means True, unless `acks` is 0 or 1, or the brokers are older than Kafka 0.11 and have no
    #: producer ids.
    idempotent: bool | None = None
    #: The replicas that must have a record before it is acked (acks). "all" or -1: all in-sync
    #: replicas. 1: the leader alone, so an acked record is lost if the leader fails before a
    #: follower has it. 0: none; the broker sends no response, so records are lost without an error
    #: if the broker refuses them or the connection is lost, and acks have offset -1.
    acks: RequiredAcks = "all"
    #: Chooses the partition of a record that names none (partitioner). A name is one of
    #: librdkafka's names: `murmur2_random` (the default of Java's client), `consistent_random` (the
    #: default of librdkafka) and `fnv1a_random`; `murmur2`, `consistent` and `fnv1a`, which hash a
    #: missing key as an empty key; and `random`. A function gets the topic, the key, all partitions
    #: and those with a leader, and returns a partition; its errors are raised as EncodeError. The
    #: function is called in the event loop's thread for each record.
    partitioner: PartitionerName | Partitioner = "murmur2_random"
    #: Let brokers with auto.create.topics.enable create missing topics. A misspelt name would
    #: become a topic: therefore the default is False. Java's producer has no such setting: it
    #: always lets brokers create topics.
    allow_auto_create_topics: bool = False
    #: The name under which the producer has transactions (transactional.id, KIP-98). Each running
    #: producer needs an id of its own, which must stay the same after a restart: a new producer
    #: with the id fences the earlier one, and aborts its open transaction.
    transactional_id: str | None = None
    #: The longest time from the begin of a transaction to its end (transaction.timeout.ms): after
    #: this time the broker aborts the transaction. Brokers limit this setting to
    #: transaction.max.timeout.ms, 15 minutes by default.
    transaction_timeout_ms: int = 60_000
    #: True if transactions may be prepared (transaction.two.phase.commit.enable, KIP-939): they
    #: then never time out, and a new producer with the id does not abort the open transaction of
    #: the earlier one. An unstable API: `ClientSettings.unstable_versions` must be True.
    two_phase_commit: bool = False

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_whole_number("undelivered_bytes", self.max_undelivered_bytes, 0)
        check_bool("allow_auto_create_topics", self.allow_auto_create_topics)
        if self.idempotent is not None and not isinstance(self.idempotent, bool):
            raise ConfigurationError(
                f"idempotent is {self.idempotent!r:.80}; it is True, False or None"
            )
        if isinstance(self.acks, bool) or str(self.acks) not in _REQUIRED_ACKS:
            raise ConfigurationError(f"acks is {self.acks!r:.80}; it is 'all', -1, 1 or 0")
        if self.idempotent and self.required_acks != ACKS_ALL:
            raise ConfigurationError(
                f"acks is {self.acks}, and idempotent is True: an idempotent producer needs acks "
                "from all in-sync replicas. Set acks='all', or leave out idempotent"
            )
        check_bool("two_phase_commit", self.two_phase_commit)
        self._check_transactional_id()
        if self.partitioner not in PARTITIONER_NAMES and not callable(self.partitioner):
            raise ConfigurationError(
                f"partitioner is {self.partitioner!r:.80}; it is a function, or one of "
                f"{', '.join(PARTITIONER_NAMES)}"
            )
        codec = codec_for_name(self.compression)
        codec.compress(b"", codec.default_level)  # a missing package is an error now, not later

    @property
    def max_undelivered_bytes(self) -> int:
        """`undelivered_bytes`, or `buffer_bytes` if it is None."""
        return self.buffer_bytes if self.undelivered_bytes is None else self.undelivered_bytes

    def _check_transactional_id(self) -> None:
        """Raises ConfigurationError for an invalid id, and for settings without idempotence."""
        check_whole_number("transaction_timeout_ms", self.transaction_timeout_ms, 1, MAX_INT32)
        given: object = self.transactional_id
        if given is None:
            if self.two_phase_commit:
                raise ConfigurationError("two_phase_commit is True; it needs a transactional_id")
            return
        if isinstance(given, str) and len(given.encode(errors="replace")) > _MAX_ID_BYTES:
            raise ConfigurationError(
                f"transactional_id has {len(given)} characters: it must have at most "
                f"{_MAX_ID_BYTES} bytes"
            )
        if not isinstance(given, str) or not given:
            raise ConfigurationError(
                f"transactional_id is {given!r:.80}; it is a name that is not empty, or None"
            )
        for name, is_wrong, value in (
            ("idempotent", self.idempotent is False, self.idempotent),
            ("acks", self.required_acks != ACKS_ALL, self.acks),
        ):
            if is_wrong:
                raise ConfigurationError(
                    f"{name} is {value}, and transactional_id is {given!r}: transactions need an "
                    f"idempotent producer with acks from all in-sync replicas. Leave out {name}"
                )

    @property
    def required_acks(self) -> int:
        """`acks` as the number in a Produce request: -1 for all."""
        return _REQUIRED_ACKS[str(self.acks)]
