"""Formats a tree as lines of text.

On a wide terminal, a node is a line: offset, bytes, field, value and meaning. On a narrow terminal
the bytes are left out, and a value or meaning that does not fit gets its own line. Characters that
are not printable are escaped, so that the data cannot control the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..wire.uuid import Uuid
from .node import Fault, Node
from .node_builder import printable_text
from .secret_fields import HIDDEN

__all__ = ["NARROW_COLUMNS", "to_text"]

#: A terminal of fewer columns is narrow.
NARROW_COLUMNS: Final = 90

#: Maximum number of shown characters of a value or meaning.
_SHOWN_CHARACTERS: Final = 72

#: Maximum number of shown bytes of a node: on terminals of 90 to 119 columns, and on wider
#: terminals.
_SHOWN_BYTES: Final = (6, 10)

_FIELD_COLUMNS: Final = 34


def to_text(
    root: Node, *, width: int = 100, show_secrets: bool = False, about: bool = False
) -> Iterator[str]:
    """Yields the lines of the tree, for a terminal of `width` columns.

    With `about`, the description of a field is printed below it. Secrets are hidden unless
    `show_secrets`.
    """
    digits = max(len(str(root.size)), 4)
    shown = _SHOWN_BYTES[width >= 120]
    for node, depth in _with_depth(root):
        if width < NARROW_COLUMNS:
            yield from _narrow(node, depth, digits, width, show_secrets)
        else:
            yield from _wide(node, depth, digits, shown, show_secrets)
        indent = " " * (digits + 4 + 2 * depth)
        for note in node.notes:
            yield f"{indent}note: {note}"
        if about and node.about:
            yield f"{indent}about: {node.about}"
        if node.fault is not None:
            yield from _fault_lines(node.fault, indent)
        if node.left_out:
            yield f"{indent}… and {node.left_out} more, which are not shown"


def _with_depth(root: Node) -> Iterator[tuple[Node, int]]:
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(node.children))


def _wide(node: Node, depth: int, digits: int, shown: int, show_secrets: bool) -> Iterator[str]:
    field = f"{'  ' * depth}{node.name}"
    raw = _hex(node, shown, show_secrets)
    value = _value(node, show_secrets)
    line = f"{_offset(node, digits)}  {raw:<{3 * shown + 2}}  {field:<{_FIELD_COLUMNS}}  {value}"
    meaning = _meaning(node, show_secrets)
    yield f"{line}  ({meaning})" if meaning else line.rstrip()


def _narrow(node: Node, depth: int, digits: int, width: int, show_secrets: bool) -> Iterator[str]:
    head = f"{_offset(node, digits)}  {'  ' * depth}{node.name}"
    line = head
    indent = " " * (digits + 4 + 2 * depth)
    meaning = _meaning(node, show_secrets)
    for part in (_value(node, show_secrets), f"({meaning})" if meaning else ""):
        if part and len(line) + 2 + len(part) <= width:
            line += f"  {part}"
        elif part:
            yield line
            line = f"{indent}{part}"
    yield line


def _offset(node: Node, digits: int) -> str:
    """Returns the offset of a node as text.

    A tilde before it marks an offset in decompressed bytes.
    """
    return f"{'~' if node.buffer else ' '}{node.offset:>{digits}}"


def _hex(node: Node, shown: int, show_secrets: bool) -> str:
    if node.secret and not show_secrets:
        return HIDDEN
    own = node.own_bytes
    more = " …" if len(own) > shown else ""
    return own[:shown].hex(" ") + more


def _meaning(node: Node, show_secrets: bool) -> str:
    if node.secret and not show_secrets:
        return ""
    return _shortened(node.meaning)


def _value(node: Node, show_secrets: bool) -> str:
    if node.secret and not show_secrets:
        return HIDDEN
    value = node.value
    if node.kind in ("struct", "message", "header", "record", "record batch", "tag", "frame"):
        return _of_struct(node)
    if value is None:
        return "" if node.kind in _WITHOUT_VALUE or node.fault else "null"
    if node.kind in ("tags", "array", "records of a batch"):
        return _count(node, value)
    if isinstance(value, bytes):
        return _of_bytes(value, node.meaning)
    if isinstance(value, str):
        return _shortened(repr(value))
    if isinstance(value, Uuid):
        return str(value)
    if node.kind in ("bytes", "records"):
        return f"{value} bytes"
    return str(value)


#: Kinds of nodes for which a value of None does not mean null.
_WITHOUT_VALUE: Final = frozenset({"unread", "trailing", "cut batch", "unknown tag", "header"})


def _of_struct(node: Node) -> str:
    value = node.value
    if node.kind == "tag":
        return f"{node.size} bytes"
    if node.kind == "record":
        return "" if value is None else f"offset {value}"
    if node.kind == "message" and isinstance(value, int):
        return f"offset {value}"
    if value is None:
        return "null" if node.kind == "struct" and node.own_size and not node.fault else ""
    if node.kind == "struct":
        return ""
    return str(value).removeprefix(f"{node.name} ")


def _count(node: Node, value: object) -> str:
    words = {"tags": "tagged field", "array": "element", "records of a batch": "record"}
    return f"{value} {words[node.kind]}{'' if value == 1 else 's'}"


def _of_bytes(value: bytes, meaning: str) -> str:
    size = f"{len(value)} byte{'' if len(value) == 1 else 's'}"
    if meaning or not value:
        return size
    text = printable_text(value[:_SHOWN_CHARACTERS])
    return f"{size}  {text}{'…' if len(value) > _SHOWN_CHARACTERS else ''}" if text else size


def _shortened(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _fault_lines(fault: Fault, indent: str) -> Iterator[str]:
    field = f"field {fault.path}, " if fault.path else ""
    yield f"{indent}FAULT at byte {fault.offset}: {field}{fault.reason}"
    if fault.expected:
        yield f"{indent}      expected: {fault.expected}"
