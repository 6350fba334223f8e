"""The registry of event formats by media type, for structured mode.

JSON is always registered; applications register other formats. An event of an unregistered media
type can be forwarded but not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..errors import CloudEventError, quoted
from ..event.cloud_event import CloudEvent
from ..values.media_type import CLOUDEVENTS_JSON, parse_media_type
from .json_format import from_json, to_json, to_portable_json

__all__ = [
    "JSON_FORMAT",
    "PORTABLE_JSON_FORMAT",
    "EventFormat",
    "event_media_type",
    "find_format",
    "register_format",
]


class EventFormat(NamedTuple):
    """An event format: its media type without parameters, its reader and its writer.

    `read` raises CloudEventError for an invalid document, and UnknownVersionError for an unknown
    specversion. `read` may keep the document in the event, as the JSON format does.
    """

    media_type: str
    read: Callable[[bytes], CloudEvent]
    write: Callable[[CloudEvent], bytes]


_EVENT_FORMAT: Final = ('CloudEvents 1.0 "Event Format"', "Kafka binding 3.3.1")

JSON_FORMAT = EventFormat(CLOUDEVENTS_JSON, from_json, to_json)

#: The JSON format whose documents the official SDKs for Java and Go read if the data has a `+json`
#: media type: `to_json` with `portable`.
PORTABLE_JSON_FORMAT: Final = EventFormat(CLOUDEVENTS_JSON, from_json, to_portable_json)

_FORMATS = {JSON_FORMAT.media_type: JSON_FORMAT}


def register_format(added: EventFormat) -> None:
    """Registers a format; replaces a registered format of the same media type.

    Raises CloudEventError as `event_media_type` does.
    """
    _FORMATS[event_media_type(added)] = added


def event_media_type(event_format: EventFormat) -> str:
    """Returns the media type of a format, in lower case.

    Raises CloudEventError for any object that is not an EventFormat, for a media type that is
    neither `application/cloudevents` nor `application/cloudevents+…`, such as the media type of a
    batch, and for a media type with parameters.
    """
    if not isinstance(event_format, EventFormat):
        raise CloudEventError(
            f"an EventFormat is required, not {type(event_format).__name__}", clauses=_EVENT_FORMAT
        )
    media_type = parse_media_type(event_format.media_type)
    if media_type is None or not media_type.is_event_format or media_type.parameters:
        raise CloudEventError(
            f"{quoted(event_format.media_type)} is no media type of an event format: "
            "name it application/cloudevents+…",
            clauses=_EVENT_FORMAT,
        )
    return media_type.essence


def find_format(media_type: str) -> EventFormat | None:
    """Returns the format of a media type (`type/subtype` in lower case); None if unregistered."""
    return _FORMATS.get(media_type)
