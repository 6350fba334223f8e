"""What members of the consumer protocol do by script, on one broker: each gives what they hear.

Topics `t`, `u` and `v` have 6, 3 and 2 partitions. Where the assignor decides later than at once,
members go on with heartbeats until they hear it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from .consumer_sides import ConsumerSide

__all__ = ["NEW_SCRIPTS", "SCRIPTS", "ConsumerScript"]

ConsumerScript: TypeAlias = Callable[[ConsumerSide], Iterator[object]]

BOTH: Final = ("t", "u")


def one_member_comes_and_goes(side: ConsumerSide) -> Iterator[object]:
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.join("a", "t")
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.heartbeat("a"), side.own("a"), side.own("a", topics=["t"], rebalance_ms=30_000)
    yield side.go("a")
    yield side.describe_consumers(), side.list(5), side.list(5, ["empty"], ["CONSUMER"])
    yield side.heartbeat("a", 5), side.go("a")
    yield side.join("a", "t"), "again, in a group that was"
    yield side.list(5, ["stable"]), side.list(5, ["reconciling"]), side.delete(2)
    yield side.go("a"), side.delete(2), side.describe_consumers()


def members_share(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t"), side.join("b", "t"), side.describe_consumers()
    yield side.heartbeat("a"), "which hears what it keeps"
    yield side.heartbeat("a"), side.heartbeat("b"), side.describe_consumers()
    yield side.join("c", "t"), side.heartbeat("b"), side.describe_consumers()
    yield side.own("a"), side.heartbeat("b"), side.heartbeat("c"), side.describe_consumers()
    yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("b"), side.own("a"), side.own("c"), side.describe_consumers()


def members_that_do_not_say_what_they_hold(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t"), side.join("b", "t")
    for _ in range(3):
        yield side.heartbeat("a"), side.heartbeat("b")
    yield side.heartbeat("a", held={"t": [0, 5]}), "still one too many"
    yield side.heartbeat("a", held={"t": [0]}), side.heartbeat("b"), side.describe_consumers()


def epochs_of_before(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t"), side.join("b", "t")
    yield side.own("a"), side.own("a"), side.heartbeat("b")
    epoch = side.epochs["a"]
    yield side.heartbeat("a", epoch + 1)
    yield side.heartbeat("a", epoch - 1), "which says not what it holds"
    yield side.heartbeat("a", epoch - 1, held={"t": [0, 1, 2]})
    yield side.heartbeat("a", epoch - 1, held={"t": [0, 1, 2, 3]})
    yield side.heartbeat("a", epoch - 1, held={"u": []})
    yield side.heartbeat("a", epoch - 1, held={})
    yield side.heartbeat("nobody", 1), side.go("nobody"), side.describe_consumers()
    yield side.join("a", "t"), side.describe_consumers()


def subscriptions_change(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t"), side.join("b", "t", "u"), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b")
    yield side.heartbeat("a", topics=["u"], held=side.assigned["a"]), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b"), side.describe_consumers()
    yield side.heartbeat("b", topics=[], held={}), side.own("a"), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], held={}), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], held=side.assigned["b"])


def assignors(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", *BOTH, server_assignor="range"), side.join("b", *BOTH)
    for _ in range(3):
        yield side.own("a"), side.own("b"), side.describe_consumers()
    yield side.join("c", *BOTH, server_assignor="uniform"), side.describe_consumers()
    yield side.join("d", "u", server_assignor="uniform"), side.describe_consumers()
    for _ in range(4):
        yield side.own("a"), side.own("b"), side.own("c"), side.own("d")
    yield side.describe_consumers()


def static_members(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t", instance_id="i"), side.join("b", "t", instance_id="j")
    for _ in range(2):
        yield side.own("a"), side.own("b")
    yield side.join("c", "t", instance_id="i"), "which another still is"
    yield side.go("a", -2, instance_id="j"), side.go("a", -2, instance_id="k")
    yield side.go("a", -2, instance_id="i"), side.describe_consumers()
    yield side.join("c", "t", instance_id="i"), side.describe_consumers()
    yield side.heartbeat("a", instance_id="i"), side.heartbeat("c", instance_id="i")
    yield side.heartbeat("c"), side.heartbeat("c", instance_id="k")
    yield side.go("c", -2, instance_id="i")
    yield side.join("c", "t", "u", instance_id="i"), side.describe_consumers()
    yield side.own("b", instance_id="j"), side.own("c", instance_id="i"), side.describe_consumers()
    yield side.go("c", -1, instance_id="i"), side.own("b"), side.describe_consumers()


def what_no_group_takes(side: ConsumerSide) -> Iterator[object]:
    beat = side.heartbeat
    given = {"topics": ["t"], "held": {}, "rebalance_ms": 1}
    yield beat("a", 0, topics=["t"], held={}), beat("a", 0, topics=["t"], rebalance_ms=1)
    yield beat("a", 0, **{**given, "held": {"t": [0]}}), beat("a", 0, held={}, rebalance_ms=1)
    yield beat("a", 0, **given, instance_id=""), beat("a", 0, **given, instance_id=" ")
    yield beat("a", 0, **given, rack_id=""), beat("a", 0, **given, group_id="")
    yield beat("a", 0, **given, server_assignor="sticky"), beat("a", -3), beat("a", -2)
    yield beat("", 1), beat("", -1), beat("", -2), beat("", -2, instance_id="i")
    yield beat("a", 1), beat("a", -1), beat("a", 1, server_assignor="")
    yield side.describe_consumers()


def offsets_of_members(side: ConsumerSide) -> Iterator[object]:
    yield side.commit("", -1, ("t", 0)), "of an admin, which makes a simple group"
    yield side.join("a", "t"), side.describe_consumers()
    yield side.commit("a", None, ("t", 0)), side.fetch("a", None, "t"), side.fetch(None, -1, "t")
    yield side.commit("a", 99, ("t", 0)), side.fetch("a", 99, "t"), side.fetch("a", 1, "t")
    yield side.commit("nobody", 1, ("t", 0)), side.fetch("nobody", 1, "t"), side.fetch("a", -1, "t")
    yield side.commit("", -1, ("t", 0)), side.commit("a", None, ("t", 0), version=8)
    yield side.fetch(None, -1, "t", version=8), side.commit("a", None, ("nope", 0), ("t", 1))
    yield side.delete_offsets("t"), side.delete_offsets("u")
    yield side.go("a"), side.commit("a", 5, ("t", 0)), side.commit("", -1, ("t", 0))
    yield side.delete_offsets("t"), side.fetch(None, -1, "t")


def a_session_is_over(side: ConsumerSide) -> Iterator[object]:
    """Sessions are of 1 s."""
    yield side.join("a", "t"), side.join("b", "t", instance_id="j")
    yield side.go("b", -2, instance_id="j")
    side.own("a")
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5]})
    yield side.describe_consumers(), side.heartbeat("b", 3)


def a_member_gives_up_nothing(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", "t", rebalance_ms=300), side.join("b", "t")
    yield side.heartbeat("a")
    deadline = time.monotonic() + 20
    while (heard := side.heartbeat("a")) != "UNKNOWN_MEMBER_ID":
        assert time.monotonic() < deadline, heard
        side.heartbeat("b")
        time.sleep(0.05)
    yield side.until("b", {"t": [0, 1, 2, 3, 4, 5]}), side.describe_consumers()


def commits_of_before(side: ConsumerSide) -> Iterator[object]:
    """KIP-1251."""
    yield side.join("a", "t"), side.join("b", "t")
    before = side.epochs["a"]
    yield side.own("a"), side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.own("a"), side.own("b")
    yield side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), ("t", 4)), side.commit("b", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), version=8), side.commit("a", 0, ("t", 0))
    yield side.go("b"), side.own("a"), side.commit("a", side.epochs["a"] - 1, ("t", 4))


def expressions(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", regex="(", topics=None), side.join("a", regex="(t)\\1", topics=None)
    yield side.join("a", regex="(?=t)", topics=None), side.describe_consumers()
    yield side.join("a", regex="[tu]", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1, 2]}), side.describe_consumers()
    yield side.heartbeat("a", regex="t|v"), "which is looked up after ten seconds"
    yield side.heartbeat("a", regex="[", held=side.assigned["a"])
    yield side.heartbeat("a", regex="", topics=["v"], held=side.assigned["a"])
    yield side.own("a"), side.own("a"), side.describe_consumers()
    yield side.go("a"), side.describe_consumers()


def an_expression_of_several(side: ConsumerSide) -> Iterator[object]:
    yield side.join("a", regex="t", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5]})
    yield side.join("b", regex="t", topics=["u"]), side.join("c", regex="t", topics=None)
    for _ in range(4):
        yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("a"), side.go("b"), side.go("c"), side.describe_consumers()


def the_broker_gives_the_id(side: ConsumerSide) -> Iterator[object]:
    """v0, which Kafka 3.9 has alone."""
    heard = side.heartbeat(
        "a", 0, version=0, member_id="", topics=["t"], held={}, rebalance_ms=30_000
    )
    yield len(heard[0]), heard[1:]
    yield side.heartbeat("a", version=0, member_id=heard[0])[1:], side.go("b")
    yield side.heartbeat("a", -1, version=0, member_id=heard[0])[1:]


#: As every release does it that has the protocol.
SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    one_member_comes_and_goes,
    members_share,
    members_that_do_not_say_what_they_hold,
    epochs_of_before,
    static_members,
    the_broker_gives_the_id,
    a_member_gives_up_nothing,
    a_session_is_over,
)
#: What is otherwise in 3.9, or is not there.
NEW_SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    subscriptions_change,
    assignors,
    what_no_group_takes,
    offsets_of_members,
    commits_of_before,
    expressions,
    an_expression_of_several,
)
