"""CloudEvents in Kafka records, exact and lossless.

A record is plain data: key, value, and headers `(str, bytes | None)` in their order. The package
opens no socket, so it works with any Kafka client. It needs only the standard library, except for
the Avro format, the protobuf format and `official_sdk`, each of which needs one package.

    from kproto_cloudevents import CloudEvent, from_kafka, to_kafka

    record = to_kafka(CloudEvent(id="1", source="/shop", type="order.placed", data={"total": 12}))
    event = from_kafka(record.key, record.value, record.headers)

`from_kafka` returns a `CloudEvent`, an `OpaqueEvent` (which can be forwarded, not read) or
`NotAnEvent`. It raises `CloudEventError` for a record that claims to be an event and breaks a rule.

A module imports only modules that are before it in this list: `errors`, `values`, `versions`,
`event`, `formats`, `protocol_binding`, then `kafka`, `pulsar` and `official_sdk`. The last three do
not import each other.
"""

from __future__ import annotations

from .errors import CloudEventError, CloudEventWarning, UnknownFormatError, UnknownVersionError
from .event.cloud_event import CloudEvent
from .event.data import JSON_NULL, JsonNull
from .formats.json_format import from_json, from_json_batch, to_json, to_json_batch
from .formats.registry import JSON_FORMAT, PORTABLE_JSON_FORMAT, EventFormat, register_format
from .kafka.codec import CloudEvents
from .kafka.lazy import LazyEvent, lazy_from_kafka
from .kafka.origin import kafka_record
from .kafka.outcomes import InvalidEvent, NotAnEvent, OpaqueEvent
from .kafka.reading import from_kafka, from_kafka_many
from .kafka.record import Header, KafkaRecord
from .kafka.stream import ReadableRecord, Received, event_of, events
from .kafka.writing import KeyMapper, partition_key, to_kafka
from .protocol_binding import DEFAULT, EVENT_GRID, LENIENT, STRICT, Mode, Profile
from .values.types import AttributeInput, AttributeValue, JsonMap, Timestamp, Uri, UriReference

__all__ = [
    "DEFAULT",
    "EVENT_GRID",
    "JSON_FORMAT",
    "JSON_NULL",
    "LENIENT",
    "PORTABLE_JSON_FORMAT",
    "STRICT",
    "AttributeInput",
    "AttributeValue",
    "CloudEvent",
    "CloudEventError",
    "CloudEventWarning",
    "CloudEvents",
    "EventFormat",
    "Header",
    "InvalidEvent",
    "JsonMap",
    "JsonNull",
    "KafkaRecord",
    "KeyMapper",
    "LazyEvent",
    "Mode",
    "NotAnEvent",
    "OpaqueEvent",
    "Profile",
    "ReadableRecord",
    "Received",
    "Timestamp",
    "UnknownFormatError",
    "UnknownVersionError",
    "Uri",
    "UriReference",
    "event_of",
    "events",
    "from_json",
    "from_json_batch",
    "from_kafka",
    "from_kafka_many",
    "kafka_record",
    "lazy_from_kafka",
    "partition_key",
    "register_format",
    "to_json",
    "to_json_batch",
    "to_kafka",
]

# `CloudEvent.to_kafka_record` needs the Kafka binding, which imports the class. The binding cannot
# be imported there without a cycle, so this module assigns `to_kafka` to the class. A subclass
# above the binding would not help: the formats and the binding's reader return `CloudEvent`.
CloudEvent._to_kafka = to_kafka
