"""The shell of a member of the consumer protocol: heartbeats over sockets, by a clock of tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, ConfigurationError, TopicPattern, UnsupportedVersionError
from kproto.client.groups.choosing import GroupMember
from kproto.client.groups.consumer_protocol.member import ConsumerMember
from kproto.client.groups.consumer_protocol.phases import Phase
from kproto.client.groups.group_kinds import Kind
from kproto.client.groups.settings import GroupSettings
from kproto.client.groups.subscription import Subscription
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
)
from kproto.messages.base import Request
from kproto.testing.clock import ManualClock
from tests.support.group_owner import Reading, made_as
from tests.support.suspensions import CancelAt, points
from tests.unit.client.groups.any_setting import PLACES, AnySetting
from tests.unit.client.groups.scripted_consumer_group import ScriptedConsumerGroup
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions, quick


class Setting(AnySetting):
    """A broker, its group, a client and a member of it."""

    def __init__(self, broker: ScriptedBroker, client: Client, clock: ManualClock) -> None:
        self.broker, self.client, self.clock = broker, client, clock
        self.group = ScriptedConsumerGroup(broker)
        self.member: GroupMember
        self.its: Reading

    def make(self, wanted: str | Subscription = "t", **settings: Any) -> None:
        its: dict[str, Any] = {"group_protocol": "consumer"} | settings
        made = made_as(GroupMember, self.client, GroupSettings("g", **its), wanted)
        self.member, self.its = made

    @property
    def phase(self) -> Phase:
        member = self.member._member
        assert isinstance(member, ConsumerMember)
        return member._membership.phase

    @property
    def beats(self) -> list[ConsumerGroupHeartbeatRequest]:
        return self.asked(ConsumerGroupHeartbeatRequest)

    async def failed(self) -> Exception:
        await self.until(lambda: self.its.error is not None)
        assert self.its.error is not None
        return self.its.error


def versions_up_to(version: int) -> ApiVersionsResponse:
    """What a broker says that has heartbeats of this kind up to a version, or none (-1)."""
    answer = api_versions()
    for each in list(answer.api_keys):
        if each.api_key == ConsumerGroupHeartbeatRequest.API_KEY:
            each.max_version = version
            if version < 0:
                answer.api_keys.remove(each)
    return answer


@asynccontextmanager
async def a_setting(version: int | None = None) -> AsyncIterator[Setting]:
    """One whose broker has heartbeats up to a version, or none (-1)."""
    clock = ManualClock()
    async with ScriptedBroker({"t": 2}) as broker:
        if version is not None:
            answer = versions_up_to(version)
            broker.answers[ApiVersionsRequest] = lambda asked: answer
        its = quick(topic_timeout_ms=1_000, delivery_timeout_ms=120_000)
        async with Client(broker.bootstrap, its, clock=clock) as using:
            setting = Setting(broker, using, clock)
            setting.make()
            try:
                yield setting
            finally:
                await setting.member.close()


async def test_a_member_joins_beats_and_leaves() -> None:
    async with a_setting() as its:
        before = its.member.identity
        assert before is None
        await its.joined()
        identity = its.member.identity
        assert identity is not None
        assert identity.generation == 1
        joining, acknowledging = its.beats
        assert (joining.member_epoch, acknowledging.member_epoch) == (0, 1)
        for count in range(3, 6):
            await its.clock.advance(3_000)
            await its.until(lambda count=count: len(its.beats) == count)
        await its.member.leave(True, "a test")
        left = its.beats[-1]
        assert (left.member_id, left.member_epoch) == (identity.member_id, -1)
        assert its.its.names == ["assign", "revoke"]
        assert its.client.metrics()["groups"]["g"] == {
            "joins": 1,
            "rebalances": 1,
            "heartbeats": 5,
            "lost_partitions": 0,
            "late": 0,
        }


async def test_what_goes_is_given_up_and_acknowledged_at_once() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.held = asyncio.Event()
        its.group.assigned = [("t", 1)]
        await its.clock.advance(3_000)
        await its.until(lambda: "waits" in its.its.names)
        count = len(its.beats)
        await its.clock.advance(3_000)  # a record is in hand, and heartbeats go on
        await its.until(lambda: len(its.beats) == count + 1)
        assert its.beats[-1] == ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=its.beats[0].member_id, member_epoch=1
        )
        its.its.held.set()
        await its.until(lambda: len(its.beats) == count + 2)
        told = its.beats[-1].topic_partitions
        assert told is not None
        assert [each.partitions for each in told] == [[1]]
        assert its.its.places == {("t", 1)}


async def test_version_0_whose_broker_gives_the_id() -> None:
    async with a_setting(version=0) as its:
        await its.joined()
        assert [each.member_id for each in its.beats] == ["", "member-1"]
        await its.member.leave(True)
        assert its.beats[-1].member_id == "member-1"


@pytest.mark.parametrize(
    "name",
    ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", HANG_UP],
)
@pytest.mark.parametrize("joins", [True, False])
async def test_what_time_mends(joins: bool, name: str) -> None:
    async with a_setting() as its:
        if not joins:
            await its.joined()
            beats = len(its.beats)
        its.group.errors[ConsumerGroupHeartbeatRequest] = [name] * 2
        if joins:
            its.member.start()
            await its.pass_until(lambda: its.its.places == PLACES)
        else:
            await its.pass_until(lambda: len(its.beats) >= beats + 4)
        assert its.its.names == ["assign"]
        await its.pass_until(lambda: its.is_in(Phase.STABLE))


async def test_a_member_that_was_forgotten_joins_anew() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: "lose" in its.its.names)
        await its.pass_until(lambda: its.its.places == PLACES)
        assert its.beats[0].member_id == its.beats[-1].member_id
        assert [each.member_epoch for each in its.beats].count(0) == 2


@pytest.mark.parametrize(
    ("session_ms", "interval_ms", "silent_s"),
    [
        pytest.param(45_000, 3_000, 45, id="as the broker tells"),
        pytest.param(12_000, 3_000, 12, id="a shorter one"),
        pytest.param(60_000, 3_000, 45, id="a longer one, of which 45 s are enough"),
        pytest.param(None, 3_000, 27, id="it does not tell: nine intervals"),
        pytest.param(None, 15_000, 45, id="the same, and they are long"),
    ],
)
async def test_a_silent_coordinator_costs_the_partitions_after_the_session(
    session_ms: int | None, interval_ms: int, silent_s: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms, its.group.interval_ms = session_ms, interval_ms
        await its.joined()
        its.group.hold(ConsumerGroupHeartbeatRequest)
        before = its.clock.monotonic()
        await its.pass_until(lambda: "lose" in its.its.names, 500)
        assert silent_s - 1 < its.clock.monotonic() - before < silent_s + 1
        assert its.member.identity is None


@pytest.mark.parametrize(("session_ms", "times"), [(45_000, 2), (None, 1)])
async def test_who_is_not_told_of_the_session_does_not_ask_again(
    session_ms: int | None, times: int
) -> None:
    async with a_setting() as its:
        its.group.session_ms = session_ms
        await its.joined()
        its.group.member_id = "another"
        await its.pass_until(lambda: its.its.names[-2:] == ["lose", "assign"])
        assert len(its.asked(DescribeConfigsRequest)) == times


async def test_who_unsubscribes_as_all_is_lost_hears_of_the_loss_at_once() -> None:
    async with a_setting() as its:
        await its.unsubscribed_as_it_loses_all(ConsumerGroupHeartbeatRequest)


async def test_a_slow_user_is_out_until_he_asks() -> None:
    async with a_setting() as its:
        await its.joined()
        its.its.is_late = True
        await its.pass_until(lambda: its.is_in(Phase.STALE))
        assert its.beats[-1].member_epoch == -1
        its.its.is_late = False
        its.member.asked()
        await its.until(lambda: its.its.places == PLACES)
        assert its.client.metrics()["groups"]["g"]["late"] == 1


async def test_a_static_member_is_expected_back() -> None:
    async with a_setting() as its:
        its.make(instance_id="i")
        await its.joined()
        await its.member.leave(False)
        assert (its.beats[-1].member_epoch, its.beats[-1].instance_id) == (-2, "i")


async def test_a_topic_that_is_asked_for_by_its_id() -> None:
    """Metadata knows what the member subscribes to, and not yet what it gets."""
    async with a_setting() as its:
        its.make(Subscription.to(TopicPattern("t|new")))
        its.group.assigned = [("new", 0)]
        its.member.start()
        await its.until(lambda: its.is_in(Phase.STABLE))
        assert its.its.places == set()
        its.broker.topics["new"] = 1
        await its.pass_until(lambda: its.its.places == {("new", 0)}, 5)


async def test_a_compiled_pattern_is_watched() -> None:
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        assert its.beats[0].subscribed_topic_names == ["t"]
        its.broker.topics["new"] = 1
        await its.client.refresh()
        its.member.topics_changed()
        await its.until(lambda: its.beats[-1].subscribed_topic_names == ["new", "t"])


async def test_a_topic_that_is_forgotten_just_now_stays_subscribed_to() -> None:
    """As when its leader has moved, while another topic that matches is heard of."""
    async with a_setting() as its:
        its.make(Subscription.to(re.compile("t|new")))
        await its.joined()
        its.broker.topics["new"] = 1
        its.client.cluster.forget(["t"])
        await its.client.refresh(["new"])
        its.member.topics_changed()
        await its.until(lambda: its.beats[-1].subscribed_topic_names not in (None, ["t"]))
        assert its.beats[-1].subscribed_topic_names == ["new", "t"]


async def test_leaving_has_an_end() -> None:
    async with a_setting() as its:
        await its.joined()
        its.group.hold(ConsumerGroupHeartbeatRequest)
        leaving = asyncio.create_task(its.member.leave(True))
        await its.pass_until(leaving.done)
        assert its.its.places == set()


# Which protocol


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"session_timeout_ms": 50_000}, "session_timeout_ms counts for nothing in a consumer"),
        (
            {"heartbeat_interval_ms": 1_000},
            "heartbeat_interval_ms counts for nothing in a consumer",
        ),
        ({"max_poll_interval_ms": 100_000}, None),
        ({"server_assignor": "range"}, None),
    ],
)
async def test_a_setting_that_counts_for_nothing_is_told_once_the_kind_is_known(
    settings: dict[str, Any], told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_setting() as its:
        its.make(group_protocol="auto", given=frozenset(settings), **settings)
        await its.joined()
        its.group.member_id = "another"  # it loses all, and joins again
        await its.pass_until(lambda: its.its.names[-2:] == ["lose", "assign"])
    lines = [it.getMessage() for it in caplog.records if "counts for nothing" in it.getMessage()]
    assert len(lines) == (told is not None)
    assert not lines or str(told) in lines[0]


async def test_so_is_one_in_a_classic_group(caplog: pytest.LogCaptureFixture) -> None:
    async with a_setting() as its:
        its.group.state = "Stable"
        given: dict[str, Any] = {"server_assignor": "range", "session_timeout_ms": 50_000}
        its_kind = await kind_with(its, group_protocol="auto", given=frozenset(given), **given)
        assert its_kind is Kind.CLASSIC
    (line,) = [it.getMessage() for it in caplog.records if "counts for" in it.getMessage()]
    assert line.startswith("group g: server_assignor counts for nothing in a classic group: its")


async def kind_with(its: Setting, **settings: Any) -> Kind:
    """The kind of a member that has joined with these."""
    its.make(**settings)
    its.member.start()
    await its.pass_until(lambda: its.its.places == PLACES, 1)
    return its.member.kind


async def test_auto_takes_the_consumer_protocol_where_no_classic_group_lives() -> None:
    async with a_setting() as its:
        assert await kind_with(its, group_protocol="auto") is Kind.CONSUMER
        assert its.asked(JoinGroupRequest) == []


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Stable"])
async def test_auto_joins_a_live_classic_group_as_one_of_it(state: str) -> None:
    async with a_setting() as its:
        its.group.state = state
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        assert its.beats == []
        await its.member.leave(True)
        assert len(its.asked(LeaveGroupRequest)) == 1


async def test_an_empty_classic_group_is_none() -> None:
    async with a_setting() as its:
        its.group.state = "Empty"
        assert await kind_with(its, group_protocol="auto") is Kind.CONSUMER


@pytest.mark.parametrize("settings", [{"group_protocol": "classic"}, {"assignors": ["range"]}])
async def test_who_wants_a_classic_group_looks_at_nothing(settings: dict[str, Any]) -> None:
    async with a_setting() as its:
        assert await kind_with(its, **({"group_protocol": "auto"} | settings)) is Kind.CLASSIC
        assert its.asked(DescribeGroupsRequest) == []


async def test_a_coordinator_that_knows_the_classic_protocol_alone() -> None:
    async with a_setting(version=-1) as its:
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        assert its.asked(DescribeGroupsRequest) == []
        await its.member.leave(True)
        its.make(group_protocol="consumer")
        its.member.start()
        error = await its.failed()
        assert isinstance(error, UnsupportedVersionError)
        assert 'use "classic"' in str(error)


async def test_brokers_that_are_known_to_be_old_are_not_asked() -> None:
    async with a_setting(version=-1) as its:
        await its.client.refresh()
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        assert its.broker.connections == 2  # one that all share, and that of the member
        await its.member.leave(True)
        its.make(Subscription.to(TopicPattern("t.*")), group_protocol="auto")
        its.member.start()
        assert "older than the consumer protocol" in str(await its.failed())


async def with_an_older_coordinator(
    its: Setting, wanted: str | Subscription = "t", **settings: Any
) -> None:
    """It joins, and then another broker coordinates, which has no heartbeats of this kind."""
    its.make(wanted, **settings)
    await its.joined()
    answer = versions_up_to(-1)
    its.broker.answers[ApiVersionsRequest] = lambda asked: answer
    its.group.errors[ConsumerGroupHeartbeatRequest] = [HANG_UP]


async def test_a_coordinator_that_is_older_than_the_one_before_has_a_classic_member(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As while a cluster is taken back to a release of before, broker by broker."""
    async with a_setting() as its:
        await with_an_older_coordinator(its, group_protocol="auto")
        await its.pass_until(lambda: its.member.kind is Kind.CLASSIC)
        await its.pass_until(lambda: its.its.places == PLACES)
        assert its.its.names == ["assign", "lose", "assign"]
        assert its.its.error is None
        assert its.asked(JoinGroupRequest)
        assert "could not tell that it leaves" not in caplog.text  # who knows it not is not told


