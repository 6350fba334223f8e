"""Formats the records of a topic as JSON, for approval tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from ..records import Record

__all__ = ["topic_snapshot"]


def topic_snapshot(topic: str, partitions: int, records: Iterable[Record]) -> str:
    """Returns JSON with the key, value and headers of each record, by partition.

    Offsets and timestamps are left out, because they differ between runs. The text has a newline at
    its end, and its keys are always in the same order, so that a test can compare it with a file.

    A value that is a JSON object or array becomes `{"json": …}`, other UTF-8 becomes a string, and
    other bytes become `{"base64": …}`. Keys and the values of headers are strings or base64.
    """
    found: list[list[dict[str, Any]]] = [[] for _ in range(partitions)]
    for record in records:
        shown: dict[str, Any] = {"key": _text(record.key), "value": _value(record.value)}
        if record.headers:
            shown["headers"] = [[name, _text(value)] for name, value in record.headers]
        found[record.partition].append(shown)
    return json.dumps({"topic": topic, "partitions": found}, indent=2, ensure_ascii=False) + "\n"


def _value(data: bytes | None) -> object:
    text = _text(data)
    if isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
        try:
            return {"json": json.loads(text)}
        except ValueError:
            return text
    return text


def _text(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
