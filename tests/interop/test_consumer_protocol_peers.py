"""Tests librdkafka and Java in KIP-848 groups on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.broker import BrokerSettings
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.list_groups_request import ListGroupsRequest
from tests.support.availability import not_available
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.patience import wait_until
from tests.support.raw_connection import RawConnection
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.maven import MavenError
from tools.storm.java import lines_of, resolve_tools

from .group_members import (
    PARTITIONS,
    GroupMember,
    read_by,
    share,
    share_and_hand_over,
    write,
)

pytestmark = pytest.mark.peers


class JavaMember(GroupMember):
    """Runs Java's VerifiableConsumer, which reports the offsets of the records it reads."""

    def __init__(self, broker: ThreadedBroker, group: str) -> None:
        self._begin(
            [
                java_home() / "bin" / "java",
                "-Xmx96m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                str(resolve_tools() / "*"),
                "org.apache.kafka.tools.VerifiableConsumer",
                *("--bootstrap-server", broker.bootstrap, "--topic", "t", "--group-id", group),
                *("--group-protocol", "consumer", "--reset-policy", "earliest"),
            ]
        )

    def _listen(self) -> None:
        assert self._process.stdout is not None
        held: set[int] = set()
        for line in self._process.stdout:
            for told in lines_of(line):
                what, _, *rest = told.split(" ")
                partitions = {int(it) for it in rest[0].split(",") if it} if rest else set()
                if what == "read":
                    self.read.append((int(rest[0]), rest[1]))
                elif what == "left":
                    self.has_left = True
                elif what in ("assigned", "revoked"):
                    held = held | partitions if what == "assigned" else held - partitions
                    self.assigned = sorted(held)

    def leave(self) -> None:
        self._process.terminate()
        super().leave()


PEER: Final = "consumer_protocol"
CLASSIC: Final = "confluent_kafka"


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    settings = BrokerSettings(
        group_consumer_min_session_timeout_ms=1_000,
        group_consumer_session_timeout_ms=6_000,
        group_consumer_min_heartbeat_interval_ms=100,
        group_consumer_heartbeat_interval_ms=200,
    )
    with threaded_broker(settings) as running:
        running.call(lambda it: it.create_topic("t", PARTITIONS))
        yield running


def described(broker: ThreadedBroker, group: str) -> Any:
    with RawConnection(broker.bootstrap) as connection:
        request = ConsumerGroupDescribeRequest(group_ids=[group])
        (found,) = connection.exchange(request, 1).groups
    return found


def kind_of(broker: ThreadedBroker) -> tuple[str | None, str | None]:
    with RawConnection(broker.bootstrap) as connection:
        (found,) = connection.exchange(ListGroupsRequest(), 5).groups
    return found.group_type, found.group_state


@pytest.mark.parametrize("count", [1, 3])
def test_members_share_a_topic_and_hand_it_over(
    broker: ThreadedBroker, peers_python: Path, count: int
) -> None:
    def now() -> tuple[str, int]:
        found = described(broker, "g")
        return found.group_state, len(found.members)

    share_and_hand_over(broker, peers_python, [PEER] * count, "g", now)
    assert kind_of(broker) == ("consumer", "Empty")


@pytest.mark.exhaustive
def test_java_shares_a_topic_with_librdkafka(broker: ThreadedBroker, peers_python: Path) -> None:
    try:
        resolve_tools(), java_home()
    except (MavenError, JavaNotFoundError) as error:
        not_available("Java's VerifiableConsumer", error)
    with ExitStack() as ending:
        java = JavaMember(broker, "g")
        ending.callback(java.end)
        wait_until(lambda: share([java]))
        peer = GroupMember(peers_python, PEER, broker, "g")
        ending.callback(peer.end)
        wait_until(lambda: share([java, peer]))
        write(broker, "0", "1")
        expected = [(it, value) for it in range(PARTITIONS) for value in ("0", "1")]
        wait_until(lambda: len(read_by([java, peer])) >= len(expected))
        assert read_by([java, peer]) == expected
        java.leave()
        wait_until(lambda: share([peer]))
        write(broker, "2")
        wait_until(lambda: len(read_by([java, peer])) >= len(expected) + PARTITIONS)
        assert read_by([java, peer]) == sorted([*expected, *((it, "2") for it in range(6))])
        peer.leave()


@pytest.mark.exhaustive
def test_a_member_that_is_killed_is_out_when_its_session_is_over(
    broker: ThreadedBroker, peers_python: Path
) -> None:
    with ExitStack() as ending:
        members = [GroupMember(peers_python, PEER, broker, "g") for _ in range(2)]
        for member in members:
            ending.callback(member.end)
        wait_until(lambda: share(members))
        members[0].end()
        wait_until(lambda: share(members[1:]))
        write(broker, "one")
        wait_until(lambda: len(read_by(members[1:])) >= PARTITIONS)
        members[1].leave()


def test_a_classic_group_becomes_one_of_the_consumer_protocol_and_back(
    broker: ThreadedBroker, peers_python: Path
) -> None:
    with ExitStack() as ending:
        old = GroupMember(peers_python, CLASSIC, broker, "g")
        ending.callback(old.end)
        wait_until(lambda: share([old]))
        assert kind_of(broker)[0] == "classic"
        new = GroupMember(peers_python, PEER, broker, "g")
        ending.callback(new.end)
        wait_until(lambda: share([old, new]))
        assert kind_of(broker)[0] == "consumer"
        write(broker, "one")
        wait_until(lambda: len(read_by([old, new])) >= PARTITIONS)
        assert read_by([old, new]) == [(it, "one") for it in range(PARTITIONS)]
        new.leave()
        wait_until(lambda: share([old]))
        assert kind_of(broker)[0] == "classic"
        write(broker, "two")
        wait_until(lambda: len(read_by([old, new])) >= 2 * PARTITIONS)
        assert read_by([old, new]) == [
            (it, value) for it in range(PARTITIONS) for value in ("one", "two")
        ]
        old.leave()
