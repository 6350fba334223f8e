"""Tests that Kafka's console tools print the same facts of a real and of the embedded broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.broker import BrokerSettings
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.embedded import threaded_broker
from tools.kafka import KafkaNode
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError

from .console_commands import COMMANDS, FILES, words_of
from .console_tools import Printed, check_same_facts, run_commands

pytestmark = [pytest.mark.peers, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

VERSION = "4.4.0"

#: The settings of Kafka's nodes in tests, as far as the tools print them.
SETTINGS = BrokerSettings(
    offsets_topic_num_partitions=4, share_coordinator_state_topic_num_partitions=4
)

DIFFERENCES: dict[str, str] = {
    "metadata-quorum describe --replication": "log end offsets, and times of fetches",
    "features describe": "the embedded broker serves no streams groups: no streams.version",
    "configs --describe --entity-type groups --entity-name s --all": (
        "by default the embedded broker assigns partitions without a delay, for fast tests"
    ),
}
"""The commands whose facts differ, with the reason."""


def test_console_tools_print_the_same_facts(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    try:
        with KafkaNode(VERSION) as kafka:
            theirs = _printed(kafka.bootstrap, tmp_path)
    except (*CANNOT_START, MavenError, CompilerError) as error:
        not_available("Kafka's console tools", error)
    with threaded_broker(SETTINGS) as broker:
        ours = _printed(broker.bootstrap, tmp_path)
    assert len(COMMANDS) == len(ours) == len(theirs)
    check_same_facts(COMMANDS, ours, theirs, DIFFERENCES)


def _printed(bootstrap: str, folder: Path) -> list[Printed]:
    return run_commands(words_of(command, bootstrap, str(folder)) for command in COMMANDS)
