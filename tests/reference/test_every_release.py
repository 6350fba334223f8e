"""Tests packages generated from the definitions of each release against that release's classes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.availability import not_available
from tests.support.environment import ROOT
from tools.reference.every_release import RELEASES, known_of

pytestmark = [pytest.mark.reference, pytest.mark.thorough]

#: The last line of releases without JSON converters.
LAST_WITHOUT_JSON = (2, 6)


@pytest.mark.parametrize("release", RELEASES)
def test_every_message_and_version_equals_the_classes_of_the_release(release: str) -> None:
    """Each release has a process of its own, because its package stays in memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference.every_release", release],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ReferenceUnavailableError" in done.stderr:
        not_available(f"the classes of Kafka {release}", done.stderr.splitlines()[-1])
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["differences"] == []
    assert set(found["known"]) == {each.why for each in known_of(release)}
    assert found["versions"] > 200
    assert found["instances"] > 10 * found["versions"]
    has_json = tuple(map(int, release.split(".")[:2])) > LAST_WITHOUT_JSON
    # Up to 3.x, a few messages of the brokers have no converter.
    assert found["with_json"] >= (0.95 * found["versions"] if has_json else 0)
