"""Decodes keys and values of Kafka's own records: control, coordinator and metadata log records.

Reads the type and version before each message; `kproto.stored` has the tables of types. An error in
such a message is a fault whose `Fault.layer` is `stored`. Records of other topics are not decoded.
"""

from __future__ import annotations

from typing import Final

from ..schema.definitions import union
from ..schema.layout import layout
from ..stored.control_records import ControlRecordType
from ..stored.coordinator_records import COORDINATOR_TOPICS
from ..stored.framing import message_class
from ..stored.metadata_log import FRAME_VERSION, METADATA_TOPICS
from .message_reader import MessageReader, UnreadableError
from .node import Node, TreeSizeLimit
from .node_builder import NodeBuilder
from .records_context import RecordsContext
from .secret_fields import has_secrets, secret_attributes_of

__all__ = ["open_control_record", "open_coordinator_value", "open_record"]

#: The message in the value, by type of control record, and whether an int16 version precedes it.
_CONTROL: Final = {
    ControlRecordType.ABORT: ("EndTxnMarker", True),
    ControlRecordType.COMMIT: ("EndTxnMarker", True),
    ControlRecordType.LEADER_CHANGE: ("LeaderChangeMessage", False),
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeaderRecord", False),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooterRecord", False),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersionRecord", False),
    ControlRecordType.KRAFT_VOTERS: ("VotersRecord", False),
}

#: The largest type or version in the metadata log: Kafka stores them in a short.
_LARGEST: Final = 32767


def open_record(key: Node, value: Node, context: RecordsContext) -> None:
    """Decodes the key and the value of a record, and adds their fields to the nodes.

    Does nothing if the topic in `context` is not one of Kafka's internal topics.
    """
    topic = context.topic
    try:
        if topic in COORDINATOR_TOPICS:
            _coordinator_record(key, value, COORDINATOR_TOPICS[topic], context.budget)
        elif topic in METADATA_TOPICS:
            _metadata_record(value, METADATA_TOPICS[topic], context.budget)
    except UnreadableError:  # the tree has the fault
        _complete(key, context.budget)
        _complete(value, context.budget)


def open_coordinator_value(value: Node, name: str, budget: TreeSizeLimit) -> None:
    """Decodes a value of a coordinator's topic whose key has the type `name`."""
    try:
        _coordinator_value(value, name, budget)
    except UnreadableError:  # the tree has the fault
        _complete(value, budget)


def open_control_record(key: Node, value: Node, budget: TreeSizeLimit) -> None:
    """Decodes key and value of a record in a control batch."""
    try:
        _control_record(key, value, budget)
    except UnreadableError:  # the tree has the fault
        _complete(key, budget)
        _complete(value, budget)


def _complete(node: Node, budget: TreeSizeLimit) -> None:
    """Adds a node for the rest of a key or value, the bytes after the last child of `node`."""
    reached = max((child.end for child in node.children), default=node.offset + node.own_size)
    NodeBuilder(node.source, node.end, budget, node.buffer, "stored").rest(node, reached, node.end)


def _control_record(key: Node, value: Node, budget: TreeSizeLimit) -> None:
    builder, pos = _inside(key, budget, "its key is null; the key of a control record has 4 bytes")
    version, number, pos = builder.number(key, "version", "int16", pos)
    if number < 0:
        builder.stop(version, f"its key has version {number}", version.offset, "0 or more")
    kind, number_of_type, pos = builder.number(key, "type", "int16", pos)
    if pos < key.end:
        if number == 0:
            builder.stop(key, f"{key.end - pos} bytes after a key of version 0", pos)
        builder.rest(key, pos, key.end)
    if number_of_type not in _CONTROL:
        kind.meaning = "unknown"
        return
    record_type = ControlRecordType(number_of_type)
    kind.meaning = record_type.name
    name, marked = _CONTROL[record_type]
    builder, pos = _inside(value, budget, f"its value is null; {record_type.name} has a value")
    end = pos
    if marked:
        node, version_of_value, end = builder.number(value, "version", "int16", pos)
    else:
        if value.end - pos < 2:
            builder.stop(value, "its value ends inside the version", pos, "an int16")
        raw = value.source[pos : pos + 2]
        node, version_of_value = value, int.from_bytes(raw, "big", signed=True)
    if version_of_value < 0:
        builder.stop(node, f"a version of {version_of_value}", pos, "0 or more")
    highest = message_class(name).VALID_VERSIONS[-1]
    known = version_of_value <= highest
    _message(builder, value, name, min(version_of_value, highest), end, exact=known)


