"""Defines `ShareGroupSettings`: the settings of a share group member, with their reasons."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from ....wire.checks import check_whole_number
from ....wire.errors import ConfigurationError
from ...observing.log_lines import log
from ..settings import GroupSettings

__all__ = ["AcknowledgementMode", "AcquireMode", "ShareGroupSettings", "warn_of_group_configs"]

#: The values of Kafka's `share.acknowledgement.mode`.
AcknowledgementMode: TypeAlias = Literal["implicit", "explicit"]

#: The values of Kafka's `share.acquire.mode` (KIP-1206).
AcquireMode: TypeAlias = Literal["batch_optimized", "record_limit"]

#: The numbers of the acquire modes in ShareFetch v2.
_MODE_NUMBERS: Final[Mapping[str, int]] = {"batch_optimized": 0, "record_limit": 1}

_MAX_INT: Final = 0x7FFF_FFFF

_LEAST: Final = {
    "max_poll_records": 1,
    "max_wait_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_bytes": 1,
    "max_poll_interval_ms": 1,
    "leave_timeout_ms": 0,
}

#: By the name of a setting of other consumers: its property, the config of a share group in its
#: place, and the value that share groups have by default.
_GROUP_CONFIGS: Final[Mapping[str, tuple[str, str, object]]] = {
    "start": ("auto.offset.reset", "share.auto.offset.reset", "latest"),
    "read_committed": ("isolation.level", "share.isolation.level", False),
}


def warn_of_group_configs(group_id: str, consumer_defaults: Mapping[str, Any]) -> None:
    """Logs a warning for each property that has no effect on a share group, but looks as if.

    `consumer_defaults` are the settings of the properties. A share group has a config in the place
    of the property. Java's share consumer refuses such properties; a client of kproto may have them
    for its other consumers.
    """
    for name, (property_name, config, default) in _GROUP_CONFIGS.items():
        if consumer_defaults.get(name, default) != default:
            log(
                logging.WARNING,
                "group %s: the property %s has no effect on a share group: set the config %s of "
                "the group",
                group_id,
                property_name,
                config,
            )


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """The settings of a share consumer. Times are in ms, sizes in bytes."""

    group_id: str
    #: "implicit": asking for the next record accepts the previous one. "explicit": the program
    #: acknowledges each record, by `accept`, `release` or `reject` (share.acknowledgement.mode).
    acknowledgement: AcknowledgementMode = "implicit"
    #: "batch_optimized": the broker acquires whole batches, so that a fetch may exceed
    #: `max_poll_records`; it needs the least work. "record_limit": a fetch never acquires more than
    #: `max_poll_records`, and the consumer fetches only when all records are returned
    #: (share.acquire.mode, KIP-1206, Kafka 4.2).
    acquire_mode: AcquireMode = "batch_optimized"
    #: The number of records that one fetch acquires, and that one `poll` returns at most. Records
    #: of slow handlers need a small number: the acquisition locks of all fetched records run from
    #: the fetch on (group.share.record.lock.duration.ms, 30 s by default).
    max_poll_records: int = 500
    #: How long a broker may delay a fetch response that has less than `fetch_min_bytes`
    #: (fetch.max.wait.ms). Acknowledgements wait for the response, too.
    max_wait_ms: int = 500
    #: The broker answers a fetch as soon as it has this many bytes (fetch.min.bytes).
    fetch_min_bytes: int = 1
    #: The most bytes of a fetch response, except for a larger first batch (fetch.max.bytes).
    fetch_max_bytes: int = 52_428_800
    #: The longest time between two polls; a slower member leaves its group, until the next poll
    #: (max.poll.interval.ms).
    max_poll_interval_ms: int = 300_000
    #: How long a leaving member waits for the response to its last heartbeat.
    leave_timeout_ms: int = 5_000

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigurationError(f"group is {self.group_id!r}; it must be a str, not empty")
        for name, least in _LEAST.items():
            check_whole_number(name, getattr(self, name), least, _MAX_INT)
        _check_choice("acknowledgement", self.acknowledgement, get_args(AcknowledgementMode))
        _check_choice("acquire_mode", self.acquire_mode, get_args(AcquireMode))

    @property
    def is_explicit(self) -> bool:
        """Returns True if the program acknowledges each record."""
        return self.acknowledgement == "explicit"

    @property
    def limits_records(self) -> bool:
        """Returns True if a fetch never acquires more than `max_poll_records`."""
        return self.acquire_mode == "record_limit"

    @property
    def acquire_mode_number(self) -> int:
        """The number of `acquire_mode` in ShareFetch."""
        return _MODE_NUMBERS[self.acquire_mode]

    @property
    def member_settings(self) -> GroupSettings:
        """Returns the settings that the driver of the member uses."""
        return GroupSettings(
            self.group_id,
            max_poll_interval_ms=self.max_poll_interval_ms,
            leave_timeout_ms=self.leave_timeout_ms,
            group_protocol="consumer",
        )


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigurationError(
            f"{name} is {value!r:.80}; it is one of {', '.join(map(repr, choices))}"
        )
