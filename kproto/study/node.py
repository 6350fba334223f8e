"""Defines the tree of decoded bytes: nodes and faults.

If no node is left out, each byte of the input belongs to exactly one node. To get the input, join
the `own_bytes` of the nodes whose `buffer` is "", in the order of the tree. To get the bytes of a
decompressed batch, join the `own_bytes` of the nodes whose `buffer` is the path of the batch's
compressed field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["DEFAULT_MAX_NODES", "Fault", "Node", "TreeSizeLimit", "faults", "nodes"]

#: Default of the maximum number of nodes of a tree; so many nodes take about 40 MB. Later bytes are
#: still read and checked; their nodes are only counted, in `left_out`.
DEFAULT_MAX_NODES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in the bytes.

    `path` is the path of the field, "" for the whole message. `offset` counts as in `Node`.
    `expected` describes valid bytes, "" if unknown. `layer` is one of

    - `message`: `decode` of the message raises the error;
    - `records`: the error is in the record batches of the message;
    - `stored`: the error is in a message inside a record or a bytes field.
    """

    reason: str
    path: str
    offset: int
    expected: str = ""
    layer: str = "message"


@dataclass(slots=True, eq=False)
class Node:
    """A part of the input, such as a message, a field or an element, with its bytes and value.

    - `name`: as in errors, such as `topics` or `[0]`.
    - `path`: as in errors, such as `topics[0].partitions`.
    - `kind`: a primitive type, `array`, `struct`, `tags`, or a kind in docs/how-to/decode.md.
    - `source`: the input, or the decompressed bytes of a batch. `offset` counts from its start.
    - `buffer`: the path of the compressed field if `source` was decompressed, else "".
    - `size`: the length with all children. `own_size`: the leading bytes that belong to no child,
      such as the count of an array, or the length and content of a string.
    - `value`: a number, str, bytes, bool or Uuid; None for null; the count of an array.
    - `meaning`: describes the value. `about`: describes the field.
    - `notes`: unusual but valid encodings, such as a longer varint than needed.
    - `left_out`: the number of children that are not kept.
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

    def __getstate__(self) -> object:
        """Returns the slots; without this method, the pickle protocols 0 and 1 refuse slots."""
        return object.__getstate__(self)  # `super` fails in a dataclass with slots

    @property
    def end(self) -> int:
        """Returns the offset after the last byte of the node."""
        return self.offset + self.size

    @property
    def own_bytes(self) -> bytes:
        """Returns the leading bytes of the node that belong to no child."""
        return self.source[self.offset : self.offset + self.own_size]

    def child(self, name: str) -> Node:
        """Returns the first child called `name`. Raises KeyError if there is none."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(f"{self.path or self.name} has no {name}")


class TreeSizeLimit:
    """Limits the number of nodes in a tree to `most`; None for no limit."""

    def __init__(self, most: int | None = DEFAULT_MAX_NODES) -> None:
        self.remaining = most

    @property
    def spent(self) -> bool:
        """Returns True if the tree has its maximum number of nodes."""
        return self.remaining is not None and self.remaining <= 0

    def add(self, parent: Node, child: Node) -> None:
        """Adds `child` to `parent`; if the tree is full, only counts `child` in `left_out`."""
        if self.remaining is None:
            parent.children.append(child)
        elif self.remaining > 0:
            self.remaining -= 1
            parent.children.append(child)
        else:
            parent.left_out += 1


def nodes(root: Node) -> Iterator[Node]:
    """Yields `root` and its descendants, each node before its children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def faults(root: Node) -> list[Fault]:
    """Returns the faults in the tree, in the order of `nodes`."""
    return [node.fault for node in nodes(root) if node.fault is not None]
