"""Defines scripts of requests that KIP-848 and classic members send to one broker.

Each script yields the broker's responses. Topics `t`, `u` and `v` have 6, 3 and 2 partitions. If
the broker does not compute an assignment at once, the script sends heartbeats until a response has
the assignment.
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
    "SESSION_CONFIG",
    "ConsumerScript",
    "a_first_rebalance_is_not_over",
    "settled",
]

ConsumerScript: TypeAlias = Callable[[ConsumerSide], Iterator[object]]

BOTH: Final = ("t", "u")


def one_member_joins_and_leaves(side: ConsumerSide) -> Iterator[object]:
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.enter("a", "t")
    yield side.describe_consumers(), side.describe(), side.list(5)
    yield side.heartbeat("a"), side.own("a"), side.own("a", topics=["t"], rebalance_ms=30_000)
    yield side.go("a")
    yield side.describe_consumers(), side.list(5), side.list(5, ["empty"], ["CONSUMER"])
    yield side.heartbeat("a", 5), side.go("a")
    yield side.enter("a", "t"), "again, in a former group"
    yield side.list(5, ["stable"]), side.list(5, ["reconciling"]), side.delete(2)
    yield side.go("a"), side.delete(2), side.describe_consumers()


def members_share(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t"), side.describe_consumers()
    yield side.heartbeat("a"), "a keeps some partitions"
    yield side.heartbeat("a"), side.heartbeat("b"), side.describe_consumers()
    yield side.enter("c", "t"), side.heartbeat("b"), side.describe_consumers()
    yield side.own("a"), side.heartbeat("b"), side.heartbeat("c"), side.describe_consumers()
    yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("b"), side.own("a"), side.own("c"), side.describe_consumers()


def members_do_not_report_owned_partitions(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t")
    for _ in range(3):
        yield side.heartbeat("a"), side.heartbeat("b")
    yield side.heartbeat("a", owned={"t": [0, 5]}), "still one too many"
    yield side.heartbeat("a", owned={"t": [0]}), side.heartbeat("b"), side.describe_consumers()


def stale_epochs(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t")
    yield side.own("a"), side.own("a"), side.heartbeat("b")
    epoch = side.epochs["a"]
    yield side.heartbeat("a", epoch + 1)
    yield side.heartbeat("a", epoch - 1), "without owned partitions"
    yield side.heartbeat("a", epoch - 1, owned={"t": [0, 1, 2]})
    yield side.heartbeat("a", epoch - 1, owned={"t": [0, 1, 2, 3]})
    yield side.heartbeat("a", epoch - 1, owned={"u": []})
    yield side.heartbeat("a", epoch - 1, owned={})
    yield side.heartbeat("nobody", 1), side.go("nobody"), side.describe_consumers()
    yield side.enter("a", "t"), side.describe_consumers()


def subscriptions_change(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t"), side.enter("b", "t", "u"), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b")
    yield side.heartbeat("a", topics=["u"], owned=side.assigned["a"]), side.describe_consumers()
    for _ in range(2):
        yield side.own("a"), side.own("b"), side.describe_consumers()
    yield side.heartbeat("b", topics=[], owned={}), side.own("a"), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], owned={}), side.describe_consumers()
    yield side.heartbeat("b", topics=["nope", "v"], owned=side.assigned["b"])


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
    yield side.enter("c", "t", instance_id="i"), "a still uses this instance id"
    yield side.go("a", -2, instance_id="j"), side.go("a", -2, instance_id="k")
    yield side.go("a", -2, instance_id="i"), side.describe_consumers()
    yield side.enter("c", "t", instance_id="i"), side.describe_consumers()
    yield side.heartbeat("a", instance_id="i"), side.heartbeat("c", instance_id="i")
    yield side.heartbeat("c"), side.heartbeat("c", instance_id="k")
    yield side.go("c", -2, instance_id="i")
    yield side.enter("c", "t", "u", instance_id="i"), side.describe_consumers()
    yield side.own("b", instance_id="j"), side.own("c", instance_id="i"), side.describe_consumers()
    yield side.go("c", -1, instance_id="i"), side.own("b"), side.describe_consumers()


def invalid_heartbeats(side: ConsumerSide) -> Iterator[object]:
    beat = side.heartbeat
    given: dict[str, Any] = {"topics": ["t"], "owned": {}, "rebalance_ms": 1}
    yield beat("a", 0, topics=["t"], owned={}), beat("a", 0, topics=["t"], rebalance_ms=1)
    yield beat("a", 0, **{**given, "owned": {"t": [0]}}), beat("a", 0, owned={}, rebalance_ms=1)
    yield beat("a", 0, **given, instance_id=""), beat("a", 0, **given, instance_id=" ")
    yield beat("a", 0, **given, rack_id=""), beat("a", 0, **given, group_id="")
    yield beat("a", 0, **given, server_assignor="sticky"), beat("a", -3), beat("a", -2)
    yield beat("", 1), beat("", -1), beat("", -2), beat("", -2, instance_id="i")
    yield beat("a", 1), beat("a", -1), beat("a", 1, server_assignor="")
    yield side.describe_consumers()


def offsets_of_members(side: ConsumerSide) -> Iterator[object]:
    yield side.commit("", -1, ("t", 0)), "by an admin client, which creates a simple group"
    yield side.enter("a", "t"), side.describe_consumers()
    yield side.commit("a", None, ("t", 0)), side.fetch("a", None, "t"), side.fetch(None, -1, "t")
    yield side.commit("a", 99, ("t", 0)), side.fetch("a", 99, "t"), side.fetch("a", 1, "t")
    yield side.commit("nobody", 1, ("t", 0)), side.fetch("nobody", 1, "t"), side.fetch("a", -1, "t")
    yield side.commit("", -1, ("t", 0)), side.commit("a", None, ("t", 0), version=8)
    yield side.fetch(None, -1, "t", version=8), side.commit("a", None, ("nope", 0), ("t", 1))
    yield side.delete_offsets("t"), side.delete_offsets("u")
    yield side.go("a"), side.commit("a", 5, ("t", 0)), side.commit("", -1, ("t", 0))
    yield side.delete_offsets("t"), side.fetch(None, -1, "t")


def a_session_expires(side: ConsumerSide) -> Iterator[object]:
    """Lets the session of a static member expire.

    Old brokers have no session timeout per group; on them the script waits for the broker's
    timeout.
    """
    yield side.enter("a", "t"), side.enter("b", "t", instance_id="j")
    if side.version:
        side.alter((SESSION_CONFIG, 0, "1000"), (_BEAT, 0, "150"))
        until_interval(side, "b", 150)
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


def a_member_revokes_nothing(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", "t", rebalance_ms=2_000), side.enter("b", "t")
    yield side.heartbeat("a")
    deadline = time.monotonic() + 20
    while (response := side.heartbeat("a")) != "UNKNOWN_MEMBER_ID":
        assert time.monotonic() < deadline, response
        side.heartbeat("b")
        time.sleep(0.05)
    side.until("b", {"t": [0, 1, 2, 3, 4, 5]})  # b may have received the assignment before
    yield side.describe_consumers()


def commits_with_stale_epochs(side: ConsumerSide) -> Iterator[object]:
    """Commits offsets with member epochs that are older than the member's current epoch.

    KIP-1251: the broker accepts an old epoch for a partition that the member has owned since that
    epoch.
    """
    yield side.enter("a", "t"), side.enter("b", "t")
    before = side.epochs["a"]
    yield side.own("a"), side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.own("a"), side.own("b")
    yield side.commit("a", before, ("t", 0)), side.commit("a", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), ("t", 4)), side.commit("b", before, ("t", 4))
    yield side.commit("a", before, ("t", 0), version=8), side.commit("a", 0, ("t", 0))
    yield side.go("b"), side.own("a"), side.commit("a", side.epochs["a"] - 1, ("t", 4))


def regular_expressions(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", regex="(", topics=None), side.enter("a", regex="(t)\\1", topics=None)
    yield side.enter("a", regex="(?=t)", topics=None), side.describe_consumers()
    yield side.enter("a", regex="[tu]", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1, 2]}), side.describe_consumers()
    yield side.heartbeat("a", regex="t|v"), "looked up after ten seconds"
    yield side.heartbeat("a", regex="[", owned=side.assigned["a"])
    yield side.heartbeat("a", regex="", topics=["v"], owned=side.assigned["a"])
    yield side.own("a"), side.own("a"), side.describe_consumers()
    yield side.go("a"), side.describe_consumers()


def a_regular_expression_of_several_members(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("a", regex="t", topics=None)
    yield side.until("a", {"t": [0, 1, 2, 3, 4, 5]})
    yield side.enter("b", regex="t", topics=["u"]), side.enter("c", regex="t", topics=None)
    for _ in range(4):
        yield side.own("a"), side.own("b"), side.own("c"), side.describe_consumers()
    yield side.go("a"), side.go("b"), side.go("c"), side.describe_consumers()


# Both protocols in one group


def classic(side: ConsumerSide, member: str, *topics: str, **fields: Any) -> Any:
    """Sends JoinGroup for a member that subscribes to `topics`; returns the response.

    If the broker returns a member id with MEMBER_ID_REQUIRED, joins again with this id.
    """
    said = {name: fields.pop(name) for name in ("owned", "names") if name in fields}
    return joined(side, member, protocols=protocols(topics, **said), **fields)


def protocols(
    topics: Iterable[str],
    owned: Iterable[tuple[str, list[int]]] = (),
    names: Iterable[str] = ("range", "cooperative-sticky"),
) -> list[tuple[str, bytes]]:
    """Returns JoinGroup's protocols of a member: its subscribed topics and its owned partitions."""
    said = ConsumerProtocolSubscription(
        topics=sorted(topics),
        owned_partitions=[Owned(topic=name, partitions=its) for name, its in owned],
    )
    return [(name, b"\0\3" + said.encode(3)) for name in names]