async def test_a_coordinator_that_has_the_protocol_turned_off_has_one_too() -> None:
    async with a_setting() as its:
        its.make(group_protocol="auto")
        await its.joined()
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["UNSUPPORTED_VERSION"] * 9
        await its.pass_until(lambda: its.its.names == ["assign", "lose", "assign"])
        assert its.member.kind is Kind.CLASSIC


@pytest.mark.parametrize(
    ("wanted", "protocol", "words"),
    [
        ("t", "consumer", "has no ConsumerGroupHeartbeat (KIP-848, Kafka 4.0)"),
        (Subscription.to(TopicPattern("t.*")), "auto", "older than the consumer protocol"),
    ],
)
async def test_an_older_coordinator_is_an_error_for_who_wants_no_classic_group(
    wanted: str | Subscription, protocol: str, words: str
) -> None:
    async with a_setting() as its:
        await with_an_older_coordinator(its, wanted, group_protocol=protocol)
        await its.pass_until(lambda: its.its.error is not None)
        assert words in str(its.its.error)
        assert its.its.places == set()
        assert not its.asked(JoinGroupRequest)


async def test_a_cluster_that_has_it_turned_off() -> None:
    async with a_setting() as its:
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["UNSUPPORTED_VERSION"] * 9
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        assert len(its.beats) == 1


