"""Which batches of fetched bytes a reader may see, and where the next fetch begins.

Plain functions on bytes, without a loop and without a connection. Every checksum is verified here,
at once; what is inside the batches is for `waiting`, when their turn comes. Control batches are
never handed out, and the next position is the offset behind the last batch, also where compaction
has removed its end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...messages.fetch_response import PartitionData
from ...records import RecordBatch, checked_next_offset, read_batches
from ...stored.aborted_transactions import AbortedTransactions
from ...wire.errors import CorruptBatchError, MissingCodecError, ProtocolError

__all__ = ["PlacedBatch", "Visible", "aborted_transactions", "visible_batches"]

#: Offsets rise from batch to batch; Kafka 3.9 may give messages of older magics twice.
MAGIC_OF_BATCHES: Final = 2


class PlacedBatch(NamedTuple):
    """A checked batch; its records before `from_offset` are not wanted, or came before."""

    from_offset: int
    batch: RecordBatch


class Visible(NamedTuple):
    """The batches of one fetch in order, and the offset of the next record to be fetched.

    `last_epoch` is the leader epoch of the batch before it; -1 where that tells none. `epochs` has
    the offsets at which an epoch begins that the batch before has not, hidden batches counted.
    """

    batches: list[PlacedBatch]
    position: int
    last_epoch: int
    epochs: list[tuple[int, int]]


def visible_batches(
    data: PartitionData,
    topic: str,
    position: int,
    *,
    end: int | None,
    read_committed: bool,
    max_decompressed_bytes: int,
) -> Visible:
    """The batches in `data.records` with offsets from `position` on, up to `end`.

    The last may go beyond `end`. Raises CorruptBatchError and MissingCodecError, which name the
    partition, where nothing good stands before them: else the good batches are returned, and the
    next fetch finds the fault. Raises ProtocolError where all that came lies before `position`.
    """
    place = f"{topic}[{data.partition_index}]"
    begun = position
    last_epoch = -1
    before: int | None = None  # behind the batch before; messages of old magics may repeat
    batches: list[PlacedBatch] = []
    epochs: list[tuple[int, int]] = []
    aborted = AbortedTransactions(aborted_transactions(data)) if read_committed else None
    try:
        for batch in read_batches(data.records or b"", whole_first=True):
            next_offset = batch.next_offset
            if batch.magic == MAGIC_OF_BATCHES:
                before = checked_next_offset(batch, before)
            if next_offset <= position:
                continue
            if batch.is_control:
                if aborted is not None:
                    aborted.on_control_batch(batch, max_decompressed_bytes)
            elif aborted is None or not aborted.is_aborted(batch):
                batches.append(PlacedBatch(position, batch))
            if batch.partition_leader_epoch != last_epoch:
                last_epoch = batch.partition_leader_epoch
                epochs.append((max(position, batch.base_offset), last_epoch))
            position = next_offset
            if end is not None and position >= end:
                position = end
                break  # What stands behind is not asked for, broken or not.
    except (CorruptBatchError, MissingCodecError) as error:
        if not batches:
            error.add_note(f"while reading {place} of Kafka")
            raise
    if position == begun:
        raise ProtocolError(
            f"{place}: all that the fetch from offset {begun} brought lies before it, and would be "
            "brought again"
        )
    return Visible(batches, position, last_epoch, epochs)


def aborted_transactions(data: PartitionData) -> list[tuple[int, int]]:
    """The first offset and the producer id of each aborted transaction in a fetched partition."""
    return [(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()]
