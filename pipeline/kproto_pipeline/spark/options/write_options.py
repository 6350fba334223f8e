"""The options of the `kproto` data source where it writes: their names, values and errors.

Names and meanings are those of Spark's JVM connector for Kafka; one is our own. Knows nothing of
Spark and opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kproto.schema.unknown_names import nearest

from .client_options import PREFIX, client_options
from .errors import OptionError
from .values import filled, whole_number

if TYPE_CHECKING:
    from .client_options import ClientOptions

__all__ = ["Mode", "WriteOptions", "parse_write_options"]

Mode = Literal["binary", "structured"]

_MODES: Final[Mapping[str, Mode | None]] = {
    "false": None,
    "true": "binary",
    "binary": "binary",
    "structured": "structured",
}

#: A batch before compression, in bytes: brokers refuse one over 1,048,588 by default.
BATCH_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Everything a write needs to know.

    `topic` is that of all rows, and comes before a column of that name. With `cloud_events` the
    rows are events, written in that mode.
    """

    client: ClientOptions
    topic: str | None = None
    cloud_events: Mode | None = None
    batch_bytes: int = BATCH_BYTES


_TOPIC: Final = "topic"
_CLOUD_EVENTS: Final = "cloudEvents"
_BATCH_SIZE: Final = "kafka.batch.size"

# Spark's own, which it hands to the sink as well.
_OF_SPARK: Final = frozenset({"checkpointlocation", "path", "queryname"})

# Properties of a producer that would change what a row is; the connector refuses them too.
_REFUSED: Final[Mapping[str, str]] = {
    "kafka.key.serializer": "keys go out as the bytes of the column",
    "kafka.value.serializer": "values go out as the bytes of the column",
    "kafka.interceptor.classes": "nothing may change records on their way",
    "kafka.transactional.id": "transactions are not taken; the sink writes at least once",
    "kafka.enable.idempotence": "the sink is idempotent in any case",
}

#: Requests under way at one broker, at most: brokers remember no more batches of a producer, and
#: with more the client would give up idempotence (KIP-98).
_MOST_IN_FLIGHT: Final = 5
_IN_FLIGHT: Final = ("kafka.max.in.flight.requests.per.connection", "kafka.max.in.flight")


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of a write; names are taken in any case, as Spark hands them over.

    Raises:
        OptionError: naming the first option that is unknown, missing or wrong.
    """
    topic: str | None = None
    mode: Mode | None = None
    batch_bytes = BATCH_BYTES
    properties: dict[str, str] = {}
    for key, value in options.items():
        name = key.lower()
        if name == _TOPIC:
            topic = filled(_TOPIC, value)
        elif name == _CLOUD_EVENTS.lower():
            mode = _mode(value)
        elif name in _REFUSED:
            raise OptionError(f"option {name} is not taken: {_REFUSED[name]}")
        elif name.startswith(PREFIX):
            if name == _BATCH_SIZE:
                batch_bytes = whole_number(_BATCH_SIZE, value, 1, 2**31 - 1)
            elif name in _IN_FLIGHT:
                _check_in_flight(name, value)
            properties[name.removeprefix(PREFIX)] = value
        elif name not in _OF_SPARK:
            raise _unknown(key)
    return WriteOptions(client_options(properties), topic, mode, batch_bytes)


def _check_in_flight(name: str, text: str) -> None:
    if whole_number(name, text, 1, 2**31 - 1) > _MOST_IN_FLIGHT:
        raise OptionError(
            f"option {name} is {text!r}; it must be 1 to {_MOST_IN_FLIGHT}, as the sink is "
            "idempotent, and brokers remember no more batches of a producer"
        )


def _mode(text: str) -> Mode | None:
    word = text.strip().lower()
    if word not in _MODES:
        raise OptionError(f"option {_CLOUD_EVENTS} is {text!r}; it must be {', '.join(_MODES)}")
    return _MODES[word]


def _unknown(key: str) -> OptionError:
    known = (_TOPIC, _CLOUD_EVENTS)
    near = ", ".join(nearest(key, known))
    hint = f"the nearest: {near}" if near else f"it knows {', '.join(known)}"
    return OptionError(f"option {key} is not known where kproto writes; {hint}, and kafka.*")
