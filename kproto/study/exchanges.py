"""Pairs requests with their responses.

Formats the pairs as text or JSON, counts them by API, sums the sizes of each API's messages, and
collects the names of the clients' software.
"""

from __future__ import annotations

import datetime as dt
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ..messages.base import Message
from ..wire.errors import KprotoError
from .conversations import KIND_DESCRIPTIONS, EventKind, Side, TrafficEvent
from .flows import ConnectionEvent
from .redaction import redact_frame, redacted_json

__all__ = [
    "ApiStats",
    "ClientSoftware",
    "Exchange",
    "exchange_as_json",
    "exchange_as_text",
    "exchange_with_messages",
    "note_software",
    "pair_exchanges",
    "software_as_json",
    "software_as_table",
    "stats_as_json",
    "stats_as_table",
    "stats_by_api",
]


class Exchange(NamedTuple):
    """A request and its response. `number` counts from 1.

    `request` is None if it was not captured. `response` is None if brokers do not answer the
    request, such as Produce with acks=0; it is an UNANSWERED event if the response was not
    captured. Any other event, such as missing bytes, is alone in its exchange: as `request` if it
    is from the client's side, else as `response`.
    """

    number: int
    connection_event: ConnectionEvent
    request: TrafficEvent | None
    response: TrafficEvent | None

    @property
    def event(self) -> TrafficEvent:
        """Returns the response, or the request if there is no response."""
        found = self.response or self.request
        assert found is not None
        return found

    @property
    def version(self) -> int | None:
        """Returns the version of the request, or of the response if the request has none."""
        requested = None if self.request is None else self.request.version
        return self.event.version if requested is None else requested

    @property
    def time_us(self) -> int:
        """Returns the time of the request (else the response), in microseconds since 1970."""
        return (self.request or self.event).time_us


def pair_exchanges(events: Iterable[ConnectionEvent]) -> Iterator[Exchange]:
    """Yields the exchanges in the order of their responses.

    An UNANSWERED event counts as the response. An event that needs no response, such as a Produce
    with acks=0, is an exchange of its own.
    """
    number = 0
    for one in events:
        event = one.event
        if event.side is Side.CLIENT and event.is_answered and event.correlation_id is not None:
            continue  # the event of its response, or an UNANSWERED event, follows
        if event.side is Side.CLIENT and event.kind is EventKind.TOKEN:
            continue
        number += 1
        if event.side is Side.CLIENT:
            yield Exchange(number, one, event, None)
        else:
            yield Exchange(number, one, event.request, event)


def exchange_as_json(exchange: Exchange) -> dict[str, Any]:
    """Returns an exchange as JSON data, without keys whose values are unknown or do not apply.

    `us` is the time of the request, or else of the response, in microseconds since 1970. Sizes do
    not count the size fields of frames.
    """
    event, request, response = exchange.event, exchange.request, exchange.response
    if event.kind is EventKind.MISSING:
        request = response = None
    data: dict[str, Any] = {
        "number": exchange.number,
        "us": exchange.time_us,
        "connection": exchange.connection_event.connection,
        "client": exchange.connection_event.client,
        "broker": exchange.connection_event.broker,
        "kind": event.kind.value,
        "api": None if event.api_key is None else event.api,
        "api_key": event.api_key,
        "version": exchange.version,
        "correlation_id": event.correlation_id,
        "client_id": event.client_id,
        "request_size": None if request is None else request.size,
        "response_size": None if response is None or not response.data else response.size,
        "latency_us": event.latency_us,
        "errors": dict(event.errors) or None,
        "missing": event.size if event.kind is EventKind.MISSING else None,
        "note": "; ".join(_notes(exchange)) or None,
    }
    return {key: value for key, value in data.items() if value is not None}


