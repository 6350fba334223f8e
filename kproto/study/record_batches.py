"""Decodes record batches (magic 2) to nodes, down to keys, values and headers of records.

Reading continues after a wrong checksum. `message_sets` reads messages of magic 0 and 1;
`stored_records` decodes keys and values that Kafka itself wrote. Source: KIP-98, KIP-534.
"""

from __future__ import annotations

from typing import Final

from ..records.codecs.compression import codec_for_id
from ..records.magic2.crc import crc32c
from ..records.magic2.record_decoding import check_offset_delta
from ..wire.errors import MissingCodecError
from .message_reader import UnreadableError
from .message_sets import read_message
from .node import Node
from .node_builder import NodeBuilder
from .records_context import RecordsContext
from .stored_records import open_control_record, open_record
from .value_meanings import COMPRESSIONS, named, point_in_time

__all__ = ["read_batches"]

#: The fields of the batch header, in wire order.
_HEADER: Final = (
    ("base_offset", "int64"),
    ("batch_length", "int32"),
    ("partition_leader_epoch", "int32"),
    ("magic", "int8"),
    ("crc", "uint32"),
    ("attributes", "int16"),
    ("last_offset_delta", "int32"),
    ("base_timestamp", "int64"),
    ("max_timestamp", "int64"),
    ("producer_id", "int64"),
    ("producer_epoch", "int16"),
    ("base_sequence", "int32"),
    ("record_count", "int32"),
)
_HEADER_BYTES: Final = 61
_OVERHEAD_BYTES: Final = 12
_CRC_FROM: Final = 21
_MAGIC_AT: Final = 16
_LEAST_LENGTH: Final = 14
_LEAST_RECORD: Final = 7

_FLAGS: Final = (
    (0x08, "log append time"),
    (0x10, "transactional"),
    (0x20, "control"),
    (0x40, "delete horizon"),
)
_NONE_IF_MINUS_ONE: Final = frozenset(
    {"partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"}
)


def read_batches(parent: Node, data: bytes, start: int, end: int, context: RecordsContext) -> None:
    """Adds the record batches and messages in `data[start:end]` to `parent`.

    Messages have magic 0 or 1.
    """
    builder = NodeBuilder(data, end, context.budget)
    pos = start
    index = 0
    while pos < end:
        node = builder.node(parent, f"[{index}]", "record batch", pos)
        try:
            stop = _end_of_batch(builder, node, pos, end, context)
            if stop is None:
                return
            inner = NodeBuilder(data, stop, context.budget)
            if data[pos + _MAGIC_AT] == 2:
                _batch(inner, node, context)
            else:
                node.kind = "message"
                read_message(inner, node, context)
        except UnreadableError:
            unread = max(
                (child.end for child in node.children), default=node.offset + node.own_size
            )
            stop = _announced_end(data, pos, end)
            builder.rest(node, unread, stop)
        node.size = stop - node.offset
        if stop <= pos:
            return
        pos = stop
        index += 1


def _announced_end(data: bytes, pos: int, end: int) -> int:
    """Returns the end of the batch at `pos` by its length field; `end` if the length is invalid."""
    length = int.from_bytes(data[pos + 8 : pos + _OVERHEAD_BYTES], "big", signed=True)
    stop = pos + _OVERHEAD_BYTES + length
    return stop if length >= _LEAST_LENGTH and stop <= end else end


def _end_of_batch(
    builder: NodeBuilder, node: Node, pos: int, end: int, context: RecordsContext
) -> int | None:
    """Returns the end of the batch at `pos`.

    If the batch is truncated, marks `node` as `cut batch` and returns None. Raises UnreadableError
    for an invalid length or magic.
    """
    left = end - pos
    if left >= _OVERHEAD_BYTES:
        length = int.from_bytes(builder.data[pos + 8 : pos + _OVERHEAD_BYTES], "big", signed=True)
        if length < _LEAST_LENGTH:
            builder.stop(node, f"batch length {length} is too short for any format", pos)
        magic = builder.data[pos + _MAGIC_AT] if left > _MAGIC_AT else 2
        if magic > 2:
            builder.stop(node, f"unknown magic {magic}", pos, "a magic of 0, 1 or 2")
        if left >= _OVERHEAD_BYTES + length:
            return pos + _OVERHEAD_BYTES + length
        node.notes.append(f"cut off: {left} bytes of {_OVERHEAD_BYTES + length} are here")
    else:
        node.notes.append(f"cut off: {left} bytes are here")
    node.kind = "cut batch"
    builder.assign_bytes(node, end)
    if context.whole:
        builder.fault(node, f"the data ends inside a batch: {left} bytes are left", pos)
    return None


