"""The options of the `kproto` data source where it reads: their names, values and errors.

Names and meanings are those of Spark's JVM connector for Kafka, so that a job moves over by
changing `format("kafka")` to `format("kproto")`; a few are our own. What an address is, the client
says. Knows nothing of Spark and opens nothing. An error names the option, never the value of a
secret.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kproto.schema.unknown_names import nearest
from kproto.wire.errors import ConfigurationError

from .client_options import PREFIX, ClientOptions, client_options
from .errors import OptionError
from .offset_spec import EARLIEST, LATEST, OffsetSpec, parse_offset_spec
from .option_json import read_json_object
from .time_spec import TimeSpec, parse_time, parse_times
from .values import boolean, duration_ms, filled, positive, whole_number

if TYPE_CHECKING:
    from kproto.client import TopicPartition

__all__ = ["ReadOptions", "Selection", "Wanted", "parse_columns", "parse_read_options"]

logger = logging.getLogger("kproto.pipeline")

#: Where to begin or to end: by offsets, or by time.
Wanted: TypeAlias = "OffsetSpec | TimeSpec"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to read: topics by name, single partitions, or topics by pattern; exactly one is set."""

    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Everything a read needs to know: of a batch, or of a stream.

    `starts_at_latest` says what becomes of a starting time that no record has reached: the end of
    the log, in place of an error. Delays are in ms, sizes in bytes.
    """

    client: ClientOptions
    selection: Selection
    starting: Wanted = EARLIEST
    ending: Wanted = LATEST
    starts_at_latest: bool = False
    include_headers: bool = False
    cloud_events: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    read_committed: bool = False
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    group_id: str | None = None
    group_id_prefix: str | None = None
    commit_offsets: bool = False
    fetch_max_bytes: int = 8 << 20
    buffer_bytes: int = 32 << 20
    fetch_wait_ms: int = 500


def _topics(name: str, text: str) -> Selection:
    topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",")))
    if not all(topics):
        raise OptionError(f"option {name} is {text!r}; it must be topic names with commas between")
    return Selection(topics=topics)


def _assigned(name: str, text: str) -> Selection:
    wanted = 'JSON such as {"topic": [0, 1]}'
    wrong = OptionError(f"option {name} is {text!r}; it must be {wanted}")
    try:
        parsed = read_json_object(f"option {name}", text, wanted=wanted)
    except ConfigurationError as error:
        raise OptionError(str(error)) from None
    if not parsed:
        raise wrong
    partitions: list[TopicPartition] = []
    for topic, numbers in parsed.items():
        if not isinstance(numbers, list) or not numbers:
            raise wrong
        for number in numbers:
            if type(number) is not int or number < 0:
                raise wrong
            partitions.append((topic, number))
    return Selection(partitions=tuple(dict.fromkeys(partitions)))


def _pattern(name: str, text: str) -> Selection:
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(f"option {name}: {text!r} is no regular expression: {error}") from None
    return Selection(pattern=text)


def _by_offsets(refused: str) -> Callable[[str, str], OffsetSpec]:
    """Read offsets; the word `refused` makes no sense for a batch."""

    def parse(name: str, text: str) -> OffsetSpec:
        try:
            return parse_offset_spec(f"option {name}", text, refused=refused)
        except ConfigurationError as error:
            raise OptionError(str(error)) from None

    return parse


def _any_offsets(name: str, text: str) -> OffsetSpec:
    try:
        return parse_offset_spec(f"option {name}", text, refused=None)
    except ConfigurationError as error:
        raise OptionError(str(error)) from None


def _one_of(**meanings: object) -> Callable[[str, str], Any]:
    def parse(name: str, text: str) -> object:
        word = text.strip().lower()
        if word not in meanings:
            raise OptionError(f"option {name} is {text!r}; it must be {' or '.join(meanings)}")
        return meanings[word]

    return parse


def _isolation(name: str, text: str) -> bool:
    return bool(_one_of(read_committed=True, read_uncommitted=False)(name, text))


def _int32(name: str, text: str) -> int:
    return whole_number(name, text, 1, 2**31 - 1)


def _nothing(name: str, text: str) -> None:
    """Taken, so that a job moves over, and without a meaning here."""


def _idle(parse: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    """Read a value that has no effect, and say so."""

    def parsed(name: str, text: str) -> Any:
        value = parse(name, text)
        logger.warning("option %s has no effect in a batch read", name)
        return value

    return parsed


class _Option(NamedTuple):
    """What an option sets (None: nothing), and how its text is read; None: not in such a read."""

    sets: str | None
    batch: Callable[[str, str], Any] | None
    stream: Callable[[str, str], Any] | None


def _both(sets: str | None, parse: Callable[[str, str], Any]) -> _Option:
    return _Option(sets, parse, parse)


# Of those that set the same, the first that is given counts, as in the connector.
_OPTIONS: Final[Mapping[str, _Option]] = {
    "startingTimestamp": _both("starting", parse_time),
    "startingOffsetsByTimestamp": _both("starting", parse_times),
    "startingOffsets": _Option("starting", _by_offsets("latest"), _any_offsets),
    "startingOffsetsByTimestampStrategy": _both(
        "starts_at_latest", _one_of(error=False, latest=True)
    ),
    "endingTimestamp": _Option("ending", parse_time, None),
    "endingOffsetsByTimestamp": _Option("ending", parse_times, None),
    "endingOffsets": _Option("ending", _by_offsets("earliest"), None),
    "includeHeaders": _both("include_headers", boolean),
    "failOnDataLoss": _both("fail_on_data_loss", boolean),
    "minPartitions": _both("min_partitions", _int32),
    "maxRecordsPerPartition": _both("max_records_per_partition", positive),
    # The connector, too, takes these in a batch, and says that they do nothing there.
    "maxOffsetsPerTrigger": _Option("max_offsets_per_trigger", _idle(positive), positive),
    "minOffsetsPerTrigger": _Option("min_offsets_per_trigger", _idle(positive), positive),
    "maxTriggerDelay": _Option("max_trigger_delay_ms", _idle(duration_ms), duration_ms),
    "groupIdPrefix": _both("group_id_prefix", filled),
    "kafka.group.id": _both("group_id", filled),
    "kafka.isolation.level": _both("read_committed", _isolation),
    "kafka.fetch.max.wait.ms": _both("fetch_wait_ms", _int32),
    # The most that one fetch brings: a response is one chunk of columns, some ten thousand rows.
    "kafka.max.partition.fetch.bytes": _both("fetch_max_bytes", _int32),
    # The names that librdkafka has for these two.
    "kafka.fetch.wait.max.ms": _both("fetch_wait_ms", _int32),
    "kafka.fetch.message.max.bytes": _both("fetch_max_bytes", _int32),
    # The client retries by the properties of a client, as long as delivery.timeout.ms.
    "kafkaConsumer.pollTimeoutMs": _both(None, _nothing),
    "fetchOffset.numRetries": _both(None, _nothing),
    "fetchOffset.retryIntervalMs": _both(None, _nothing),
    # Ours: CloudEvents columns in place of the record's.
    "cloudEvents": _both("cloud_events", boolean),
    # Ours: how many fetched bytes may wait for Spark in each task before fetching pauses.
    "bufferBytes": _both("buffer_bytes", _int32),
    # Ours: whether the group's offsets follow the finished batches.
    "commitOffsets": _Option("commit_offsets", None, boolean),
}

# The three ways to say what to read.
_SELECTIONS: Final[Mapping[str, Callable[[str, str], Selection]]] = {
    "subscribe": _topics,
    "assign": _assigned,
    "subscribePattern": _pattern,
}

# Properties of a consumer that would change what a read is; the connector refuses them too.
_REFUSED: Final[Mapping[str, str]] = {
    "kafka.auto.offset.reset": "say where to begin with startingOffsets",
    "kafka.enable.auto.commit": "offsets stand in Spark's checkpoint; see commitOffsets",
    "kafka.interceptor.classes": "nothing may change records on their way",
    "kafka.key.deserializer": "keys come as bytes; cast the column",
    "kafka.value.deserializer": "values come as bytes; cast the column",
}

_CANONICAL: Final = {name.lower(): name for name in (*_OPTIONS, *_SELECTIONS, *_REFUSED)}


def parse_read_options(options: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options of a read; names are taken in any case, as Spark hands them over.

    Raises:
        OptionError: naming the first option that is unknown, missing, wrong, or not for such a
            read, or two that contradict each other.
    """
    given, properties = _known(options)
    client = client_options(properties)
    fields = _parsed(given, streaming)
    if streaming:
        fields.setdefault("starting", LATEST)
    found = ReadOptions(client=client, selection=_selection(given), **fields)
    _check_together(found)
    return found


