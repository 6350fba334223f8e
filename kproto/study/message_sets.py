"""Decodes messages of magic 0 and 1, and the messages inside a compressed wrapper, to nodes.

Source: Kafka's documentation, "Old Message Format"; KIP-31, KIP-32.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ..records.codecs.compression import Codec
from ..records.codecs.lz4_frame import with_right_checksum
from ..records.legacy.message_set import message_codec
from ..wire.errors import MissingCodecError
from .message_reader import UnreadableError
from .node import Node
from .node_builder import NodeBuilder
from .records_context import RecordsContext
from .value_meanings import COMPRESSIONS, named, point_in_time

__all__ = ["read_message"]

_OVERHEAD_BYTES: Final = 12
_CRC_FROM: Final = 16
_LEAST_SIZE: Final = (14, 22)
_LZ4: Final = 3


def read_message(
    builder: NodeBuilder, node: Node, context: RecordsContext, wrapper: int | None = None
) -> None:
    """Adds the fields of one message to `node`.

    The message has the bytes from the start of `node` to `builder.limit`.
    `wrapper` is the magic of the wrapper that contains the message; None if there is no wrapper.
    Raises UnreadableError at a fault that ends the reading.
    """
    start, limit = node.offset, builder.limit
    offset, node.value, pos = builder.number(node, "offset", "int64", start)
    _, size, pos = builder.number(node, "message_size", "int32", pos)
    crc, declared_crc, pos = builder.number(node, "crc", "uint32", pos)
    crc.meaning = f"{declared_crc:#010x}"
    magic_node, magic, pos = builder.number(node, "magic", "int8", pos)
    if wrapper is not None and magic != wrapper:
        builder.stop(
            magic_node, f"magic {magic} is not {wrapper}, the wrapper's", magic_node.offset
        )
    if size < _LEAST_SIZE[magic]:
        builder.stop(node, f"size {size} is too short for magic {magic}", start)
    flags, attributes, pos = builder.number(node, "attributes", "int8", pos)
    actual = crc32(builder.data[start + _CRC_FROM : limit])
    if actual != declared_crc:
        reason = f"CRC is {actual:#010x}, the message says {declared_crc:#010x}"
        builder.fault(crc, reason, crc.offset, f"{actual:#010x}")
    flags.meaning = f"compression {named(COMPRESSIONS, attributes & 7)}"
    if magic:
        if attributes & 8:
            flags.meaning += ", log append time"
        timestamp, at, pos = builder.number(node, "timestamp", "int64", pos)
        timestamp.meaning = "none" if at == -1 else point_in_time(at)
    _, pos = _counted(builder, node, "key", pos)
    value, pos = _counted(builder, node, "value", pos)
    if pos != limit:
        builder.stop(node, f"{limit - pos} bytes behind the value", pos, "the end of the message")
    if not attributes & 7:
        return
    if wrapper is not None:
        builder.stop(flags, "it is compressed again", flags.offset, "no compression in a wrapper")
    try:
        codec = message_codec(attributes & 7)
    except ValueError as error:
        builder.fault(flags, str(error), flags.offset, "a codec of 0 to 3")
        return
    _unwrap(builder, node, offset, value, magic, codec, context)


def _counted(builder: NodeBuilder, parent: Node, name: str, pos: int) -> tuple[Node, int]:
    node, length, pos = builder.number(parent, name, "int32", pos)
    node.kind = "bytes"
    return node, builder.content(node, pos, length)


def _unwrap(
    builder: NodeBuilder,
    node: Node,
    offset: Node,
    value: Node,
    magic: int,
    codec: Codec,
    context: RecordsContext,
) -> None:
    """Decompresses the value of a wrapper, and adds its messages to the node of the value."""
    node.kind = "wrapper message"
    value.meaning = ""
    if not isinstance(value.value, bytes):
        builder.stop(value, "the compressed value is null", value.offset)
    payload = with_right_checksum(value.value) if magic == 0 and codec.id == _LZ4 else value.value
    try:
        opened = context.decompress(codec, payload)
    except MissingCodecError as error:
        value.notes.append(f"not opened: {error}")
        return
    except ValueError as error:
        builder.fault(value, str(error), value.offset, f"data compressed by {codec.name}")
        return
    value.meaning = f"{codec.name}: {len(payload)} bytes become {len(opened)}"
    inner = NodeBuilder(opened, len(opened), context.budget, value.path)
    pos = 0
    last = 0
    index = 0
    while pos < len(opened):
        message = inner.node(value, f"[{index}]", "message", pos)
        try:
            end = _end_of_message(inner, message, pos)
            read_message(
                NodeBuilder(opened, end, context.budget, value.path),
                message,
                context,
                wrapper=magic,
            )
        except UnreadableError:
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
        builder.fault(value, "the wrapper holds no messages", value.offset)
    elif magic == 1 and isinstance(offset.value, int) and offset.value and offset.value < last:
        reason = f"wrapper offset {offset.value} lies before {last}, the last message's"
        builder.fault(offset, reason, offset.offset)


def _end_of_message(builder: NodeBuilder, node: Node, pos: int) -> int:
    left = builder.limit - pos
    if left < _OVERHEAD_BYTES + _LEAST_SIZE[0]:
        builder.stop(node, f"{left} bytes are too few for a message", pos)
    size = int.from_bytes(builder.data[pos + 8 : pos + _OVERHEAD_BYTES], "big", signed=True)
    end = pos + _OVERHEAD_BYTES + size
    if size < _LEAST_SIZE[0] or end > builder.limit:
        reason = f"size {size}, but {left - _OVERHEAD_BYTES} bytes are left"
        builder.stop(node, reason, pos)
    return end
