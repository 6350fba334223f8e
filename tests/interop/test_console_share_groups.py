"""Tests that Kafka's console tools print the same facts of a share group with and without members.

The group is on a real broker, and on the embedded broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kproto import Client
from kproto.broker import BrokerSettings
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker
from tools.kafka import KafkaNode
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError

from .console_commands import SHARE_GROUP_COMMANDS, words_of
from .console_tools import Printed, check_same_facts, run_commands

pytestmark = [pytest.mark.peers, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

SETTINGS = BrokerSettings(share_coordinator_state_topic_num_partitions=4)

BEFORE, DURING, AFTER = SHARE_GROUP_COMMANDS

DIFFERENCES: dict[str, str] = {}
"""The commands whose facts differ, with the reason."""


def test_console_tools_print_the_same_facts_of_a_share_group(tmp_path: Path) -> None:
    try:
        with KafkaNode("4.4.0") as kafka:
            theirs = asyncio.run(_printed(kafka.bootstrap, str(tmp_path)))
    except (*CANNOT_START, MavenError, CompilerError) as error:
        not_available("Kafka's console tools", error)
    with threaded_broker(SETTINGS) as broker:
        ours = asyncio.run(_printed(broker.bootstrap, str(tmp_path)))
    commands = [f"{at}: {each}" for at, each in enumerate((*BEFORE, *DURING, *AFTER))]
    check_same_facts(commands, ours, theirs, DIFFERENCES)


async def _printed(bootstrap: str, folder: str) -> list[Printed]:
    """Runs the commands before, during and after the membership of a share consumer."""

    async def run(commands: Sequence[str]) -> list[Printed]:
        words = [words_of(each, bootstrap, folder) for each in commands]
        return await asyncio.to_thread(run_commands, words)

    printed = await run(BEFORE)
    async with (
        Client(bootstrap) as client,
        client.share_consumer(
            "t",
            group="m",
            acknowledgement="explicit",
            acquire_mode="record_limit",
            max_poll_records=3,
        ) as consumer,
    ):
        found = (await consumer.poll(60_000))["t", 0]
        assert [each.offset for each in found] == [0, 1, 2]
        printed += await run(DURING)
        await consumer.accept(found[0])
        await consumer.commit()
    return printed + await run(AFTER)
