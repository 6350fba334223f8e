"""Tests other clients as group members on the embedded broker, alone and in mixed groups.

The tests check assignments and the records read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.messages.describe_groups_request import DescribeGroupsRequest
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import RawConnection

from .group_members import (
    PARTITIONS,
    share_and_hand_over,
)

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
    "peers",
    [
        *((peer, peer) for peer in PEERS if peer != "kafka_python"),
        PEERS,
        *(
            pytest.param(it, marks=pytest.mark.exhaustive, id="-".join(it))
            for it in (("kafka_python", "kafka_python"), PEERS[::-1])
        ),
    ],
    ids="-".join,
)
def test_members_share_a_topic_and_hand_it_over(
    broker: ThreadedBroker, peers_python: Path, peers: Sequence[str]
) -> None:
    group = "-".join(peers)

    def now() -> tuple[str, int]:
        found = described(broker, group)
        return found.group_state, len(found.members)

    share_and_hand_over(broker, peers_python, peers, group, now)
    assert now() == ("Empty", 0)