def _coordinator_record(
    key: Node, value: Node, types: dict[int, str], budget: TreeSizeLimit
) -> None:
    builder, pos = _inside(key, budget, "its key is null; it begins with an int16")
    kind, number, pos = builder.number(key, "type", "int16", pos)
    name = types.get(number)
    if name is None:
        kind.meaning = "unknown"
        builder.rest(key, pos, key.end)
        return
    kind.meaning = name
    _message(builder, key, f"{name}Key", message_class(f"{name}Key").LATEST_STABLE, pos)
    if value.value is None:
        value.meaning = "a tombstone"
        return
    _coordinator_value(value, name, budget)


def _coordinator_value(value: Node, name: str, budget: TreeSizeLimit) -> None:
    builder, pos = _inside(value, budget, "")
    node, version, pos = builder.number(value, "version", "int16", pos)
    _message(builder, value, f"{name}Value", version, pos, node)


def _metadata_record(value: Node, types: dict[int, str], budget: TreeSizeLimit) -> None:
    builder, pos = _inside(value, budget, "a metadata record has no value")
    frame, number, pos = builder.uvarint(value, "frame_version", pos)
    if number != FRAME_VERSION:
        builder.stop(frame, f"frame version {number}", frame.offset, f"{FRAME_VERSION}")
    kind, api_key, pos = builder.uvarint(value, "type", pos)
    version_node, version, pos = builder.uvarint(value, "version", pos)
    for node, number in ((kind, api_key), (version_node, version)):
        if number > _LARGEST:
            builder.stop(node, f"{node.name} {number}", node.offset, f"at most {_LARGEST}")
    name = types.get(api_key)
    if name is None:
        kind.meaning = "unknown"
        builder.rest(value, pos, value.end)
        return
    kind.meaning = name
    _message(builder, value, name, version, pos, version_node)


def _inside(node: Node, budget: TreeSizeLimit, if_null: str) -> tuple[NodeBuilder, int]:
    """Returns a builder for the child nodes of a key or value, and the position at which it starts.

    Raises UnreadableError, with `if_null` as the reason, if the key or value is null.
    """
    content = node.value
    limit = node.end
    builder = NodeBuilder(node.source, limit, budget, node.buffer, "stored")
    if not isinstance(content, bytes):
        builder.stop(node, if_null, node.offset)
    node.own_size -= len(content)
    node.value = len(content)
    node.meaning = ""
    return builder, limit - len(content)


def _message(
    builder: NodeBuilder,
    parent: Node,
    name: str,
    version: int,
    pos: int,
    version_node: Node | None = None,
    *,
    exact: bool = True,
) -> None:
    """Adds a node for the message `name` to `parent`.

    The message has the bytes of `parent` from `pos` on.

    With `exact`, bytes after the message are a fault.
    """
    cls = message_class(name)
    if version not in cls.VALID_VERSIONS:
        known = cls.VALID_VERSIONS
        reason = f"version {version} of {name} is not one of {known.start} to {known.stop - 1}"
        at = version_node or parent
        builder.fault(at, reason, at.offset, f"{known.start} to {known.stop - 1}")
        builder.rest(parent, pos, parent.end)
        return
    shape = layout(union()[name.removesuffix("_")], version)
    root = builder.node(parent, name, "message", pos)
    root.path = parent.path
    root.value = f"{name} v{version}"
    reader = MessageReader(
        parent.source,
        parent.end,
        name,
        builder.budget,
        secrets=lambda struct: secret_attributes_of(cls, struct),
        buffer=builder.buffer,
        layer="stored",
    )
    try:
        end = reader.read(shape, root)
    except UnreadableError as error:
        end = max(error.fault.offset, reader.reached)
        builder.rest(parent, end, parent.end)
    else:
        if end < parent.end and exact:
            reason = f"{parent.end - end} bytes follow the end of the message"
            builder.fault(root, reason, end, "the end of the message")
        builder.rest(parent, end, parent.end, "trailing")
    if has_secrets(cls):
        for child in parent.children:
            if child.kind in ("unread", "trailing"):
                child.secret = True
