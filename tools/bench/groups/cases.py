"""The input of the assignors: 1,000 partitions and 100 members, as plain data."""

from __future__ import annotations

from typing import Final

__all__ = ["CASES", "TOPICS", "members"]

TOPICS: Final = {f"topic-{number}": 10 for number in range(100)}

#: Maps the name of a case to its assignor, and to True if all members subscribe to the same topics.
CASES: Final = {
    "range": ("range", True),
    "roundrobin": ("roundrobin", True),
    "sticky, equal subscriptions": ("sticky", True),
    "sticky, other topics for each tenth member": ("sticky", False),
}


def members(*, equal: bool) -> dict[str, list[str]]:
    """Returns the subscribed topics by member id.

    With `equal`, all members subscribe to all topics; otherwise every tenth member does not
    subscribe to the first topic.
    """
    topics = list(TOPICS)
    return {
        f"member-{number:03}": topics if equal or number % 10 else topics[1:]
        for number in range(100)
    }
