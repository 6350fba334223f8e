"""Builds nodes for numbers, varints and bytes that are not fields of a message.

They are the fields of frames, record batches and records, and the prefixes of stored messages.
"""

from __future__ import annotations

import struct
from typing import Final, NoReturn

from .message_reader import UnreadableError, minimal_size
from .node import Fault, Node, TreeSizeLimit

__all__ = ["NodeBuilder", "printable_text"]

_FORMATS: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
}


class NodeBuilder:
    """Builds nodes for the values in `data[:limit]`.

    `layer` is where their faults are: see `Fault.layer`.
    """

    def __init__(
        self,
        data: bytes,
        limit: int,
        budget: TreeSizeLimit,
        buffer: str = "",
        layer: str = "records",
    ) -> None:
        self.data = data
        self.limit = limit
        self.budget = budget
        self.buffer = buffer
        self.layer = layer

    def node(self, parent: Node, name: str, kind: str, pos: int) -> Node:
        """Adds a node without bytes to `parent`, and returns it."""
        path = f"{parent.path}{name}" if name.startswith("[") else f"{parent.path}.{name}"
        node = Node(name, path.lstrip("."), kind, pos, self.data, buffer=self.buffer)
        self.budget.add(parent, node)
        return node

    def number(self, parent: Node, name: str, kind: str, pos: int) -> tuple[Node, int, int]:
        """Reads a number of fixed width; returns its node, its value and the position after it.

        Raises UnreadableError if the number goes beyond the limit.
        """
        shape = _FORMATS[kind]
        node = self.node(parent, name, kind, pos)
        end = pos + shape.size
        if end > self.limit:
            self.stop(node, f"{shape.size} bytes are needed and {self.limit - pos} are left", pos)
        (value,) = shape.unpack_from(self.data, pos)
        node.size = node.own_size = shape.size
        node.value = value
        return node, value, end

    def uvarint(self, parent: Node, name: str, pos: int) -> tuple[Node, int, int]:
        """Reads an unsigned varint of up to 5 bytes; returns and raises as `number` does."""
        node = self.node(parent, name, "uvarint", pos)
        value, end = self.bits(node, pos, 5)
        node.value = value
        return node, value, end

    def varint(self, parent: Node, name: str, pos: int, longest: int = 5) -> tuple[Node, int, int]:
        """Reads a signed (zigzag) varint of up to 5 bytes, or a varlong if `longest` is 10.

        Returns and raises as `number` does.
        """
        node = self.node(parent, name, "varint" if longest == 5 else "varlong", pos)
        bits, end = self.bits(node, pos, longest)
        value = (bits >> 1) ^ -(bits & 1)
        node.value = value
        return node, value, end

    def bits(self, node: Node, pos: int, longest: int) -> tuple[int, int]:
        """Reads a varint of up to `longest` bytes, and assigns its bytes to `node`.

        Returns the unsigned value and the position after it. Raises UnreadableError if the varint
        is too long or goes beyond the limit.
        """
        mask = 0xFFFFFFFF if longest == 5 else 0xFFFFFFFFFFFFFFFF
        value = 0
        for index in range(longest):
            at = pos + index
            if at >= self.limit:
                self.assign_bytes(node, at)
                self.stop(node, "the bytes end inside a varint", at)
            byte = self.data[at]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                self.assign_bytes(node, at + 1)
                if value & mask == value and index + 1 > minimal_size(value):
                    node.notes.append(
                        f"the varint takes {index + 1} bytes; {minimal_size(value)} would do"
                    )
                return value & mask, at + 1
        raise UnreadableError(self.fault(node, f"a varint of more than {longest} bytes", pos))

    def content(self, node: Node, pos: int, length: int) -> int:
        """Sets the value of `node` to the `length` bytes at `pos`; null for a negative `length`.

        Returns the position after the bytes. Raises UnreadableError if they extend beyond the
        limit.
        """
        if length < -1:
            node.notes.append(f"the length is {length}; clients write -1 for null")
        end = pos + max(length, 0)
        if end > self.limit:
            reason = f"length {length} goes {end - self.limit} bytes past the end"
            self.stop(node, reason, node.offset)
        self.assign_bytes(node, end)
        node.value = None if length < 0 else self.data[pos:end]
        if length > 0:
            node.meaning = printable_text(self.data[pos:end])
        return end

    @staticmethod
    def assign_bytes(node: Node, end: int) -> None:
        """Assigns the bytes from the offset of `node` to `end` to `node`, and to no child of it."""
        node.own_size = node.size = end - node.offset

    def fault(self, node: Node, reason: str, offset: int, expected: str = "") -> Fault:
        """Adds a fault to `node` if it has none; returns the fault of `node`.

        Raises nothing, so the caller can continue to read.
        """
        node.fault = node.fault or Fault(reason, node.path, offset, expected, self.layer)
        return node.fault

    def stop(self, node: Node, reason: str, offset: int, expected: str = "") -> NoReturn:
        """Adds a fault to `node`. Raises UnreadableError."""
        raise UnreadableError(self.fault(node, reason, offset, expected))

    def rest(self, parent: Node, pos: int, end: int, kind: str = "unread") -> None:
        """Adds a node for the unread bytes from `pos` to `end` to `parent`, if there are any."""
        if pos < end:
            node = self.node(parent, kind, kind, pos)
            self.assign_bytes(node, end)
            node.notes.append(f"{end - pos} bytes that are not read")


def printable_text(data: bytes) -> str:
    """Returns the bytes as a quoted string if they are printable UTF-8, else ""."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return repr(text) if text.isprintable() else ""
