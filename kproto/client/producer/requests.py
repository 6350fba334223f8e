"""Encodes batches, builds their Produce requests, and reads the responses. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ...messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from ...messages.produce_response import PartitionProduceResponse, ProduceResponse
from ...protocol.error_codes import code_of, error_of_code
from ...records import encode_message_set
from ...wire.errors import BrokerResponseError, EncodeError
from ...wire.faults import WireFault
from ...wire.uuid import ZERO_UUID, Uuid
from ...wire.writing import write_bytes, write_compact_bytes
from ..metadata.cluster import LeaderHint, TopicPartition
from ..release import MAGIC_OF_BATCHES
from .batch import ProducerBatch
from .settings import ACKS_ALL

__all__ = [
    "ProduceRequestTemplate",
    "encode_batch",
    "highest_produce_version",
    "invalid_records",
    "leader_hints",
    "partition_responses",
    "produce_error",
    "produce_request",
]

#: From this version on, Produce names topics by id alone (KIP-516).
_BY_TOPIC_ID: Final = 13

#: From this version on, leaders add the partitions of a Produce to its transaction (KIP-890).
_ADDS_PARTITIONS: Final = 12

#: The broker has stored the records, by this attempt or an earlier one.
_STORED: Final = frozenset({0, code_of("DUPLICATE_SEQUENCE_NUMBER")})


def encode_batch(
    batch: ProducerBatch,
    compression: str,
    magic: int = MAGIC_OF_BATCHES,
    *,
    is_transactional: bool = False,
) -> None:
    """Encodes the records of a batch as its `data`, unless they are encoded already.

    A message set, of a `magic` before 2, has no sequence. Raises MissingCodecError. For a message
    set also raises EncodeError if a record has headers, and ConfigurationError for zstd.
    """
    if batch.data is not None and batch.magic == magic:
        return
    batch.magic = magic
    if magic < MAGIC_OF_BATCHES:
        records = [
            (each.key, each.value, each.headers, each.timestamp) for each in batch.content.records()
        ]
        batch.data = encode_message_set(records, magic=magic, compression=compression)
    else:
        batch.data = batch.content.build(
            compression=compression,
            producer_id=batch.identity.producer_id,
            producer_epoch=batch.identity.producer_epoch,
            base_sequence=batch.sequence,
            is_transactional=is_transactional,
        )


def produce_request(
    batches: Sequence[ProducerBatch],
    ids: dict[str, Uuid],
    timeout_ms: int,
    acks: int = ACKS_ALL,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Returns the request for `batches` of different partitions; `ids` maps topic names to ids."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for batch in batches:
        data = PartitionProduceData(index=batch.partition, records=batch.data)
        topics.setdefault(batch.topic, []).append(data)
    topic_data = [
        TopicProduceData(name=name, topic_id=ids.get(name, ZERO_UUID), partition_data=partitions)
        for name, partitions in topics.items()
    ]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=topic_data,
    )


class ProduceRequestTemplate:
    """The bytes around the batch in a Produce request for one batch, in one `version`.

    These bytes are encoded once, because they are the same for all batches of a partition, until
    the topic id changes. `ids` maps the topic's name to the topic id.
    """

    __slots__ = ("_prefix", "_suffix", "_write", "ids", "topic_id", "version")

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: Uuid,
        timeout_ms: int,
        version: int,
        acks: int = ACKS_ALL,
        transactional_id: str | None = None,
    ) -> None:
        def encoded(records: bytes | None) -> bytes:
            data = PartitionProduceData(index=partition, records=records)
            topic_data = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])]
            request = ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=timeout_ms,
                topic_data=topic_data,
            )
            return request.encode(version)

        self.version = version
        self.topic_id = topic_id
        self.ids = {topic: topic_id}
        is_flexible = version in ProduceRequest.FLEXIBLE_VERSIONS
        self._write = write_compact_bytes if is_flexible else write_bytes
        # The two encodings begin to differ at the length of the records.
        empty = encoded(b"")
        both = enumerate(zip(empty, encoded(None), strict=True))
        at = next(at for at, (one, other) in both if one != other)
        self._prefix = empty[:at]
        length: list[bytes] = []
        self._write(length.append, b"")
        self._suffix = empty[at + len(b"".join(length)) :]

    def encode(self, records: bytes) -> list[bytes]:
        """Returns the encoded request with the batch `records`, in pieces.

        Raises EncodeError for a batch over 2 GiB.
        """
        pieces = [self._prefix]
        try:
            self._write(pieces.append, records)
        except WireFault:
            raise EncodeError(
                f"a batch of {len(records)} bytes is too large for a Produce"
            ) from None
        pieces.append(self._suffix)
        return pieces


def highest_produce_version(ids: Iterable[Uuid], *, adds_partitions: bool = True) -> int:
    """Returns the highest usable version of Produce: 12 if a topic id in `ids` is zero, else 13.

    Returns 11 if `adds_partitions` is False: from v12 on, a transactional Produce adds its
    partitions to the transaction (KIP-890).
    """
    if not adds_partitions:
        return _ADDS_PARTITIONS - 1
    return _BY_TOPIC_ID - 1 if ZERO_UUID in ids else _BY_TOPIC_ID


def partition_responses(
    response: ProduceResponse, ids: dict[str, Uuid]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """Returns the result of each partition in a response; `ids` maps topic names to topic ids."""
    names = {topic_id: name for name, topic_id in ids.items() if topic_id != ZERO_UUID}
    return {
        (topic.name or names.get(topic.topic_id, ""), data.index): data
        for topic in response.responses
        for data in topic.partition_responses
    }


def leader_hints(
    answers: Mapping[TopicPartition, PartitionProduceResponse],
) -> list[LeaderHint]:
    """Returns the leaders that the response names for partitions with an error (KIP-951)."""
    return [
        LeaderHint(*tp, answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        for tp, answer in answers.items()
        if answer.error_code not in _STORED and answer.current_leader.leader_id >= 0
    ]


def produce_error(
    answer: PartitionProduceResponse, batch: ProducerBatch
) -> BrokerResponseError | None:
    """Returns the error of a batch; None if the broker has stored it."""
    if answer.error_code in _STORED:
        return None
    return _produce_error(answer.error_code, batch, answer.error_message)


def _produce_error(code: int, batch: ProducerBatch, message: str | None) -> BrokerResponseError:
    detail = f": {message}" if message else ""
    return error_of_code(code, f"producing to {batch.topic}[{batch.partition}]{detail}")


def invalid_records(
    answer: PartitionProduceResponse, batch: ProducerBatch
) -> dict[int, BrokerResponseError]:
    """Returns the errors of the invalid records, by index in the batch (KIP-467, since v8).

    Returns an empty dict if the response names no record of the batch.
    """
    return {
        each.batch_index: _produce_error(
            answer.error_code, batch, each.batch_index_error_message or answer.error_message
        )
        for each in answer.record_errors
        if 0 <= each.batch_index < batch.count
    }
