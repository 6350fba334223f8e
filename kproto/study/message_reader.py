"""Reads a message by its layout into a tree of nodes, up to its end or the first error.

The reader shares no code with the generated codec or with `schema.wire_validation`, so that tests
can compare their results. A `ContentReader` decodes the content of records and bytes fields, and
`meanings` describes fields and values.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NoReturn, TypeAlias

from ..schema.layout import FORMATS, LayoutField, StructLayout, WireType
from ..wire.limits import (
    MAX_ARRAY_ELEMENTS,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAX_TAGGED_FIELDS,
)
from ..wire.uuid import Uuid
from .meanings import KAFKA_MEANINGS, Meanings
from .node import Fault, Node, TreeSizeLimit

__all__ = ["ContentReader", "MessageReader", "Secrets", "UnreadableError", "minimal_size"]

#: Decodes the content of a records or bytes field. The arguments are the node of the field, the
#: field, and the topic that the message names before the field. If the function adds children to
#: the node, the bytes belong to the children.
ContentReader: TypeAlias = Callable[[Node, LayoutField, str], None]

#: Returns the secret attributes of a struct, by the name of its class.
Secrets: TypeAlias = Callable[[str], frozenset[str]]

_FIXED: Final = {kind: struct.Struct(">" + letter) for kind, letter in FORMATS.items()}
_LENGTH_BYTES: Final = {"string": 2}
_LENGTHS: Final = {2: struct.Struct(">h"), 4: struct.Struct(">i")}
_LONGEST_VARINT: Final = 5

#: Attributes that name the topic of the records that follow in the message.
_TOPIC_NAMES: Final = frozenset({"name", "topic", "topic_name"})

#: The id of the topic of the metadata log (KIP-595).
_METADATA_TOPIC_ID: Final = bytes(15) + b"\1"


class UnreadableError(Exception):
    """Raised at a fault that ends the reading. The tree already has the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


