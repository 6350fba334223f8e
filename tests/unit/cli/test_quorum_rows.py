"""Tests the rows of `kproto cluster quorum`: plain data."""

from __future__ import annotations

from kproto.cli.admin.run_quorum import quorum_rows, status_row
from kproto.client.admin import QuorumInfo, QuorumReplica, RaftVoterEndpoint
from kproto.wire.uuid import Uuid

ID = Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")


def replica(node: int, end: int, fetched: int | None, caught_up: int | None) -> QuorumReplica:
    return QuorumReplica(node, ID, end, fetched, caught_up)


QUORUM = QuorumInfo(
    leader_id=1,
    leader_epoch=7,
    high_watermark=90,
    voters=(replica(1, 100, 5000, 5000), replica(2, 95, 4900, 4600), replica(3, 101, 6000, 5000)),
    observers=(replica(9, 40, None, None),),
    nodes={1: (RaftVoterEndpoint("CONTROLLER", "h", 9),)},
)


def test_lag_and_ages_are_relative_to_the_leader_and_to_now() -> None:
    rows = list(quorum_rows(QUORUM, now_ms=5100))
    assert [(row["node"], row["role"], row["lag"]) for row in rows] == [
        (1, "leader", 0),
        (2, "voter", 5),
        (3, "voter", 0),
        (9, "observer", 60),
    ]
    assert [row["fetch_age_ms"] for row in rows] == [100, 200, 0, None]
    assert [row["caught_up_age_ms"] for row in rows] == [100, 500, 100, None]
    assert rows[0]["endpoints"] == ["CONTROLLER://h:9"]
    assert {row["directory"] for row in rows} == {ID}


def test_status_has_the_largest_lags_of_the_followers() -> None:
    row = status_row(QUORUM, "c")
    assert (row["cluster"], row["leader"], row["epoch"], row["high_watermark"]) == ("c", 1, 7, 90)
    assert (row["max_follower_lag"], row["max_follower_lag_ms"]) == (5, 400)
    assert (row["voters"], row["observers"]) == ([1, 2, 3], [9])


def test_lag_in_ms_is_unknown_without_times() -> None:
    untimed = QUORUM._replace(voters=(replica(1, 5, None, None), replica(2, 5, None, None)))
    assert status_row(untimed, "c")["max_follower_lag_ms"] is None
    alone = QUORUM._replace(voters=(replica(1, 5, 1, 1),))
    assert status_row(alone, "c")["max_follower_lag_ms"] == 0
