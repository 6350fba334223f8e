"""Defines the common parts of protocol bindings: content modes, reader profiles, structured mode.

A protocol binding (`kafka`, `pulsar`) maps events to the messages of one system.
`BindingVocabulary` has the system's terms and the clauses of the binding for error messages. This
module imports none of the bindings.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .errors import CloudEventError, UnknownFormatError, quoted
from .event.cloud_event import CloudEvent, Mode
from .formats.json_format import from_json
from .formats.registry import JSON_FORMAT, EventFormat, find_format
from .values.media_type import MediaType

__all__ = [
    "DEFAULT",
    "EVENT_GRID",
    "LENIENT",
    "STRICT",
    "BindingVocabulary",
    "Mode",
    "Profile",
    "event_format_named",
    "forward_only_error",
    "mode_error",
    "read_structured",
    "unwritable_error",
]


class Profile(NamedTuple):
    """The rules of a reader: which deviations it accepts, and whether it refuses unknown parts."""

    #: Accept `CE_Type` and `Content-Type` for `ce_type` and `content-type`. Kafka's header keys are
    #: case-sensitive, but bridges from HTTP write these spellings.
    any_case_headers: bool = False
    #: Raise UnknownVersionError or UnknownFormatError for an unknown specversion or event format,
    #: instead of returning an opaque event.
    refuse_unknown: bool = False
    #: Kafka only: read a record without `ce_` headers as structured mode if its value is a JSON
    #: object with a specversion, whatever its content type. The content type is then the
    #: datacontenttype, unless the JSON object has the member `datacontenttype`. Version 1 of the
    #: official SDK writes such records.
    json_events: bool = False
    #: Kafka only: an event in binary mode has no data if the value of its record is empty. The
    #: official SDKs for Python, Java and Go read an empty value so, and the SDK for Python writes
    #: it for an event without data.
    empty_is_no_data: bool = False
    #: Kafka only: accept the dataschema "#", which is no URI, in events of 1.0. Azure Event Grid
    #: writes it.
    event_grid_dataschema: bool = False


DEFAULT: Final = Profile()
STRICT: Final = Profile(refuse_unknown=True)
LENIENT: Final = Profile(any_case_headers=True)
EVENT_GRID: Final = Profile(event_grid_dataschema=True)


class BindingVocabulary(NamedTuple):
    """The words of Kafka or Pulsar for a message and its parts, for the texts of errors.

    The clauses are those of the binding's specification.
    """

    #: The name of the system: Kafka, Pulsar.
    system: str
    #: The system's term for a message: record, message.
    message: str
    #: The header or property that names the event format.
    content_type: str
    #: The system's term for the message body, which is the document in structured mode.
    document: str
    mode_clauses: tuple[str, ...]
    document_clauses: tuple[str, ...]
    batch_clauses: tuple[str, ...]


def mode_error(mode: object, terms: BindingVocabulary) -> CloudEventError:
    """Returns the error for an unknown content mode."""
    return CloudEventError(
        f"mode is binary or structured, not {mode!r}", clauses=terms.mode_clauses
    )


# --- reading ------------------------------------------------------------------------------------


def event_format_named(media_type: MediaType | None, terms: BindingVocabulary) -> str | None:
    """Returns the media type without parameters if an event format has it, otherwise None.

    Raises CloudEventError for the media type of a batch, which cannot be one message.
    """
    if media_type is None:
        return None
    if media_type.is_batch_format:
        raise CloudEventError(
            f"a batch of events cannot be one {terms.system} {terms.message}: "
            "send each event by itself",
            where=terms.content_type,
            clauses=terms.batch_clauses,
        )
    return media_type.essence if media_type.is_event_format else None


def read_structured(
    document: bytes | None,
    media_type: str,
    terms: BindingVocabulary,
    *,
    event_grid_dataschema: bool = False,
) -> tuple[CloudEvent, EventFormat]:
    """Returns the event of a structured-mode message, and its event format.

    `event_grid_dataschema` applies to the JSON format, as in `Profile`.

    Raises UnknownFormatError for an unregistered media type, and CloudEventError for a null
    document and for any error of the format.
    """
    event_format = find_format(media_type)
    if event_format is None:
        raise UnknownFormatError(
            f"the event format {quoted(media_type)} is not registered",
            where=terms.content_type,
            clauses=terms.mode_clauses,
        )
    if document is None:
        raise CloudEventError(
            f"a structured event is never null: the {terms.document} must have the event",
            where=terms.document,
            clauses=terms.document_clauses,
        )
    if event_grid_dataschema and event_format is JSON_FORMAT:
        return from_json(document, event_grid_dataschema=True), event_format
    return event_format.read(document), event_format


# --- writing ------------------------------------------------------------------------------------


def unwritable_error(value: object, terms: BindingVocabulary) -> CloudEventError:
    """Returns the error for an object that cannot be written as an event.

    Such an object is neither a CloudEvent nor a result of `from_kafka` or `from_pulsar`.
    """
    return CloudEventError(
        f"{type(value).__name__} cannot be written as an event: pass a CloudEvent or a result of "
        f"from_{terms.system.lower()}, or send the {terms.message} itself",
        clauses=terms.mode_clauses,
    )


def forward_only_error(reason: str, terms: BindingVocabulary) -> CloudEventError:
    """Returns the error for changing a message that can only be forwarded."""
    return CloudEventError(
        f"the {terms.message} can only be forwarded unchanged: {reason}", clauses=terms.mode_clauses
    )
