"""Groups of other clients on the embedded broker, of one kind and mixed: who has and reads what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.messages.describe_groups_request import DescribeGroupsRequest
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

from .group_members import PARTITIONS, GroupMember, read_by, share, until, write

pytestmark = pytest.mark.peers

PEERS: Final = ("aiokafka", "kafka_python", "confluent_kafka")


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with threaded_broker() as running:
        running.call(lambda it: it.create_topic("t", PARTITIONS))
        yield running


def described(broker: ThreadedBroker, group: str) -> Any:
    with RawConnection(broker.bootstrap) as connection:
        (found,) = connection.exchange(DescribeGroupsRequest(groups=[group]), 5).groups
    return found


@pytest.mark.parametrize(
    "peers", [*[(peer, peer) for peer in PEERS], PEERS, PEERS[::-1]], ids="-".join
)
def test_members_share_a_topic_and_hand_it_over(
    broker: ThreadedBroker, peers_python: Path, peers: Sequence[str]
) -> None:
    group = "-".join(peers)
    with ExitStack() as ending:
        members: list[GroupMember] = []
        for peer in peers:
            member = GroupMember(peers_python, peer, broker, group)
            ending.callback(member.end)
            members.append(member)
            until(lambda: share(members))
        write(broker, "one", "two")
        expected = [(it, value) for it in range(PARTITIONS) for value in ("one", "two")]
        until(lambda: len(read_by(members)) >= len(expected))
        assert read_by(members) == expected
        found = described(broker, group)
        assert (found.group_state, len(found.members)) == ("Stable", len(peers))
        first, *rest = members
        first.leave()
        until(lambda: share(rest))
        write(broker, "three")
        expected = sorted([*expected, *((it, "three") for it in range(PARTITIONS))])
        until(lambda: len(read_by(members)) >= len(expected))
        assert read_by(members) == expected, "what was read is committed by who leaves"
        for member in rest:
            member.leave()
        assert described(broker, group).group_state == "Empty"
