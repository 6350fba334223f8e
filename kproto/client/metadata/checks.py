"""Checks topics and partitions that are arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...wire.errors import ConfigurationError
from .cluster import TopicPartition

__all__ = ["checked_mapping", "checked_topic", "checked_tp"]


def checked_topic(name: object) -> str:
    """Returns `name`. Raises ConfigurationError if it is no str."""
    if isinstance(name, str):
        return name
    hint = ""
    if isinstance(name, list | tuple | set | frozenset | dict):
        hint = "; pass several names one after the other"
    raise ConfigurationError(f"{name!r:.80} is no name of a topic, which is a str{hint}")


def checked_tp(tp: object) -> TopicPartition:
    """Returns `tp`. Raises ConfigurationError if it is no (topic, number)."""
    match tp:
        case (str(topic), int(partition)):
            return topic, partition
    hint = ""
    if isinstance(tp, list | set | frozenset | dict):
        hint = "; pass several partitions one after the other, not as a collection"
    raise ConfigurationError(f"{tp!r} is no partition; it is written as (topic, number){hint}")


def checked_mapping(what: str, given: object) -> Mapping[Any, Any]:
    """Returns `given`. Raises ConfigurationError if it is no mapping by partition.

    `what` names the values of the mapping, such as "offsets".
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"the {what} are {given!r:.80}; they are a mapping by partition, such as "
            "{('orders', 0): …}"
        )
    return given