def minimal_size(value: int) -> int:
    """Returns how many bytes the shortest unsigned varint of `value` has."""
    return max(1, (value.bit_length() + 6) // 7)


class MessageReader:
    """Reads messages in `data[:limit]`; offsets count from the start of `data`.

    `message` is the name of the message. `layer` is where its faults are: see `Fault.layer`.
    `budget` limits the number of nodes in the tree of the read values. `meanings` describe fields
    and values.
    """

    def __init__(
        self,
        data: bytes,
        limit: int,
        message: str,
        budget: TreeSizeLimit,
        *,
        secrets: Secrets = lambda _: frozenset(),
        inside: ContentReader | None = None,
        buffer: str = "",
        layer: str = "message",
        meanings: Meanings = KAFKA_MEANINGS,
    ) -> None:
        self.data = data
        self.size = limit
        self.message = message
        self.budget = budget
        self.secrets = secrets
        self.inside = inside
        self.buffer = buffer
        self.layer = layer
        self.meanings = meanings
        self.topic = ""
        #: The offset after the last byte that belongs to a node.
        self.reached = 0

    def read(self, shape: StructLayout, root: Node) -> int:
        """Reads the message that begins at `root`; returns the position after it.

        Adds the fields of the message to `root`. Raises UnreadableError at the first fault.
        """
        self.reached = root.offset
        try:
            end = self.fields(shape, root, root.offset, root.path)
        except UnreadableError:
            root.size = self.reached - root.offset
            raise
        root.size = end - root.offset
        return end

    # Structs

    def fields(self, shape: StructLayout, node: Node, pos: int, path: str) -> int:
        """Reads the fields of a struct, then its tagged fields; returns the position after them."""
        for field in shape.fields:
            pos = self.field(shape, field, node, pos, f"{path}.{field.attribute}".lstrip("."))
        return self.tags(shape, node, pos, path) if shape.flexible else pos

    def field(
        self, shape: StructLayout, field: LayoutField, parent: Node, pos: int, path: str
    ) -> int:
        node = self.node(parent, field.attribute, path, field.type.kind, pos)
        node.about = self.meanings.field(self.message, shape.name, field)
        return self.value(shape, field, field.type, node, pos)

    def node(self, parent: Node, name: str, path: str, kind: str, pos: int) -> Node:
        node = Node(name, path, kind, pos, self.data, buffer=self.buffer)
        self.budget.add(parent, node)
        return node

    def value(
        self,
        shape: StructLayout,
        field: LayoutField,
        kind: WireType,
        node: Node,
        pos: int,
    ) -> int:
        """Reads the value of `node`, which begins at `pos`; returns the position after it."""
        try:
            if kind.kind == "array":
                end = self.array(shape, field, kind, node, pos)
            elif kind.struct is not None:
                end = self.struct(kind, kind.struct, node, pos)
            elif kind.kind in _FIXED:
                end = self.fixed(kind, node, pos)
            else:
                end = self.counted(kind, node, pos)
        except UnreadableError:
            node.size = max(self.reached - node.offset, 0)
            raise
        node.size = end - node.offset
        if kind.struct is None and kind.kind != "array":
            self.finish(shape, field, kind, node)
        return end

    def finish(self, shape: StructLayout, field: LayoutField, kind: WireType, node: Node) -> None:
        """Sets meaning and `secret` of a leaf node, and decodes the content of records or bytes.

        Also remembers the topic that a field names.
        """
        value = node.value
        if field.attribute in _TOPIC_NAMES and isinstance(value, str):
            self.topic = value
        elif field.attribute == "topic_id" and isinstance(value, Uuid):
            self.topic = "__cluster_metadata" if value == _METADATA_TOPIC_ID else ""
        node.secret = field.attribute in self.secrets(shape.class_name) and bool(value)
        node.meaning = self.meanings.value(self.message, shape.name, field.attribute, value)
        if self.inside is not None and kind.kind in ("records", "bytes") and value:
            self.inside(node, field, self.topic)

    def struct(self, kind: WireType, shape: StructLayout, node: Node, pos: int) -> int:
        start = pos
        if kind.nullable:
            if kind.compact:
                mark, pos = self.uvarint(node, pos, "an unsigned varint: 0 for null, 1 for present")
                present = 0 < mark <= MAX_LENGTH
                usual = mark in (0, 1)
            else:
                self.require(node, pos, 1, "a byte: -1 for null, 1 for present")
                mark = self.data[pos]
                pos += 1
                present = mark < 128
                usual = mark in (1, 255)
            self.assign_bytes(node, start, pos)
            if not usual:
                node.notes.append(f"the mark is {mark}, which is read as {_present(present)}")
            if not present:
                return pos
        node.value = shape.class_name
        return self.fields(shape, node, pos, node.path)

    # Tags

    def tags(self, shape: StructLayout, parent: Node, pos: int, path: str) -> int:
        node = self.node(parent, "tagged_fields", path, "tags", pos)
        start = pos
        try:
            count, pos = self.uvarint(node, pos, "a count", "the number of tagged fields: ", path)
            if count > MAX_TAGGED_FIELDS:
                most = f"at most {MAX_TAGGED_FIELDS} are read"
                reason = f"{count} tagged fields are announced; {most}"
                self.stop(node, reason, start, f"a count, {most}", path)
            self.assign_bytes(node, start, pos)
            node.value = count
            previous = -1
            for _ in range(count):
                previous, pos = self.tag(shape, node, pos, path, previous)
        except UnreadableError:
            node.size = max(self.reached - node.offset, 0)
            raise
        node.size = pos - node.offset
        return pos

    def tag(
        self, shape: StructLayout, parent: Node, pos: int, path: str, previous: int
    ) -> tuple[int, int]:
        """Reads a tagged field: its tag, its size in bytes and its content.

        Returns the tag and the position after the field.
        """
        start = pos
        node = self.node(parent, "tag", path, "tag", pos)
        try:
            expected = f"the number of a tag, above {previous}"
            tag, pos = self.uvarint(node, pos, expected, "the number of a tag: ", path)
            if tag <= previous:
                self.stop(node, f"tag {tag} comes after tag {previous}", start, expected, path)
            if tag > MAX_TAG:
                reason = f"tag {tag}; the highest that is read is {MAX_TAG}"
                self.stop(node, reason, start, expected, path)
            elsewhere = shape.tags_of_other_versions().get(tag)
            if elsewhere is not None:
                word = "version" if len(elsewhere) == 1 else "versions"
                reason = f"tag {tag} is a field of {word} {elsewhere} only"
                self.stop(node, reason, start, expected, path)
            node.name, node.value = f"tag {tag}", tag
            what = f"tag {tag}: "
            length, pos = self.uvarint(node, pos, "the size of the field", what, path)
            self.require(node, pos, length, f"the {length} bytes of the field", what, path)
            self.assign_bytes(node, start, pos)
            end = pos + length
            self.content_of_tag(shape, node, tag, pos, end, path)
        except UnreadableError:
            node.size = max(self.reached - node.offset, 0)
            raise
        node.size = end - node.offset
        return tag, end

    def content_of_tag(
        self, shape: StructLayout, node: Node, tag: int, pos: int, end: int, path: str
    ) -> None:
        field = next((field for field in shape.tagged if field.tag == tag), None)
        if field is None:
            node.kind = "unknown tag"
            node.notes.append("no definition has this tag; its bytes are kept")
            self.assign_bytes(node, node.offset, end)
            return
        at = f"{path}.{field.attribute}".lstrip(".")
        inner = self.node(node, field.attribute, at, field.type.kind, pos)
        inner.about = self.meanings.field(self.message, shape.name, field)
        fault_error = self.value(shape, field, field.type, inner, pos)
        if fault_error != end:
            reason = f"tag {tag} announces {end - pos} bytes and holds {fault_error - pos}"
            self.stop(inner, reason, pos, f"{_expected(field.type)} in {end - pos} bytes")

    # Arrays

    def array(
        self, shape: StructLayout, field: LayoutField, kind: WireType, node: Node, pos: int
    ) -> int:
        assert kind.element is not None
        start = pos
        count, pos = self.length(kind, node, pos, 4)
        remaining = self.size - pos
        if count > remaining:
            reason = f"{count} elements are announced and {remaining} bytes are left"
            self.stop(node, reason, start, f"a count of at most {remaining}")
        if count > MAX_ARRAY_ELEMENTS:
            reason = f"{count} elements are announced; at most {MAX_ARRAY_ELEMENTS} are read"
            self.stop(node, reason, start, f"a count of at most {MAX_ARRAY_ELEMENTS}")
        self.assign_bytes(node, start, pos)
        if count < 0:
            return pos
        node.value = count
        element = kind.element
        width = _width(element)
        word = element.kind
        path = node.path
        for index in range(count):
            if self.budget.spent and width is not None:
                return self.skip(node, element, width, index, count, pos)
            inner = self.node(node, f"[{index}]", f"{path}[{index}]", word, pos)
            pos = self.value(shape, field, element, inner, pos)
        return pos

    def skip(
        self, node: Node, element: WireType, width: int, index: int, count: int, pos: int
    ) -> int:
        """Skips the elements of an array from `index` on, because the tree is full.

        Adds their number to `node.left_out`; returns the position after the array. Each element
        must have the same size, `width` bytes. Raises UnreadableError at the first element that
        exceeds the data.
        """
        remaining = count - index
        end = pos + remaining * width
        if end <= self.size:
            node.left_out += remaining
            self.reached = end
            return end
        whole = (self.size - pos) // width
        node.left_out += whole
        pos += whole * width
        self.reached = pos
        at = Node("", f"{node.path}[{index + whole}]", element.kind, pos, self.data)
        if element.struct is None:
            self.fixed(element, at, pos)
        else:
            self.fields(element.struct, at, pos, at.path)
        raise AssertionError("an element past the end was read")

    # Leaves

    def fixed(self, kind: WireType, node: Node, pos: int) -> int:
        shape = _FIXED[kind.kind]
        self.require(node, pos, shape.size, _expected(kind))
        (value,) = shape.unpack_from(self.data, pos)
        end = pos + shape.size
        self.assign_bytes(node, pos, end)
        node.value = Uuid(value) if kind.kind == "uuid" else value
        if kind.kind == "bool" and self.data[pos] > 1:
            node.notes.append(f"the byte is {self.data[pos]}; any but 0 is read as true")
        return end

    def counted(self, kind: WireType, node: Node, pos: int) -> int:
        """Reads a string, bytes or records; returns the position after them."""
        start = pos
        is_text = kind.kind == "string"
        count, pos = self.length(kind, node, pos, 2 if is_text else 4)
        if is_text and count > MAX_STRING_BYTES:
            reason = f"a string of {count} bytes; at most {MAX_STRING_BYTES} are allowed"
            self.stop(node, reason, start, f"a length of at most {MAX_STRING_BYTES}")
        if count < 0:
            self.assign_bytes(node, start, pos)
            return pos
        self.assign_bytes(node, start, pos)
        self.require(node, pos, count, f"the {count} bytes of the {kind.kind}")
        end = pos + count
        content = self.data[pos:end]
        if not is_text:
            node.value = content
        else:
            try:
                node.value = content.decode()
            except UnicodeDecodeError as error:
                reason = f"a string that is not UTF-8 ({error.reason})"
                self.stop(node, reason, pos + error.start, "UTF-8")
        self.assign_bytes(node, start, end)
        return end

    # Lengths and counts

    def length(self, kind: WireType, node: Node, pos: int, width: int) -> tuple[int, int]:
        """Reads a length or count; returns the number (-1 for null) and the position after it.

        `width` is the size of the number in bytes if the type is not compact.
        """
        start = pos
        expected = _expected(kind)
        if kind.compact:
            plus_one, pos = self.uvarint(node, pos, expected)
            count = plus_one - 1
        else:
            self.require(node, pos, width, expected)
            (count,) = _LENGTHS[width].unpack_from(self.data, pos)
            pos += width
            if count < -1:
                self.stop(node, f"a length of {count}", start, expected)
        if count == -1 and not kind.nullable:
            reason = f"null, which {node.path} may not be in this version"
            self.stop(node, reason, start, expected)
        return count, pos

    def uvarint(
        self, node: Node, pos: int, expected: str, of: str = "", path: str | None = None
    ) -> tuple[int, int]:
        value = 0
        for index in range(_LONGEST_VARINT):
            at = pos + index
            if at >= self.size:
                reason = f"{of}1 byte is needed and 0 are left"
                self.stop(node, reason, self.size, expected, path)
            byte = self.data[at]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return self.checked_uint32(node, value, pos, index + 1), at + 1
        reason = f"{of}an unsigned varint of more than {_LONGEST_VARINT} bytes"
        raise self.fault_error(node, reason, pos, expected, path)

    @staticmethod
    def checked_uint32(node: Node, value: int, pos: int, size: int) -> int:
        """Returns the lower 32 bits of a varint.

        Adds a note if the varint has more than 32 bits, or more bytes than necessary.
        """
        low_bits = value & 0xFFFFFFFF
        if low_bits != value:
            node.notes.append("the varint has more than 32 bits; those above are dropped")
        elif size > minimal_size(value):
            node.notes.append(
                f"the varint {value} takes {size} bytes; {minimal_size(value)} would do"
            )
        return low_bits

    # Bytes

    def assign_bytes(self, node: Node, start: int, end: int) -> None:
        """Sets the own bytes of `node` to the bytes from `start` to `end`."""
        node.own_size = end - start
        node.size = max(node.size, end - node.offset)
        self.reached = max(self.reached, end)

    def require(
        self, node: Node, pos: int, size: int, expected: str, of: str = "", path: str | None = None
    ) -> None:
        remaining = self.size - pos
        if size <= remaining:
            return
        needed = "1 byte is" if size == 1 else f"{size} bytes are"
        rest = "1 is" if remaining == 1 else f"{remaining} are"
        self.stop(node, f"{of}{needed} needed and {rest} left", pos, expected, path)

    def stop(
        self, node: Node, reason: str, offset: int, expected: str, path: str | None = None
    ) -> NoReturn:
        """Adds a fault to `node`. Raises UnreadableError."""
        raise self.fault_error(node, reason, offset, expected, path)

    def fault_error(
        self, node: Node, reason: str, offset: int, expected: str, path: str | None
    ) -> UnreadableError:
        """Adds a fault at `offset` to `node`, and returns the error.

        If no node has the bytes before `offset` yet, assigns these bytes to `node`.
        """
        if offset > self.reached:
            self.assign_bytes(node, node.offset, offset)
        field_path = node.path if path is None else path
        node.fault = Fault(reason, field_path, offset, expected, self.layer)
        return UnreadableError(node.fault)


def _width(kind: WireType) -> int | None:
    """Returns the size in bytes that each value of the type has; None if the size varies."""
    if kind.struct is None:
        return _FIXED[kind.kind].size if kind.kind in _FIXED else None
    if kind.nullable or kind.struct.flexible:
        return None
    widths = [_width(field.type) for field in kind.struct.fields]
    return None if None in widths else sum(width or 0 for width in widths)


def _present(present: bool) -> str:
    return "present" if present else "null"


def _expected(kind: WireType) -> str:
    """Describes the wire format of a type, such as `int32, 4 bytes`."""
    null = " or null" if kind.nullable else ""
    if kind.kind in _FIXED:
        size = _FIXED[kind.kind].size
        return f"{kind.kind}, {size} byte{'s' if size > 1 else ''}"
    if kind.struct is not None:
        return f"the struct {kind.struct.class_name}{null}"
    what = "array" if kind.kind == "array" else kind.kind
    if kind.compact:
        return f"compact {what}{null}: an unsigned varint, the length plus one, in front"
    width = 16 if kind.kind == "string" else 32
    return f"{what}{null}: an int{width} length in front"