def exchange_as_text(exchange: Exchange) -> str:
    """Returns an exchange as a line of text: number, time, connection, client, API, version, client
    id, sizes, latency, error codes and notes.
    """
    event, request, response = exchange.event, exchange.request, exchange.response
    when = dt.datetime.fromtimestamp(exchange.time_us / 1e6).astimezone()
    parts = [
        f"{exchange.number:>6}",
        f"{when:%H:%M:%S.%f}",
        f"#{exchange.connection_event.connection}",
    ]
    is_no_frame = event.kind in (EventKind.MISSING, EventKind.BYTES)
    what = f"from the {event.side.value}" if is_no_frame else event.api
    parts.append(f"{exchange.connection_event.client} {what}")
    if exchange.version is not None:
        parts.append(f"v{exchange.version}")
    if event.client_id is not None:
        parts.append(f"client={event.client_id!r}")
    if request is not None and not is_no_frame:
        parts.append(f"{request.size} bytes")
    if response is not None and response.data and not is_no_frame:
        parts.append(f"-> {response.size} bytes")
    if event.latency_us is not None and event.kind is not EventKind.UNANSWERED:
        parts.append(f"{event.latency_us / 1000:.3f} ms")
    parts += [name if count == 1 else f"{name}×{count}" for name, count in event.errors]
    line = " ".join(parts)
    words = [*filter(None, [KIND_DESCRIPTIONS.get(event.kind)]), *_notes(exchange)]
    return f"{line}: {'; '.join(words)}" if words else line


def _notes(exchange: Exchange) -> list[str]:
    """Returns the notes of request and response.

    Adds a note if no response is expected, and a note if the response has another version than the
    request.
    """
    notes = []
    request, response = exchange.request, exchange.response
    if request is not None:
        if request.kind is EventKind.BROKEN and response is not None:
            notes.append(f"the request cannot be read: {request.note}")
        elif request.note:
            notes.append(request.note)
        if not request.is_answered:
            notes.append("no response is expected")
    if response is not None and response.version != exchange.version:
        notes.append(f"the response has version {response.version}")
    if response is not None and response.note:
        notes.append(response.note)
    return notes


def exchange_with_messages(exchange: Exchange, *, show_secrets: bool = False) -> dict[str, Any]:
    """Returns an exchange and its messages as JSON data.

    `request` and `response` have the messages in the JSON of Kafka's converters. If a message could
    not be read, `request_bytes` or `response_bytes` has its frame in hex instead. With
    `show_secrets` False, hides secret fields, and replaces bytes that may be secret by asterisks.
    """
    data = exchange_as_json(exchange)
    for name, event in (("request", exchange.request), ("response", exchange.response)):
        if event is None or not event.data:
            continue
        message = None if event.received is None else event.received.message
        try:
            if message is not None and event.received is not None:
                version = event.received.version
                data[name] = redacted_json(message, version, show=show_secrets)
                continue
        except KprotoError as error:
            data[f"{name}_note"] = str(error)
        frame = event.data if show_secrets else redact_frame(event)
        data[f"{name}_bytes"] = frame.hex()
    return data


@dataclass(slots=True)
class ApiStats:
    """The sums of an API's exchanges; latencies in microseconds, sizes in bytes.

    `versions` counts the exchanges by version of the request.
    """

    count: int = 0
    versions: Counter[int] = field(default_factory=Counter)
    request_bytes: int = 0
    response_bytes: int = 0
    unanswered: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies_us: array[int] = field(default_factory=lambda: array("q"))


def stats_by_api(exchanges: Iterable[Exchange]) -> dict[str, ApiStats]:
    """Returns the numbers, sizes, errors and latencies of the exchanges, summed up by API name.

    Ignores missing bytes, bytes outside frames, and responses without a request.
    """
    stats: dict[str, ApiStats] = {}
    for exchange in exchanges:
        event, request, response = exchange.event, exchange.request, exchange.response
        if event.kind in (EventKind.MISSING, EventKind.BYTES, EventKind.UNMATCHED):
            continue
        api_stats = stats.setdefault(event.api, ApiStats())
        api_stats.count += 1
        if exchange.version is not None:
            api_stats.versions[exchange.version] += 1
        api_stats.request_bytes += 0 if request is None else request.size
        api_stats.errors.update(dict(event.errors))
        if event.kind is EventKind.UNANSWERED:
            api_stats.unanswered += 1
        elif response is not None:
            api_stats.response_bytes += response.size
            if response.latency_us is not None:
                api_stats.latencies_us.append(response.latency_us)
    return stats


