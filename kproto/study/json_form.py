"""Converts a tree of nodes to JSON data."""

from __future__ import annotations

import math
from typing import Any

from ..wire.uuid import Uuid
from .node import Fault, Node
from .secret_fields import HIDDEN

__all__ = ["to_json"]


def to_json(node: Node, *, show_secrets: bool = False) -> dict[str, Any]:
    """Returns the node and its descendants as JSON data; docs/how-to/decode.md describes the keys.

    Unless `show_secrets`, `value` and `bytes` of a secret are `<hidden>`, and `meaning` is "".
    """
    hidden = node.secret and not show_secrets
    return {
        "offset": node.offset,
        "size": node.size,
        "bytes": HIDDEN if hidden else node.own_bytes.hex(),
        "name": node.name,
        "path": node.path,
        "kind": node.kind,
        "value": HIDDEN if hidden else _plain(node.value),
        "meaning": "" if hidden else node.meaning,
        "about": node.about,
        "buffer": node.buffer,
        "notes": list(node.notes),
        "fault": None if node.fault is None else _fault(node.fault),
        "left_out": node.left_out,
        "children": [to_json(child, show_secrets=show_secrets) for child in node.children],
    }


def _plain(value: object) -> Any:
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "reason": fault.reason,
        "path": fault.path,
        "offset": fault.offset,
        "expected": fault.expected,
        "layer": fault.layer,
    }
