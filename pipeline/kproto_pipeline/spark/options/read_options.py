"""The options of the `kproto` data source: their names, values and errors.

Names and meanings are those of Spark's JVM connector for Kafka, so that a job moves over by
changing `format("kafka")` to `format("kproto")`; two are our own. What an address is, the client
says. Knows nothing of Spark and opens nothing. An error names the option, never the value of a
secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kproto.wire.errors import ConfigurationError

from .client_options import PREFIX, ClientOptions, client_options
from .errors import OptionError
from .offset_spec import EARLIEST, LATEST, parse_offset_spec
from .option_json import read_json_object

if TYPE_CHECKING:
    from kproto.client import TopicPartition

    from .offset_spec import OffsetSpec

__all__ = ["ReadOptions", "Selection", "parse_read_options"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What to read: topics by name, single partitions, or topics by pattern; exactly one is set."""

    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Everything a batch read needs to know."""

    client: ClientOptions
    selection: Selection
    starting: OffsetSpec = EARLIEST
    ending: OffsetSpec = LATEST
    include_headers: bool = False
    cloud_events: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    fetch_max_bytes: int = 8 << 20
    buffer_bytes: int = 32 << 20
    fetch_wait_ms: int = 500


def _boolean(name: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise OptionError(f"option {name} is {text!r}; it must be true or false")


def _positive(name: str, text: str) -> int:
    digits = text.strip()
    if len(digits) < 20 and digits.isascii() and digits.isdigit() and 0 < int(digits) < 2**31:
        return int(digits)
    raise OptionError(f"option {name} is {text!r}; it must be a whole number from 1 on")


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


def _starting(name: str, text: str) -> OffsetSpec:
    return _offsets(name, text, refused="latest")


def _ending(name: str, text: str) -> OffsetSpec:
    return _offsets(name, text, refused="earliest")


def _offsets(name: str, text: str, refused: str) -> OffsetSpec:
    try:
        return parse_offset_spec(f"option {name}", text, refused=refused)
    except ConfigurationError as error:
        raise OptionError(str(error)) from None


# Option -> (field of ReadOptions, how to read it).
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = {
    "startingOffsets": ("starting", _starting),
    "endingOffsets": ("ending", _ending),
    "includeHeaders": ("include_headers", _boolean),
    "failOnDataLoss": ("fail_on_data_loss", _boolean),
    "minPartitions": ("min_partitions", _positive),
    "maxRecordsPerPartition": ("max_records_per_partition", _positive),
    "kafka.fetch.max.wait.ms": ("fetch_wait_ms", _positive),
    # The most that one fetch brings: a response is one chunk of columns, some ten thousand rows.
    "kafka.max.partition.fetch.bytes": ("fetch_max_bytes", _positive),
    # Ours: CloudEvents columns in place of the record's.
    "cloudEvents": ("cloud_events", _boolean),
    # Ours: how many fetched bytes may wait for Spark in each task before fetching pauses.
    "bufferBytes": ("buffer_bytes", _positive),
}

# The three ways to say what to read.
_SELECTIONS: Final[Mapping[str, Callable[[str, str], Selection]]] = {
    "subscribe": _topics,
    "assign": _assigned,
    "subscribePattern": _pattern,
}

# Options of the JVM connector that have no counterpart in a batch read of ours.
_NOT_SUPPORTED: Final = (
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
)

_CANONICAL: Final = {name.lower(): name for name in (*_FIELDS, *_SELECTIONS, *_NOT_SUPPORTED)}


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of a batch read; names are taken in any case, as Spark hands them over.

    Raises:
        OptionError: naming the first option that is unknown, unsupported, missing or wrong.
    """
    given: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in options.items():
        name = _CANONICAL.get(key.lower())
        if name is None and key.lower().startswith(PREFIX):
            properties[key[len(PREFIX) :].lower()] = value
            continue
        if name is None:
            raise OptionError(
                f"option {key} is not known to kproto; it knows "
                f"{', '.join((*_SELECTIONS, *_FIELDS))}, and kafka.* for properties of a client"
            )
        if name in _NOT_SUPPORTED:
            raise OptionError(
                f"option {name} is not supported in a batch read of kproto, and streams are not "
                "read yet"
            )
        given[name] = value
    client = client_options(properties)
    chosen = [name for name in _SELECTIONS if name in given]
    if len(chosen) != 1:
        raise OptionError(
            f"exactly one of the options {', '.join(_SELECTIONS)} says what to read; "
            f"given: {', '.join(chosen) or 'none'}"
        )
    selection = _SELECTIONS[chosen[0]](chosen[0], given[chosen[0]])
    fields = {
        field: parse(name, given[name]) for name, (field, parse) in _FIELDS.items() if name in given
    }
    return ReadOptions(client=client, selection=selection, **fields)
