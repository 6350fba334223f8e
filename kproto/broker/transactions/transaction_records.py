"""Converts the metadata of transactional ids to records of `__transaction_state`, and back.

Source: the definitions of TransactionLogKey and TransactionLogValue, and Kafka's TransactionLog.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ...messages.transaction_log_key import TransactionLogKey
from ...messages.transaction_log_value import PartitionsSchema, TransactionLogValue
from ...records import Record
from ...stored.coordinator_records import (
    CoordinatorRecord,
    decode_coordinator_record,
)
from ...wire.errors import DecodeError
from ..groups.committed_offsets import TopicPartition
from .transaction_metadata import TransactionMetadata
from .transaction_state import TransactionState

__all__ = [
    "FIRST_VERSION_OF_TAGS",
    "TRANSACTION_TOPIC",
    "load",
    "transaction_record",
    "transaction_tombstone",
]

logger = logging.getLogger("kproto.broker")

TRANSACTION_TOPIC: Final = "__transaction_state"
_STATES: Final = frozenset(map(int, TransactionState))

#: The first level of transaction.version at which records have tagged fields.
FIRST_VERSION_OF_TAGS: Final = 1


def transaction_record(
    metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """Returns the record of a transactional id.

    `transaction_version` is the finalized level of transaction.version. From level 1 on, the value
    has version 1 with tagged fields. At level 0, the value has version 0.
    """
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(metadata.partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    partitions = [
        PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()
    ]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None if metadata.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=metadata.update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    key = TransactionLogKey(transactional_id=metadata.transactional_id)
    if transaction_version < FIRST_VERSION_OF_TAGS:
        return CoordinatorRecord(key, value, 0)
    value.previous_producer_id = metadata.previous_producer_id
    value.next_producer_id = metadata.next_producer_id
    value.next_producer_epoch = metadata.next_epoch
    value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(key, value, 1)


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """Returns the tombstone of an expired transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id))


def load(records: Iterable[Record]) -> dict[str, TransactionMetadata]:
    """Replays the records of a partition of `__transaction_state`.

    Returns the metadata by transactional id. Skips records of other types. Skips records that
    cannot be decoded or have an unknown state, and logs a warning.
    """
    found: dict[str, TransactionMetadata] = {}
    for record in records:
        try:
            decoded = decode_coordinator_record(record, topic=TRANSACTION_TOPIC)
        except DecodeError as error:
            logger.warning("%s: offset %d is skipped: %s", TRANSACTION_TOPIC, record.offset, error)
            continue
        if not isinstance(decoded, CoordinatorRecord) or not isinstance(
            decoded.key, TransactionLogKey
        ):
            continue
        transactional_id = decoded.key.transactional_id
        if decoded.value is None:
            found.pop(transactional_id, None)
        else:
            value = decoded.value
            assert isinstance(value, TransactionLogValue)
            if value.transaction_status not in _STATES:
                logger.warning(
                    "%s: offset %d is skipped: it has the unknown state %d",
                    TRANSACTION_TOPIC,
                    record.offset,
                    value.transaction_status,
                )
                continue
            found[transactional_id] = _metadata(transactional_id, value)
    return found


def _metadata(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        next_epoch=value.next_producer_epoch,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in value.transaction_partitions or ()
            for partition in each.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
