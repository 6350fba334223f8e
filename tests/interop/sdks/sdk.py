"""Reads and writes events with the official SDK for Python; README.md describes the lines."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

FORMAT = JSONFormat()


def main() -> None:
    for line in sys.stdin:
        try:
            answer = answered(json.loads(line))
        except Exception as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


def answered(asked: dict[str, Any]) -> dict[str, Any]:
    event = read(asked) if "headers" in asked else made(asked)
    match asked.get("mode"):
        case "binary":
            return written(kafka.to_binary(event, FORMAT))
        case "structured":
            return written(kafka.to_structured(event, FORMAT))
    attributes = {name: str(value) for name, value in event.get_attributes().items()}
    return {**attributes, "data": encoded(payload(event.get_data()))}


def read(asked: dict[str, Any]) -> Any:
    headers = {name: value.encode() for name, value in asked["headers"]}
    key = asked.get("key")
    message = kafka.KafkaMessage(headers, key and key.encode(), decoded(asked["value"]))
    return kafka.from_kafka(message, FORMAT)


def made(asked: dict[str, Any]) -> Any:
    return CloudEvent(asked["attributes"], asked.get("object", decoded(asked.get("data"))))


def written(message: Any) -> dict[str, Any]:
    return {"value": encoded(message.value), "key": message.key}


def payload(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    return data.encode() if isinstance(data, str) else json.dumps(data).encode()


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def decoded(text: str | None) -> bytes:
    # The SDK's types have no null value, but its functions accept None.
    return None if text is None else base64.b64decode(text)  # type: ignore[return-value]


main()
