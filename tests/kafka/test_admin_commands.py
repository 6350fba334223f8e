"""Runs the tests of the commands for administrators on real brokers."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

import kproto as client
from tests.support.admin_commands import *  # noqa: F403
from tests.support.admin_commands import rows_of
from tests.support.any_broker import real_broker
from tests.support.brokers import Brokers, versions
from tests.support.cli_runs import Run, new_topic, runner
from tests.support.terminal_details import *  # noqa: F403

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.fixture(params=versions())
def bootstrap(request: pytest.FixtureRequest, kafka_brokers: Brokers) -> str:
    """Returns the address of a broker of each release in turn."""
    return real_broker(request.param, kafka_brokers).bootstrap


@pytest.fixture
def kproto(bootstrap: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Run:
    """Returns the function that runs a command."""
    return runner(bootstrap, capsysbinary, tmp_path)


@pytest.fixture
def topic(bootstrap: str) -> str:
    """Returns a new topic with three partitions."""
    return new_topic(bootstrap, "admin")


def test_hanging_transaction_is_found_and_aborted(kproto: Run, bootstrap: str, topic: str) -> None:
    transactional_id = f"hanging-{uuid.uuid4().hex}"

    async def leave_open() -> None:
        async with (
            client.Client(bootstrap) as its,
            its.producer(transactional_id=transactional_id) as producer,
            producer.transaction() as transaction,
        ):
            await producer.send(topic, b"x", partition=1)
            await transaction.leave_open()

    asyncio.run(leave_open())
    listed = {row["transactional_id"]: row for row in rows_of(kproto, "transactions")}
    assert listed[transactional_id]["state"] == "Ongoing"
    (described,) = rows_of(kproto, "transactions", "describe", transactional_id)
    assert described["partitions"] == [f"{topic}:1"]
    (producer,) = rows_of(kproto, "transactions", "producers", f"{topic}:1")
    assert producer["transaction_start_offset"] == 0
    # The coordinator knows it, so it is open, but not hanging.
    hanging = ["transactions", "hanging", topic, "--longer-than", "0s"]
    assert rows_of(kproto, *hanging) == []
    abort = ["transactions", "abort", f"{topic}:1", "--start-offset", "0", "--yes"]
    assert "it is not hanging" in kproto(*abort).err[0]
    assert kproto("transactions", "fence", transactional_id, "--yes").code == 0
    read = ["consume", topic, "--from-beginning", "-e", "--isolation", "read_committed"]
    assert kproto(*read).lines() == []
    (ended,) = rows_of(kproto, "transactions", "describe", transactional_id)
    assert ended["state"] != "Ongoing"