def _batch(builder: NodeBuilder, node: Node, context: RecordsContext) -> None:
    start, limit = node.offset, builder.limit
    if limit - start < _HEADER_BYTES:
        length = limit - start - _OVERHEAD_BYTES
        builder.stop(node, f"batch length {length} is shorter than the header", start)
    values: dict[str, int] = {}
    nodes: dict[str, Node] = {}
    pos = start
    for name, kind in _HEADER:
        nodes[name], values[name], pos = builder.number(node, name, kind, pos)
    attributes = values["attributes"]
    _describe(nodes, values)
    actual = crc32c(builder.data[start + _CRC_FROM : limit])
    if actual != values["crc"]:
        reason = f"CRC is {actual:#010x}, the header says {values['crc']:#010x}"
        builder.fault(nodes["crc"], reason, nodes["crc"].offset, f"{actual:#010x}")
    count = values["record_count"]
    for name in ("record_count", "last_offset_delta"):
        if values[name] < 0:
            reason = f"negative {name.replace('_', ' ')} {values[name]}"
            builder.fault(nodes[name], reason, nodes[name].offset, "0 or more")
    records = builder.node(node, "records", "records of a batch", pos)
    records.size = limit - pos
    inner = builder
    codec_id = attributes & 7
    if codec_id and (count or pos != limit):
        builder.assign_bytes(records, limit)
        opened = _opened(builder, records, nodes["attributes"], codec_id, pos, context)
        if opened is None:
            return
        inner = opened
        pos = 0
    records.value = count
    _records(inner, records, pos, values, attributes, context)


def _describe(nodes: dict[str, Node], values: dict[str, int]) -> None:
    """Sets `meaning`, the explanation of the value, for each header field of the batch."""
    attributes = values["attributes"]
    flags = [word for bit, word in _FLAGS if attributes & bit]
    codec = f"compression {named(COMPRESSIONS, attributes & 7)}"
    nodes["attributes"].meaning = ", ".join([codec, *flags])
    if attributes & ~0x7F:
        nodes["attributes"].notes.append("bits that no release has are set")
    nodes["crc"].meaning = f"{values['crc']:#010x}"
    last = values["base_offset"] + values["last_offset_delta"]
    nodes["last_offset_delta"].meaning = f"last offset {last}"
    for name in ("base_timestamp", "max_timestamp"):
        nodes[name].meaning = "none" if values[name] == -1 else point_in_time(values[name])
    for name in _NONE_IF_MINUS_ONE:
        if values[name] == -1:
            nodes[name].meaning = "none"


def _opened(
    builder: NodeBuilder,
    records: Node,
    attributes: Node,
    codec_id: int,
    pos: int,
    context: RecordsContext,
) -> NodeBuilder | None:
    """Returns a builder for the decompressed records.

    If decompression fails, returns None and adds a note or fault.
    """
    try:
        codec = codec_for_id(codec_id)
    except ValueError as error:
        builder.fault(attributes, str(error), attributes.offset, "a codec of 0 to 4")
        return None
    try:
        opened = context.decompress(codec, builder.data[pos : builder.limit])
    except MissingCodecError as error:
        records.notes.append(f"not opened: {error}")
        return None
    except ValueError as error:
        builder.fault(records, str(error), pos, f"data compressed by {codec.name}")
        return None
    records.meaning = f"{codec.name}: {records.own_size} bytes become {len(opened)}"
    return NodeBuilder(opened, len(opened), context.budget, records.path)


def _records(
    builder: NodeBuilder,
    parent: Node,
    pos: int,
    values: dict[str, int],
    attributes: int,
    context: RecordsContext,
) -> None:
    """Reads the records between `pos` and the limit of `builder`, and adds them to `parent`.

    Stops at bytes that are no record; these become a node, too. An offset out of place is a fault
    that does not end the reading.
    """
    count, limit = values["record_count"], builder.limit
    most_delta = values["last_offset_delta"]
    least_delta = 0
    reached = pos
    try:
        if not 0 <= count <= (limit - pos) // _LEAST_RECORD:
            reason = f"{count} records cannot stand in {limit - pos} bytes"
            builder.stop(parent, reason, pos, f"at most {(limit - pos) // _LEAST_RECORD} records")
        has_room = count <= most_delta + 1
        if count and not has_room:
            reason = f"{count} records, but a last offset delta of {most_delta}"
            builder.fault(parent, reason, pos, f"at most {most_delta + 1} records")
        for index in range(count):
            node = builder.node(parent, f"[{index}]", "record", pos)
            reached = pos
            pos, delta = _record(builder, node, values, attributes, context)
            reached = pos
            if has_room:
                least_delta = _next_least_delta(
                    builder, node, delta, least_delta, most_delta, count - 1 - index
                )
        if pos != limit:
            reason = f"{limit - pos} bytes behind the last of {count} records"
            builder.stop(parent, reason, pos, "the end of the records")
    except UnreadableError:
        if parent.children and reached < limit:
            last = parent.children[-1]
            if last.kind == "record" and last.offset == reached:
                reached = max((child.end for child in last.children), default=reached)
                last.size = reached - last.offset
        builder.rest(parent, reached, limit)