def joins_and_waits(side: ConsumerSide, member: str, *topics: str, **fields: Any) -> object:
    """Sends JoinGroup v3 for a member whose response must wait for the end of the rebalance.

    Waits until DescribeGroups lists the member. Returns `WAITS`, or the JoinGroup response if the
    response has arrived nevertheless.
    """
    side.join(member, 3, side.ids.get(member, ""), protocols(topics, **fields))
    side.wait_until_handled()
    deadline = time.monotonic() + PATIENCE_S
    while member not in {client_id for _, _, client_id, *_ in side.describe()[-1]}:
        assert time.monotonic() < deadline
    return side.receives(member, 0)


def sync_leader(
    side: ConsumerSide, member: str, assignments: dict[str, list[tuple[str, list[int]]]]
) -> Any:
    """Sends SyncGroup of the leader; returns the response.

    `assignments` has the assignment of each member, by member name.
    """
    assignments_by_name = {
        name: b"\0\1"
        + ConsumerProtocolAssignment(
            assigned_partitions=[Given(topic=topic, partitions=its) for topic, its in listed]
        ).encode(1)
        for name, listed in assignments.items()
    }
    request = SyncGroupRequest(
        group_id=side.group_id,
        generation_id=side.generations[member],
        member_id=side.ids[member],
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=side.ids[name], assignment=it)
            for name, it in assignments_by_name.items()
        ],
    )
    side.post(member, request, 5)
    return side.receives(member, PATIENCE_S)


