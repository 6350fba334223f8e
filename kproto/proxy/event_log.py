"""Formats events of the traffic as a line of text or as JSON, and filters them.

Shows no message bodies, and so no secrets. With `show_secrets` it shows SASL tokens.
"""

from __future__ import annotations

import datetime as dt
import difflib
import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses, definitions_in
from ..study.conversations import KIND_DESCRIPTIONS, EventKind, Side, TrafficEvent, api_name
from ..wire.errors import ConfigurationError

__all__ = ["EventFilter", "event_as_json", "event_as_text", "parse_apis"]

_ARROWS: Final = {Side.CLIENT: "->", Side.BROKER: "<-"}


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects events by API keys and by client ids; None selects all events.

    `client_ids` are shell patterns (`billing-*`). An event without an API key, such as a broken
    frame, is always selected. There is one exception: a raw SASL token, which has no API key, is
    not selected if `api_keys` is set.
    """

    api_keys: frozenset[int] | None = None
    client_ids: tuple[str, ...] | None = None

    def matches(self, event: TrafficEvent) -> bool:
        """Returns True if the filter selects the event."""
        if self.api_keys is not None and event.api_key is not None:
            if event.api_key not in self.api_keys:
                return False
        elif self.api_keys is not None and event.is_token:
            return False
        if self.client_ids is None or event.api_key is None:
            return True
        client_id = event.client_id or ""
        return any(fnmatch.fnmatchcase(client_id, pattern) for pattern in self.client_ids)


def parse_apis(texts: Iterable[str], classes: MessageClasses = KAFKA_MESSAGES) -> frozenset[int]:
    """Returns API keys from comma-separated names such as `Fetch`, former names, or numbers.

    `classes` has the APIs, by default Kafka's. Raises ConfigurationError for an unknown name; the
    error suggests the most similar name.
    """
    known = {api_name(key, classes).lower(): key for key in sorted(classes.api_keys)}
    former = _former_apis(classes)
    found = set()
    texts = list(texts)
    names = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if texts and not names:
        raise ConfigurationError(f"no API is named in {', '.join(map(repr, texts))}")
    for name in names:
        word = name.lower().removesuffix("request").removesuffix("response")
        if word in known:
            found.add(known[word])
        elif word in former:
            found.add(former[word])
        elif name.isascii() and name.isdigit():
            found.add(int(name))
        else:
            similar = difflib.get_close_matches(word, known, n=1)
            hint = f"; do you mean {api_name(known[similar[0]], classes)}?" if similar else ""
            raise ConfigurationError(f"no definition has the API {name!r}{hint}")
    return frozenset(found)


def _former_apis(classes: MessageClasses) -> dict[str, int]:
    """Returns the api keys of renamed APIs by their former names, in lower case."""
    found: dict[str, int] = {}
    for package in classes.packages:
        definitions = definitions_in(package)
        for former in definitions.former_names():
            for spec in map(definitions.__getitem__, definitions.former(former)):
                if spec.api_key is not None and spec.type == "request":
                    found.setdefault(former.lower().removesuffix("request"), spec.api_key)
    return found


def event_as_json(
    event: TrafficEvent, connection: int, *, show_secrets: bool = False
) -> dict[str, Any]:
    """Returns an event as a dict for JSON, without keys whose value is None.

    `us` is the time of the event in microseconds since 1970. `latency_us` is the time from request
    to response in microseconds. `size` is the frame's size in bytes without its size field.
    `answered` is False for a request to which the broker sends no response. `token`, the SASL token
    in hexadecimal, is included only with `show_secrets`.
    """
    data: dict[str, Any] = {
        "us": event.time_us,
        "connection": connection,
        "from": event.side.value,
        "kind": event.kind.value,
        "api": None if event.api_key is None else event.api,
        "api_key": event.api_key,
        "version": event.version,
        "correlation_id": event.correlation_id,
        "client_id": event.client_id,
        "size": event.size,
        "latency_us": event.latency_us,
        "errors": dict(event.errors) or None,
        "note": event.note or None,
    }
    if event.side is Side.CLIENT and not event.is_answered:
        data["answered"] = False
    if show_secrets and (token := _token(event)):
        data["token"] = token.hex()
    return {key: value for key, value in data.items() if value is not None}


def event_as_text(event: TrafficEvent, connection: int, *, show_secrets: bool = False) -> str:
    """Returns an event as one line of text, with the data of `event_as_json`; times are local."""
    when = dt.datetime.fromtimestamp(event.time_us / 1e6).astimezone()
    parts = [f"{when:%H:%M:%S.%f}", f"#{connection}", _ARROWS[event.side], event.api]
    if event.version is not None:
        parts.append(f"v{event.version}")
    if event.correlation_id is not None:
        parts.append(f"id={event.correlation_id}")
    if event.client_id is not None:
        parts.append(f"client={event.client_id!r}")
    parts.append(f"{event.size} bytes")
    if event.latency_us is not None:
        parts.append(f"{event.latency_us / 1000:.3f} ms")
    parts += [name if count == 1 else f"{name}×{count}" for name, count in event.errors]
    if event.side is Side.CLIENT and not event.is_answered:
        parts.append("no response is expected")
    if show_secrets and (token := _token(event)):
        parts.append(repr(token))
    words = [text for text in (KIND_DESCRIPTIONS.get(event.kind), event.note) if text]
    line = " ".join(parts)
    return f"{line}: {'; '.join(words)}" if words else line


def _token(event: TrafficEvent) -> bytes:
    """Returns the SASL token of an event; empty if it has none."""
    if event.kind is EventKind.TOKEN:
        return event.data[4:]
    message = None if event.received is None else event.received.message
    token: bytes = getattr(message, "auth_bytes", b"")
    return token
