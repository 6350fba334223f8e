"""Declares the options of the data source in a table, and parses them into typed options.

`OPTIONS` has each option with its type, its default, its meaning, its uses and the field that it
sets. Batch reads, streams, the sink and the documentation use this table. Names and meanings are
the same as in Spark's JVM connector for Kafka, so that a job only replaces `format("kafka")` by
`format("kproto")`. Only `bufferBytes`, `cloudEvents` and `commitOffsets` are kproto's own; `mode`
and `columnNameOfCorruptRecord` come from Spark's sources for JSON and CSV. Options that begin with
`kafka.` and are not in the table are properties of the client, or are refused.

This module imports no Spark, and opens no connection. An error names the option, but never the
value of a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.schema.unknown_names import nearest

from .client_options import PREFIX, ClientOptions, client_options
from .errors import OptionError
from .offset_spec import LATEST, OffsetSpec, check_no_sentinel, parse_offset_spec
from .option_values import (
    Parser,
    parse_boolean,
    parse_duration_ms,
    parse_int32,
    parse_not_negative,
    parse_positive,
    parse_text,
    parse_whole_number,
    word_parser,
)
from .timestamp_spec import TimestampSpec, parse_timestamp, parse_timestamps
from .topic_selection import (
    TopicSelection,
    parse_assign,
    parse_subscribe,
    parse_subscribe_pattern,
)

__all__ = [
    "OPTIONS",
    "REFUSED",
    "EventMode",
    "OffsetRangeLimit",
    "Option",
    "OptionScope",
    "ReadOptions",
    "WriteOptions",
    "names_that_set",
    "parse_read_options",
    "parse_undecided_read",
    "parse_write_options",
]

logger = logging.getLogger("kproto.pipeline")

#: The starting or ending offsets of a read, given as offsets or as timestamps.
OffsetRangeLimit: TypeAlias = "OffsetSpec | TimestampSpec"

#: The content mode of CloudEvents in records.
EventMode: TypeAlias = Literal["default", "binary", "structured"]


class OptionScope(Flag):
    """The operation that an option configures: a batch read, a stream read or the sink."""

    BATCH = auto()
    STREAM = auto()
    SINK = auto()


READ: Final = OptionScope.BATCH | OptionScope.STREAM

_NAME: Final = {
    OptionScope.BATCH: "a batch read",
    OptionScope.STREAM: "a stream read",
    OptionScope.SINK: "a write",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The typed options of a batch or stream read. Durations are in ms, sizes in bytes."""

    #: The parsed values of only the options that the caller set, by name.
    given: Mapping[str, Any]
    client: ClientOptions
    selection: TopicSelection
    starting_offsets: OffsetRangeLimit
    ending_offsets: OffsetRangeLimit
    #: True: a partition starts at its latest offset if no record has the starting timestamp or a
    #: later one. False: such a partition is an error.
    latest_without_match: bool
    include_headers: bool
    cloud_events: bool
    events_without_headers: bool
    event_grid_dataschema: bool
    fail_on_data_loss: bool
    #: True: unreadable records are rows with their bytes in the column `corrupt_column_name`.
    keep_unreadable: bool
    corrupt_column_name: str
    min_partitions: int | None
    max_records_per_partition: int | None
    read_committed: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    group_id: str | None
    group_id_prefix: str | None
    commit_offsets: bool
    max_partition_fetch_bytes: int
    fetch_max_wait_ms: int
    buffer_bytes: int

    @property
    def corrupt_column(self) -> str | None:
        """Returns the name of the column for the bytes of unreadable records.

        Returns None if an unreadable record is an error.
        """
        return self.corrupt_column_name if self.keep_unreadable else None

    def for_batch(self) -> ReadOptions:
        """Checks the options for a batch read and returns them; warns about ineffective options.

        Raises:
            OptionError: an option is not for batch reads, or two options contradict each other.
        """
        self._check_use(OptionScope.BATCH)
        if "startingOffsets" in self.given:
            check_no_sentinel("option startingOffsets", self.given["startingOffsets"], "latest")
        self._check_combinations()
        return self

    def for_stream(self) -> ReadOptions:
        """Checks the options for a stream and returns them; the default start is the latest offset.

        Raises:
            OptionError: an option is not for streams, or two options contradict each other.
        """
        self._check_use(OptionScope.STREAM)
        self._check_combinations()
        if names_that_set("starting_offsets").isdisjoint(self.given):
            return replace(self, starting_offsets=LATEST)
        return self

    def _check_use(self, use: OptionScope) -> None:
        for option in OPTIONS:
            if option.name in self.given and option.uses & READ:
                if use not in option.uses:
                    raise OptionError(
                        f"option {option.name} has no meaning in {_NAME[use]}; leave it out"
                    )
                if use in option.no_effect:
                    logger.warning("option %s has no effect in %s", option.name, _NAME[use])

    def _check_combinations(self) -> None:
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise OptionError(
                f"option minOffsetsPerTrigger is {least}, and maxOffsetsPerTrigger {most}: the "
                "minimum may not exceed the maximum"
            )
        for name, is_set in (
            ("cloudEventsWithoutHeaders", self.events_without_headers),
            ("cloudEventsEventGrid", self.event_grid_dataschema),
        ):
            if is_set and not self.cloud_events:
                raise OptionError(
                    f"option {name} has no meaning without cloudEvents: set cloudEvents, or leave "
                    "it out"
                )
        if self.commit_offsets and self.group_id is None:
            raise OptionError(
                "option commitOffsets needs kafka.group.id: the group for which offsets are "
                "committed"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The typed options of a write. `topic`, if set, overrides the rows' column `topic`.

    If `cloud_events` is not None, the rows are CloudEvents that are written in this content mode.
    "default" is binary, or structured for brokers before Kafka 0.11. With `exactly_once` a stream
    writes in transactions, whose transactional ids begin with `transactional_id_prefix`.
    """

    client: ClientOptions
    topic: str | None
    cloud_events: EventMode | None
    #: True: events in structured mode have data of `+json` types as Base64.
    portable_json: bool
    exactly_once: bool
    transactional_id_prefix: str
    #: The time in ms after which brokers abort a transaction of a task that is still open.
    transaction_timeout_ms: int
    #: True: columns that the sink does not know are ignored. False: such a column is an error.
    ignore_extra_columns: bool
    #: The maximum uncompressed bytes of a batch with several rows. By default, brokers refuse
    #: batches over 1,048,588 bytes.
    batch_bytes: int


def _parse_offsets(name: str, text: str) -> OffsetSpec:
    return parse_offset_spec(f"option {name}", text)


def _parse_ending_offsets(name: str, text: str) -> OffsetSpec:
    return parse_offset_spec(f"option {name}", text, refused="earliest")


#: The maximum number of in-flight requests per broker. More would exclude idempotence, because a
#: broker remembers only the last five batches of a producer (KIP-98).
_MAX_IN_FLIGHT: Final = 5


def _parse_in_flight(name: str, text: str) -> int:
    found = parse_whole_number(name, text, 1, 2**31 - 1)
    if found > _MAX_IN_FLIGHT:
        raise OptionError(
            f"option {name} is {text!r}; it must be 1 to {_MAX_IN_FLIGHT}, because the sink is "
            "idempotent, and brokers remember no more batches of a producer"
        )
    return found


class Option(NamedTuple):
    """One option of the data source, for one or more uses.

    `field` is the field of `ReadOptions` or `WriteOptions` that the option sets. It is None if the
    option has no effect, or only the client reads it. `no_effect` lists the uses that accept the
    option but ignore it. With `to_client`, the option is also a property of the client. If several
    options set the same field, the first option in the table wins.
    """

    name: str
    type: str
    default: str | None
    uses: OptionScope
    field: str | None
    parse: Parser | None
    meaning: str
    no_effect: OptionScope = OptionScope(0)
    to_client: bool = False


_SELECT: Final = "the topics to read; set exactly one of subscribe, assign, subscribePattern"
_NO_EFFECT: Final = "accepted without effect: the client retries up to kafka.default.api.timeout.ms"

#: Every option except those that are only properties of the client.
OPTIONS: Final[tuple[Option, ...]] = (
    Option("kafka.bootstrap.servers", "addresses", None, READ | OptionScope.SINK, None, None,
           "the brokers to connect to first: host:port, separated by commas", to_client=True),
    Option("brokerVersion", "release", None, READ | OptionScope.SINK, None, parse_text,
           "the release of the brokers, such as 0.9; brokers before 0.10 need it"),
    Option("subscribe", "topic names", None, READ, "selection", parse_subscribe, _SELECT),
    Option("assign", "JSON", None, READ, "selection", parse_assign, _SELECT),
    Option("subscribePattern", "regular expression", None, READ, "selection",
           parse_subscribe_pattern, _SELECT),
    Option("startingTimestamp", "ms", None, READ, "starting_offsets", parse_timestamp,
           "each partition starts at its first record of this timestamp or later"),
    Option("startingOffsetsByTimestamp", "JSON", None, READ, "starting_offsets", parse_timestamps,
           "like startingTimestamp, with a timestamp for each partition"),
    Option("startingOffsets", "earliest, latest or JSON", "earliest", READ, "starting_offsets",
           _parse_offsets, "the first offsets to read; a stream may start at latest, its default"),
    Option("startingOffsetsByTimestampStrategy", "error or latest", "error", READ,
           "latest_without_match", word_parser({"error": False, "latest": True}),
           "if no record has a starting timestamp or a later one: fail, or start at the latest"),
    Option("endingTimestamp", "ms", None, OptionScope.BATCH, "ending_offsets", parse_timestamp,
           "each partition ends before its first record of this timestamp or later"),
    Option("endingOffsetsByTimestamp", "JSON", None, OptionScope.BATCH, "ending_offsets",
           parse_timestamps, "like endingTimestamp, with a timestamp for each partition"),
    Option("endingOffsets", "latest or JSON", "latest", OptionScope.BATCH, "ending_offsets",
           _parse_ending_offsets, "the offsets before which a batch ends"),
    Option("includeHeaders", "boolean", "false", READ, "include_headers", parse_boolean,
           "adds the column headers; with cloudEvents, fills it in every row"),
    Option("failOnDataLoss", "boolean", "true", READ, "fail_on_data_loss", parse_boolean,
           "fails when offsets are no longer in the log, or a topic was deleted or recreated"),
    Option("mode", "FAILFAST or PERMISSIVE", "FAILFAST", READ, "keep_unreadable",
           word_parser({"FAILFAST": False, "PERMISSIVE": True}),
           "a record that cannot be decoded: an error, or a row with its bytes"),
    Option("columnNameOfCorruptRecord", "column name", "_corrupt_record", READ,
           "corrupt_column_name", parse_text,
           "with mode PERMISSIVE, the column that has the bytes of unreadable records"),
    Option("minPartitions", "int", None, READ, "min_partitions", parse_int32,
           "the minimum number of tasks; offset ranges are split evenly"),
    Option("maxRecordsPerPartition", "long", None, READ, "max_records_per_partition",
           parse_positive, "the maximum number of offsets of one task"),
    Option("maxOffsetsPerTrigger", "long", None, READ, "max_offsets_per_trigger", parse_positive,
           "the maximum number of offsets of a micro-batch", no_effect=OptionScope.BATCH),
    Option("minOffsetsPerTrigger", "long", None, READ, "min_offsets_per_trigger", parse_positive,
           "a micro-batch waits for this many offsets", no_effect=OptionScope.BATCH),
    Option("maxTriggerDelay", "duration", "15m", READ, "max_trigger_delay_ms", parse_duration_ms,
           "the longest wait for minOffsetsPerTrigger", no_effect=OptionScope.BATCH),
    Option("groupIdPrefix", "string", None, READ, "group_id_prefix", parse_text,
           "accepted without effect; a read joins no group"),
    Option("kafka.group.id", "string", None, READ, "group_id", parse_text,
           "the group that commitOffsets commits for; a read joins no group"),
    Option("commitOffsets", "boolean", "false", OptionScope.STREAM, "commit_offsets", parse_boolean,
           "commits the offsets of finished micro-batches for kafka.group.id"),
    Option("kafka.isolation.level", "read_committed or read_uncommitted", "read_uncommitted", READ,
           "read_committed", word_parser({"read_committed": True, "read_uncommitted": False}),
           "read_committed leaves out aborted transactions and ends at the last stable offset"),
    Option("kafka.max.partition.fetch.bytes", "int", str(8 << 20), READ,
           "max_partition_fetch_bytes", parse_int32, "the maximum bytes of one fetch response"),
    Option("kafka.fetch.message.max.bytes", "int", None, READ, "max_partition_fetch_bytes",
           parse_int32, "librdkafka's name of kafka.max.partition.fetch.bytes"),
    Option("kafka.fetch.max.wait.ms", "int", "500", READ, "fetch_max_wait_ms", parse_int32,
           "how long a broker may wait for records before it answers a fetch"),
    Option("kafka.fetch.wait.max.ms", "int", None, READ, "fetch_max_wait_ms", parse_int32,
           "librdkafka's name of kafka.fetch.max.wait.ms"),
    Option("bufferBytes", "int", str(32 << 20), READ, "buffer_bytes", parse_int32,
           "fetched bytes that each task buffers for Spark before it pauses fetching"),
    Option("cloudEvents", "boolean", "false", READ, "cloud_events", parse_boolean,
           "reads the columns of CloudEvents instead of the record's"),
    Option("cloudEventsWithoutHeaders", "boolean", "false", READ, "events_without_headers",
           parse_boolean, "reads a record without ce_ headers as a CloudEvent if its value is a "
           "JSON object with a specversion"),
    Option("cloudEventsEventGrid", "boolean", "false", READ, "event_grid_dataschema",
           parse_boolean, "accepts the dataschema # of Azure Event Grid"),
    Option("kafkaConsumer.pollTimeoutMs", "ms", None, READ, None, parse_not_negative, _NO_EFFECT),
    Option("fetchOffset.numRetries", "int", None, READ, None, parse_not_negative, _NO_EFFECT),
    Option("fetchOffset.retryIntervalMs", "ms", None, READ, None, parse_not_negative, _NO_EFFECT),
    Option("topic", "topic name", None, OptionScope.SINK, "topic", parse_text,
           "the topic of all rows; overrides their column topic"),
    Option("cloudEvents", "false, true, binary or structured", "false", OptionScope.SINK,
           "cloud_events", word_parser({"false": None, "true": "default", "binary": "binary",
                        "structured": "structured"}, ", "),
           "writes rows as CloudEvents in this content mode; true is binary, or structured for "
           "brokers before Kafka 0.11"),
    Option("cloudEventsPortableJson", "boolean", "false", OptionScope.SINK, "portable_json",
           parse_boolean, "in structured mode, writes data of +json types as Base64, for SDKs that "
           "do not know these types"),
    Option("exactlyOnce", "boolean", "false", OptionScope.SINK, "exactly_once", parse_boolean,
           "a stream writes each micro-batch in transactions, and its rows once"),
    Option("transactionalIdPrefix", "string", "kproto", OptionScope.SINK,
           "transactional_id_prefix", parse_text,
           "with exactlyOnce, the start of all transactional ids and groups"),
    Option("kafka.transaction.timeout.ms", "int", "900000", OptionScope.SINK,
           "transaction_timeout_ms", parse_int32,
           "with exactlyOnce, the longest time from the first row of a micro-batch to its commit"),
    Option("ignoreExtraColumns", "boolean", "false", OptionScope.SINK, "ignore_extra_columns",
           parse_boolean, "ignores columns that the sink does not know, as Spark's connector does"),
    Option("kafka.batch.size", "int", "1000000", OptionScope.SINK, "batch_bytes", parse_int32,
           "uncompressed bytes of a batch; a larger row is a batch of its own", to_client=True),
    Option("kafka.max.in.flight.requests.per.connection", "1 to 5", None, OptionScope.SINK, None,
           _parse_in_flight, "the maximum number of in-flight requests per broker", to_client=True),
    Option("kafka.max.in.flight", "1 to 5", None, OptionScope.SINK, None, _parse_in_flight,
           "librdkafka's name of kafka.max.in.flight.requests.per.connection", to_client=True),
)  # fmt: skip

_NO_INTERCEPTOR: Final = "interceptors could change the records"

#: Properties that would change the records that are read or written, with the advice of the error.
#: The JVM connector refuses them, too.
REFUSED: Final[Mapping[OptionScope, Mapping[str, str]]] = {
    READ: {
        "kafka.auto.offset.reset": "set startingOffsets instead",
        "kafka.enable.auto.commit": "Spark's checkpoint has the offsets; see commitOffsets",
        "kafka.interceptor.classes": _NO_INTERCEPTOR,
        "kafka.key.deserializer": "keys come as bytes; cast the column",
        "kafka.value.deserializer": "values come as bytes; cast the column",
    },
    OptionScope.SINK: {
        "kafka.key.serializer": "keys are sent as the bytes of the column",
        "kafka.value.serializer": "values are sent as the bytes of the column",
        "kafka.interceptor.classes": _NO_INTERCEPTOR,
        "kafka.transactional.id": "set exactlyOnce, and transactionalIdPrefix for its ids",
        "kafka.enable.idempotence": "the sink is idempotent in any case",
    },
}

#: Spark's own options, in lower case; Spark passes them to the sink, which ignores them.
_OF_SPARK: Final = frozenset({"checkpointlocation", "path", "queryname"})

#: Spark adds this option to those of CREATE TABLE.
_OF_TABLES: Final = "provider"

_TABLES: Final = (
    "Spark does not keep the options of a table for a data source in Python: instead of CREATE "
    "TABLE, use CREATE TEMPORARY VIEW … USING kproto OPTIONS (…), with subscribe for SELECT or "
    "with topic for INSERT"
)

_SELECTIONS: Final = tuple(option.name for option in OPTIONS if option.field == "selection")


def names_that_set(*fields: str) -> frozenset[str]:
    """Returns the names of the options that set one of `fields`."""
    return frozenset(option.name for option in OPTIONS if option.field in fields)


def parse_read_options(text: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """Parses the options of a batch read or, with `streaming`, of a stream.

    Raises:
        OptionError: as in `parse_undecided_read`, `ReadOptions.for_batch` and `for_stream`.
    """
    options = parse_undecided_read(text)
    return options.for_stream() if streaming else options.for_batch()


def parse_undecided_read(text: Mapping[str, str], driver_folder: str | None = None) -> ReadOptions:
    """Parses the options of a read before Spark has requested a batch or a stream.

    Spark requests the columns first; later `for_batch` or `for_stream` checks the rest. The case of
    names does not matter, because Spark passes them in lower case. `driver_folder` is as in
    `ClientOptions`.

    Raises:
        OptionError: an option is unknown, missing or wrong; the message names the first.
    """
    given, properties = _names(text, READ)
    chosen = [name for name in _SELECTIONS if name in given]
    if len(chosen) != 1:
        raise OptionError(
            f"exactly one of the options {', '.join(_SELECTIONS)} must be set; "
            f"set are: {', '.join(chosen) or 'none'}"
        )
    parsed = _parsed(given, READ)
    client = client_options(properties, parsed.get("brokerVersion"), driver_folder)
    return ReadOptions(given=parsed, client=client, **_fields(parsed, READ))


def parse_write_options(text: Mapping[str, str], driver_folder: str | None = None) -> WriteOptions:
    """Parses the options of a write. The case of names does not matter.

    `driver_folder` is as in `ClientOptions`.

    Raises:
        OptionError: an option is unknown, missing or wrong; the message names the first.
    """
    text = {name: value for name, value in text.items() if name.lower() not in _OF_SPARK}
    given, properties = _names(text, OptionScope.SINK)
    parsed = _parsed(given, OptionScope.SINK)
    fields = _fields(parsed, OptionScope.SINK)
    if properties.pop("acks", "all").strip() not in ("all", "-1"):
        logger.warning("kafka.acks has no effect: the sink waits for acks by all in-sync replicas")
    client = client_options(properties, parsed.get("brokerVersion"), driver_folder)
    options = WriteOptions(client=client, **fields)
    if options.portable_json and options.cloud_events in (None, "binary"):
        raise OptionError(
            "option cloudEventsPortableJson has no meaning without structured mode: set "
            "cloudEvents to structured, or leave it out"
        )
    return options


def _names(text: Mapping[str, str], uses: OptionScope) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the given options by their names in the table, and the properties of the client.

    The names of the properties lack the prefix `kafka.`.

    Raises:
        OptionError: an option is unknown or refused.
    """
    known = {option.name.lower(): option for option in _rows(uses)}
    refused = {name.lower(): (name, why) for name, why in REFUSED[uses].items()}
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    if not text:
        raise OptionError(f"no option is set. If this is a query of a table: {_TABLES}")
    for key, value in text.items():
        name = key.lower()
        if name == _OF_TABLES:
            raise OptionError(_TABLES)
        option = known.get(name)
        if name in refused:
            raise OptionError("option {} is not accepted: {}".format(*refused[name]))
        if option is None and not name.startswith(PREFIX):
            raise _unknown(key, uses)
        if option is None or option.to_client:
            properties[name.removeprefix(PREFIX)] = value
        if option is not None:
            given[option.name] = value
    return given, properties


def _rows(uses: OptionScope) -> Iterable[Option]:
    return (option for option in OPTIONS if option.uses & uses)


def _unknown(key: str, uses: OptionScope) -> OptionError:
    is_write = uses is OptionScope.SINK
    known = [option.name for option in _rows(uses)]
    others = {option.name.lower() for option in _rows(READ if is_write else OptionScope.SINK)}
    similar = ", ".join(nearest(key, known))
    hint = f"the nearest: {similar}" if similar else f"the options are {', '.join(known)}"
    if key.lower() in others:
        hint = f"it is an option of a {'read' if is_write else 'write'}; {hint}"
    return OptionError(
        f"option {key} is not known to kproto as an option of a {'write' if is_write else 'read'}; "
        f"{hint}, and kafka.* for the client"
    )


def _parsed(given: Mapping[str, str], uses: OptionScope) -> dict[str, Any]:
    """Returns the parsed values of the given options, by name. Raises OptionError."""
    return {
        option.name: None if option.parse is None else option.parse(option.name, given[option.name])
        for option in _rows(uses)
        if option.name in given
    }


def _fields(parsed: Mapping[str, Any], uses: OptionScope) -> dict[str, Any]:
    """Returns the value of each field of the typed options.

    The value comes from the first given option that sets the field. Without such an option, it is
    the default of the field.
    """
    fields: dict[str, Any] = {}
    for option in _rows(uses):
        if option.field is not None and option.name in parsed:
            fields.setdefault(option.field, parsed[option.name])
    defaults = {
        option.field: option.parse(option.name, option.default)
        for option in _rows(uses)
        if option.field is not None and option.parse is not None and option.default is not None
    }
    nothing = dict.fromkeys(option.field for option in _rows(uses) if option.field is not None)
    return {**nothing, **defaults, **fields}
