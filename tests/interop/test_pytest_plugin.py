"""Runs tests by the pytest plugin with other clients, in the peers' environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.environment import ROOT
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.maven import MavenError
from tools.storm.java import resolve_tools

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.exhaustive]

TESTS = Path(__file__).parent / "peer_scripts" / "plugin_with_clients.py"
TIMEOUT_S = 300

#: Four senders and three readers.
PASSED = 7


def test_other_clients_pass_tests_by_the_plugin(peers_python: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    try:
        java = {"JAVA": f"{java_home()}/bin/java", "JAVA_CLASSPATH": f"{resolve_tools()}/*"}
    except (JavaNotFoundError, MavenError) as error:
        not_available("the pytest plugin with Java", error)
    done = subprocess.run(
        [
            *(str(peers_python), "-m", "pytest", "-q", "-p", "kproto.pytest_plugin"),
            *("-p", "no:cacheprovider", "--noconftest", "-c", str(tmp_path / "pytest.ini")),
            str(TESTS),
        ],
        cwd=tmp_path,
        env={**os.environ, **java, "PYTHONPATH": str(ROOT), "KPROTO_BOOTSTRAP": ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert f"{PASSED} passed" in done.stdout, done.stdout + done.stderr
