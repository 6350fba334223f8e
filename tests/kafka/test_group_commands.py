"""Runs the tests of `kproto groups` with share groups on a real broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import kproto as client
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run, runner
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
    name = f"groups-{uuid.uuid4().hex}"

    async def create() -> None:
        async with client.Client(bootstrap) as its:
            await its.create_topics(client.NewTopic(name, 3, 1))

    asyncio.run(create())
    return name
