"""What is done of a partition behind a record that is not, and the text of a commit that tells it.

A commit has one offset: up to there all is done. What is done behind it stands in its metadata, so
that whoever goes on with the partition hands out none of that again. Plain data.
"""

from __future__ import annotations

import logging
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "MOST_BYTES",
    "IncompleteOffsets",
    "ahead_in",
    "ahead_of",
    "is_told",
    "joined",
    "text_of",
]

logger = logging.getLogger("kproto.client")

#: The longest text: what brokers take by default (offset.metadata.max.bytes). So 24,000 offsets
#: find room where no two that follow one another are alike, and mostly many more.
MOST_BYTES: Final = 4_096

#: What such a text begins with, and the version of what follows.
_PREFIX: Final = "kproto.done/1 "

#: Bits that are shorter, in bytes, do not become shorter by packing.
_SHORT: Final = 32

#: No text says more offsets, in bytes of bits: what others have written must not fill the memory.
_LARGEST: Final = 1 << 20


class IncompleteOffsets(NamedTuple):
    """Bit `i` of `bits`, in the order of little endian, is set where offset `base + i` is done.

    Records of a higher leader `epoch` were written in the place of those by another leader, which
    had not got them (KIP-320): none of them is done. -1 where brokers told no epochs.
    """

    base: int
    bits: bytes
    epoch: int

    @property
    def top(self) -> int:
        """The offset behind the last that may be done."""
        return self.base + 8 * len(self.bits)

    def has(self, offset: int) -> bool:
        """Whether it is done."""
        at = offset - self.base
        return 0 <= at < 8 * len(self.bits) and bool(self.bits[at >> 3] >> (at & 7) & 1)

    def is_in(self, epoch: int) -> bool:
        """Whether records of that leader epoch may be meant."""
        return self.epoch < 0 or epoch <= self.epoch


def ahead_of(edge: int, undone: Sequence[int], epoch: int) -> IncompleteOffsets | None:
    """All from the first of `undone` up to `edge` is done but these, which rise; None: nothing is.

    Offsets without a record count as done.
    """
    if not undone or edge - undone[0] + 1 == len(undone):
        return None
    base = undone[0]
    count = edge - base + 1
    bits = bytearray(b"\xff" * (count // 8))
    if count % 8:
        bits.append((1 << count % 8) - 1)
    for offset in undone:
        at = offset - base
        bits[at >> 3] &= ~(1 << (at & 7))
    return _made(base, int.from_bytes(bits, "little"), epoch)


def _made(base: int, bits: int, epoch: int) -> IncompleteOffsets | None:
    return IncompleteOffsets(base, _bytes_of(bits), epoch) if bits else None


def _bytes_of(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def joined(
    own: IncompleteOffsets | None, before: IncompleteOffsets | None
) -> IncompleteOffsets | None:
    """What is done in all: `own`, and behind that what was done `before` by others."""
    if own is None or before is None:
        return before if own is None else own
    top = own.base + int.from_bytes(own.bits, "little").bit_length()
    if 0 <= before.epoch < own.epoch:
        return own  # its log is gone behind there
    behind = int.from_bytes(before.bits, "little") >> max(0, top - before.base)
    shift = max(top, before.base) - own.base
    bits = int.from_bytes(own.bits, "little") | behind << shift
    return _made(own.base, bits, max(own.epoch, before.epoch))


def text_of(
    ahead: IncompleteOffsets | None, offset: int, topic_id: Uuid = ZERO_UUID, most: int = MOST_BYTES
) -> str:
    """The metadata of a commit of `offset`, of `most` bytes; empty where nothing is done behind it.

    It says of which offset of which topic, as tools copy commits, with their metadata, to where
    offsets mean other records. A `topic_id` of zeros is not known.

    What finds no room is not told, from the highest offsets down. Neither is anything where the
    offset is another one before all that: who goes back wants to have it again.
    """
    if ahead is None or not ahead.base <= offset < ahead.top:
        return ""
    data = _bytes_of(int.from_bytes(ahead.bits, "little") >> offset - ahead.base)
    while data:
        packed = zlib.compress(data, 1) if len(data) > _SHORT else data
        kind, told = ("z", packed) if len(packed) < len(data) else ("r", data)
        text = f"{_PREFIX}{topic_id} {offset} {ahead.epoch} {kind} {b64encode(told).decode()}"
        if len(text) <= most:
            return text
        data = data[: len(data) // 2].rstrip(b"\0")
    return ""


def is_told(text: str) -> bool:
    """Whether a metadata says what is done ahead."""
    return text.startswith(_PREFIX)


def ahead_in(text: str, offset: int, topic_id: Uuid = ZERO_UUID) -> IncompleteOffsets | None:
    """What the metadata of a commit of `offset` says; None where it says nothing of that kind.

    One that is damaged, or of another offset or topic, is told to the log, and says nothing: its
    records come again.
    """
    if not is_told(text):
        return None
    try:
        of_topic, of_offset, epoch, kind, told = text[len(_PREFIX) :].split(" ")
        if int(of_offset) != offset or (
            topic_id != ZERO_UUID and of_topic not in (str(topic_id), str(ZERO_UUID))
        ):
            raise ValueError(f"it is of offset {of_offset} of the topic {of_topic}")
        data = b64decode(told, validate=True)
        if kind == "z":
            packed = zlib.decompressobj()
            data = packed.decompress(data, _LARGEST)
            if not packed.eof:
                raise ValueError("it ends too early, or says too much")
        elif kind != "r":
            raise ValueError(f"{kind!r} is no kind of packing")
        return _made(offset, int.from_bytes(data, "little"), int(epoch))
    except (ValueError, zlib.error) as error:
        logger.warning(
            "the metadata of a commit is not right (%s): what is done behind offset %d comes again",
            error,
            offset,
        )
        return None
