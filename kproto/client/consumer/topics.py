"""What a consumer is asked to read, and from where on. Knows no broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..cluster.metadata import TopicPartition

__all__ = ["Start", "checked_start", "checked_topics", "topic_of"]

_LAST_OFFSET: Final = 0x7FFFFFFFFFFFFFFF

#: Where to begin: at the start, at the end, or at an offset for each partition.
Start: TypeAlias = Literal["earliest", "latest"] | Mapping[TopicPartition, int]


def checked_start(start: object) -> None:
    """Raises ConfigurationError for what is no `Start`."""
    if not isinstance(start, Mapping) and start not in ("earliest", "latest"):
        raise ConfigurationError(
            f"start is {start!r}; it is 'earliest', 'latest' or an offset for each partition"
        )
    if isinstance(start, Mapping):
        for place, offset in start.items():
            check_whole_number(f"start[{place!r}]", offset, 0, _LAST_OFFSET)


def checked_topics(
    topics: str | Iterable[str] | Iterable[TopicPartition],
) -> list[str | TopicPartition]:
    """What a consumer shall read, as a list. Raises ConfigurationError."""
    if not isinstance(topics, Iterable):
        raise ConfigurationError(f"{topics!r} is neither a topic nor partitions")
    wanted: list[str | TopicPartition] = []
    for place in [topics] if isinstance(topics, str) else topics:
        match place:
            case str():
                wanted.append(place)
            case (str(topic), int(partition)):
                wanted.append((topic, partition))
            case _:
                raise ConfigurationError(
                    f"{place!r} is neither a topic nor a partition as (topic, number)"
                )
    if not wanted:
        raise ConfigurationError("a consumer needs a topic, or partitions as (topic, number)")
    return wanted


def topic_of(wanted: str | TopicPartition) -> str:
    """The name of a topic, or that of a partition's."""
    return wanted if isinstance(wanted, str) else wanted[0]
