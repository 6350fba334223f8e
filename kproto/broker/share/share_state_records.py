"""Converts share states to records of `__share_group_state`, and loads them (KIP-932).

The keys and values have the versions that Kafka 4.4's ShareCoordinatorRecordHelpers writes. A
ShareSnapshot record has the whole state of a share partition. A ShareUpdate record has only the
batches that have changed since. Tombstones have the key of a ShareSnapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ...messages.share_snapshot_key import ShareSnapshotKey
from ...messages.share_snapshot_value import ShareSnapshotValue
from ...messages.share_snapshot_value import StateBatch as SnapshotBatch
from ...messages.share_update_key import ShareUpdateKey
from ...messages.share_update_value import ShareUpdateValue
from ...messages.share_update_value import StateBatch as UpdateBatch
from ...records import Record
from ...stored.coordinator_records import (
    CoordinatorRecord,
    decode_coordinator_record,
)
from ...wire.errors import DecodeError
from .share_state import (
    SharePartitionKey,
    ShareState,
    combine_batches,
    structs_of_batches,
    unpacked_batches,
)

__all__ = [
    "SHARE_STATE_TOPIC",
    "load",
    "replay",
    "snapshot_record",
    "state_tombstone",
    "update_record",
]

logger = logging.getLogger("kproto.broker")

SHARE_STATE_TOPIC: Final = "__share_group_state"

#: The versions of ShareSnapshotValue and of ShareUpdateValue.
_SNAPSHOT: Final = 0
_UPDATE: Final = 0


def snapshot_record(key: SharePartitionKey, state: ShareState) -> CoordinatorRecord:
    """Returns the ShareSnapshot record of a state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=structs_of_batches(SnapshotBatch, state.batches),
    )
    return CoordinatorRecord(_snapshot_key(key), value, _SNAPSHOT)


def update_record(key: SharePartitionKey, state: ShareState) -> CoordinatorRecord:
    """Returns the ShareUpdate record of a state, which has only the changed batches."""
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        state_batches=structs_of_batches(UpdateBatch, state.batches),
    )
    update_key = ShareUpdateKey(
        group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
    )
    return CoordinatorRecord(update_key, value, _UPDATE)


def state_tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Returns the tombstone of a share partition's state."""
    return CoordinatorRecord(_snapshot_key(key))


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def load(records: Iterable[Record]) -> dict[SharePartitionKey, ShareState]:
    """Replays the records of a partition of `__share_group_state`.

    Skips records that cannot be decoded, and logs a warning.
    """
    states: dict[SharePartitionKey, ShareState] = {}
    for record in records:
        try:
            decoded = decode_coordinator_record(record, topic=SHARE_STATE_TOPIC)
        except DecodeError as error:
            logger.warning("%s: offset %d is skipped: %s", SHARE_STATE_TOPIC, record.offset, error)
            continue
        if isinstance(decoded, CoordinatorRecord):
            replay(states, decoded)
    return states


def replay(states: dict[SharePartitionKey, ShareState], record: CoordinatorRecord) -> None:
    """Applies one record to `states`."""
    key, value = record.key, record.value
    if not isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return
    share_key = SharePartitionKey(key.group_id, key.topic_id, key.partition)
    if value is None:
        states.pop(share_key, None)
    elif isinstance(value, ShareSnapshotValue):
        former = states.get(share_key)
        states[share_key] = ShareState(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            unpacked_batches(value.state_batches),
            value.create_timestamp,
            value.write_timestamp,
            0
            if former is None or former.snapshot_epoch != value.snapshot_epoch
            else former.updates,
            max(0 if former is None else former.seen_leader_epoch, value.leader_epoch),
        )
    elif isinstance(value, ShareUpdateValue):
        state = states.get(share_key, ShareState(value.snapshot_epoch, 0, 0, value.start_offset))
        states[share_key] = replace(
            state,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            complete_count=value.delivery_complete_count,
            batches=combine_batches(
                state.batches, unpacked_batches(value.state_batches), value.start_offset
            ),
            updates=state.updates + 1,
            seen_leader_epoch=max(state.seen_leader_epoch, value.leader_epoch),
        )
