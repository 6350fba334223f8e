"""Appends the records of a coordinator to its internal topic.

The errors are those of Kafka's CoordinatorOperationExceptionHelper and TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..records import RecordBatch, encode_batch
from ..stored.coordinator_records import CoordinatorRecord, encode_coordinator_record
from ..wire.errors import BrokerResponseError
from .api_error import api_error
from .storage.partition import Partition
from .topics import Topic

__all__ = ["BATCH_TOO_LARGE", "append_to_coordinator_log", "coordinator_batch"]

#: The error of a batch that is larger than max.message.bytes.
BATCH_TOO_LARGE: Final = "UNKNOWN_SERVER_ERROR"

#: The coordinator's errors by errors of the log.
_ERRORS_OF_WRITING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "KAFKA_STORAGE_ERROR": "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS": "COORDINATOR_NOT_AVAILABLE",
        "MESSAGE_TOO_LARGE": BATCH_TOO_LARGE,
    }
)


def append_to_coordinator_log(
    topic: Topic,
    partition: Partition,
    records: Sequence[CoordinatorRecord],
    now_ms: int,
    producer: tuple[int, int] | None = None,
) -> None:
    """Appends `records` as one batch to a partition of `topic`, with the timestamp `now_ms`.

    `producer` is the producer id and epoch of a transaction that the records belong to.

    Raises COORDINATOR_NOT_AVAILABLE if the partition has no leader or too few replicas are in sync,
    NOT_COORDINATOR if the storage is full, and UNKNOWN_SERVER_ERROR if the batch is larger than
    max.message.bytes.
    """
    batch = RecordBatch(coordinator_batch(records, now_ms, producer))
    try:
        topic.check_in_sync(partition.index)
        if batch.size_in_bytes > topic.config.max_message_bytes:
            raise api_error(
                "MESSAGE_TOO_LARGE",
                f"the batch has {batch.size_in_bytes} bytes, and {topic.name} accepts "
                f"{topic.config.max_message_bytes}",
            )
        partition.append_of_coordinator(batch, now_ms)
    except BrokerResponseError as error:
        raise api_error(_ERRORS_OF_WRITING.get(error.name, error.name), error.detail) from None


def coordinator_batch(
    records: Sequence[CoordinatorRecord],
    now_ms: int,
    producer: tuple[int, int] | None = None,
) -> bytes:
    """Returns the records as one encoded batch, with the timestamp `now_ms`.

    `producer` is the producer id and epoch of a transaction that the records belong to.
    """
    encoded = ((*encode_coordinator_record(record), (), now_ms) for record in records)
    if producer is None:
        return encode_batch(encoded)
    producer_id, epoch = producer
    return encode_batch(
        encoded, producer_id=producer_id, producer_epoch=epoch, is_transactional=True
    )