#: The numbers of the connections on which a client named its software, by name and version.
ClientSoftware: TypeAlias = "dict[tuple[str, str], set[int]]"


def note_software(exchanges: Iterable[Exchange], software: ClientSoftware) -> Iterator[Exchange]:
    """Yields the exchanges, and adds the client software that ApiVersions requests name (KIP-511).

    ApiVersions requests name the software from version 3 on.
    """
    for exchange in exchanges:
        received = None if exchange.request is None else exchange.request.received
        message = None if received is None else received.message
        name = _text_field(message, "client_software_name")
        if name:
            key = (name, _text_field(message, "client_software_version"))
            software.setdefault(key, set()).add(exchange.connection_event.connection)
        yield exchange


def _text_field(message: Message | None, name: str) -> str:
    """Returns a field of an ApiVersions request; "" for another message.

    Compares the message by name, because Kafka's messages may also be generated in another package.
    """
    if message is None or type(message)._generated().__name__ != "ApiVersionsRequest":
        return ""
    value = getattr(message, name, "")
    return value if isinstance(value, str) else ""


def software_as_json(software: ClientSoftware) -> list[dict[str, Any]]:
    """Returns the client software as JSON data: name, version and number of connections."""
    return [
        {"name": name, "version": version, "connections": len(connections)}
        for (name, version), connections in sorted(software.items())
    ]


def software_as_table(software: ClientSoftware) -> list[str]:
    """Returns the client software as the lines of a table; no lines if there is none."""
    rows = [["client software", "version", "connections"]]
    for (name, version), connections in sorted(software.items()):
        rows.append([_printable(name), _printable(version), str(len(connections))])
    return _table(rows, left=(0, 1)) if software else []


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def percentile(values: Sequence[int], percent: int) -> int | None:
    """Returns the `percent`th percentile of `values` (nearest rank); None if `values` is empty."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def stats_as_json(stats: dict[str, ApiStats]) -> dict[str, Any]:
    """Returns the sums by API as JSON data, with the 50th and 99th percentile of the latency."""
    return {
        name: {
            "count": api_stats.count,
            "versions": {
                str(version): count for version, count in sorted(api_stats.versions.items())
            },
            "request_bytes": api_stats.request_bytes,
            "response_bytes": api_stats.response_bytes,
            "unanswered": api_stats.unanswered,
            "p50_us": percentile(api_stats.latencies_us, 50),
            "p99_us": percentile(api_stats.latencies_us, 99),
            "errors": dict(api_stats.errors),
        }
        for name, api_stats in sorted(stats.items())
    }


def _versions(api_stats: ApiStats) -> str:
    """Returns the versions in ascending order, with their counts if there are several."""
    versions = sorted(api_stats.versions.items())
    if len(versions) == 1:
        return str(versions[0][0])
    return ", ".join(f"{version}×{count}" for version, count in versions)


def stats_as_table(stats: dict[str, ApiStats]) -> list[str]:
    """Returns the sums by API as the lines of a table, the most frequent API first."""
    rows = [
        [
            "API",
            "versions",
            "count",
            "request bytes",
            "response bytes",
            "p50 ms",
            "p99 ms",
            "unanswered",
            "errors",
        ]
    ]
    for name, api_stats in sorted(stats.items(), key=lambda item: (-item[1].count, item[0])):
        errors = ", ".join(f"{error}×{count}" for error, count in api_stats.errors.most_common())
        p50, p99 = (percentile(api_stats.latencies_us, percent) for percent in (50, 99))
        rows.append(
            [
                name,
                _versions(api_stats),
                str(api_stats.count),
                str(api_stats.request_bytes),
                str(api_stats.response_bytes),
                "" if p50 is None else f"{p50 / 1000:.3f}",
                "" if p99 is None else f"{p99 / 1000:.3f}",
                str(api_stats.unanswered) if api_stats.unanswered else "",
                errors,
            ]
        )
    return _table(rows, left=(0, 1, 8))


def _table(rows: Sequence[Sequence[str]], *, left: Sequence[int]) -> list[str]:
    """Returns rows as lines; the cells of the columns `left` are left-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
