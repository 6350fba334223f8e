"""Checks and converts the typed attributes of the Avro and protobuf formats.

The specification defines both formats for CloudEvents 1.0 only. This module imports neither
fastavro nor protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import CloudEventError, UnknownVersionError, quoted
from ..event.cloud_event import CloudEvent
from ..event.data import Data, JsonText
from ..values.types import AttributeValue
from ..versions.version_tables import V1_0

__all__ = ["attributes_to_write", "event_of", "missing_package_error"]

_JSON = "application/json"


def event_of(
    attributes: Iterable[tuple[str, AttributeValue | None]], data: Data, clauses: tuple[str, ...]
) -> CloudEvent:
    """Checks each attribute, and returns the event; an attribute of None is unset.

    Raises CloudEventError, which cites `clauses`, for an invalid or repeated attribute, and for a
    missing required attribute. Raises UnknownVersionError for any version except 1.0.
    """
    present = [(name, value) for name, value in attributes if value is not None]
    label = dict(present).get(V1_0.specversion)
    if isinstance(label, str) and label not in ("", V1_0.label):
        raise UnknownVersionError(
            f"{quoted(label)} is not 1.0, the only version of this format: forward the event",
            where=V1_0.specversion,
            clauses=clauses,
        )
    checked: dict[str, Any] = {}
    for name, value in present:
        V1_0.checked_spec(name, name, clauses)
        if name in checked:
            raise CloudEventError("the attribute appears twice", where=name, clauses=clauses)
        try:
            checked[name] = V1_0.checked_value(name, value)
        except CloudEventError as error:
            raise CloudEventError(
                error.reason, where=error.where, clauses=(*clauses, *error.clauses)
            ) from None
    for name in V1_0.required:
        if name not in checked:
            raise V1_0.missing_error(name, clauses)
    return CloudEvent._decoded(V1_0, checked, data, None, None)


def attributes_to_write(event: CloudEvent, clauses: tuple[str, ...]) -> dict[str, AttributeValue]:
    """Returns the attributes to write in the Avro or protobuf format.

    Adds a datacontenttype for JSON data without one, because only the JSON format implies it.
    Raises CloudEventError for an event whose version is not 1.0.
    """
    if event.specversion != V1_0.label:
        raise CloudEventError(
            f"the format is for CloudEvents 1.0, not {event.specversion}: "
            'convert the event with to_version("1.0")',
            where=event._version.specversion,
            clauses=clauses,
        )
    attributes = dict(event._attributes)
    if isinstance(event._data, JsonText):
        attributes.setdefault(V1_0.content_type, _JSON)
    return attributes


def missing_package_error(package: str, extra: str) -> CloudEventError:
    """Returns the error for a format whose package is not installed."""
    return CloudEventError(f"{package} is not installed: pip install 'kproto[{extra}]'")
