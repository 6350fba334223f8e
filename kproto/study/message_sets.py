"""Messages of magic 0 and 1 as nodes, and those inside a compressed wrapper.

Owns the order of their fields and what can be wrong with them. Source: Kafka's documentation, "Old
Message Format"; KIP-31, KIP-32.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ..records.codecs.compression import Codec
from ..records.codecs.lz4_frame import with_right_checksum
from ..records.legacy.message_set import message_codec
from ..wire.errors import MissingCodecError
from .leaves import Leaves
from .meanings import COMPRESSIONS, named, point_in_time
from .node import Node
from .opening import Opening
from .reading import StopError

__all__ = ["read_message"]

_OVERHEAD_BYTES: Final = 12
_CRC_FROM: Final = 16
_LEAST_SIZE: Final = (14, 22)
_LZ4: Final = 3


def read_message(leaves: Leaves, node: Node, opening: Opening, wrapper: int | None = None) -> None:
    """The message that begins where `node` does and ends at the limit of `leaves`.

    `wrapper` is the magic of the one that it stands in. Raises StopError.
    """
    start, limit = node.offset, leaves.limit
    offset, node.value, pos = leaves.number(node, "offset", "int64", start)
    _, size, pos = leaves.number(node, "message_size", "int32", pos)
    crc, crc_said, pos = leaves.number(node, "crc", "uint32", pos)
    crc.meaning = f"{crc_said:#010x}"
    magic_node, magic, pos = leaves.number(node, "magic", "int8", pos)
    if wrapper is not None and magic != wrapper:
        leaves.stop(magic_node, f"magic {magic} is not {wrapper}, the wrapper's", magic_node.offset)
    if size < _LEAST_SIZE[magic]:
        leaves.stop(node, f"size {size} is too short for magic {magic}", start)
    flags, attributes, pos = leaves.number(node, "attributes", "int8", pos)
    actual = crc32(leaves.data[start + _CRC_FROM : limit])
    if actual != crc_said:
        reason = f"CRC is {actual:#010x}, the message says {crc_said:#010x}"
        leaves.fault(crc, reason, crc.offset, f"{actual:#010x}")
    flags.meaning = f"compression {named(COMPRESSIONS, attributes & 7)}"
    if magic:
        if attributes & 8:
            flags.meaning += ", log append time"
        timestamp, at, pos = leaves.number(node, "timestamp", "int64", pos)
        timestamp.meaning = "none" if at == -1 else point_in_time(at)
    _, pos = _counted(leaves, node, "key", pos)
    value, pos = _counted(leaves, node, "value", pos)
    if pos != limit:
        leaves.stop(node, f"{limit - pos} bytes behind the value", pos, "the end of the message")
    if not attributes & 7:
        return
    if wrapper is not None:
        leaves.stop(flags, "it is compressed again", flags.offset, "no compression in a wrapper")
    try:
        codec = message_codec(attributes & 7)
    except ValueError as error:
        leaves.fault(flags, str(error), flags.offset, "a codec of 0 to 3")
        return
    _unwrap(leaves, node, offset, value, magic, codec, opening)


def _counted(leaves: Leaves, parent: Node, name: str, pos: int) -> tuple[Node, int]:
    node, length, pos = leaves.number(parent, name, "int32", pos)
    node.kind = "bytes"
    return node, leaves.content(node, pos, length)


def _unwrap(
    leaves: Leaves,
    node: Node,
    offset: Node,
    value: Node,
    magic: int,
    codec: Codec,
    opening: Opening,
) -> None:
    """The messages in the value of a wrapper."""
    node.kind = "wrapper message"
    value.meaning = ""
    if not isinstance(value.value, bytes):
        leaves.stop(value, "the compressed value is null", value.offset)
    held = with_right_checksum(value.value) if magic == 0 and codec.id == _LZ4 else value.value
    try:
        opened = opening.decompress(codec, held)
    except MissingCodecError as error:
        value.notes.append(f"not opened: {error}")
        return
    except ValueError as error:
        leaves.fault(value, str(error), value.offset, f"data compressed by {codec.name}")
        return
    value.meaning = f"{codec.name}: {len(held)} bytes become {len(opened)}"
    inner = Leaves(opened, len(opened), opening.budget, value.path)
    pos = 0
    last = 0
    index = 0
    while pos < len(opened):
        message = inner.node(value, f"[{index}]", "message", pos)
        try:
            end = _end_of_message(inner, message, pos)
            read_message(
                Leaves(opened, end, opening.budget, value.path), message, opening, wrapper=magic
            )
        except StopError:
            reached = max((child.end for child in message.children), default=pos)
            message.size = reached - pos
            inner.rest(value, reached, len(opened))
            return
        message.size = end - pos
        if isinstance(message.value, int):
            last = message.value
        pos = end
        index += 1
    if not index:
        leaves.fault(value, "the wrapper holds no messages", value.offset)
    elif magic == 1 and isinstance(offset.value, int) and offset.value and offset.value < last:
        reason = f"wrapper offset {offset.value} lies before {last}, the last message's"
        leaves.fault(offset, reason, offset.offset)


def _end_of_message(leaves: Leaves, node: Node, pos: int) -> int:
    left = leaves.limit - pos
    if left < _OVERHEAD_BYTES + _LEAST_SIZE[0]:
        leaves.stop(node, f"{left} bytes are too few for a message", pos)
    size = int.from_bytes(leaves.data[pos + 8 : pos + _OVERHEAD_BYTES], "big", signed=True)
    end = pos + _OVERHEAD_BYTES + size
    if size < _LEAST_SIZE[0] or end > leaves.limit:
        reason = f"size {size}, but {left - _OVERHEAD_BYTES} bytes are left"
        leaves.stop(node, reason, pos)
    return end