def parse_columns(options: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether headers are a column, and whether the columns are CloudEvents': of any read.

    Spark asks for columns before it says whether they are of a batch or of a stream.

    Raises:
        OptionError: naming the first option that is unknown, or wrong.
    """
    given, properties = _known(options)
    client_options(properties)
    _selection(given)
    headers, events = given.get("includeHeaders", "false"), given.get("cloudEvents", "false")
    return boolean("includeHeaders", headers), boolean("cloudEvents", events)


def _known(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Our options by their names, and the properties of a client.

    Raises:
        OptionError: naming the first option that is unknown or not taken.
    """
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in options.items():
        name = _CANONICAL.get(key.lower())
        if name is None and key.lower().startswith(PREFIX):
            properties[key[len(PREFIX) :].lower()] = value
        elif name is None:
            raise _unknown(key)
        elif name in _REFUSED:
            raise OptionError(f"option {name} is not taken: {_REFUSED[name]}")
        else:
            given[name] = value
    return given, properties


def _unknown(key: str) -> OptionError:
    known = (*_SELECTIONS, *_OPTIONS)
    near = ", ".join(nearest(key, known))
    hint = f"the nearest: {near}" if near else f"it knows {', '.join(known)}"
    return OptionError(f"option {key} is not known to kproto; {hint}, and kafka.* of a client")


def _selection(given: Mapping[str, str]) -> Selection:
    chosen = [name for name in _SELECTIONS if name in given]
    if len(chosen) != 1:
        raise OptionError(
            f"exactly one of the options {', '.join(_SELECTIONS)} says what to read; "
            f"given: {', '.join(chosen) or 'none'}"
        )
    return _SELECTIONS[chosen[0]](chosen[0], given[chosen[0]])


def _parsed(given: Mapping[str, str], streaming: bool) -> dict[str, Any]:
    """The fields that options set."""
    kind = "stream" if streaming else "batch"
    fields: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        if name not in given:
            continue
        parse = option.stream if streaming else option.batch
        if parse is None:
            raise OptionError(f"option {name} has no meaning in a {kind} read; leave it out")
        value = parse(name, given[name])
        if option.sets is not None:
            fields.setdefault(option.sets, value)
    return fields


def _check_together(options: ReadOptions) -> None:
    """Raise OptionError for options that contradict each other."""
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"option minOffsetsPerTrigger is {least}, and maxOffsetsPerTrigger {most}: the least "
            "may not be above the most"
        )
    if options.commit_offsets and options.group_id is None:
        raise OptionError(
            "option commitOffsets needs kafka.group.id: the group whose offsets follow the batches"
        )
