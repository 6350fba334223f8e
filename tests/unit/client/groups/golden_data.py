"""Contains the bytes that Kafka's ConsumerProtocol (kafka-clients 4.4.0, 3.9.2) wrote.

`tests/reference/test_protocol_data.py` writes these bytes again with Kafka's class.
"""

from __future__ import annotations

from typing import Final

from kproto.client.groups.assignors.subscriptions import Subscription
from kproto.client.metadata.cluster import TopicPartition

__all__ = ["ASSIGNMENTS", "SUBSCRIPTIONS"]

_FULL: Final = Subscription(
    ("orders", "a", "b"), [("orders", 3), ("a", 1), ("orders", 0)], 5, "eu-1", None, b"\1\2"
)
_BARE: Final = Subscription(("t",))
_NOTHING: Final = Subscription((), generation=0, user_data=b"")

_TOPICS: Final = "0000000300016100016200066f7264657273000000020102"
_OWNED: Final = "0000000200016100000001" + "0000000100066f7264657273000000020000000000000003"

#: Version, subscription, bytes in hexadecimal.
SUBSCRIPTIONS: Final[list[tuple[int, Subscription, str]]] = [
    (0, _FULL, f"0000{_TOPICS}"),
    (0, _BARE, "000000000001000174ffffffff"),
    (0, _NOTHING, "00000000000000000000"),
    (1, _FULL, f"0001{_TOPICS}{_OWNED}"),
    (1, _BARE, "000100000001000174ffffffff00000000"),
    (1, _NOTHING, "0001000000000000000000000000"),
    (2, _FULL, f"0002{_TOPICS}{_OWNED}00000005"),
    (2, _BARE, "000200000001000174ffffffff00000000ffffffff"),
    (2, _NOTHING, "000200000000000000000000000000000000"),
    (3, _FULL, f"0003{_TOPICS}{_OWNED}00000005000465752d31"),
    (3, _BARE, "000300000001000174ffffffff00000000ffffffffffff"),
    (3, _NOTHING, "000300000000000000000000000000000000ffff"),
]

_ASSIGNED: Final = [("orders", 1), ("a", 0), ("orders", 0)]
_ASSIGNED_HEX: Final = (
    "0000000200066f726465727300000002000000010000000000016100000001" + "00000000ffffffff"
)

#: Version, assignment, bytes in hexadecimal.
ASSIGNMENTS: Final[list[tuple[int, list[TopicPartition], str]]] = [
    *((version, _ASSIGNED, f"{version:04x}{_ASSIGNED_HEX}") for version in range(4)),
    *((version, [], f"{version:04x}00000000ffffffff") for version in range(4)),
]
