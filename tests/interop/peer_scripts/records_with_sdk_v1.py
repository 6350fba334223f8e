"""Encodes events from standard input with v1 of the official SDK, and prints the records.

Events and records are JSON. An event has `attributes`, and `data` or `data_base64`. Each event
becomes one record in structured mode. A record has `key`, `value` and `headers`, a list of [name,
value]. The key, the value and the values of the headers are in Base64.
"""

from __future__ import annotations

import base64
import json
import sys
from importlib import import_module
from typing import Any

# By name, because a type checker would look for the SDK in this project's `cloudevents` folder.
sdk_event = import_module("cloudevents.v1.http").CloudEvent
to_structured = import_module("cloudevents.v1.kafka").to_structured


def encoded(part: bytes | str | None) -> str | None:
    if part is None:
        return None
    return base64.b64encode(part.encode() if isinstance(part, str) else part).decode()


def record(event: dict[str, Any]) -> dict[str, Any]:
    raw = event.get("data_base64")
    data = event.get("data") if raw is None else base64.b64decode(raw)
    message = to_structured(sdk_event(event["attributes"], data))
    return {
        "key": encoded(message.key),
        "headers": [[name, encoded(value)] for name, value in message.headers.items()],
        "value": encoded(message.value),
    }


json.dump([record(event) for event in json.load(sys.stdin)], sys.stdout)
