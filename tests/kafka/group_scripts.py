"""What members of a group do by script, on one broker: each gives what they hear, in its order.

Some wait for the time: for a session, or for a phase of a rebalance. They say so by what they hear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from .group_sides import PATIENCE_S, Side

__all__ = [
    "SCRIPTS",
    "Script",
    "joined",
    "the_first_rebalance_is_delayed",
    "what_a_group_keeps_is_too_large",
    "what_a_static_member_brings_is_too_large",
]

Script: TypeAlias = Callable[[Side], Iterator[object]]

RANGE: Final = (("range", b"1"),)

#: A session or a phase of a rebalance that a script waits out, in ms. A member is given it as late
#: as can be, as what comes next must come within it.
SHORT_MS: Final = 1_500


def joined(side: Side, who: str, version: int = 9, **fields: Any) -> Any:
    """What `who` hears, which takes the id that it is given; it may have to wait."""
    instance_id = fields.get("instance_id")
    protocols = fields.pop("protocols", RANGE)
    while True:
        member_id = "" if instance_id and who not in side.ids else side.ids.get(who, "")
        side.join(who, version, member_id, protocols, **fields)
        heard: Any = side.hears(who, PATIENCE_S)
        if heard[0] != "MEMBER_ID_REQUIRED":
            return heard


def synced(side: Side, who: str, **fields: Any) -> Any:
    side.sync(
        who, 5, side.ids[who], side.generations[who], side.told[who], protocol="range", **fields
    )
    return side.hears(who, PATIENCE_S)


def beat(side: Side, who: str, instance_id: str | None = None) -> object:
    return side.beat(who, 4, side.ids[who], side.generations[who], instance_id)


def until_asked(side: Side, who: str, instance_id: str | None = None) -> None:
    """Heartbeats until `who` is asked to join again."""
    deadline = time.monotonic() + PATIENCE_S
    while (heard := beat(side, who, instance_id)) != "REBALANCE_IN_PROGRESS":
        assert heard == "NONE"
        assert time.monotonic() < deadline


def stable(
    side: Side, *members: str, of_second: Mapping[str, Any] | None = None, **fields: Any
) -> Iterator[object]:
    """Two members that have their assignments; the first leads, and may be static.

    `fields` are those of both, once both are there.
    """
    first, second = members
    last = fields | dict(of_second or {})
    statics: dict[str, dict[str, Any]] = {
        who: {"instance_id": who} for who in members if who.startswith("static")
    }
    yield joined(side, first, **statics.get(first, {}))
    # The second joins, which asks the first to join again.
    side.join(second, 9 if second in statics else 3, "", RANGE, **statics.get(second, {}), **last)
    until_asked(side, first)
    yield joined(side, first, **statics.get(first, {}), **fields)
    yield side.hears(second, PATIENCE_S)
    yield synced(side, first, **statics.get(first, {}))
    yield synced(side, second, **statics.get(second, {}))
    yield side.describe()


def again(side: Side, who: str, version: int, **fields: Any) -> object:
    """A static member that has forgotten its id."""
    side.join(who, version, "", fields.pop("protocols", RANGE), instance_id=who, **fields)
    return side.hears(who, PATIENCE_S)


def a_static_leader_comes_back(side: Side) -> Iterator[object]:
    yield from stable(side, "static", "b")
    for version in range(5, 10):
        former = side.ids["static"]
        yield again(side, "static", version)
        yield side.describe()
        yield synced(side, "static", instance_id="static")
        yield side.beat("static", 4, former, side.generations["static"], "static")
        yield side.beat("static", 4, former, side.generations["static"])
        yield side.leave(5, (former, "static"))
        side.join("x", 9, former, RANGE, instance_id="static")
        yield side.hears("x", PATIENCE_S)
        side.sync("x", 5, former, side.generations["b"], instance_id="static", protocol="range")
        yield side.hears("x", PATIENCE_S)
        yield beat(side, "static", "static"), beat(side, "b")


def a_static_follower_comes_back(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static")
    for version in range(5, 10):
        yield again(side, "static", version)
        yield synced(side, "static", instance_id="static")
        yield side.describe()
    yield side.leave(3, ("", "static"), ("", "static"), (side.ids["static"], None))
    yield side.describe()


def a_static_member_comes_back_with_another_wish(side: Side) -> Iterator[object]:
    both = (("sticky", b"1"), ("range", b"1"))
    yield joined(side, "static", instance_id="static", protocols=both[::-1])
    yield synced(side, "static", instance_id="static")
    yield again(side, "static", 9, protocols=both[::-1])
    yield again(side, "static", 9, protocols=both)
    yield side.describe()


def a_static_member_comes_back_while_the_leader_assigns(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static")
    side.join("a", 9, side.ids["a"], RANGE)
    until_asked(side, "static", "static")
    yield joined(side, "static", instance_id="static")
    yield side.hears("a", PATIENCE_S)
    side.sync("static", 5, side.ids["static"], side.generations["static"], protocol="range")
    side.arrives()
    yield side.hears("static", 0)
    side.join("x", 9, "", RANGE, instance_id="static")
    yield side.hears("static", PATIENCE_S)
    yield beat(side, "a")
    yield joined(side, "a")
    yield side.hears("x", PATIENCE_S)


def a_session_is_over(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b", of_second={"session_ms": SHORT_MS})
    while beat(side, "a") == "NONE":
        time.sleep(0.1)  # as members do
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
    yield side.hears("b", PATIENCE_S)
    yield beat(side, "a")


def a_static_member_does_not_join_again(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "static", of_second={"rebalance_ms": SHORT_MS})
    yield joined(side, "a", rebalance_ms=SHORT_MS)
    yield synced(side, "a")
    yield synced(side, "static", instance_id="static"), "which knows an older generation"
    yield side.describe()


def a_leader_does_not_assign(side: Side) -> Iterator[object]:
    yield from stable(side, "a", "b")
    side.join("a", 9, side.ids["a"], RANGE, rebalance_ms=SHORT_MS)
    until_asked(side, "b")
    yield joined(side, "b", rebalance_ms=SHORT_MS)
    yield side.hears("a", PATIENCE_S)
    yield synced(side, "b")
    yield beat(side, "a")
    yield joined(side, "b", rebalance_ms=SHORT_MS)


def a_member_asks_for_no_assignment(side: Side) -> Iterator[object]:
    yield joined(side, "a")
    side.join("b", 3, "", RANGE, rebalance_ms=SHORT_MS)
    until_asked(side, "a")
    yield joined(side, "a", rebalance_ms=SHORT_MS)
    yield side.hears("b", PATIENCE_S)
    yield synced(side, "a")
    while beat(side, "a") == "NONE":
        time.sleep(0.05)
    yield beat(side, "b")
    yield joined(side, "a", rebalance_ms=SHORT_MS)


def an_id_is_not_used(side: Side) -> Iterator[object]:
    yield joined(side, "a")
    yield synced(side, "a")
    side.join("b", 9, "", RANGE, session_ms=SHORT_MS)
    yield side.hears("b", PATIENCE_S)
    yield joined(side, "a")  # which waits for it
    side.join("b", 9, side.ids["b"], RANGE)
    yield side.hears("b", PATIENCE_S)


def the_last_session_is_over(side: Side) -> Iterator[object]:
    yield joined(side, "a", session_ms=SHORT_MS)
    yield synced(side, "a")
    deadline = time.monotonic() + PATIENCE_S
    while side.describe()[2] != "Empty":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield side.describe()
    yield beat(side, "a")
    yield side.list(5)
    yield joined(side, "a", session_ms=SHORT_MS), "as one that is none"
    side.ids.clear()
    yield joined(side, "a")
    yield side.leave(5, (side.ids["a"], None))
    yield side.describe(), side.delete(2), side.describe(), side.list(5)


def the_first_rebalance_is_delayed(side: Side) -> Iterator[object]:
    """Of a broker with a delay: who comes within it is in the first generation, too."""
    side.join("a", 3, "", RANGE)
    while not side.describe()[5]:
        pass
    side.join("b", 3, "", RANGE)
    yield side.hears("a", PATIENCE_S), side.hears("b", PATIENCE_S)
    yield side.describe()


SCRIPTS: Final[tuple[Script, ...]] = (
    a_static_leader_comes_back,
    a_static_follower_comes_back,
    a_static_member_comes_back_with_another_wish,
    a_static_member_comes_back_while_the_leader_assigns,
    a_session_is_over,
    a_member_does_not_join_again,
    a_leader_does_not_join_again,
    a_static_member_does_not_join_again,
    a_leader_does_not_assign,
    a_member_asks_for_no_assignment,
    an_id_is_not_used,
    the_last_session_is_over,
)


def what_a_group_keeps_is_too_large(side: Side) -> Iterator[object]:
    """Not one of `SCRIPTS`: `message.max.bytes` is 2000."""
    large = (("range", b"x" * 3000),)
    yield joined(side, "a", protocols=large)
    yield synced(side, "a")
    yield side.describe()
    yield beat(side, "a")
    yield side.leave(5, (side.ids["a"], None))
    yield side.describe()


def what_a_static_member_brings_is_too_large(side: Side) -> Iterator[object]:
    """Not one of `SCRIPTS`: `message.max.bytes` is 2000."""
    yield from stable(side, "static", "b")
    for version in (5, 9):
        yield again(side, "static", version, protocols=(("range", b"x" * 3000),))
        yield beat(side, "static", "static")
        yield side.describe()
    former = side.ids["static"]
    yield again(side, "static", 9)
    yield side.beat("static", 4, former, side.generations["static"], "static")
    yield side.describe()
