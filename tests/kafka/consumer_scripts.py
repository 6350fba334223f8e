"""What members of the consumer protocol do by script, on one broker: each gives what they hear.

Topics `t`, `u` and `v` have 6, 3 and 2 partitions. Where the assignor decides later than at once,
members go on with heartbeats until they hear it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_assignment import TopicPartition as Given
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kproto.messages.consumer_protocol_subscription import TopicPartition as Owned
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

from .consumer_sides import ConsumerSide
from .group_scripts import joined
from .group_sides import PATIENCE_S

__all__ = [
    "NEW_SCRIPTS",
    "SCRIPTS",
    "ConsumerScript",
    "a_first_rebalance_is_not_over",
]

ConsumerScript: TypeAlias = Callable[[ConsumerSide], Iterator[object]]

BOTH: Final = ("t", "u")


def one_member_comes_and_goes(side: ConsumerSide) -> Iterator[object]:
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.enter("a", "t")
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.heartbeat("a"), side.own("a"), side.own("a", topics=["t"], rebalance_ms=30_000)
    yield side.go("a")
    yield side.describe_consumers(), side.list(5), side.list(5, ["empty"], ["CONSUMER"])
    yield side.heartbeat("a", 5), side.go("a")
    yield side.enter("a", "t"), "again, in a group that was"
    yield side.list(5, ["stable"]), side.list(5, ["reconciling"]), side.delete(2)
    yield side.go("a"), side.delete(2), side.describe_consumers()


def members_share(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t"), side.describe_consumers()
    yield side.heartbeat("a"), "which hears what it keeps"
    yield side.heartbeat("a"), side.heartbeat("b"), side.describe_consumers()
    yield side.enter("c", "t"), side.heartbeat("b"), side.describe_consumers()
    yield side.own("a"), side.heartbeat("b"), side.heartbeat("c"), side.describe_consumers()
    yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("b"), side.own("a"), side.own("c"), side.describe_consumers()


def members_that_do_not_say_what_they_hold(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t")
    for _ in range(3):
        yield side.heartbeat("a"), side.heartbeat("b")
    yield side.heartbeat("a", held={"t": [0, 5]}), "still one too many"
    yield side.heartbeat("a", held={"t": [0]}), side.heartbeat("b"), side.describe_consumers()


def epochs_of_before(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t")
    yield side.own("a"), side.own("a"), side.heartbeat("b")
    epoch = side.epochs["a"]
    yield side.heartbeat("a", epoch + 1)
    yield side.heartbeat("a", epoch - 1), "which says not what it holds"
    yield side.heartbeat("a", epoch - 1, held={"t": [0, 1, 2]})
    yield side.heartbeat("a", epoch - 1, held={"t": [0, 1, 2, 3]})
    yield side.heartbeat("a", epoch - 1, held={"u": []})
    yield side.heartbeat("a", epoch - 1, held={})
    yield side.heartbeat("nobody", 1), side.go("nobody"), side.describe_consumers()
    yield side.enter("a", "t"), side.describe_consumers()


def subscriptions_change(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t", "u"), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b")
    yield side.heartbeat("a", topics=["u"], held=side.assigned["a"]), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b"), side.describe_consumers()
    yield side.heartbeat("b", topics=[], held={}), side.own("a"), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], held={}), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], held=side.assigned["b"])


def assignors(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", *BOTH, server_assignor="range"), side.enter("b", *BOTH)
    for _ in range(3):
        yield side.own("a"), side.own("b"), side.describe_consumers()
    yield side.enter("c", *BOTH, server_assignor="uniform"), side.describe_consumers()
    yield side.enter("d", "u", server_assignor="uniform"), side.describe_consumers()
    for _ in range(4):
        yield side.own("a"), side.own("b"), side.own("c"), side.own("d")
    yield side.describe_consumers()


def static_members(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t", instance_id="i"), side.enter("b", "t", instance_id="j")
    for _ in range(2):
        yield side.own("a"), side.own("b")
    yield side.enter("c", "t", instance_id="i"), "which another still is"
    yield side.go("a", -2, instance_id="j"), side.go("a", -2, instance_id="k")
    yield side.go("a", -2, instance_id="i"), side.describe_consumers()
    yield side.enter("c", "t", instance_id="i"), side.describe_consumers()
    yield side.heartbeat("a", instance_id="i"), side.heartbeat("c", instance_id="i")
    yield side.heartbeat("c"), side.heartbeat("c", instance_id="k")
    yield side.go("c", -2, instance_id="i")
    yield side.enter("c", "t", "u", instance_id="i"), side.describe_consumers()
    yield side.own("b", instance_id="j"), side.own("c", instance_id="i"), side.describe_consumers()
    yield side.go("c", -1, instance_id="i"), side.own("b"), side.describe_consumers()


def what_no_group_takes(side: ConsumerSide) -> Iterator[object]:
    beat = side.heartbeat
    given: dict[str, Any] = {"topics": ["t"], "held": {}, "rebalance_ms": 1}
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
    yield side.enter("a", "t"), side.describe_consumers()
    yield side.commit("a", None, ("t", 0)), side.fetch("a", None, "t"), side.fetch(None, -1, "t")
    yield side.commit("a", 99, ("t", 0)), side.fetch("a", 99, "t"), side.fetch("a", 1, "t")
    yield side.commit("nobody", 1, ("t", 0)), side.fetch("nobody", 1, "t"), side.fetch("a", -1, "t")
    yield side.commit("", -1, ("t", 0)), side.commit("a", None, ("t", 0), version=8)
    yield side.fetch(None, -1, "t", version=8), side.commit("a", None, ("nope", 0), ("t", 1))
    yield side.delete_offsets("t"), side.delete_offsets("u")
    yield side.go("a"), side.commit("a", 5, ("t", 0)), side.commit("", -1, ("t", 0))
    yield side.delete_offsets("t"), side.fetch(None, -1, "t")


def a_session_is_over(side: ConsumerSide) -> Iterator[object]:
    """That of one member, who last hears that sessions are short; old brokers cannot tell it so."""
    yield side.enter("a", "t"), side.enter("b", "t", instance_id="j")
    if side.version:
        side.alter((_SESSION, 0, "1000"), (_BEAT, 0, "150"))
        until_told(side, "b", 150)
    yield side.go("b", -2, instance_id="j")
    deadline = time.monotonic() + PATIENCE_S
    while len(side.describe_consumers()[-1]) > 1:
        if not side.version:
            side.own("a")
        assert time.monotonic() < deadline
        time.sleep(0.05)
    side.own("a")
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5]})
    yield side.describe_consumers(), side.heartbeat("b", 3)


def a_member_gives_up_nothing(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t", rebalance_ms=2_000), side.enter("b", "t")
    yield side.heartbeat("a")
    deadline = time.monotonic() + 20
    while (heard := side.heartbeat("a")) != "UNKNOWN_MEMBER_ID":
        assert time.monotonic() < deadline, heard
        side.heartbeat("b")
        time.sleep(0.05)
    side.until("b", {"t": [0, 1, 2, 3, 4, 5]})  # which it may have heard before
    yield side.describe_consumers()


def commits_of_before(side: ConsumerSide) -> Iterator[object]:
    """KIP-1251."""
    yield side.enter("a", "t"), side.enter("b", "t")
    before = side.epochs["a"]
    yield side.own("a"), side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.own("a"), side.own("b")
    yield side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), ("t", 4)), side.commit("b", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), version=8), side.commit("a", 0, ("t", 0))
    yield side.go("b"), side.own("a"), side.commit("a", side.epochs["a"] - 1, ("t", 4))


def expressions(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", regex="(", topics=None), side.enter("a", regex="(t)\\1", topics=None)
    yield side.enter("a", regex="(?=t)", topics=None), side.describe_consumers()
    yield side.enter("a", regex="[tu]", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1, 2]}), side.describe_consumers()
    yield side.heartbeat("a", regex="t|v"), "which is looked up after ten seconds"
    yield side.heartbeat("a", regex="[", held=side.assigned["a"])
    yield side.heartbeat("a", regex="", topics=["v"], held=side.assigned["a"])
    yield side.own("a"), side.own("a"), side.describe_consumers()
    yield side.go("a"), side.describe_consumers()


def an_expression_of_several(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", regex="t", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5]})
    yield side.enter("b", regex="t", topics=["u"]), side.enter("c", regex="t", topics=None)
    for _ in range(4):
        yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("a"), side.go("b"), side.go("c"), side.describe_consumers()


# Both protocols in one group


def classic(side: ConsumerSide, who: str, *topics: str, **fields: Any) -> Any:
    """JoinGroup of a member that reads topics, and what it hears; it takes the id it is given."""
    said = {name: fields.pop(name) for name in ("owned", "names") if name in fields}
    return joined(side, who, protocols=protocols(topics, **said), **fields)


def protocols(
    topics: Iterable[str],
    owned: Iterable[tuple[str, list[int]]] = (),
    names: Iterable[str] = ("range", "cooperative-sticky"),
) -> list[tuple[str, bytes]]:
    """What a member supports that reads topics, and holds some of their partitions."""
    said = ConsumerProtocolSubscription(
        topics=sorted(topics),
        owned_partitions=[Owned(topic=name, partitions=its) for name, its in owned],
    )
    return [(name, b"\0\3" + said.encode(3)) for name in names]


def asks_to_join(side: ConsumerSide, who: str, *topics: str, **fields: Any) -> object:
    """The same of one that has to wait; v3 gives it its id with the answer alone.

    A group with a new member is described only once the log of its coordinator has it.
    """
    side.join(who, 3, side.ids.get(who, ""), protocols(topics, **fields))
    side.arrives()
    deadline = time.monotonic() + PATIENCE_S
    while who not in {client_id for _, _, client_id, *_ in side.describe()[-1]}:
        assert time.monotonic() < deadline
    return side.hears(who, 0)


def share(side: ConsumerSide, who: str, assignments: dict[str, list[tuple[str, list[int]]]]) -> Any:
    """SyncGroup of a leader."""
    told = {
        name: b"\0\1"
        + ConsumerProtocolAssignment(
            assigned_partitions=[Given(topic=topic, partitions=its) for topic, its in places]
        ).encode(1)
        for name, places in assignments.items()
    }
    request = SyncGroupRequest(
        group_id=side.group_id,
        generation_id=side.generations[who],
        member_id=side.ids[who],
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=side.ids[name], assignment=it)
            for name, it in told.items()
        ],
    )
    side.post(who, request, 5)
    return side.hears(who, PATIENCE_S)


def beat(side: ConsumerSide, who: str) -> object:
    return side.beat(who, 4, side.ids[who], side.generations[who])


def ask(side: ConsumerSide, who: str) -> Any:
    """SyncGroup of a member that does not lead."""
    return share(side, who, {})


def a_classic_group_is_converted(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t"), share(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    yield side.enter("b", "t"), side.describe_consumers(), side.describe(), side.list(5)
    yield beat(side, "a"), ask(side, "a")
    yield classic(side, "a", "t", owned=[("t", [0, 1, 2, 3, 4, 5])]), ask(side, "a")
    yield beat(side, "a"), side.heartbeat("b"), side.describe_consumers()
    yield classic(side, "a", "t", owned=[("t", [0, 1, 2])]), ask(side, "a"), beat(side, "a")
    yield side.own("b"), side.own("b"), side.describe_consumers()
    yield side.commit("a", side.generations["a"], ("t", 0), version=8)
    yield side.commit("a", side.generations["a"] + 1, ("t", 0)), side.commit("b", None, ("t", 3))
    yield side.go("b"), side.describe_consumers(), side.list(5), "which is a classic one again"
    yield beat(side, "a"), classic(side, "a", "t"), side.describe(), side.fetch(None, -1, "t")


def a_classic_member_is_left_behind(side: ConsumerSide) -> Iterator[object]:
    """It has not followed yet to the epoch that is the generation of the group that comes back."""
    yield classic(side, "a", "t"), share(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    generation = side.generations["a"]
    yield side.enter("b", "t"), side.commit("a", generation, ("t", 0), version=8), "taken yet"
    yield side.go("b"), side.describe(), "whose generation is that epoch"
    yield side.commit("a", generation, ("t", 0), version=8), beat(side, "a")


def a_classic_member_joins(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("b", "t"), classic(side, "a", "t", "u"), side.describe_consumers()
    yield ask(side, "a"), side.own("b"), side.own("b"), side.describe_consumers()
    yield beat(side, "a"), ask(side, "a"), classic(side, "a", "t", "u"), ask(side, "a")
    yield classic(side, "c", "t", names=("sticky",)), "which no other classic member supports"
    yield side.beat("b", 4, "b", side.epochs["b"]), side.leave(5, ("nobody", None))
    yield side.leave(5, (side.ids["a"], None)), side.describe_consumers(), side.own("b")
    yield classic(side, "d", "t", version=3), side.describe_consumers()
    yield side.leave(5, ("b", None)), side.list(5)


def a_static_member_changes_its_protocol(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t", instance_id="i")
    yield share(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    yield side.enter("b", "t", instance_id="i"), side.describe_consumers()
    yield side.heartbeat("b"), side.heartbeat("b", topics=["t", "u"], held=side.assigned["b"])
    yield side.own("b"), side.describe_consumers()
    side.ids.pop("a")
    yield classic(side, "a", "t", "u", instance_id="i"), side.list(5), side.describe()
    yield ask(side, "a"), side.heartbeat("b")


def empty_groups_are_replaced(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t"), side.leave(5, (side.ids["a"], None)), side.list(5)
    yield side.commit("", -1, ("t", 0)), side.enter("b", "t"), side.list(5)
    yield side.go("b"), side.fetch(None, -1, "t"), side.list(5)
    side.ids.pop("a")
    yield classic(side, "a", "t"), side.list(5), side.fetch(None, -1, "t")
    yield side.enter("b", "t"), "while the leader has not assigned"
    yield ask(side, "a"), side.describe_consumers()


def a_classic_group_is_in_a_rebalance(side: ConsumerSide) -> Iterator[object]:
    """It has a protocol that who joins does not support; there is one that all do, yet."""
    both = ("range", "sticky")
    yield classic(side, "a", "t", names=both), share(side, "a", {"a": [("t", [0, 1])]})
    yield asks_to_join(side, "c", "t", names=("sticky",)), beat(side, "a"), side.describe()
    yield side.enter("b", "t"), side.hears("c", PATIENCE_S), side.describe(), side.list(5)
    yield asks_to_join(side, "c", "t", names=("sticky",)), side.describe()
    yield classic(side, "a", "t", names=both, version=3)
    yield side.hears("c", PATIENCE_S), side.describe(), side.enter("b", "t")[1]


def a_first_rebalance_is_not_over(side: ConsumerSide) -> Iterator[object]:
    """Of a broker with a delay: a group that has elected nothing yet is not converted."""
    yield asks_to_join(side, "a", "t"), side.describe()
    yield side.enter("b", "t"), side.hears("a", PATIENCE_S), side.describe(), side.list(5)
    yield asks_to_join(side, "a", "t"), asks_to_join(side, "c", "t"), side.enter("b", "t")
    yield side.hears("a", PATIENCE_S), side.hears("c", PATIENCE_S)
    yield classic(side, "a", "t"), side.describe(), "without who has not come again"
    yield side.enter("b", "t")[1], side.list(5), beat(side, "a")


def the_broker_gives_the_id(side: ConsumerSide) -> Iterator[object]:
    """v0, which Kafka 3.9 has alone."""
    heard = side.heartbeat(
        "a", 0, version=0, member_id="", topics=["t"], held={}, rebalance_ms=30_000
    )
    yield len(heard[0]), heard[1:]
    yield side.heartbeat("a", version=0, member_id=heard[0])[1:], side.go("b")
    yield side.heartbeat("a", -1, version=0, member_id=heard[0])[1:]


_SESSION, _BEAT, _ASSIGN = (
    f"consumer.{it}.ms" for it in ("session.timeout", "heartbeat.interval", "assignment.interval")
)


def settings_of_a_group(side: ConsumerSide) -> Iterator[object]:
    yield (
        side.enter("a", "t"),
        side.configs(),
        side.configs(_BEAT, "nope"),
        side.configs(group_id=""),
    )
    yield side.alter((_SESSION, 0, "30000"), (_BEAT, 0, "+150")), settled(side, _BEAT, "150")
    yield until_told(side, "a", 150)
    yield side.configs(), side.heartbeat("a"), side.enter("b", "u")
    yield side.alter((_SESSION, 1, None), (_ASSIGN, 0, "0")), settled(side, _ASSIGN, "0")
    yield side.configs(), side.alter((_BEAT, 0, "300"), validate_only=True), side.configs()
    yield side.alter((_BEAT, 1, "7"), (_ASSIGN, 1, None)), settled(side, _BEAT, "100")
    yield side.configs(), until_told(side, "a", 100), side.alter()
    for text in ("x", "", "2.5", "99999999999", "-99999999999", "0", "-1", "60001", "100"):
        yield side.alter((_SESSION, 0, text))
    for text in ("15001", "15000", "nope"):
        yield side.alter((_BEAT, 0, text))
    yield side.alter((_ASSIGN, 0, "15001")), side.alter((_ASSIGN, 0, "-1"))
    yield side.alter(("nope", 0, "1")), side.alter(("nope", 1, None)), side.alter(("", 0, "1"))
    yield side.alter((_SESSION, 0, "200"), ("nope", 0, "1")), side.configs()
    yield side.alter((_BEAT, 0, None)), side.alter((_BEAT, 2, "1")), side.alter((_BEAT, 3, "1"))
    yield side.alter((_BEAT, 0, "1"), (_BEAT, 0, "2")), side.alter((_BEAT, 0, "1"), group_id="")
    yield side.alter((_BEAT, 0, "1"), times=2), side.alter((_BEAT, 0, "1"), resource_type=3)


def settled(side: ConsumerSide, name: str, value: str) -> bool:
    """A broker has heard of its controller what a setting is."""
    deadline = time.monotonic() + PATIENCE_S
    while side.configs(name)[0][1] != value:
        assert time.monotonic() < deadline, side.configs(name)
        time.sleep(0.05)
    return True


def until_told(side: ConsumerSide, who: str, interval_ms: int) -> Any:
    """So has its coordinator, who tells `who` how often to send heartbeats."""
    deadline = time.monotonic() + PATIENCE_S
    while (heard := side.heartbeat(who))[2] != interval_ms:
        assert time.monotonic() < deadline, heard
        time.sleep(0.05)
    return heard


#: As every release does it that has the protocol.
SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    members_that_do_not_say_what_they_hold,
    the_broker_gives_the_id,
    a_member_gives_up_nothing,
    a_session_is_over,
)
#: What is otherwise in 3.9, or is not there: it describes what a member keeps and not what it has
#: yet to give up, and its assignor `uniform` decides otherwise where there are several ways.
NEW_SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    one_member_comes_and_goes,
    members_share,
    epochs_of_before,
    static_members,
    subscriptions_change,
    assignors,
    what_no_group_takes,
    offsets_of_members,
    commits_of_before,
    expressions,
    an_expression_of_several,
    settings_of_a_group,
    a_classic_group_is_converted,
    a_classic_member_is_left_behind,
    a_classic_member_joins,
    a_classic_group_is_in_a_rebalance,
    a_static_member_changes_its_protocol,
    empty_groups_are_replaced,
)
