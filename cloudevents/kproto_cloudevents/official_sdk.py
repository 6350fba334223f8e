"""Converts events to and from events of the official SDK, the package `cloudevents`.

`to_sdk` imports the SDK; `from_sdk` needs no import. Both SDK interfaces are supported:
`cloudevents.core`, and the older `cloudevents.v1`.

The SDK represents times as datetimes, and JSON as Python objects. The SDK sets a missing time to
the present time; `to_sdk` removes that time again. A value that the SDK cannot represent raises an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from .errors import CloudEventError, quoted
from .event.cloud_event import CloudEvent
from .event.data import JSON_NULL
from .values.types import AttributeInput, AttributeValue, JsonMap, Timestamp, canonical

__all__ = ["SdkEvent", "from_sdk", "to_sdk"]

_SPECVERSIONS: Final = ("1.0", "0.3")


class SdkEvent(Protocol):
    """The methods that the event classes of both SDK interfaces have."""

    def get_attributes(self) -> Mapping[str, Any]:
        """Returns the attributes by name."""
        ...

    def get_data(self) -> Any:
        """Returns bytes, text, a JSON value, or None."""


def to_sdk(event: CloudEvent, *, api: Literal["core", "v1"] = "core") -> Any:
    """Returns the event as a CloudEvent of `cloudevents.core` or, for "v1", `cloudevents.v1.http`.

    Booleans and Integers are unchanged. Binary attributes become Base64 strings, because the SDK
    cannot write bytes. A Map becomes a dict. With `core`, the time becomes a datetime. JSON data
    becomes the Python value. An explicit null becomes the bytes `null`, because None means no data
    in the SDK.

    Raises CloudEventError if the SDK is not installed, for an unknown `api`, for a specversion
    other than 1.0 and 0.3, and with `core` for a time that a datetime cannot represent exactly.
    """
    if event.specversion not in _SPECVERSIONS or event._version.specversion != "specversion":
        raise CloudEventError(
            f"the SDK has no {event._version.specversion} {quoted(event.specversion)}: convert "
            'the event with to_version("1.0")',
            where=event._version.specversion,
        )
    if api not in ("core", "v1"):
        raise CloudEventError(f"api is core or v1, not {api!r}")
    attributes = {
        name: _for_sdk(name, value, event, datetimes=api == "core")
        for name, value in event._attributes.items()
    }
    data = event.data
    made = _class(event.specversion, api)(attributes, b"null" if data is JSON_NULL else data)
    if event.time is None:
        # Both SDK interfaces set a missing time to the present time; remove it.
        if api == "core":
            made.get_attributes().pop("time", None)
        else:
            del made["time"]
    return made


def from_sdk(event: SdkEvent) -> CloudEvent:
    """Returns the CloudEvent for an SDK event of either interface.

    Raises CloudEventError for an event that breaks a rule of CloudEvents, and for an object that is
    not an event of the SDK.
    """
    try:
        attributes_read, data = event.get_attributes(), event.get_data()
        attributes = {name: _from_sdk(value) for name, value in attributes_read.items()}
    except AttributeError:
        raise CloudEventError(f"{type(event).__name__} is no event of the SDK") from None
    return CloudEvent(attributes, data=data)


def _for_sdk(name: str, value: AttributeValue, event: CloudEvent, *, datetimes: bool) -> Any:
    if isinstance(value, JsonMap):
        return value.value()
    if isinstance(value, bytes):
        return canonical(value)
    if isinstance(value, str):
        is_time = datetimes and name == event._version.time
        return _sdk_datetime(str(value)) if is_time else str(value)
    return value


def _sdk_datetime(text: str) -> datetime:
    """Returns the time as a datetime. Raises CloudEventError if the datetime is inexact."""
    time = Timestamp(text).datetime
    fraction = text[19:].lstrip(".").rstrip("zZ").split("+")[0].split("-")[0]
    if text[17:19] == "60" or fraction[6:].strip("0"):
        raise CloudEventError(
            f"{quoted(text)} is a time that the SDK's datetime cannot hold: replace it first, "
            "for example with event.time.datetime",
            where="time",
            clauses=('CloudEvents 1.0 "Timestamp"',),
        )
    return time


def _from_sdk(value: Any) -> AttributeInput:
    if isinstance(value, Mapping):
        return JsonMap.of(value)
    checked: AttributeInput = value
    return checked


def _class(specversion: str, api: str) -> Any:
    try:
        if api == "v1":
            from cloudevents.v1.http import CloudEvent as LegacyEvent

            return LegacyEvent
        if specversion == "0.3":
            from cloudevents.core.v03.event import CloudEvent as OldEvent

            return OldEvent
        from cloudevents.core.v1.event import CloudEvent as CoreEvent

        return CoreEvent
    except ImportError:
        raise CloudEventError(
            "the official SDK is not installed: pip install 'cloudevents>=2'"
        ) from None
