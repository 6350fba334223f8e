"""Compares the annotated tree of a message with the generated classes and with `explain_decode`.

An independent reader makes the tree. So the comparison finds a fault of this reader, of the classes
or of `explain_decode`.
"""

from __future__ import annotations

from typing import Any

from kproto.messages.base import Message
from kproto.schema.explain import explain_decode, is_default
from kproto.schema.layout import LayoutField, StructLayout, WireType, layout
from kproto.study import Fault, Node, annotate, faults, nodes
from kproto.wire.tags import RawTaggedField

__all__ = ["check_agreement", "check_every_byte", "check_values", "message_fault"]


def message_fault(root: Node) -> Fault | None:
    """Returns the tree's fault that `decode` must report, or None if `decode` must succeed."""
    return next((fault for fault in faults(root) if fault.layer == "message"), None)


def check_agreement(cls: type[Message], version: int, data: bytes) -> Node:
    """Returns the tree of `data`; checks that its fault equals the fault of `explain_decode`.

    Compares reason, path and offset of the two faults, or checks that there is no fault. Also
    checks that the nodes cover every byte.
    """
    root = annotate(data, cls, version)
    expected = explain_decode(cls._definition(), version, data)
    fault = message_fault(root)
    if expected is None:
        assert fault is None, (fault, data.hex())
    else:
        assert fault is not None, (expected, data.hex())
        told = (fault.reason, fault.path, fault.offset)
        assert told == (expected.reason, expected.field or "", expected.offset), data.hex()
    check_every_byte(root, data)
    return root


def check_every_byte(root: Node, data: bytes) -> None:
    """Checks that the `own_bytes` of all nodes, in the order of the tree, are `data`.

    Also checks that the children of a node follow each other without a gap, from the node's own
    bytes to its end. Decompressed bytes are not part of `data`.
    """
    own = [node for node in nodes(root) if not node.buffer]
    assert b"".join(node.own_bytes for node in own) == data
    for node in nodes(root):
        if node.kind == "records of a batch" or any(c.buffer != node.buffer for c in node.children):
            continue
        at = node.offset + node.own_size
        for child in node.children:
            assert child.offset == at, (node.path, child.path)
            at = child.end
        assert at == node.end or node.fault is not None or not node.children, node.path


def check_values(cls: type[Message], version: int, message: Message, root: Node) -> None:
    """Checks that each value in the tree equals the value in the message that the class decodes."""
    _check_struct(layout(cls._definition(), version), root, message, message_module(cls))


def message_module(cls: type[Message]) -> str:
    return cls.__module__


def _check_struct(shape: StructLayout, node: Node, held: Any, module: str) -> None:
    found: dict[str, Node] = {}
    unknown: list[RawTaggedField] = []
    for child in node.children:
        if child.kind != "tags":
            found[child.name] = child
            continue
        for tag in child.children:
            assert isinstance(tag.value, int)
            if tag.kind == "unknown tag":
                raw = tag.own_bytes
                unknown.append(RawTaggedField(tag.value, raw[_head_of_tag(raw) :]))
            else:
                found[tag.children[0].name] = tag.children[0]
    for field in shape.all_fields():
        value = getattr(held, field.attribute)
        if field.attribute in found:
            _check_value(field, field.type, found.pop(field.attribute), value, module)
        else:
            assert field.tag is not None
            assert is_default(field.spec, value)
    assert unknown == list(held._unknown_tags or ())
    assert set(found) <= {"trailing", "unread"}


def _head_of_tag(raw: bytes) -> int:
    """Returns the size in bytes of a tagged field's head: the varints of its tag and its size."""
    at = seen = 0
    while seen < 2:
        seen += raw[at] < 128
        at += 1
    return at


def _check_value(field: LayoutField, kind: WireType, node: Node, held: Any, module: str) -> None:
    if held is None:
        assert node.value is None, node.path
        return
    if kind.kind == "array":
        assert kind.element is not None
        assert node.value == len(held) == len(node.children), node.path
        for child, element in zip(node.children, held, strict=True):
            _check_value(field, kind.element, child, element, module)
    elif kind.struct is not None:
        _check_struct(kind.struct, node, held, module)
    elif kind.kind in ("bytes", "records"):
        assert node.source[node.end - len(held) : node.end] == held, node.path
    else:
        same = node.value == held or (node.value != node.value and held != held)
        assert same, (node.path, node.value, held)
        assert type(node.value) is type(held) or kind.kind == "bool", node.path
