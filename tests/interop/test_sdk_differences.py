"""Tests the differences of the SDK for Python that docs/how-to/cloudevents-sdks.md lists."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.peers

SCRIPT = Path(__file__).parent / "peer_scripts" / "records_with_sdk.py"
TIMEOUT_S = 60

EXPECTED = {
    "empty value": None,
    "null value": None,
    "no data": "",
    "empty data": "",
    "copy of an empty value": "",
    "object of a +json type": {"a": 1},
    "base64 of a +json type": '{"a":1}',
    "bytes of JSON": "e30=",
    "object of an unknown type": "{'a': 1}",
    "number": "1.1}",
    "dataschema": "#",
    "upper case": "t",
    "added attributes": ["partitionkey", "time"],
    "key": "k",
    "leap second": "ValueError",
    "without ce_ headers": 1,
}


def test_the_sdk_for_python_differs_as_documented(peers_python: Path) -> None:
    run = subprocess.run(
        [str(peers_python), str(SCRIPT)],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    assert json.loads(run.stdout) == EXPECTED
