"""Decodes the messages inside bytes fields: subscriptions and assignments of group members.

The bytes begin with an int16 version. A version above the highest known version is read as the
highest known version. The bytes may end before any field except the first, as kafka-go and older
releases of sarama write them; a note names the first missing field. Bytes that do not read exactly
as such a message stay bytes, because a group may use an embedded protocol other than the consumer
protocol.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..schema.definitions import union
from ..schema.layout import LayoutField, StructLayout, layout
from .message_reader import MessageReader, UnreadableError
from .node import Node, TreeSizeLimit
from .node_builder import NodeBuilder

__all__ = ["open_embedded"]

_SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
_ASSIGNMENT: Final = "ConsumerProtocolAssignment"

#: The embedded message, by the outer message and the attribute of the field.
_EMBEDDED: Final = {
    ("DescribeGroupsResponse", "member_assignment"): _ASSIGNMENT,
    ("DescribeGroupsResponse", "member_metadata"): _SUBSCRIPTION,
    ("GroupMetadataValue", "assignment"): _ASSIGNMENT,
    ("GroupMetadataValue", "subscription"): _SUBSCRIPTION,
    ("JoinGroupRequest", "metadata"): _SUBSCRIPTION,
    ("JoinGroupResponse", "metadata"): _SUBSCRIPTION,
    ("SyncGroupRequest", "assignment"): _ASSIGNMENT,
    ("SyncGroupResponse", "assignment"): _ASSIGNMENT,
}


def open_embedded(message: str, node: Node, field: LayoutField, budget: TreeSizeLimit) -> None:
    """Adds the fields of an embedded message to `node`, a bytes field of `message`.

    Does nothing if the field has no embedded message, or if its bytes cannot be decoded.
    """
    name = _EMBEDDED.get((message, field.attribute))
    content = node.value
    if name is None or not isinstance(content, bytes) or len(content) < 2:
        return
    spec = union()[name]
    version = int.from_bytes(content[:2], "big", signed=True)
    if version < 0:
        return
    shape = layout(spec, min(version, spec.valid_versions.highest))
    start = node.end - len(content)
    present = next(
        (
            replace(shape, fields=shape.fields[:count])
            for count in range(len(shape.fields), 0, -1)
            if _fills(node, start + 2, name, replace(shape, fields=shape.fields[:count]))
        ),
        None,
    )
    if present is None:
        return
    node.own_size -= len(content)
    node.value = len(content)
    builder = NodeBuilder(node.source, node.end, budget, node.buffer, "stored")
    builder.number(node, "version", "int16", start)
    root = builder.node(node, name, "message", start + 2)
    root.path = node.path
    root.value = f"{name} v{shape.version}"
    reader = MessageReader(node.source, node.end, name, budget, buffer=node.buffer, layer="stored")
    reader.read(present, root)
    missing = shape.fields[len(present.fields) :]
    if missing:
        root.notes.append(f"the bytes end before {missing[0].attribute}")


def _fills(node: Node, start: int, name: str, shape: StructLayout) -> bool:
    """Returns True if a struct of this layout extends from `start` exactly to the node's end."""
    trial = Node("", node.path, "message", start, node.source)
    try:
        end = MessageReader(node.source, node.end, name, TreeSizeLimit(0)).read(shape, trial)
    except UnreadableError:
        return False
    return end == node.end
