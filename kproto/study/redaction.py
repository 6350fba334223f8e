"""Redacts secrets in printed or recorded traffic: SASL tokens, salted passwords, HMACs, configs.

`secret_fields` lists the secret fields. In a frame, each byte of a secret becomes an asterisk, so
that the frame keeps its size and its layout. In JSON, a secret becomes `<hidden>`. The whole body
of a frame is hidden if the body cannot be read and the message may have secrets. The body is also
hidden if no definition has the api key, because the frame may be a SASL token that was sent without
a handshake.
"""

from __future__ import annotations

from typing import Any, Final

from ..messages.base import Message, Struct
from ..protocol.connection import ReceivedRequest, read_request
from ..protocol.received import ReceivedResponse, read_response
from ..schema.json_converter import json_name
from ..schema.layout import StructLayout, layout
from ..wire.errors import EncodeError, KprotoError
from .conversations import EventKind, Side, TrafficEvent
from .secret_fields import HIDDEN, has_secrets, secret_attributes

__all__ = ["redact_frame", "redacted_json"]

#: How many leading bytes of a frame are never secret: size, api key, version and correlation id of
#: a request; size and correlation id of a response.
_PUBLIC_BYTES: Final = {Side.CLIENT: 12, Side.BROKER: 8}

_SIZE_BYTES: Final = 4

#: How many leading bytes of an unreadable request are shown: size, api key and version.
_KEY_AND_VERSION: Final = 8

_ASTERISK: Final = b"*"


def redact_frame(event: TrafficEvent) -> bytes:
    """Returns the bytes of an event with an asterisk for each secret byte."""
    match event.kind:
        case EventKind.TOKEN:
            return _hide_after(event.data, _SIZE_BYTES)
        case EventKind.BYTES:
            return _ASTERISK * len(event.data)
        case EventKind.MESSAGE if event.received is not None:
            return _message_frame(event)
        case _ if _may_hold_secrets(event):
            return _hide_after(event.data, _public_bytes(event))
    return event.data


def _public_bytes(event: TrafficEvent) -> int:
    """Returns how many leading bytes of a frame are not secret.

    For a readable request with a printable client id, these are the size and the header. For any
    other request, they are the size and the header up to the correlation id, or up to the version
    if the correlation id is missing. For a response, they are the size and the correlation id.
    """
    received = event.received
    if isinstance(received, ReceivedRequest) and (received.client_id or "").isprintable():
        return _SIZE_BYTES + len(received.head)
    if event.side is Side.CLIENT and event.correlation_id is None:
        return _KEY_AND_VERSION
    return _PUBLIC_BYTES[event.side]


def _may_hold_secrets(event: TrafficEvent) -> bool:
    if event.api_key is None:
        return True  # the message is unknown, and may be a SASL token
    of_side = event.classes.request if event.side is Side.CLIENT else event.classes.response
    cls = of_side(event.api_key)
    return cls is None or has_secrets(cls)


def _message_frame(event: TrafficEvent) -> bytes:
    received = event.received
    assert received is not None
    if received.message is None or not has_secrets(type(received.message)):
        return event.data
    try:
        # Decodes the frame again, because the message of the event must not be changed.
        copy = _decode_copy(event, received)
        assert copy.message is not None
        _hide_secrets(copy.message)
        hidden = copy.to_frame()
    except KprotoError:
        return _hide_after(event.data, _PUBLIC_BYTES[event.side])
    if len(hidden) != len(event.data):  # a varint in the frame was longer than needed
        return _hide_after(event.data, _PUBLIC_BYTES[event.side])
    # Bytes after the message may belong to a secret whose length field is too small.
    return _hide_after(hidden, len(hidden) - len(received.trailing))


def _decode_copy(
    event: TrafficEvent, received: ReceivedRequest | ReceivedResponse
) -> ReceivedRequest | ReceivedResponse:
    if isinstance(received, ReceivedRequest):
        return read_request(event.data[4:], event.classes)
    assert event.request is not None
    version = event.request.version
    assert version is not None
    return read_response(event.data[4:], received.api_key, version, event.classes)


def _hide_after(data: bytes, start: int) -> bytes:
    return data[:start] + _ASTERISK * (len(data) - start)


def _hide_secrets(message: Struct) -> None:
    """Replaces each byte of the secrets; raises EncodeError for a secret that is a number."""
    pending = [message]
    while pending:
        struct = pending.pop()
        secrets = secret_attributes(type(struct))
        for name in struct._names():
            value = getattr(struct, name)
            if name in secrets:
                if isinstance(value, str):
                    setattr(struct, name, "*" * len(value.encode()))
                elif isinstance(value, bytes | bytearray | memoryview):
                    setattr(struct, name, _ASTERISK * len(value))
                elif value is not None:
                    raise EncodeError(f"the secret {name} is neither text nor bytes")
            elif isinstance(value, Struct):
                pending.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Struct):
                pending += value


def redacted_json(message: Message, version: int, *, show: bool = False) -> Any:
    """Returns a message as the JSON of Kafka's converters, with secrets as `<hidden>`.

    With `show` the secrets are shown. Raises EncodeError if the message cannot be encoded at
    `version`.
    """
    data = message.to_json(version)
    if not show and has_secrets(type(message)):
        _hide_json(layout(message._definition(), version), message, data)
    return data


def _hide_json(shape: StructLayout, struct: Struct, data: dict[str, Any]) -> None:
    secrets = secret_attributes(type(struct))
    for field in shape.all_fields():
        key = json_name(field.name)
        if not data.get(key):
            continue
        if field.attribute in secrets:
            data[key] = HIDDEN
            continue
        value, shown = getattr(struct, field.attribute), data[key]
        if field.type.struct is not None:
            _hide_json(field.type.struct, value, shown)
        elif field.type.element is not None and field.type.element.struct is not None:
            for element, shown_element in zip(value, shown, strict=True):
                _hide_json(field.type.element.struct, element, shown_element)
