"""Tests that `kproto cluster reassign` and Kafka's script carry on what the other began.

They read the plans of each other, and set and remove the same throttles.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.admin_commands import rows_of
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run, runner
from tests.support.cluster_commands import (
    configs_of,
    create_spread,
    wait_for_column,
    without_throttles,
)
from tools.kafka import KafkaCluster
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError

from .console_commands import words_of
from .console_tools import run_commands

pytestmark = [pytest.mark.peers, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

VERSION = "4.4.0"

#: Maximum time in s in which the reassignments of an empty topic are complete.
COMPLETE_WITHIN_S = 60.0
#: The number of configs of a throttle: two of the topic, and two of each broker.
_THROTTLES = 8


def test_script_and_kproto_carry_on_what_the_other_began(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    try:
        with KafkaCluster(VERSION, nodes=3) as cluster:
            kproto = runner(cluster.bootstrap, capsysbinary, tmp_path)
            _check(kproto, cluster.bootstrap, tmp_path)
    except (*CANNOT_START, MavenError, CompilerError) as error:
        not_available("Kafka's console tools on a cluster", error)


def _check(kproto: Run, bootstrap: str, folder: Path) -> None:
    def script(arguments: str) -> str:
        command = f"reassign-partitions {arguments}"
        (printed,) = run_commands([words_of(command, bootstrap, str(folder))])
        assert printed.code == 0, printed
        return printed.output

    topic = create_spread(bootstrap)
    (folder / "topics.json").write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    plan, back = folder / "plan.json", folder / "back.json"
    # Kafka's script plans; kproto starts with a throttle; the script ends it.
    text = script("--topics-to-move-json-file {f}/topics.json --broker-list 1,3 --generate")
    current, proposed = (line for line in text.splitlines() if line.startswith("{"))
    plan.write_text(proposed)
    back.write_text(current)
    start = ["cluster", "reassign", "--throttle", "5000000", "--yes", "--plan"]
    assert kproto(*start, str(plan)).code == 0
    ours = _throttles(kproto, topic)
    _wait_until_complete(kproto, plan)
    verified = script("--reassignment-json-file {f}/plan.json --verify")
    assert verified.count("is completed") == 2
    assert "Clearing topic-level throttles" in verified
    without_throttles(kproto, topic)
    # The script goes back by its own plan, which has log directories, and kproto ends that.
    script("--reassignment-json-file {f}/back.json --execute --throttle 5000000")
    theirs = _throttles(kproto, topic)
    assert _rates(ours) == _rates(theirs)
    show = ["cluster", "reassignments", "--plan", str(back)]
    _wait_until_complete(kproto, back)
    assert {row["status"] for row in rows_of(kproto, *show, "--remove-throttle")} == {"complete"}
    without_throttles(kproto, topic)
    # Both set the same replicas for the same plan.
    assert kproto(*start, str(plan)).code == 0
    ours = _throttles(kproto, topic)
    _wait_until_complete(kproto, plan)
    assert kproto("cluster", "reassign", "--plan", str(back), "--wait", "--yes").code == 0
    _wait_until_complete(kproto, back)
    assert kproto(*show, "--remove-throttle").code == 0
    without_throttles(kproto, topic)
    script("--reassignment-json-file {f}/plan.json --execute --throttle 5000000")
    assert _throttles(kproto, topic) == ours


def _wait_until_complete(kproto: Run, plan: Path) -> None:
    states = ["cluster", "reassignments", "--plan", str(plan)]
    wait_for_column(kproto, states, "status", "complete", "complete")


def _throttles(kproto: Run, topic: str) -> dict[tuple[object, object], object]:
    """Returns the throttles of the topic and of all brokers, once the brokers know them."""
    end = time.monotonic() + COMPLETE_WITHIN_S
    while len(found := configs_of(kproto, topic)) != _THROTTLES:
        assert time.monotonic() < end, found
    return found


def _rates(configs: dict[tuple[object, object], object]) -> dict[tuple[object, object], object]:
    return {key: value for key, value in configs.items() if str(key[0]).startswith("broker/")}
