"""Tests of `kproto groups` with share groups, for the embedded broker and for real brokers.

A test module imports them, and provides the fixtures `kproto`, `bootstrap` and `topic` (a topic
with three partitions).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kproto import Client
from kproto.client.admin import ConfigResource, ConfigResourceType

from .admin_commands import rows_of
from .cli_runs import Run

__all__ = [
    "share_group",
    "test_share_group_is_deleted",
    "test_share_group_is_described",
    "test_share_group_with_members_is_described_and_not_reset",
    "test_share_offsets_are_deleted_by_topic",
    "test_share_offsets_are_listed",
    "test_share_offsets_are_reset",
    "test_share_offsets_of_a_file_are_set",
]


@pytest.fixture
def share_group(kproto: Run, bootstrap: str, topic: str) -> str:
    """Returns a share group without members, which has accepted 3 of 5 records in partition 0."""
    name = f"{topic}-share"
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4\n5")

    async def read() -> None:
        async with Client(bootstrap) as client:
            await _begin_at_earliest(client, name)
            async with client.share_consumer(
                topic, group=name, acknowledgement="explicit", max_poll_records=3
            ) as consumer:
                left = 3
                while left:
                    for records in (await consumer.poll(500, left)).values():
                        await consumer.accept(records)
                        left -= len(records)
                await consumer.commit()

    asyncio.run(read())
    return name


async def _begin_at_earliest(client: Client, group: str) -> None:
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    wanted = {"share.auto.offset.reset": "earliest"}
    await client.admin.incremental_alter_configs({resource: wanted})


@contextmanager
def share_member(bootstrap: str, topic: str, group: str) -> Iterator[None]:
    """Runs a member of a share group in a thread; begins when the member has its partitions."""
    is_assigned, is_over = threading.Event(), threading.Event()

    async def run() -> None:
        async with (
            Client(bootstrap) as client,
            client.share_consumer(topic, group=group, max_wait_ms=100) as consumer,
        ):
            while not is_over.is_set():
                await consumer.poll(100)
                if len(consumer.partitions) == 3:
                    is_assigned.set()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert is_assigned.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


def offsets_of(kproto: Run, group: str) -> dict[object, tuple[object, object, object]]:
    """Returns start offset, log end and lag by partition."""
    return {
        row["partition"]: (row["start_offset"], row["log_end"], row["lag"])
        for row in rows_of(kproto, "groups", "lag", group)
    }


def test_share_group_is_described(kproto: Run, share_group: str) -> None:
    (row,) = rows_of(kproto, "groups", "describe", share_group)
    assert (row["group"], row["type"], row["state"]) == (share_group, "Share", "Empty")
    assert (row["member"], row["partitions"]) == (None, None)


def test_share_group_with_members_is_described_and_not_reset(
    kproto: Run, bootstrap: str, topic: str, share_group: str
) -> None:
    with share_member(bootstrap, topic, share_group):
        (row,) = rows_of(kproto, "groups", "describe", share_group)
        assert (row["state"], row["assignor"]) == ("Stable", "simple")
        assert row["partitions"] == [f"{topic}:{number}" for number in range(3)]
        lag = rows_of(kproto, "groups", "lag", share_group)
        assert [each["member"] for each in lag] == [row["member"]] * 3
        refused = kproto("groups", "reset", share_group, "--to-earliest", "--yes")
        assert (refused.code, refused.out) == (1, b"")
        assert "has 1 member" in refused.err[0]
        refused = kproto("groups", "remove-members", share_group, "--yes")
        assert (refused.code, "is a share group" in refused.err[0]) == (1, True)
        refused = kproto("groups", "delete", share_group, "--yes")
        assert (refused.code, "NON_EMPTY_GROUP" in refused.err[0]) == (1, True)


def test_share_offsets_are_listed(kproto: Run, topic: str, share_group: str) -> None:
    assert offsets_of(kproto, share_group)[0] == (3, 5, 2)
    header = kproto("groups", "lag", share_group, "--csv").lines()[0]
    assert header.startswith("group,topic,partition,start_offset,log_end,lag,")
    (total,) = rows_of(kproto, "groups", "lag", share_group, "--sum")
    assert (total["topic"], total["lag"]) == (topic, 2)
    everything = rows_of(kproto, "groups", "lag")
    assert share_group in {row["group"] for row in everything}


@pytest.mark.parametrize(
    ("to", "new"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 5),
        (["--to-offset", "4"], 4),
        (["--shift", "-2"], 1),
        (["--to-time", "1971-01-01"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_share_offsets_are_reset(
    kproto: Run, topic: str, share_group: str, to: list[str], new: int
) -> None:
    command = ["groups", "reset", share_group, "--topic", f"{topic}:0", *to]
    row = {"topic": topic, "partition": 0, "start_offset": 3, "new": new, "log_end": 5}
    assert rows_of(kproto, *command, "--dry-run") == [row]
    assert "--yes is needed" in kproto(*command).err[0]
    assert offsets_of(kproto, share_group)[0] == (3, 5, 2)
    assert rows_of(kproto, *command, "--yes") == [row]
    assert offsets_of(kproto, share_group)[0] == (new, 5, 5 - new)


def test_share_offsets_of_a_file_are_set(kproto: Run, share_group: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.csv"
    saved.write_bytes(kproto("groups", "lag", share_group, "--csv").out)
    assert kproto("groups", "reset", share_group, "--to-latest", "-y").code == 0
    assert offsets_of(kproto, share_group)[0] == (5, 5, 0)
    assert kproto("groups", "reset", share_group, "--from-file", str(saved), "-y").code == 0
    assert offsets_of(kproto, share_group)[0] == (3, 5, 2)


def test_share_offsets_are_deleted_by_topic(kproto: Run, topic: str, share_group: str) -> None:
    command = ["groups", "delete-offsets", share_group]
    refused = kproto(*command, f"{topic}:0", "--yes")
    assert (refused.code, "deleted for whole topics" in refused.err[0]) == (2, True)
    assert kproto(*command, topic, "--yes").code == 0
    assert offsets_of(kproto, share_group) == {}
    refused = kproto("groups", "reset", share_group, "--to-latest", "-y")
    assert (refused.code, "has no start offsets" in refused.err[0]) == (1, True)


def test_share_group_is_deleted(kproto: Run, share_group: str) -> None:
    assert kproto("groups", "delete", f"{share_group[:-1]}?", "--yes").code == 0
    assert share_group not in {row["group"] for row in rows_of(kproto, "groups")}
    missing = kproto("groups", "describe", share_group)
    assert (missing.code, "GROUP_ID_NOT_FOUND" in missing.err[0]) == (1, True)
