"""Tests `kproto groups` with share groups and streams groups on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import kproto as client
from kproto.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from kproto.protocol.error_codes import raise_for_code
from kproto.wire.uuid import Uuid
from tests.support.admin_commands import rows_of
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run, new_topic, runner
from tests.support.group_commands import *  # noqa: F403
from tests.support.share_groups import SHARE_CONFIG, SHARE_VERSION
from tools.kafka import KafkaNode

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Yields the address of a broker with share groups."""
    try:
        kafka = KafkaNode(SHARE_VERSION, config=SHARE_CONFIG)
        kafka.start()
    except CANNOT_START as error:
        not_available(f"Kafka {SHARE_VERSION}", error)
    yield kafka.bootstrap
    kafka.close()


@pytest.fixture
def kproto(bootstrap: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Returns the function that runs a command."""
    return runner(bootstrap, capsysbinary, tmp_path)


@pytest.fixture
def topic(bootstrap: str) -> str:
    """Returns a new topic with three partitions."""
    return new_topic(bootstrap, "groups")


async def beat(its: client.Client, group: str, member: str, epoch: int, topic: str) -> int:
    """Sends a heartbeat of a streams group's member; returns the member's new epoch.

    With the epoch 0 the member joins, with -1 it leaves.
    """
    joins = epoch == 0
    topology = Topology(
        epoch=1, subtopologies=[Subtopology(subtopology_id="0", source_topics=[topic])]
    )
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000 if joins else -1,
        topology=topology if joins else None,
        active_tasks=[] if joins else None,
        standby_tasks=[] if joins else None,
        warmup_tasks=[] if joins else None,
        process_id="process" if joins else None,
        client_tags=[] if joins else None,
    )

    async def send() -> int:
        response = await its.request(request)
        raise_for_code(response.error_code, str(response.error_message))
        return response.member_epoch

    return await its.retrying(send)


def test_streams_group_is_described_reset_and_deleted(
    kproto: Run, bootstrap: str, topic: str
) -> None:
    group, member = f"{topic}-streams", str(Uuid.random())
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3")

    async def join() -> None:
        async with client.Client(bootstrap) as its:
            epoch = await beat(its, group, member, 0, topic)
            while True:
                epoch = await beat(its, group, member, epoch, topic)
                described = (await its.admin.describe_streams_groups([group]))[group]
                if len(described.members[0].target_assignment.active) == 3:
                    return

    async def leave() -> None:
        async with client.Client(bootstrap) as its:
            await beat(its, group, member, -1, topic)

    asyncio.run(join())
    (row,) = rows_of(kproto, "groups", "describe", group)
    assert (row["type"], row["member"]) == ("Streams", member)
    assert "partitions" not in row
    assert "tasks" in row
    reset = ["groups", "reset", group, "--topic", f"{topic}:0", "--to-offset", "2"]
    refused = kproto(*reset, "--yes")
    assert (refused.code, "has 1 member" in refused.err[0]) == (1, True)
    refused = kproto("groups", "remove-members", group, "--yes")
    assert (refused.code, "is a streams group" in refused.err[0]) == (1, True)
    asyncio.run(leave())
    expected = {"topic": topic, "partition": 0, "committed": None, "new": 2, "log_end": 3}
    assert rows_of(kproto, *reset, "--yes") == [expected]
    (lag,) = rows_of(kproto, "groups", "lag", group)
    assert (lag["committed"], lag["log_end"], lag["lag"]) == (2, 3, 1)
    assert group in {row["group"] for row in rows_of(kproto, "groups", "lag")}
    assert kproto("groups", "delete-offsets", group, topic, "--yes").code == 0
    assert rows_of(kproto, "groups", "lag", group) == []
    assert kproto("groups", "delete", group, "--yes").code == 0
    missing = kproto("groups", "lag", group)
    assert (missing.code, "GROUP_ID_NOT_FOUND" in missing.err[0]) == (1, True)
