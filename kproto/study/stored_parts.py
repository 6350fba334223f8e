"""Decodes the key or the value of a record in one of Kafka's internal topics, by itself.

A key names its type, and a value of the metadata log does, too. A value of a coordinator's topic
does not: its type is that of its key. Without the key, the caller names the message, or the type is
the one whose message reads all bytes.
"""

from __future__ import annotations

from typing import Final

from ..stored.coordinator_records import COORDINATOR_TOPICS
from ..stored.framing import message_class
from ..stored.metadata_log import METADATA_TOPICS
from ..wire.errors import ConfigurationError
from .node import DEFAULT_MAX_NODES, Node, TreeSizeLimit, faults
from .records_context import RecordsContext
from .stored_records import open_coordinator_value, open_record

__all__ = ["annotate_key", "annotate_value", "value_types"]

_TOPICS: Final = (*COORDINATOR_TOPICS, *METADATA_TOPICS)


def annotate_key(
    data: bytes, records_of: str, *, max_nodes: int | None = DEFAULT_MAX_NODES
) -> Node:
    """Returns the key of a record of the internal topic `records_of` as a tree.

    Raises ConfigurationError for another topic, and for a topic whose records have no key.
    """
    _check_topic(records_of)
    if records_of in METADATA_TOPICS:
        raise ConfigurationError(f"the records of {records_of} have no key: pass a value")
    key, other = _bytes("key", data), _null("value")
    open_record(key, other, RecordsContext(TreeSizeLimit(max_nodes), topic=records_of))
    return key


def annotate_value(
    data: bytes,
    records_of: str,
    *,
    message: str | None = None,
    max_nodes: int | None = DEFAULT_MAX_NODES,
) -> Node:
    """Returns the value of a record of the internal topic `records_of` as a tree.

    `message` is the name of the value's message, such as OffsetCommitValue; it is needed if several
    messages of a coordinator's topic read all bytes. Raises ConfigurationError then, and for
    another topic or message.
    """
    _check_topic(records_of)
    budget = TreeSizeLimit(max_nodes)
    value = _bytes("value", data)
    if records_of in METADATA_TOPICS:
        open_record(_null("key"), value, RecordsContext(budget, topic=records_of))
        return value
    open_coordinator_value(value, _value_type(data, records_of, message), budget)
    return value


def value_types(
    data: bytes, records_of: str, *, max_nodes: int | None = DEFAULT_MAX_NODES
) -> list[str]:
    """Returns the types of the coordinator's topic whose value message reads all bytes.

    Only the first `max_nodes` nodes of each are checked.
    """
    version = int.from_bytes(data[:2], "big", signed=True)
    found = []
    for name in dict.fromkeys(COORDINATOR_TOPICS[records_of].values()):
        if version not in message_class(f"{name}Value").VALID_VERSIONS:
            continue
        value = _bytes("value", data)
        open_coordinator_value(value, name, TreeSizeLimit(max_nodes))
        if not faults(value):
            found.append(name)
    return found


def _value_type(data: bytes, records_of: str, message: str | None) -> str:
    """Returns the name of the record type in the table of the topic."""
    names = list(dict.fromkeys(COORDINATOR_TOPICS[records_of].values()))
    if message is not None:
        wanted = message.removesuffix("Value").removesuffix("Key").lower()
        for name in names:
            if name.lower() == wanted:
                return name
        raise ConfigurationError(
            f"{message!r} is no message of {records_of}; it has {', '.join(names)}"
        )
    found = value_types(data, records_of)
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigurationError(
            f"no value of {records_of} fits the bytes; name its message, one of {', '.join(names)}"
        )
    raise ConfigurationError(
        f"the value does not name its message, and these fit the bytes: {', '.join(found)}; name "
        "one of them"
    )


def _check_topic(records_of: str) -> None:
    if records_of not in _TOPICS:
        raise ConfigurationError(
            f"{records_of!r} is no internal topic of Kafka; name one of {', '.join(_TOPICS)} as "
            "the topic of the record"
        )


def _bytes(name: str, data: bytes) -> Node:
    return Node(name, name, "bytes", 0, data, size=len(data), own_size=len(data), value=data)


def _null(name: str) -> Node:
    return Node(name, name, "bytes", 0, b"")