def _next_least_delta(
    builder: NodeBuilder, node: Node, delta: int, least: int, most: int, later: int
) -> int:
    """Returns the least offset delta that is allowed for the next record.

    Returns `delta` + 1. If `delta` is out of place (see `check_offset_delta`), adds a fault to
    `node`, and returns `least` + 1 instead.
    """
    try:
        check_offset_delta(delta, least, most, later)
    except ValueError as error:
        offset = node.child("offset_delta")
        builder.fault(offset, str(error), offset.offset, f"{least} to {most - later}")
        return least + 1
    return delta + 1


def _record(
    builder: NodeBuilder,
    node: Node,
    values: dict[str, int],
    attributes: int,
    context: RecordsContext,
) -> tuple[int, int]:
    """Reads a record; returns the position after the record, and the record's offset delta."""
    length_node, length, pos = builder.varint(node, "length", node.offset)
    if length < 0:
        builder.stop(length_node, f"negative length {length}", node.offset)
    end = pos + length
    if end > builder.limit:
        reason = f"length {length}, but {builder.limit - pos} bytes are left"
        builder.stop(length_node, reason, node.offset, f"at most {builder.limit - pos}")
    inner = NodeBuilder(builder.data, end, builder.budget, builder.buffer)
    _, _, pos = inner.number(node, "attributes", "int8", pos)
    timestamp, delta, pos = inner.varint(node, "timestamp_delta", pos, 10)
    at = values["max_timestamp"] if attributes & 0x08 else values["base_timestamp"] + delta
    timestamp.meaning = point_in_time(at)
    offset, delta, pos = inner.varint(node, "offset_delta", pos)
    node.value = values["base_offset"] + delta
    offset.meaning = f"offset {node.value}"
    key, pos = _counted(inner, node, "key", pos)
    value, pos = _counted(inner, node, "value", pos)
    _headers(inner, node, pos)
    node.size = end - node.offset
    if attributes & 0x20:
        open_control_record(key, value, builder.budget)
    elif context.topic:
        open_record(key, value, context)
    return end, delta


def _counted(builder: NodeBuilder, parent: Node, name: str, pos: int) -> tuple[Node, int]:
    """Reads the length and the bytes of a key or value.

    Returns the node of the key or value, and the position after the bytes.
    """
    node = builder.node(parent, name, "bytes", pos)
    bits, pos = builder.bits(node, pos, 5)
    return node, builder.content(node, pos, (bits >> 1) ^ -(bits & 1))


def _headers(builder: NodeBuilder, parent: Node, pos: int) -> None:
    """Reads the headers, from the header count to the end of the record."""
    node = builder.node(parent, "headers", "array", pos)
    bits, pos = builder.bits(node, pos, 5)
    if bits & 1:
        builder.stop(node, "negative header count", node.offset)
    count = bits >> 1
    node.value = count
    reached = pos
    try:
        for index in range(count):
            if pos >= builder.limit:
                reason = f"{count} headers are announced and {index} are there"
                builder.stop(node, reason, node.offset)
            header = builder.node(node, f"[{index}]", "header", pos)
            pos = _header(builder, header)
            header.size = pos - header.offset
            reached = pos
        if pos != builder.limit:
            reason = f"{builder.limit - pos} bytes behind the last header"
            builder.stop(node, reason, pos, "the end of the record")
    except UnreadableError:
        if node.children and node.children[-1].offset == reached:
            last = node.children[-1]
            reached = max((child.end for child in last.children), default=reached)
            last.size = reached - last.offset
        node.size = reached - node.offset
        raise
    node.size = pos - node.offset


def _header(builder: NodeBuilder, parent: Node) -> int:
    name = builder.node(parent, "key", "string", parent.offset)
    bits, pos = builder.bits(name, parent.offset, 5)
    if bits & 1:
        builder.stop(name, "null or negative name length", parent.offset)
    pos = builder.content(name, pos, bits >> 1)
    assert isinstance(name.value, bytes)
    name.meaning = ""
    encoded = name.value
    name.value = encoded.decode("utf-8", "surrogateescape")
    if not name.value.isprintable() and encoded != encoded.decode("utf-8", "replace").encode():
        name.notes.append("the name is not UTF-8")
    _, pos = _counted(builder, parent, "value", pos)
    return pos