@pytest.mark.parametrize("name", ["GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL"])
async def test_a_group_that_has_become_classic_since_the_look(name: str) -> None:
    """Between the question and the joining: another look, and no error."""
    async with a_setting() as its:

        async def beat(asked: Any) -> Any:
            its.group.state = "Stable"
            return its.group.consumer_beat(asked, 69 if name == "GROUP_ID_NOT_FOUND" else 23)

        its.broker.answers[ConsumerGroupHeartbeatRequest] = beat
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        assert its.its.error is None


async def test_a_group_that_has_lost_its_classic_members_since_the_look() -> None:
    async with a_setting() as its:
        states = ["Stable", "Empty", "Empty"]

        async def describe(asked: Any) -> Any:
            its.group.state = states.pop(0)
            return its.group.describe(asked, 0)

        its.broker.answers[DescribeGroupsRequest] = describe
        assert await kind_with(its, group_protocol="auto") is Kind.CONSUMER
        assert states == []


async def test_a_group_of_neither_kind_is_an_error() -> None:
    """Such as a share group: its broker has no words for that in any state of a classic one."""
    async with a_setting() as its:
        its.group.errors[ConsumerGroupHeartbeatRequest] = ["GROUP_ID_NOT_FOUND"] * 9
        its.group.errors[JoinGroupRequest] = ["INCONSISTENT_GROUP_PROTOCOL"] * 9
        its.make(group_protocol="auto")
        its.member.start()
        await its.pass_until(lambda: its.its.error is not None, 1)
        assert "no group of consumers" in str(its.its.error)
        assert len(its.beats) == 2


