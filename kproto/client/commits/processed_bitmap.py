"""`ProcessedBitmap`: the offsets processed after the first incomplete record of a partition.

All records before the committed offset are processed. Handlers of `run` may have processed some
later records, too. The metadata of the commit lists the offsets of these later records, so that the
next owner of the partition does not return the records again. Does no I/O.
"""

from __future__ import annotations

import logging
import zlib
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "MAX_METADATA_BYTES",
    "ProcessedBitmap",
    "build_bitmap",
    "decode_bitmap",
    "encode_bitmap",
    "has_bitmap",
    "merge_bitmaps",
]

logger = logging.getLogger("kproto.client")

#: The longest metadata, in bytes, that brokers accept by default (offset.metadata.max.bytes). A
#: bitmap of 24,000 offsets fits even without compression; with compression usually many more
#: offsets fit.
MAX_METADATA_BYTES: Final = 4_096

#: The prefix of metadata that lists processed offsets, with the version of its format.
_PREFIX: Final = "kproto.done/1 "

#: Compression does not shorten a bitmap of at most this many bytes.
_SHORT: Final = 32

#: The largest bitmap after decompression, in bytes. Without this limit, the memory could be
#: exhausted by metadata of other clients, or by a large gap that compaction leaves between two
#: offsets.
_LARGEST: Final = 1 << 20
_MOST_OFFSETS: Final = 8 * _LARGEST


class ProcessedBitmap(NamedTuple):
    """A bitmap of processed offsets: bit `i` of `bits`, little-endian, is offset `base + i`.

    `epoch` is the highest leader epoch of the processed records, -1 if brokers report none. Records
    of a higher epoch have replaced truncated records (KIP-320), and count as not processed.
    """

    base: int
    bits: bytes
    epoch: int

    @property
    def end(self) -> int:
        """The end of the bitmap: the first offset after it."""
        return self.base + 8 * len(self.bits)

    def is_processed(self, offset: int) -> bool:
        """Returns True if the record at `offset` is processed."""
        at = offset - self.base
        return 0 <= at < 8 * len(self.bits) and bool(self.bits[at >> 3] >> (at & 7) & 1)

    def is_valid_for(self, epoch: int) -> bool:
        """Returns True if the bitmap may list records of the leader epoch `epoch`.

        Returns False if `epoch` is higher than the highest epoch of the processed records.
        """
        return self.epoch < 0 or epoch <= self.epoch


def build_bitmap(edge: int, incomplete: Sequence[int], epoch: int) -> ProcessedBitmap | None:
    """Returns the bitmap of the offsets from the first of `incomplete` to `edge`, both included.

    `incomplete` are the incomplete offsets in ascending order; all other offsets in this range are
    processed. Offsets without a record count as processed. Returns None if no offset in the range
    is processed, or if `incomplete` is empty. Leaves out offsets that are 8,388,608 or more after
    the first: their records are redelivered.
    """
    if incomplete and edge - incomplete[0] >= _MOST_OFFSETS:
        edge = incomplete[0] + _MOST_OFFSETS - 1
        incomplete = incomplete[: bisect_right(incomplete, edge)]
    if not incomplete or edge - incomplete[0] + 1 == len(incomplete):
        return None
    base = incomplete[0]
    count = edge - base + 1
    bits = bytearray(b"\xff" * (count // 8))
    if count % 8:
        bits.append((1 << count % 8) - 1)
    for offset in incomplete:
        at = offset - base
        bits[at >> 3] &= ~(1 << (at & 7))
    return _bitmap_or_none(base, int.from_bytes(bits, "little"), epoch)


def _bitmap_or_none(base: int, bits: int, epoch: int) -> ProcessedBitmap | None:
    return ProcessedBitmap(base, _bytes_of(bits), epoch) if bits else None


def _bytes_of(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def merge_bitmaps(
    own: ProcessedBitmap | None, before: ProcessedBitmap | None
) -> ProcessedBitmap | None:
    """Returns `own`, extended by the processed offsets of `before` beyond the end of `own`.

    `before` is the bitmap of the previous owner of the partition. If either bitmap is None, returns
    the other. Returns `own` unchanged if the log was truncated since `before` was committed, or if
    `before` begins too far after `own`.
    """
    if own is None or before is None:
        return before if own is None else own
    end = own.base + int.from_bytes(own.bits, "little").bit_length()
    if 0 <= before.epoch < own.epoch:
        return own  # the log was truncated since `before`
    if before.base - own.base >= _MOST_OFFSETS:
        return own  # the caller has moved its position far back
    later = int.from_bytes(before.bits, "little") >> max(0, end - before.base)
    shift = max(end, before.base) - own.base
    bits = int.from_bytes(own.bits, "little") | later << shift
    return _bitmap_or_none(own.base, bits, max(own.epoch, before.epoch))


def encode_bitmap(
    bitmap: ProcessedBitmap | None,
    offset: int,
    topic_id: Uuid = ZERO_UUID,
    most: int = MAX_METADATA_BYTES,
) -> str:
    """Returns the metadata of a commit of `offset`: a text of at most `most` bytes.

    The text is empty if no record after `offset` is processed. Otherwise the text has the offset
    and the topic id, because tools copy commits with their metadata to other topics, whose records
    differ. `topic_id` is all zeros if it is unknown.

    If the bitmap does not fit, its highest offsets are dropped. If `offset` is outside of the
    bitmap, the text is empty: a user that commits an earlier offset reads the later records again.
    """
    if bitmap is None or not bitmap.base <= offset < bitmap.end:
        return ""
    data = _bytes_of(int.from_bytes(bitmap.bits, "little") >> offset - bitmap.base)
    while data:
        packed = zlib.compress(data, 1) if len(data) > _SHORT else data
        kind, body = ("z", packed) if len(packed) < len(data) else ("r", data)
        text = f"{_PREFIX}{topic_id} {offset} {bitmap.epoch} {kind} {b64encode(body).decode()}"
        if len(text) <= most:
            return text
        data = data[: len(data) // 2].rstrip(b"\0")
    return ""


def has_bitmap(text: str) -> bool:
    """Returns True if the metadata of a commit has a bitmap in this client's format."""
    return text.startswith(_PREFIX)


def decode_bitmap(text: str, offset: int, topic_id: Uuid = ZERO_UUID) -> ProcessedBitmap | None:
    """Returns the bitmap in the metadata of a commit of `offset`; None if there is no valid one.

    A bitmap that is damaged, or of another offset or topic, is logged and ignored: the records that
    it lists are redelivered.
    """
    if not has_bitmap(text):
        return None
    try:
        of_topic, of_offset, epoch, kind, body = text[len(_PREFIX) :].split(" ")
        if int(of_offset) != offset or (
            topic_id != ZERO_UUID and of_topic not in (str(topic_id), str(ZERO_UUID))
        ):
            raise ValueError(f"it is of offset {of_offset} of the topic {of_topic}")
        data = b64decode(body, validate=True)
        if kind == "z":
            packed = zlib.decompressobj()
            data = packed.decompress(data, _LARGEST)
            if not packed.eof:
                raise ValueError("its bitmap is truncated or too large")
        elif kind != "r":
            raise ValueError(f"{kind!r} is no known compression")
        return _bitmap_or_none(offset, int.from_bytes(data, "little"), int(epoch))
    except (ValueError, zlib.error) as error:
        logger.warning(
            "the metadata of a commit is invalid (%s): records processed after offset %d are "
            "redelivered",
            error,
            offset,
        )
        return None
