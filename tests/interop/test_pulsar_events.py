"""Tests the Pulsar binding with the real `pulsar-client`: its message builder, and a broker.

The environment variable `KPROTO_PULSAR` names the broker, such as `pulsar://localhost:6650`. If the
variable is not set, tools/pulsar starts a broker.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.environment import ROOT
from tools.pulsar import PulsarError, PulsarNode

pytestmark = pytest.mark.peers

SCRIPT = Path(__file__).parent / "peer_scripts" / "events_with_pulsar_client.py"
TIMEOUT_S = 120

#: Eight events in binary mode, in structured mode, and in structured mode with repeated
#: attributes; and three forwarded messages.
MESSAGES = 8 * 3 + 3


def run(python: Path, *arguments: str) -> int:
    done = subprocess.run(
        [python, SCRIPT, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "cloudevents")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def test_events_through_the_message_builder(peers_python: Path) -> None:
    assert run(peers_python) == MESSAGES


@pytest.mark.pulsar
@pytest.mark.exhaustive
def test_events_through_a_real_broker(peers_python: Path) -> None:
    url = os.environ.get("KPROTO_PULSAR")
    if url:
        assert run(peers_python, url) == MESSAGES
        return
    try:
        with PulsarNode() as node:
            assert run(peers_python, node.service_url) == MESSAGES
    except PulsarError as error:
        not_available("a real Pulsar", error)
