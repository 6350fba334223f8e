"""Runs the tests of the commands for administrators on real brokers."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

import kproto as client
from tests.support.admin_commands import *  # noqa: F403
from tests.support.any_broker import real_broker
from tests.support.brokers import Brokers, versions
from tests.support.cli_runs import Run, runner

pytestmark = pytest.mark.kafka


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
    name = f"admin-{uuid.uuid4().hex}"

    async def create() -> None:
        async with client.Client(bootstrap) as its:
            await its.create_topics(client.NewTopic(name, 3, 1))

    asyncio.run(create())
    return name
