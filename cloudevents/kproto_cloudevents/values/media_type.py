"""Parses media types, and classifies them for events and data (RFC 2045, RFC 2046).

Type, subtype and parameter names are case-insensitive and become lower case; parameter values keep
their case. This module imports no headers and no events.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["CLOUDEVENTS_BATCH_JSON", "CLOUDEVENTS_JSON", "MediaType", "parse_media_type"]

#: The media types of the JSON event format and of the JSON batch format.
CLOUDEVENTS_JSON = "application/cloudevents+json"
CLOUDEVENTS_BATCH_JSON = "application/cloudevents-batch+json"

_TOKEN = r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]+"  # noqa: S105 - the grammar's word, no secret
_TYPE = re.compile(rf"[ \t]*({_TOKEN})/({_TOKEN})[ \t]*")
_PARAMETER = re.compile(
    rf';[ \t]*(?:({_TOKEN})=(?:({_TOKEN})|"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\.)*)")[ \t]*)?'
)
_QUOTED_PAIR = re.compile(r"\\(.)")


class MediaType(NamedTuple):
    """A parsed media type, such as `application/json; charset=UTF-8`."""

    type: str
    subtype: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def essence(self) -> str:
        """Returns `type/subtype` in lower case, without parameters."""
        return f"{self.type}/{self.subtype}"

    @property
    def charset(self) -> str | None:
        """Returns the charset parameter as it was written; None if there is none."""
        return next((value for name, value in self.parameters if name == "charset"), None)

    @property
    def declares_json(self) -> bool:
        """Returns True if the type is `*/json` or `*/*+json` (JSON format 3.1.1)."""
        return self.subtype == "json" or self.subtype.endswith("+json")

    @property
    def declares_text(self) -> bool:
        """Returns True if the type is `text/*` or XML (RFC 7303), or has a charset."""
        return (
            self.type == "text"
            or self.subtype == "xml"
            or self.subtype.endswith("+xml")
            or self.charset is not None
        )

    @property
    def is_event_format(self) -> bool:
        """Returns True if the type is `application/cloudevents`, with or without `+…`."""
        return self.type == "application" and (
            self.subtype == "cloudevents" or self.subtype.startswith("cloudevents+")
        )

    @property
    def is_batch_format(self) -> bool:
        """Returns True if the type is `application/cloudevents-batch`, with or without `+…`."""
        return self.type == "application" and (
            self.subtype == "cloudevents-batch" or self.subtype.startswith("cloudevents-batch+")
        )


def parse_media_type(text: str) -> MediaType | None:
    """Parses a media type with its parameters; returns None for any other text.

    Accepts whitespace around `;` and an empty parameter (`text/plain;`), as HTTP does.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _parse(text)


def _parse(text: str) -> MediaType | None:
    match = _TYPE.match(text)
    if match is None:
        return None
    position = match.end()
    parameters = []
    while position < len(text):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            return None
        name, token, quoted_text = parameter.groups()
        if name is not None:
            value = token if token is not None else _QUOTED_PAIR.sub(r"\1", quoted_text)
            parameters.append((name.lower(), value))
        position = parameter.end()
    return MediaType(match[1].lower(), match[2].lower(), tuple(parameters))


#: The maximum number of characters of a media type that is cached. A topic has only a few media
#: types.
_REMEMBERED_LENGTH = 256
_remembered = lru_cache(maxsize=1024)(_parse)
