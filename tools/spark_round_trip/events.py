"""Creates random CloudEvents with all attributes as Arrow tables; a seed determines them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

__all__ = ["SCHEMA", "random_events"]

SCHEMA: Final = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("subject", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("dataschema", pa.string()),
        ("datacontenttype", pa.string()),
        ("extensions", pa.map_(pa.string(), pa.string())),
        ("data", pa.binary()),
        ("key", pa.binary()),
    ]
)

_SOURCES: Final = ("/s", "urn:x:1", "https://example.org/%C3%A4", "a/b?c=d&e=%20")
_CONTENT_TYPES: Final = ("application/json", "text/plain", "application/octet-stream", "image/png")
_SCHEMAS: Final = ("https://example.org/schema", "urn:schema:7")
_NAMES: Final = ("traceparent", "partitionkey", "a", "b1", "n0n", "x" * 20)
#: Characters of texts: mostly printable ASCII, some characters of two to four bytes in UTF-8, and
#: some that headers or JSON must escape.
_PLAIN: Final = "".join(map(chr, range(0x20, 0x7F)))
_OTHERS: Final = 'äß€漢字😀"%\\\u00a0\u2028'
_DATA: Final = (
    b"",
    b"null",
    b"true",
    b"0.10",
    b'"text"',
    b'{"n": 1, "n": 2}',
    b'{"a":[1,2,{"b":null}]}',
    b"[1e999]",
    b"no json",
    b"\xff\x00\x80",
)
_FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
_SECONDS: Final = int((datetime(9999, 12, 30, tzinfo=UTC) - _FIRST).total_seconds())


def random_events(first: int, count: int, seed: int) -> pa.Table:
    """Returns `count` events, numbered from `first`; each id begins with the event's number."""
    dice = random.Random(f"{seed}-{first}")
    rows = [_event(first + number, dice) for number in range(count)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _event(number: int, dice: random.Random) -> dict[str, Any]:
    likely = dice.random
    return {
        "id": f"{number}-{_text(dice)}" if likely() < 0.3 else str(number),
        "source": dice.choice(_SOURCES),
        "type": "org.example.event" if likely() < 0.8 else _text(dice),
        "subject": _text(dice) if likely() < 0.4 else None,
        "time": _time(dice) if likely() < 0.8 else None,
        "dataschema": dice.choice(_SCHEMAS) if likely() < 0.2 else None,
        "datacontenttype": dice.choice(_CONTENT_TYPES) if likely() < 0.7 else None,
        "extensions": [(name, _text(dice)) for name in dice.sample(_NAMES, dice.randrange(4))],
        "data": _data(dice) if likely() < 0.95 else None,
        "key": dice.randbytes(dice.randrange(12)) if likely() < 0.7 else None,
    }


def _text(dice: random.Random) -> str:
    characters = _PLAIN if dice.random() < 0.8 else _PLAIN[::7] + _OTHERS
    return "".join(dice.choices(characters, k=dice.randrange(1, 13)))


def _time(dice: random.Random) -> datetime:
    found = _FIRST + timedelta(seconds=dice.randrange(_SECONDS))
    if dice.random() < 0.7:
        found = found.replace(year=2026, day=min(found.day, 28))
    return found.replace(microsecond=dice.choice((0, 500_000, 120_000, dice.randrange(1_000_000))))


def _data(dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.3:
        return dice.choice(_DATA)
    if kind < 0.8:
        return b'{"number": %d, "text": "%s"}' % (dice.randrange(10**6), b"x" * dice.randrange(90))
    return dice.randbytes(dice.randrange(200))
