"""Lists the settings that a group protocol or a manual assignment ignores, with the reasons.

The client never ignores a setting silently. If the user chose the protocol, the client refuses the
setting, as Java's consumer does. If the group determines the protocol later, or if the partitions
are assigned manually, the client logs the setting. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["FOR_MANUAL_ASSIGNMENT", "IN_CLASSIC", "IN_CONSUMER", "ignored_settings_in"]

#: The settings that the consumer protocol ignores (KIP-848), with the reasons. Java's consumer
#: refuses them.
IN_CONSUMER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assignors": "the broker assigns the partitions: name its assignor by server_assignor "
        "(group.consumer.assignors)",
        "session_timeout_ms": "the broker decides when a session times out: set "
        "group.consumer.session.timeout.ms there, or consumer.session.timeout.ms of the group",
        "heartbeat_interval_ms": "the broker decides how often members send heartbeats: set "
        "group.consumer.heartbeat.interval.ms there, or consumer.heartbeat.interval.ms of the "
        "group",
    }
)

#: The setting that the classic protocol ignores, with the reason. Java's consumer refuses it.
IN_CLASSIC: Final[Mapping[str, str]] = MappingProxyType(
    {"server_assignor": "its leader assigns the partitions: name `assignors`"}
)

_NO_MEMBER: Final = "a consumer with assigned partitions is no member of the group"

#: The settings that a consumer with manually assigned partitions ignores.
FOR_MANUAL_ASSIGNMENT: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(
        (
            "instance_id",
            "group_protocol",
            "server_assignor",
            "assignors",
            "session_timeout_ms",
            "heartbeat_interval_ms",
            "max_poll_interval_ms",
            "leave",
            "leave_timeout_ms",
        ),
        _NO_MEMBER,
    )
)


def ignored_settings_in(
    given: Collection[str], table: Mapping[str, str], context: str
) -> list[str]:
    """Returns a sentence for each setting that was `given` and that `table` lists as ignored.

    `context` says where the setting is ignored, for example "in a classic group".
    """
    return [f"{name} is ignored {context}: {why}" for name, why in table.items() if name in given]
