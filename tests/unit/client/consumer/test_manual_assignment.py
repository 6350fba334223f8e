"""Tests manually assigned partitions of a consumer with a group id, and their commits."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kproto import BrokerResponseError, ConfigurationError
from kproto.client.commits.errors import CommitFailedError, NoCommittedOffsetError
from kproto.messages import OffsetCommitRequest
from tests.unit.client.consumer.grouped import group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, take

FOR_MANUAL_ASSIGNMENT: dict[str, Any] = {"auto_commit": False}


async def test_partitions_by_hand_have_no_member() -> None:
    async with group(TEN, THREE) as it:
        it.coordinator.offsets[P1] = (2, -1, "")
        async with it.consumer([P0, P1]) as consumer:
            assert it.members == []
            assert consumer.assignment == {P0, P1}
            assert sorted(await take(aiter(consumer), 11)) == [(0, at) for at in range(10)] + [
                (1, 2)
            ]
            with pytest.raises(ConfigurationError, match="there is no member"):
                consumer.subscribe("t")
        assert it.coordinator.offsets == {P0: (10, -1, ""), P1: (3, -1, "")}
        (commit,) = it.coordinator.commits
        assert (commit.generation_id_or_member_epoch, commit.member_id) == (-1, "")


async def test_partitions_by_hand_that_are_not_there_are_told_at_once() -> None:
    async with group(TEN) as it:
        with pytest.raises(BrokerResponseError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await it.consumer([("t", 9)]).__aenter__()


async def test_partitions_by_hand_of_a_group_that_has_members() -> None:
    async with group(TEN) as it:
        it.coordinator.refused[P0] = "UNKNOWN_MEMBER_ID"
        async with it.consumer([P0]) as consumer:
            await take(aiter(consumer), 1)
            with pytest.raises(CommitFailedError, match="the group has members"):
                await consumer.commit()


async def test_a_commit_after_a_lost_connection_is_made_again() -> None:
    async with group(TEN) as it, it.consumer(**FOR_MANUAL_ASSIGNMENT) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        committed = it.coordinator.commit
        calls = 0

        async def once(asked: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                await it.coordinator.commit(asked)
                it.broker.hang_up()
                return None
            return await committed(asked)

        it.broker.answers[OffsetCommitRequest] = once
        await consumer.commit()
        assert it.coordinator.offsets[P0] == (2, -1, "")
        assert calls == 2


def test_errors_can_be_pickled() -> None:
    error = NoCommittedOffsetError("g", [("b", 1), ("a", 0)])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.partitions) == (str(error), [("a", 0), ("b", 1)])
    assert "a[0], b[1]" in str(error)