async def test_the_group_is_looked_at_again_when_the_membership_was_lost() -> None:
    async with a_setting() as its:
        assert await kind_with(its, group_protocol="auto") is Kind.CONSUMER
        await its.until(lambda: its.is_in(Phase.STABLE))
        its.group.state = "Stable"
        its.group.member_id = "another"
        await its.pass_until(lambda: its.member.kind is Kind.CLASSIC)
        await its.until(lambda: its.its.places == PLACES)
        assert its.its.names == ["assign", "lose", "assign"]


async def test_a_right_that_is_missing_is_no_other_kind() -> None:
    async with a_setting() as its:
        its.group.errors[DescribeGroupsRequest] = ["GROUP_AUTHORIZATION_FAILED"]
        its.make(group_protocol="auto")
        its.member.start()
        assert "READ on the group" in str(await its.failed())


async def test_a_pattern_of_the_broker_in_a_classic_group() -> None:
    async with a_setting() as its:
        pattern = Subscription.to(TopicPattern("t.*"))
        with pytest.raises(ConfigurationError, match=r"re\.compile\('t\.\*'\)"):
            its.make(pattern, group_protocol="classic")
        with pytest.raises(ConfigurationError, match="as assignors are named"):
            its.make(pattern, group_protocol="auto", assignors=["range"])
        its.group.state = "Stable"
        its.make(pattern, group_protocol="auto")
        its.member.start()
        assert "with members" in str(await its.failed())
        assert await kind_with(its, group_protocol="auto") is Kind.CLASSIC
        with pytest.raises(ConfigurationError, match="with members"):
            its.member.subscribe(pattern)
        assert its.its.places == PLACES


