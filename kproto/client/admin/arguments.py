"""Checks the arguments of admin calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicPartition

__all__ = ["checked_list", "checked_map", "checked_names", "checked_partitions"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_LAST_PARTITION = 2**31 - 1


def checked_list(what: str, values: Iterable[T]) -> list[T]:
    """Returns the values as a list without duplicates; `what` is the name of the argument.

    Raises ConfigurationError if `values` is a single value, such as a str, or no iterable.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ConfigurationError(f"{what} is {values!r:.80}; pass a list")
    return list(dict.fromkeys(values))


def checked_names(what: str, names: Iterable[str]) -> list[str]:
    """Returns names, such as group ids, as a list. Raises ConfigurationError unless all are str."""
    found = checked_list(what, names)
    for name in found:
        if not isinstance(name, str):
            raise ConfigurationError(f"{what} has {name!r:.80}, which is no str")
    return found


def checked_map(what: str, values: Mapping[K, V]) -> Mapping[K, V]:
    """Returns `values`. Raises ConfigurationError if it is no mapping."""
    if not isinstance(values, Mapping):
        raise ConfigurationError(f"{what} is {values!r:.80}; pass a dict")
    return values


def checked_partitions(what: str, tps: Iterable[Any]) -> list[TopicPartition]:
    """Returns partitions as a list. Raises ConfigurationError unless each is (topic, number)."""
    found = checked_list(what, tps)
    for tp in found:
        match tp:
            case (str(), int(partition)):
                check_whole_number(f"the partition in {tp!r}", partition, 0, _LAST_PARTITION)
            case _:
                raise ConfigurationError(
                    f"{what} has {tp!r:.80}; a partition is written as (topic, number)"
                )
    return found
