"""Encodes and decodes commit and abort markers: control batches that end a transaction (KIP-98)."""

from __future__ import annotations

from typing import NamedTuple

from ..messages.end_txn_marker import EndTxnMarker
from ..records import RecordBatch, encode_batch
from .control_records import (
    ControlRecord,
    ControlRecordType,
    decode_control_record,
    encode_control_record,
)

__all__ = ["TxnMarker", "encode_txn_marker", "txn_marker_of"]


class TxnMarker(NamedTuple):
    """Describes a commit or abort marker, as WriteTxnMarkers does.

    `transaction_version` is the transaction version of the client that ended the transaction. From
    version 2 on, the marker has a higher producer epoch than the records (KIP-890). The marker in
    the log does not have this field.
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


def encode_txn_marker(marker: TxnMarker, timestamp: int) -> bytes:
    """Returns the control batch of a marker; `timestamp` is in ms."""
    control = ControlRecord(
        ControlRecordType.COMMIT if marker.is_commit else ControlRecordType.ABORT,
        EndTxnMarker(coordinator_epoch=marker.coordinator_epoch),
        0,
    )
    return encode_batch(
        [(*encode_control_record(control), (), timestamp)],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def txn_marker_of(batch: RecordBatch) -> TxnMarker | None:
    """Returns the commit or abort marker of a control batch; None for any other control batch.

    Raises CorruptBatchError and DecodeError if the batch cannot be decoded.
    """
    for record in batch.records():
        control = decode_control_record(record)
        if isinstance(control.message, EndTxnMarker):
            return TxnMarker(
                batch.producer_id,
                batch.producer_epoch,
                control.type == ControlRecordType.COMMIT,
                control.message.coordinator_epoch,
            )
    return None
