"""Runs a storm of share groups briefly, on the embedded cluster; checks its table and its page."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from kproto.broker import Cluster
from tools.setup.parts import with_part
from tools.storm.page import PAGE
from tools.storm.share import SharePlan, ShareResult, share_storm
from tools.storm.share.brokers import EMBEDDED_SETTINGS, NODES, EmbeddedBrokers
from tools.storm.share.page import PART, facts, table
from tools.storm.share.run import ROOT
from tools.storm.share.sightings import ShareVerdict

BRIEF = SharePlan(
    minutes=0.04,
    seed=4,
    partitions=3,
    rate=80,
    members=3,
    others=0,
    pause_s=(0.2, 0.5),
    down_s=(0.3, 0.8),
)


@pytest.mark.slow
async def test_storm_of_a_share_group_has_no_violation() -> None:
    async with Cluster(NODES, settings=EMBEDDED_SETTINGS) as cluster:
        result = await share_storm(BRIEF, EmbeddedBrokers(cluster), lambda *_: None)
    assert result.is_right, json.dumps(facts(result), indent=2)
    assert result.verdict.records > 0
    assert result.verdict.deliveries > 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs the children in /proc")
def test_sigterm_ends_a_storm_with_its_members() -> None:
    command = [sys.executable, "-m", "tools.storm", "share", "--embedded", "--others", "0"]
    storm = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        members: list[str] = []
        ends_at = time.monotonic() + 60
        while not members and time.monotonic() < ends_at:
            time.sleep(0.1)
            members = Path(f"/proc/{storm.pid}/task/{storm.pid}/children").read_text().split()
        assert members
        storm.send_signal(signal.SIGTERM)
        storm.communicate(timeout=60)
        assert storm.returncode != 0
        assert not [each for each in members if Path(f"/proc/{each}").exists()]
    finally:
        storm.kill()


def test_table_names_violations_and_notes() -> None:
    result = ShareResult(SharePlan(), "3 of Kafka 4.4.0", actions=Counter(kill_leader=2))
    assert table(result).startswith("All checks passed.")
    assert "| actions | kill leader 2x |" in table(result)
    result.verdict = ShareVerdict(lost=1, named=["0:7 is neither accepted nor archived"])
    result.notes.append("run-3 had not left")
    text = table(result)
    assert text.startswith("NOT RIGHT.")
    assert "0:7 is neither" in text
    assert "run-3 had not left" in text


def test_facts_are_json() -> None:
    verdict = ShareVerdict(failed=Counter(LockLostError=2))
    printed = json.loads(json.dumps(facts(ShareResult(SharePlan(), verdict=verdict))))
    assert (printed["right"], printed["failed"]) == (True, {"LockLostError": 2})


def test_page_has_a_section_of_the_storm() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "here it is" in with_part(page, PART, "here it is")
