"""The tree of annotated bytes: nodes and faults, as plain data.

Knows no message. Every byte of what was read is one node's own: the own bytes of all nodes of one
buffer, in the order of the tree, are the bytes that were given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DEFAULT_MAX_NODES", "Budget", "Fault", "Node", "faults", "nodes"]

#: Most nodes that a tree keeps, unless the caller says otherwise: some 40 MB. What comes behind
#: them is read and checked all the same, and counted in `left_out`.
DEFAULT_MAX_NODES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong. `offset` counts as that of nodes; `path` is the field's, "" for the message.

    `expected` says what should stand there, as far as that is known. `layer` is `message` for what
    `decode` of the message refuses; `records` for what is wrong in the record batches inside, and
    `stored` for what is wrong in a message inside a record.
    """

    reason: str
    path: str
    offset: int
    expected: str = ""
    layer: str = "message"


@dataclass(slots=True, eq=False)
class Node:
    """Some bytes and what they are.

    `offset` counts from the start of `source`, which is the bytes that were given, or for what
    stood compressed in them those that came of it; `buffer` is then the path of what was
    compressed, else "". `size` is the length with all children, `own` how many bytes at its front
    belong to no child: the count of an array, the length and content of a string.

    `name` and `path` are the words of errors (`topics`, `[0]`; `topics[0].partitions`). `kind` is
    the type: a primitive of the definitions, `array`, `struct`, `tags` and what
    docs/how-to/decode.md lists. `value` is a number, str, bytes, bool, Uuid, None for null; of an
    array its count.
    `meaning` says what the value stands for, `about` what the field is for. `notes` are oddities
    that are no fault. `left_out` counts nodes below that are not kept.
    """

    name: str
    path: str
    kind: str
    offset: int
    source: bytes
    size: int = 0
    own: int = 0
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
        """The offset behind its last byte."""
        return self.offset + self.size

    @property
    def own_bytes(self) -> bytes:
        """The bytes that are its own and no child's."""
        return self.source[self.offset : self.offset + self.own]

    def child(self, name: str) -> Node:
        """The first child of that name. Raises KeyError when there is none."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(f"{self.path or self.name} has no {name}")


class Budget:
    """How many nodes may still be kept; None for any number."""

    def __init__(self, most: int | None = DEFAULT_MAX_NODES) -> None:
        self.left = most

    @property
    def spent(self) -> bool:
        """Whether no more are kept."""
        return self.left is not None and self.left <= 0

    def add(self, parent: Node, child: Node) -> None:
        """Put `child` below `parent`, or only count it."""
        if self.left is None:
            parent.children.append(child)
        elif self.left > 0:
            self.left -= 1
            parent.children.append(child)
        else:
            parent.left_out += 1


def nodes(root: Node) -> Iterator[Node]:
    """The node and all below it, each before its children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def faults(root: Node) -> list[Fault]:
    """Every fault in the tree, in the order of the nodes."""
    return [node.fault for node in nodes(root) if node.fault is not None]
