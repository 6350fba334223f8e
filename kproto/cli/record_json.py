"""Converts records to lines of JSON, which `kproto produce --json` reads back byte for byte.

A line is an object. `key` and `value` are text or null; bytes that are no UTF-8 text stand in
`key_base64` and `value_base64` instead. `headers` is an array of [name, value] in order, duplicates
included; a header value is text, null, or {"base64": "…"}, and a name that is no UTF-8 text is
{"base64": "…"}, too. Kafka's header names are text, but brokers store any bytes. A record that was
read also has `topic`, `partition`, `offset`, and `timestamp` in ms.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ..client import ProducerRecord
from ..records.record import Record
from ..schema.unknown_names import nearest
from ..wire.errors import EncodeError

__all__ = ["input_line", "record_line", "record_of_line"]

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Source(NamedTuple):
    """A number of a line, as the text that the line has: a float would lose digits."""

    text: str


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in order; a name may occur twice."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_DECODE: Final = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_float=_Source,
    parse_int=_Source,
    parse_constant=_no_constant,
).decode

_KNOWN: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "key_base64",
    "value",
    "value_base64",
    "headers",
)

#: The value of `timestamp_type` that a line names; create time is left out.
_LOG_APPEND_TIME: Final = 1


def record_line(record: Record) -> bytes:
    """Returns the line of a record, without a newline."""
    entries: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
    }
    if record.timestamp >= 0:
        entries["timestamp"] = record.timestamp
    if record.timestamp_type == _LOG_APPEND_TIME:
        entries["timestamp_type"] = "LogAppendTime"
    _add_content(entries, record.key, record.value, record.headers)
    return _ENCODE(entries).encode("utf-8", "backslashreplace")


def _add_content(
    entries: dict[str, Any],
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> None:
    """Adds key, value and headers, if there are any, to the entries of a line."""
    for name, data in (("key", key), ("value", value)):
        if data is None:
            entries[name] = None
            continue
        try:
            entries[name] = data.decode()
        except UnicodeDecodeError:
            entries[f"{name}_base64"] = base64.b64encode(data).decode()
    if headers:
        entries["headers"] = [[_header_name(name), _header_value(data)] for name, data in headers]


def _header_name(name: str) -> str | dict[str, str]:
    """Returns a name; a byte that is no UTF-8 is a lone surrogate in a name that was read."""
    try:
        name.encode()
    except UnicodeEncodeError:
        data = name.encode("utf-8", "surrogateescape")
        return {"base64": base64.b64encode(data).decode()}
    return name


def _header_value(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def input_line(topic: str, record: ProducerRecord) -> bytes:
    """Returns the line of a record that was not sent, without a newline."""
    entries: dict[str, Any] = {"topic": topic}
    _add_content(entries, record.key, record.value, record.headers)
    for name in ("partition", "timestamp"):
        if getattr(record, name) is not None:
            entries[name] = getattr(record, name)
    return _ENCODE(entries).encode("utf-8", "backslashreplace")


def record_of_line(line: bytes) -> tuple[ProducerRecord, str | None]:
    """Returns the record of a line, and the topic in the line or None.

    A `value` that is no text and not null is sent as compact JSON, with its numbers unchanged.
    `offset` and `timestamp_type` are ignored. Raises EncodeError if the line is no such object; the
    text says what is wrong.
    """
    try:
        members = _DECODE(line.decode())
    except ValueError as error:
        raise EncodeError(f"is no JSON: {error}") from error
    if not isinstance(members, _Members):
        raise EncodeError("is no JSON object")
    entries = dict(members)
    if len(entries) < len(members):
        names = [name for name, _ in members]
        raise EncodeError(f"has {next(name for name in names if names.count(name) > 1)!r} twice")
    for name in entries:
        if name not in _KNOWN:
            known = ", ".join(nearest(name, _KNOWN) or _KNOWN)
            raise EncodeError(f"has the unknown name {name!r:.80}; known: {known}")
    record = ProducerRecord(
        _payload(entries, "value"),
        _payload(entries, "key"),
        _headers(entries.get("headers", ())),
        _number(entries, "timestamp"),
        _number(entries, "partition"),
    )
    topic = entries.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise EncodeError("topic is no name")
    if "value" not in entries and entries.get("value_base64") is None:
        raise EncodeError('has no value; a tombstone is "value": null')
    return record, topic


def _payload(entries: dict[str, Any], name: str) -> bytes | None:
    encoded = entries.get(f"{name}_base64")
    if encoded is not None:
        if name in entries:
            raise EncodeError(f"has both {name} and {name}_base64")
        return _base64(encoded, f"{name}_base64")
    found = entries.get(name)
    if found is None:
        return None
    return _utf8(found if isinstance(found, str) else _compact(found), name)


def _compact(value: Any) -> str:
    """Returns JSON without spaces; numbers and the order of members stay as in the line."""
    match value:
        case _Source():
            return value.text
        case _Members():
            return "{" + ",".join(f"{_ENCODE(key)}:{_compact(its)}" for key, its in value) + "}"
        case list():
            return "[" + ",".join(map(_compact, value)) + "]"
    return _ENCODE(value)


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"{name} has a lone surrogate, which UTF-8 cannot carry") from None


def _base64(text: object, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)  # type: ignore[arg-type]  # raises TypeError
    except (ValueError, TypeError) as error:
        raise EncodeError(f"{name} is no base64: {text!r:.80}") from error


def _headers(found: object) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    for entry in found if isinstance(found, list | tuple) else [None]:
        match entry:
            case [[("base64", text)], value]:
                decoded = _base64(text, "a header name").decode("utf-8", "surrogateescape")
                headers += _headers([[decoded, value]])
            case [str(name), None]:
                headers.append((name, None))
            case [str(name), str(text)]:
                headers.append((name, _utf8(text, f"header {name!r}")))
            case [str(name), [("base64", text)]]:
                headers.append((name, _base64(text, f"header {name!r}")))
            case _:
                raise EncodeError(
                    'headers should be an array of [name, value], such as [["trace", "7"]]; a '
                    'value is text, null or {"base64": "…"}, a name text or {"base64": "…"}'
                )
    return headers


def _number(entries: dict[str, Any], name: str) -> int | None:
    found = entries.get(name)
    if found is None:
        return None
    if isinstance(found, _Source) and found.text.lstrip("-").isdigit():
        return int(found.text)
    text = found.text if isinstance(found, _Source) else repr(found)
    raise EncodeError(f"{name} is {text:.80}, which is no whole number")
