"""Finds the content mode of a Kafka record, and its event format (Kafka binding 3).

The `content-type` header decides, unless the caller passes the mode. This module imports no events.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import CloudEventError, quoted
from ..protocol_binding import BindingVocabulary, Mode, event_format_named, mode_error
from ..values.media_type import CLOUDEVENTS_JSON, parse_media_type
from ..versions.spec_version import REMEMBERED_LENGTH, REMEMBERED_VALUES
from .headers import CONTENT_TYPE

__all__ = ["FORMAT_NAMES", "KAFKA", "format_name"]

KAFKA: Final = BindingVocabulary(
    system="Kafka",
    message="record",
    content_type=CONTENT_TYPE,
    document="value",
    mode_clauses=("Kafka binding 3",),
    document_clauses=("Kafka binding 3.3.2",),
    batch_clauses=("Kafka binding 1.3",),
)

#: The event format by the `content-type` values seen so far; `""` is binary mode. The key None
#: stands for a record without the header.
FORMAT_NAMES: Final[dict[bytes | None, str]] = {None: ""}


def format_name(raw: bytes | None, mode: Mode | None) -> str:
    """Returns the media type of the record's event format; `""` for binary mode (Kafka binding 3).

    `raw` is the value of the `content-type` header; `mode` overrides the mode that the header
    implies. Raises CloudEventError for an unknown mode. Also raises it for a header that names a
    malformed event media type, a batch, or JSON in a charset other than UTF-8 and ASCII. If `mode`
    is "binary", the header is not read.
    """
    if mode == "binary":
        return ""
    if mode not in (None, "structured"):
        raise mode_error(mode, KAFKA)
    name = FORMAT_NAMES.get(raw)
    if name is None:
        name = _parsed_format_name(raw or b"")
        if raw is not None and len(raw) <= REMEMBERED_LENGTH:
            if len(FORMAT_NAMES) > REMEMBERED_VALUES:
                FORMAT_NAMES.clear()
                FORMAT_NAMES[None] = ""
            FORMAT_NAMES[raw] = name
    # Structured mode is JSON unless the content type names another event format.
    return name or ("" if mode is None else CLOUDEVENTS_JSON)


def _parsed_format_name(raw: bytes) -> str:
    try:
        media_type = parse_media_type(raw.decode())
    except UnicodeDecodeError:
        media_type = None
    if media_type is None and _BROKEN_EVENT_TYPE.match(raw):
        raise CloudEventError(
            "an event format's media type is broken (RFC 2046)",
            where=CONTENT_TYPE,
            clauses=("Kafka binding 3.3.1",),
        )
    name = event_format_named(media_type, KAFKA)
    if media_type is None or name is None:
        return ""
    charset = (media_type.charset or "utf-8").lower()
    if name == CLOUDEVENTS_JSON and charset not in _JSON_CHARSETS:
        raise CloudEventError(
            f"a JSON event is UTF-8, not {quoted(charset)}",
            where=CONTENT_TYPE,
            clauses=("Kafka binding 3.3.1", "RFC 8259, 8.1"),
        )
    return name


#: Matches texts that begin like the media type of an event format or of a batch.
_BROKEN_EVENT_TYPE: Final = re.compile(
    rb"[ \t]*application/cloudevents(?:-batch)?(?![a-z0-9!#$&^_.-])", re.IGNORECASE
)
_JSON_CHARSETS: Final = ("utf-8", "utf8", "us-ascii", "ascii")