async def test_ending_while_it_changes_over() -> None:
    async with a_setting() as its:
        its.group.state = "Stable"
        its.make(group_protocol="auto")
        its.member.start()
        await its.until(lambda: its.asked(DescribeGroupsRequest))
        await its.member.leave(True)
        await its.member.close()
        assert its.its.error is None


# Ends


async def in_a_group(play: Callable[[Setting], Awaitable[None]], protocol: str) -> None:
    """Have a member join whose assignment changes with each heartbeat, and play."""
    async with ScriptedBroker({"t": 2}) as broker:
        settings = quick(topic_timeout_ms=1_000, delivery_timeout_ms=1_000)
        async with Client(broker.bootstrap, settings) as client:
            its = Setting(broker, client, ManualClock())
            its.group.interval_ms = 1
            its.make(group_protocol=protocol, leave_timeout_ms=50)

            def turn(name: str, places: object) -> None:
                its.group.assigned = [] if its.group.assigned else [("t", 0)]

            its.its.on_call = turn
            try:
                await play(its)
            finally:
                await its.member.close()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["auto", "consumer"])
@pytest.mark.parametrize("ends", ["close", "leave"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(range(0, 100, 12), id="some"),
        pytest.param(range(0, 100, 4), id="all", marks=pytest.mark.exhaustive),
    ],
)
def test_a_member_may_be_ended_at_any_turn_of_the_loop(
    ends: str, protocol: str, steps: range
) -> None:
    async def scene(turns: int) -> None:
        async def play(its: Setting) -> None:
            its.member.start()
            for _ in range(turns):
                await asyncio.sleep(0)
            if ends == "leave":
                await its.member.leave(True)
                assert its.its.places == set()
                assert its.its.error is None
                assert its.group.member_id is None

        await in_a_group(play, protocol)

    for turns in steps:

        async def run(cancel: CancelAt, turns: int = turns) -> None:
            await scene(turns)  # it is ended by itself, and looked at as after a cancellation

        try:
            assert points(run, late=False) == 0
        except BaseException as error:
            error.add_note(f"ended after {turns} turns")
            raise


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("hold", [None, ConsumerGroupHeartbeatRequest, DescribeGroupsRequest])
@pytest.mark.parametrize("call", ["leave", "close"])
def test_who_ends_a_member_may_be_cancelled(
    call: str, hold: type[Request[Any]] | None, late: bool
) -> None:
    async def scene(cancel: CancelAt) -> None:
        async def play(its: Setting) -> None:
            if hold is not None:
                its.group.hold(hold)
            its.member.start()
            reached = hold or ConsumerGroupHeartbeatRequest
            await its.until(lambda: its.asked(reached))
            await cancel.run(its.member.leave(True) if call == "leave" else its.member.close())

        await in_a_group(play, "auto")

    assert points(scene, late=late) > 0