def beat(side: ConsumerSide, member: str) -> object:
    return side.beat(member, 4, side.ids[member], side.generations[member])


def sync(side: ConsumerSide, member: str) -> Any:
    """Sends a follower's SyncGroup, which has no assignments; returns the response."""
    return sync_leader(side, member, {})


def a_classic_group_is_converted(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t"), sync_leader(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    yield side.enter("b", "t"), side.describe_consumers(), side.describe(), side.list(5)
    yield beat(side, "a"), sync(side, "a")
    yield classic(side, "a", "t", owned=[("t", [0, 1, 2, 3, 4, 5])]), sync(side, "a")
    yield beat(side, "a"), side.heartbeat("b"), side.describe_consumers()
    yield classic(side, "a", "t", owned=[("t", [0, 1, 2])]), sync(side, "a"), beat(side, "a")
    yield side.own("b"), side.own("b"), side.describe_consumers()
    yield side.commit("a", side.generations["a"], ("t", 0), version=8)
    yield side.commit("a", side.generations["a"] + 1, ("t", 0)), side.commit("b", None, ("t", 3))
    yield side.go("b"), side.describe_consumers(), side.list(5), "a classic group again"
    yield beat(side, "a"), classic(side, "a", "t"), side.describe(), side.fetch(None, -1, "t")


def a_classic_member_has_an_old_generation(side: ConsumerSide) -> Iterator[object]:
    """Converts the group back to classic, while its classic member has an older generation."""
    yield classic(side, "a", "t"), sync_leader(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    generation = side.generations["a"]
    yield side.enter("b", "t"), side.commit("a", generation, ("t", 0), version=8), "still accepted"
    yield side.go("b"), side.describe(), "the generation is that epoch"
    yield side.commit("a", generation, ("t", 0), version=8), beat(side, "a")


def a_classic_member_joins(side: ConsumerSide) -> Iterator[object]:
    yield side.enter("b", "t"), classic(side, "a", "t", "u"), side.describe_consumers()
    yield sync(side, "a"), side.own("b"), side.own("b"), side.describe_consumers()
    yield beat(side, "a"), sync(side, "a"), classic(side, "a", "t", "u"), sync(side, "a")
    yield classic(side, "c", "t", names=("sticky",)), "no other classic member supports sticky"
    yield side.beat("b", 4, "b", side.epochs["b"]), side.leave(5, ("nobody", None))
    yield side.leave(5, (side.ids["a"], None)), side.describe_consumers(), side.own("b")
    yield classic(side, "d", "t", version=3), side.describe_consumers()
    yield side.leave(5, ("b", None)), side.list(5)


def a_static_member_changes_its_protocol(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t", instance_id="i")
    yield sync_leader(side, "a", {"a": [("t", [0, 1, 2, 3, 4, 5])]})
    yield side.enter("b", "t", instance_id="i"), side.describe_consumers()
    yield side.heartbeat("b"), side.heartbeat("b", topics=["t", "u"], owned=side.assigned["b"])
    yield side.own("b"), side.describe_consumers()
    side.ids.pop("a")
    yield classic(side, "a", "t", "u", instance_id="i"), side.list(5), side.describe()
    yield sync(side, "a"), side.heartbeat("b")


def empty_groups_are_replaced(side: ConsumerSide) -> Iterator[object]:
    yield classic(side, "a", "t"), side.leave(5, (side.ids["a"], None)), side.list(5)
    yield side.commit("", -1, ("t", 0)), side.enter("b", "t"), side.list(5)
    yield side.go("b"), side.fetch(None, -1, "t"), side.list(5)
    side.ids.pop("a")
    yield classic(side, "a", "t"), side.list(5), side.fetch(None, -1, "t")
    yield side.enter("b", "t"), "before the leader has sent its assignment"
    yield sync(side, "a"), side.describe_consumers()


def a_classic_group_is_in_a_rebalance(side: ConsumerSide) -> Iterator[object]:
    """Lets member b join by ConsumerGroupHeartbeat while a classic group rebalances.

    The rebalance begins when member c joins. Members a and c have one assignor in common, but the
    group currently uses another assignor, which c does not support.
    """
    both = ("range", "sticky")
    yield classic(side, "a", "t", names=both), sync_leader(side, "a", {"a": [("t", [0, 1])]})
    yield joins_and_waits(side, "c", "t", names=("sticky",)), beat(side, "a"), side.describe()
    yield side.enter("b", "t"), side.receives("c", PATIENCE_S), side.describe(), side.list(5)
    yield joins_and_waits(side, "c", "t", names=("sticky",)), side.describe()
    yield classic(side, "a", "t", names=both, version=3)
    yield side.receives("c", PATIENCE_S), side.describe(), side.enter("b", "t")[1]


def a_first_rebalance_is_not_over(side: ConsumerSide) -> Iterator[object]:
    """Tries to convert a classic group that has no elected leader yet.

    The broker must not convert such a group. The script needs a broker with an initial rebalance
    delay.
    """
    yield joins_and_waits(side, "a", "t"), side.describe()
    yield side.enter("b", "t"), side.receives("a", PATIENCE_S), side.describe(), side.list(5)
    yield joins_and_waits(side, "a", "t"), joins_and_waits(side, "c", "t"), side.enter("b", "t")
    yield side.receives("a", PATIENCE_S), side.receives("c", PATIENCE_S)
    yield classic(side, "a", "t"), side.describe(), "without c, which has not rejoined"
    yield side.enter("b", "t")[1], side.list(5), beat(side, "a")


def the_broker_gives_the_id(side: ConsumerSide) -> Iterator[object]:
    """Joins with v0 of ConsumerGroupHeartbeat, in which the broker generates the member id.

    Kafka 3.9 supports only v0.
    """
    response = side.heartbeat(
        "a", 0, version=0, member_id="", topics=["t"], owned={}, rebalance_ms=30_000
    )
    yield len(response[0]), response[1:]
    yield side.heartbeat("a", version=0, member_id=response[0])[1:], side.go("b")
    yield side.heartbeat("a", -1, version=0, member_id=response[0])[1:]


SESSION_CONFIG, _BEAT, _ASSIGN = (
    f"consumer.{it}.ms" for it in ("session.timeout", "heartbeat.interval", "assignment.interval")
)


#: The config source GROUP_CONFIG of DescribeConfigs.
_GROUP_CONFIG: Final = 8


def settings_of_a_group(side: ConsumerSide) -> Iterator[object]:
    yield (
        side.enter("a", "t"),
        side.configs(),
        side.configs(_BEAT, "nope"),
        side.configs(group_id=""),
    )
    yield side.alter((SESSION_CONFIG, 0, "30000"), (_BEAT, 0, "+150"))
    yield settled(side, SESSION_CONFIG, "30000"), settled(side, _BEAT, "150")
    yield until_interval(side, "a", 150)
    yield side.configs(), side.heartbeat("a"), side.enter("b", "u")
    yield side.alter((SESSION_CONFIG, 1, None), (_ASSIGN, 0, "0"))
    yield settled(side, SESSION_CONFIG, "15000"), settled(side, _ASSIGN, "0", is_set=True)
    yield side.configs(), side.alter((_BEAT, 0, "300"), validate_only=True), side.configs()
    yield side.alter((_BEAT, 1, "7"), (_ASSIGN, 1, None))
    yield settled(side, _BEAT, "100"), settled(side, _ASSIGN, "0", is_set=False)
    yield side.configs(), until_interval(side, "a", 100), side.alter()
    for text in ("x", "", "2.5", "99999999999", "-99999999999", "0", "-1", "60001", "100"):
        yield side.alter((SESSION_CONFIG, 0, text))
    for text in ("15001", "15000", "nope"):
        yield side.alter((_BEAT, 0, text))
    yield side.alter((_ASSIGN, 0, "15001")), side.alter((_ASSIGN, 0, "-1"))
    yield side.alter(("nope", 0, "1")), side.alter(("nope", 1, None)), side.alter(("", 0, "1"))
    yield side.alter((SESSION_CONFIG, 0, "200"), ("nope", 0, "1")), side.configs()
    yield side.alter((_BEAT, 0, None)), side.alter((_BEAT, 2, "1")), side.alter((_BEAT, 3, "1"))
    yield side.alter((_BEAT, 0, "1"), (_BEAT, 0, "2")), side.alter((_BEAT, 0, "1"), group_id="")
    yield side.alter((_BEAT, 0, "1"), times=2), side.alter((_BEAT, 0, "1"), resource_type=3)


def settled(side: ConsumerSide, name: str, value: str, *, is_set: bool | None = None) -> bool:
    """Waits until the broker has received `value` for the group config `name` from the controller.

    If `is_set` is given, also waits until the value is set for the group itself (True), or comes
    from another source (False). Returns True.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        _, found, source, *_ = side.configs(name)[0]
        if found == value and is_set in (None, source == _GROUP_CONFIG):
            return True
        assert time.monotonic() < deadline, side.configs(name)
        time.sleep(0.05)


def until_interval(side: ConsumerSide, member: str, interval_ms: int) -> Any:
    """Sends heartbeats of `member` until a response has `interval_ms`; returns this response."""
    deadline = time.monotonic() + PATIENCE_S
    while (response := side.heartbeat(member))[2] != interval_ms:
        assert time.monotonic() < deadline, response
        time.sleep(0.05)
    return response


#: Scripts for every release that has the protocol.
SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    members_do_not_report_owned_partitions,
    the_broker_gives_the_id,
    a_member_revokes_nothing,
    a_session_expires,
)
#: Scripts that have other results on 3.9, or that 3.9 cannot run. 3.9 describes only the partitions
#: that a member keeps, not those still to be revoked. Its `uniform` assignor breaks ties otherwise.
NEW_SCRIPTS: Final[tuple[ConsumerScript, ...]] = (
    one_member_joins_and_leaves,
    members_share,
    stale_epochs,
    static_members,
    subscriptions_change,
    assignors,
    invalid_heartbeats,
    offsets_of_members,
    commits_with_stale_epochs,
    regular_expressions,
    a_regular_expression_of_several_members,
    settings_of_a_group,
    a_classic_group_is_converted,
    a_classic_member_has_an_old_generation,
    a_classic_member_joins,
    a_classic_group_is_in_a_rebalance,
    a_static_member_changes_its_protocol,
    empty_groups_are_replaced,
)
