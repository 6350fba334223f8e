"""The Avro event format: an event as one Avro datum of the specification's schema.

Register `AVRO_FORMAT`, or pass it to `to_kafka`. The format needs the package fastavro, which the
extra `cloudevents-avro` installs. The writer writes data as bytes or a string; the reader reads
everything that the schema allows, up to a nesting of `MAX_NESTING`. This module imports no binding,
such as `kafka`.
"""

from __future__ import annotations

import io
import struct
from functools import cache
from typing import Any, Final, NamedTuple

from ..errors import CloudEventError
from ..event.cloud_event import CloudEvent
from ..event.data import Data, EmptyValue, JsonText, TextOrBase64, from_value, unmarked_error
from ..values.types import AttributeValue, utf8
from .registry import EventFormat
from .typed_attributes import attributes_to_write, event_of, missing_package_error

__all__ = ["AVRO_FORMAT", "MAX_NESTING", "from_avro", "to_avro"]

MAX_NESTING: Final = 32
"""The deepest nesting of records in a JSON value; each record is one or two levels of JSON.

The schema is recursive, and fastavro recurses on the C stack: without a limit, a document of one
megabyte would crash the process.
"""

_ATTRIBUTES: Final = ("Avro format 2.1",)
_DATA: Final = ("Avro format 3",)
_DATUM: Final = ("Avro format 2.4",)

#: The exceptions of fastavro for bytes that are not a datum of the schema.
_BAD_BYTES: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    struct.error,
)

#: A JSON number is an Avro double, which represents every whole number only up to this one.
_LARGEST_EXACT: Final = 2**53


class _Avro(NamedTuple):
    """The package fastavro, and the parsed schema."""

    package: Any
    schema: Any


def from_avro(document: bytes) -> CloudEvent:
    """Reads an event from a document of `application/cloudevents+avro`.

    The event's data is bytes, str or a JSON value. Raises CloudEventError for an invalid document,
    and if fastavro is missing. Raises UnknownVersionError for a specversion other than 1.0.
    """
    avro = _avro()
    source = io.BytesIO(document)
    try:
        datum = avro.package.schemaless_reader(source, avro.schema, None)
    except _BAD_BYTES as error:
        raise CloudEventError(
            f"not an event in Avro: invalid at byte {source.tell()} or before "
            f"({type(error).__name__})",
            clauses=_DATUM,
        ) from None
    if source.tell() != len(document):
        raise CloudEventError(f"more follows the event at byte {source.tell()}", clauses=_DATUM)
    attributes: dict[str, AttributeValue | None] = datum["attribute"]
    content_type = attributes.get("datacontenttype")
    event = event_of(attributes.items(), None, _ATTRIBUTES)
    event._data = _data(datum["data"], content_type if isinstance(content_type, str) else None)
    return event


def to_avro(event: CloudEvent) -> bytes:
    """Writes an event as a document of `application/cloudevents+avro`.

    Writes JSON data as bytes with a `datacontenttype`: the schema's type for data has no numbers
    except doubles, which would change the spelling of numbers. Raises CloudEventError for an event
    whose version is not 1.0, for data that its charset cannot encode, and if fastavro is missing.
    """
    avro = _avro()
    attributes = attributes_to_write(event, _DATUM)
    data: bytes | str | None
    if isinstance(event._data, JsonText):
        data = event.data_bytes()
    elif isinstance(event._data, TextOrBase64):
        raise unmarked_error()
    else:
        data = None if isinstance(event._data, EmptyValue) else event._data
    if isinstance(data, str):
        utf8(data, where="data", clauses=_DATA)
    written = io.BytesIO()
    avro.package.schemaless_writer(written, avro.schema, {"attribute": attributes, "data": data})
    return written.getvalue()


AVRO_FORMAT: Final = EventFormat("application/cloudevents+avro", from_avro, to_avro)


# --- data ---------------------------------------------------------------------------------------


def _data(value: Any, content_type: str | None) -> Data:
    """Converts the datum's data to an event's data; a JSON value becomes `JsonText`."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        plain: Any = {name: _item(item) for name, item in value.items()}
    elif isinstance(value, list):
        plain = [_json_object(item) for item in value]
    else:
        plain = _scalar(value)
    try:
        return from_value(plain, content_type)
    except CloudEventError as error:
        raise CloudEventError(
            error.reason, where=error.where, clauses=(*_DATA, *error.clauses)
        ) from None


def _item(item: Any) -> Any:
    """Returns a value of a map in `data`: an Avro record becomes a JSON object."""
    return _json_object(item) if isinstance(item, dict) else _scalar(item)


def _json_object(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the JSON object for an Avro record of the schema."""
    members: dict[str, Any] = {}
    for name, item in record["value"].items():
        if isinstance(item, dict):
            members[name] = {inner: _json_object(each) for inner, each in item.items()}
        elif isinstance(item, list):
            members[name] = [_json_object(each) for each in item]
        else:
            members[name] = _scalar(item)
    return members


def _scalar(value: Any) -> Any:
    """Converts a whole float up to 2**53 to an int, which JSON writes without `.0`.

    Returns any other value unchanged.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return int(value)
    return value


# --- the schema ---------------------------------------------------------------------------------


@cache
def _avro() -> _Avro:
    try:
        import fastavro
    except ImportError:
        raise missing_package_error("fastavro", "cloudevents-avro") from None
    return _Avro(fastavro, fastavro.parse_schema(_schema()))


def _schema() -> dict[str, Any]:
    """Returns the specification's schema with its recursion unrolled `MAX_NESTING` times.

    The encoded bytes equal those of the recursive schema. A document that nests deeper has a union
    index that the innermost record lacks, so fastavro raises.
    """
    inner: Any = None
    for level in range(MAX_NESTING, 0, -1):
        values: list[Any] = ["null", "boolean"]
        if inner is not None:
            name = inner["name"]
            values += [{"type": "map", "values": inner}, {"type": "array", "items": name}]
            values += ["double", "string"]
        inner = {
            "type": "record",
            "name": f"CloudEventData{level}",
            "fields": [{"name": "value", "type": {"type": "map", "values": values}}],
        }
    scalars = ["null", "boolean", "int", "string", "bytes"]
    data = [
        "bytes",
        "null",
        "boolean",
        {"type": "map", "values": ["null", "boolean", inner, "double", "string"]},
        {"type": "array", "items": inner["name"]},
        "double",
        "string",
    ]
    return {
        "type": "record",
        "name": "CloudEvent",
        "namespace": "io.cloudevents",
        "fields": [
            {"name": "attribute", "type": {"type": "map", "values": scalars}},
            {"name": "data", "type": data},
        ],
    }
