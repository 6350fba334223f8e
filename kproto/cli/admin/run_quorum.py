"""Runs `kproto cluster quorum`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from ...client import Client
from ...client.admin import QuorumInfo
from ...clock import SYSTEM_CLOCK
from .rows import print_rows

__all__ = ["quorum", "quorum_rows", "status_row"]

_COLUMNS: Final = (
    "node",
    "role",
    "directory",
    "log_end",
    "lag",
    "last_fetch_ms",
    "fetch_age_ms",
    "last_caught_up_ms",
    "caught_up_age_ms",
    "endpoints",
    "epoch",
    "high_watermark",
)

_STATUS_COLUMNS: Final = (
    "cluster",
    "leader",
    "epoch",
    "high_watermark",
    "max_follower_lag",
    "max_follower_lag_ms",
    "voters",
    "observers",
)


async def quorum(client: Client, options: argparse.Namespace) -> int:
    """Prints the replicas of the metadata log; with `--status`, a row about all of them."""
    found = await client.admin.describe_metadata_quorum()
    if options.status:
        cluster = await client.admin.describe_cluster()
        print_rows(options, _STATUS_COLUMNS, [status_row(found, cluster.cluster_id)])
        return 0
    print_rows(options, _COLUMNS, quorum_rows(found, SYSTEM_CLOCK.now_ms()))
    return 0


def quorum_rows(found: QuorumInfo, now_ms: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each voter and observer; the ages in ms are those at `now_ms`.

    The lag is the number of offsets up to the log end of the leader.
    """
    end = _leader_end(found)
    for role, replicas in (("voter", found.voters), ("observer", found.observers)):
        for each in replicas:
            yield {
                "node": each.replica_id,
                "role": "leader" if each.replica_id == found.leader_id else role,
                "directory": each.directory_id,
                "log_end": each.log_end_offset,
                "lag": max(end - each.log_end_offset, 0),
                "last_fetch_ms": each.last_fetch_ms,
                "fetch_age_ms": _age(each.last_fetch_ms, now_ms),
                "last_caught_up_ms": each.last_caught_up_ms,
                "caught_up_age_ms": _age(each.last_caught_up_ms, now_ms),
                "endpoints": [
                    f"{it.name}://{it.host}:{it.port}"
                    for it in found.nodes.get(each.replica_id, ())
                ],
                "epoch": found.leader_epoch,
                "high_watermark": found.high_watermark,
            }


def _leader_end(found: QuorumInfo) -> int:
    """Returns the log end offset of the leader; the highest of all voters if none leads."""
    ends = [each.log_end_offset for each in found.voters if each.replica_id == found.leader_id]
    return max(ends or [each.log_end_offset for each in found.voters], default=0)


def _age(moment_ms: int | None, now_ms: int) -> int | None:
    """Returns the ms since a time; 0 if the clock of the broker is ahead."""
    return None if moment_ms is None else max(now_ms - moment_ms, 0)


def status_row(found: QuorumInfo, cluster_id: str | None) -> dict[str, Any]:
    """Returns the row of `--status`, as of `kafka-metadata-quorum.sh describe --status`.

    The time lag in ms is that of the follower that has caught up longest ago; it is None if the
    broker does not send the times (before Kafka 3.3).
    """
    followers = [each for each in found.voters if each.replica_id != found.leader_id]
    leaders = [each for each in found.voters if each.replica_id == found.leader_id]
    end = _leader_end(found)
    times = [each.last_caught_up_ms for each in followers]
    leader_ms = leaders[0].last_caught_up_ms if leaders else None
    known = [each for each in times if each is not None]
    lag_ms = 0 if not followers else None
    if followers and leader_ms is not None and len(known) == len(times):
        lag_ms = max(leader_ms - min(known), 0)
    return {
        "cluster": cluster_id,
        "leader": found.leader_id,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "max_follower_lag": max((end - each.log_end_offset for each in followers), default=0),
        "max_follower_lag_ms": lag_ms,
        "voters": [each.replica_id for each in found.voters],
        "observers": [each.replica_id for each in found.observers],
    }
