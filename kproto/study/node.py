"""Defines the tree of annotated bytes: nodes and faults, as plain data.

Knows no message. Every byte of the input belongs to exactly one node: the own bytes of all nodes
of one buffer, in the order of the tree, are the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DEFAULT_MAX_NODES", "Budget", "Fault", "Node", "faults", "nodes"]

#: Most nodes that a tree keeps by default: some 40 MB. Bytes after them are still read and checked;
#: their nodes are counted in `left_out`.
DEFAULT_MAX_NODES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Describes one error in the bytes.

    `offset` counts as in `Node`; `path` is that of the field, "" for the message. `expected`
    describes valid bytes, if they are known. `layer` is `message` if `decode` of the message raises
    the error, `records` for an error in the record batches inside, and `stored` for an error in a
    message inside a record.
    """

    reason: str
    path: str
    offset: int
    expected: str = ""
    layer: str = "message"


@dataclass(slots=True, eq=False)
class Node:
    """Describes some bytes: their position, field, value and meaning.

    `offset` counts from the start of `source`: the input, or the decompressed bytes of a batch.
    `buffer` is the path of the compressed field in the second case, else "". `size` is the length
    with all children; `own_size` counts the leading bytes that belong to no child, such as the
    count of an array, or the length and content of a string.

    `name` and `path` are those of errors (`topics`, `[0]`; `topics[0].partitions`). `kind` is the
    type: a primitive of the definitions, `array`, `struct`, `tags` or another kind that
    docs/how-to/decode.md lists. `value` is a number, str, bytes, bool, Uuid, None for null; for an
    array, its count. `meaning` explains the value, `about` the field. `notes` report oddities that
    are no fault. `left_out` counts the nodes below that are not kept.
    """

    name: str
    path: str
    kind: str
    offset: int
    source: bytes
    size: int = 0
    own_size: int = 0
    value: object = None
    meaning: str = ""
    about: str = ""
    buffer: str = ""
    secret: bool = False
    children: list[Node] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: int = 0
    fault: Fault | None = None

    @property
    def end(self) -> int:
        """Returns the offset after its last byte."""
        return self.offset + self.size

    @property
    def own_bytes(self) -> bytes:
        """Returns the bytes that belong to this node and to no child."""
        return self.source[self.offset : self.offset + self.own_size]

    def child(self, name: str) -> Node:
        """Returns the first child of that name. Raises KeyError when there is none."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(f"{self.path or self.name} has no {name}")


class Budget:
    """Limits how many nodes a tree keeps; None for any number."""

    def __init__(self, most: int | None = DEFAULT_MAX_NODES) -> None:
        self.remaining = most

    @property
    def spent(self) -> bool:
        """Returns whether no more are kept."""
        return self.remaining is not None and self.remaining <= 0

    def add(self, parent: Node, child: Node) -> None:
        """Adds `child` to `parent`, or only counts it."""
        if self.remaining is None:
            parent.children.append(child)
        elif self.remaining > 0:
            self.remaining -= 1
            parent.children.append(child)
        else:
            parent.left_out += 1


def nodes(root: Node) -> Iterator[Node]:
    """Yields the node and all its descendants, each before its children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def faults(root: Node) -> list[Fault]:
    """Returns every fault in the tree, in the order of the nodes."""
    return [node.fault for node in nodes(root) if node.fault is not None]
