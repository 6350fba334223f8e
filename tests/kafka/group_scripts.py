"""Scripts classic group members on one broker; each function yields the responses in order.

Some scripts wait for a timeout of a session or of a rebalance phase; the responses show when the
timeout has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from .group_sides import PATIENCE_S, Side

__all__ = [
    "SCRIPTS",
    "Script",
    "group_metadata_is_too_large",
    "joined",
    "static_member_metadata_is_too_large",
    "the_first_rebalance_is_delayed",
]

Script: TypeAlias = Callable[[Side], Iterator[object]]

RANGE: Final = (("range", b"1"),)

#: The timeout in ms of a session or rebalance phase that a script lets expire. A script sets it as
#: late as possible, because the broker must handle the script's next requests before it expires.
SHORT_MS: Final = 1_500


def joined(side: Side, who: str, version: int = 9, **fields: Any) -> Any:
    """Sends JoinGroup; returns the response.

    If the broker returns a member id with MEMBER_ID_REQUIRED, joins again with this id.
    """
    instance_id = fields.get("instance_id")
    protocols = fields.pop("protocols", RANGE)
    while True:
        member_id = "" if instance_id and who not in side.ids else side.ids.get(who, "")
        side.join(who, version, member_id, protocols, **fields)
        response: Any = side.receives(who, PATIENCE_S)
        if response[0] != "MEMBER_ID_REQUIRED":
            return response


def synced(side: Side, who: str, **fields: Any) -> Any:
    side.sync(
        who,
        5,
        side.ids[who],
        side.generations[who],
        side.joined_ids[who],
        protocol="range",
        **fields,
    )
    return side.receives(who, PATIENCE_S)


def beat(side: Side, who: str, instance_id: str | None = None) -> object:
    return side.beat(who, 4, side.ids[who], side.generations[who], instance_id)


def beat_until_rebalance(side: Side, who: str, instance_id: str | None = None) -> None:
    """Sends heartbeats until the member `who` must join again."""
    deadline = time.monotonic() + PATIENCE_S
    while (response := beat(side, who, instance_id)) != "REBALANCE_IN_PROGRESS":
        assert response == "NONE"
        assert time.monotonic() < deadline


def stable(
    side: Side, *members: str, of_second: Mapping[str, Any] | None = None, **fields: Any
) -> Iterator[object]:
    """Forms a stable group of two members, of which the first is the leader; yields the responses.

    The first member joins, the second member joins, and the first member rejoins; then both members
    send SyncGroup. The second and the third JoinGroup have `fields`; the second JoinGroup also has
    `of_second`. A member is static if its name begins with "static".
    """
    first, second = members
    last = fields | dict(of_second or {})
    statics: dict[str, dict[str, Any]] = {
        who: {"instance_id": who} for who in members if who.startswith("static")
    }
    yield joined(side, first, **statics.get(first, {}))
    # The second member joins, so the first must rejoin.
    side.join(second, 9 if second in statics else 3, "", RANGE, **statics.get(second, {}), **last)
    beat_until_rebalance(side, first)
    yield joined(side, first, **statics.get(first, {}), **fields)
    yield side.receives(second, PATIENCE_S)
    yield synced(side, first, **statics.get(first, {}))
    yield synced(side, second, **statics.get(second, {}))
    yield side.describe()


def rejoined(side: Side, who: str, version: int, **fields: Any) -> object:
    """Joins as a static member that has lost its member id."""
    side.join(who, version, "", fields.pop("protocols", RANGE), instance_id=who, **fields)
    return side.receives(who, PATIENCE_S)


def a_static_leader_rejoins(side: Side) -> Iterator[object]:
    yield from stable(side, "static", "b")
    for version in range(5, 10):
        former = side.ids["static"]
        yield rejoined(side, "static", version)
        yield side.describe()
        yield synced(side, "static", instance_id="static")
        yield side.beat("static", 4, former, side.generations["static"], "static")
        yield side.beat("static", 4, former, side.generations["static"])
        yield side.leave(5, (former, "static"))
        side.join("x", 9, former, RANGE, instance_id="static")
        yield side.receives("x", PATIENCE_S)
        side.sync("x", 5, former, side.generations["b"], instance_id="static", protocol="range")
        yield side.receives("x", PATIENCE_S)
        yield beat(side, "static", "static"), beat(side, "b")


def a_static_follower_rejoins(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static")
    for version in range(5, 10):
        yield rejoined(side, "static", version)
        yield synced(side, "static", instance_id="static")
        yield side.describe()
    yield side.leave(3, ("", "static"), ("", "static"), (side.ids["static"], None))
    yield side.describe()


def a_static_member_rejoins_with_other_protocols(side: Side) -> Iterator[object]:
    both = (("sticky", b"1"), ("range", b"1"))
    yield joined(side, "static", instance_id="static", protocols=both[::-1])
    yield synced(side, "static", instance_id="static")
    yield rejoined(side, "static", 9, protocols=both[::-1])
    yield rejoined(side, "static", 9, protocols=both)
    yield side.describe()


def a_static_member_rejoins_before_the_assignment(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static")
    side.join("a", 9, side.ids["a"], RANGE)
    beat_until_rebalance(side, "static", "static")
    yield joined(side, "static", instance_id="static")
    yield side.receives("a", PATIENCE_S)
    side.sync("static", 5, side.ids["static"], side.generations["static"], protocol="range")
    side.wait_until_handled()
    yield side.receives("static", 0)
    side.join("x", 9, "", RANGE, instance_id="static")
    yield side.receives("static", PATIENCE_S)
    yield beat(side, "a")
    yield joined(side, "a")
    yield side.receives("x", PATIENCE_S)


def a_session_expires(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b", of_second={"session_ms": SHORT_MS})
    while beat(side, "a") == "NONE":
        time.sleep(0.1)  # heartbeats keep the member's session alive
    yield beat(side, "a"), beat(side, "b")
    yield joined(side, "a")
    yield synced(side, "a")
    yield side.describe()


def a_member_does_not_join_again(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b", of_second={"rebalance_ms": SHORT_MS})
    yield joined(side, "a", rebalance_ms=SHORT_MS)
    yield beat(side, "b")
    yield side.describe()


def a_leader_does_not_join_again(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b", rebalance_ms=SHORT_MS)
    side.join("b", 9, side.ids["b"], (("range", b"2"),), rebalance_ms=SHORT_MS)
    yield side.receives("b", PATIENCE_S)
    yield beat(side, "a")


def a_static_member_does_not_join_again(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static", of_second={"rebalance_ms": SHORT_MS})
    yield joined(side, "a", rebalance_ms=SHORT_MS)
    yield synced(side, "a")
    yield synced(side, "static", instance_id="static"), "static has an older generation"
    yield side.describe()


def a_leader_does_not_assign(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b")
    side.join("a", 9, side.ids["a"], RANGE, rebalance_ms=SHORT_MS)
    beat_until_rebalance(side, "b")
    yield joined(side, "b", rebalance_ms=SHORT_MS)
    yield side.receives("a", PATIENCE_S)
    yield synced(side, "b")
    yield beat(side, "a")
    yield joined(side, "b", rebalance_ms=SHORT_MS)


def a_member_does_not_sync(side: Side) -> Iterator[object]:
    yield joined(side, "a")
    side.join("b", 3, "", RANGE, rebalance_ms=SHORT_MS)
    beat_until_rebalance(side, "a")
    yield joined(side, "a", rebalance_ms=SHORT_MS)
    yield side.receives("b", PATIENCE_S)
    yield synced(side, "a")
    while beat(side, "a") == "NONE":
        time.sleep(0.05)
    yield beat(side, "b")
    yield joined(side, "a", rebalance_ms=SHORT_MS)


def an_id_is_not_used(side: Side) -> Iterator[object]:
    yield joined(side, "a")
    yield synced(side, "a")
    side.join("b", 9, "", RANGE, session_ms=SHORT_MS)
    yield side.receives("b", PATIENCE_S)
    yield joined(side, "a")  # the rebalance waits for b
    side.join("b", 9, side.ids["b"], RANGE)
    yield side.receives("b", PATIENCE_S)


def the_last_session_expires(side: Side) -> Iterator[object]:
    yield joined(side, "a", session_ms=SHORT_MS)
    yield synced(side, "a")
    deadline = time.monotonic() + PATIENCE_S
    while side.describe()[2] != "Empty":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield side.describe()
    yield beat(side, "a")
    yield side.list(5)
    yield joined(side, "a", session_ms=SHORT_MS), "with the id of an expired member"
    side.ids.clear()
    yield joined(side, "a")
    yield side.leave(5, (side.ids["a"], None))
    yield side.describe(), side.delete(2), side.describe(), side.list(5)


def the_first_rebalance_is_delayed(side: Side) -> Iterator[object]:
    """Joins two members, both in the first generation; needs a broker with a rebalance delay."""
    side.join("a", 3, "", RANGE)
    while not side.describe()[5]:
        pass
    side.join("b", 3, "", RANGE)
    yield side.receives("a", PATIENCE_S), side.receives("b", PATIENCE_S)
    yield side.describe()


SCRIPTS: Final[tuple[Script, ...]] = (
    a_static_leader_rejoins,
    a_static_follower_rejoins,
    a_static_member_rejoins_with_other_protocols,
    a_static_member_rejoins_before_the_assignment,
    a_session_expires,
    a_member_does_not_join_again,
    a_leader_does_not_join_again,
    a_static_member_does_not_join_again,
    a_leader_does_not_assign,
    a_member_does_not_sync,
    an_id_is_not_used,
    the_last_session_expires,
)


def group_metadata_is_too_large(side: Side) -> Iterator[object]:
    """Joins with 3000 bytes of metadata.

    Needs a broker with `message.max.bytes` of 2000, so the script is not in `SCRIPTS`.
    """
    large = (("range", b"x" * 3000),)
    yield joined(side, "a", protocols=large)
    yield synced(side, "a")
    yield side.describe()
    yield beat(side, "a")
    yield side.leave(5, (side.ids["a"], None))
    yield side.describe()


def static_member_metadata_is_too_large(side: Side) -> Iterator[object]:
    """Rejoins a static member with 3000 bytes of metadata.

    Needs a broker with `message.max.bytes` of 2000, so the script is not in `SCRIPTS`.
    """
    yield from stable(side, "static", "b")
    for version in (5, 9):
        yield rejoined(side, "static", version, protocols=(("range", b"x" * 3000),))
        yield beat(side, "static", "static")
        yield side.describe()
    former = side.ids["static"]
    yield rejoined(side, "static", 9)
    yield side.beat("static", 4, former, side.generations["static"], "static")
    yield side.describe()
