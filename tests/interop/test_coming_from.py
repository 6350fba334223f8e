"""Tests that the other clients have the calls and settings that the migration pages name."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.environment import ROOT
from tests.support.pages import page_text

#: Prints the calls of producer and consumer, and their settings with defaults, as JSON.
LOOK = """
import inspect, json, sys
def plain(value):
    return value if isinstance(value, (bool, int, str, type(None))) else repr(value)
if sys.argv[1] == "aiokafka":
    from aiokafka import AIOKafkaConsumer as C, AIOKafkaProducer as P
    found = [
        {n: plain(p.default) for n, p in inspect.signature(c).parameters.items()}
        for c in (P, C)
    ]
elif sys.argv[1] == "kafka-python":
    from kafka import KafkaConsumer as C, KafkaProducer as P
    found = [{n: plain(v) for n, v in c.DEFAULT_CONFIG.items()} for c in (P, C)]
else:
    from confluent_kafka import Consumer as C, Producer as P
    found = [{}, {}]
print(json.dumps({"calls": [dir(P), dir(C)], "settings": found}))
"""

PEERS = ("aiokafka", "kafka-python", "confluent-kafka")


def first_cells(page: str) -> list[list[str]]:
    """Returns the rows of all tables of a page, split into cells."""
    rows = [line.strip("| ") for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


@pytest.fixture(scope="module")
def look(peers_python: Path) -> Any:
    def look_at(peer: str) -> Any:
        done = subprocess.run(
            [peers_python, "-c", LOOK, peer], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return look_at


@pytest.mark.peers
@pytest.mark.parametrize("peer", PEERS)
def test_calls_of_the_page_are_calls_of_the_client(peer: str, look: Any) -> None:
    names = {name for calls in look(peer)["calls"] for name in calls}
    cells = [row[0] for row in first_cells(page_text(f"docs/coming-from/{peer}.md"))]
    called = {
        name for cell in cells for name in re.findall(r"\b(?:producer|consumer)\.(\w+)", cell)
    }
    assert len(called) > 10
    assert called <= names


@pytest.mark.peers
@pytest.mark.parametrize("peer", PEERS[:2])
def test_settings_of_the_page_have_their_defaults(peer: str, look: Any) -> None:
    settings = look(peer)["settings"]
    rows = [row for row in first_cells(page_text(f"docs/coming-from/{peer}.md")) if len(row) == 4]
    told = 0
    for names, default, *_ in rows:
        for name in re.findall(r"`(\w+)`", names):
            found = [each[name] for each in settings if name in each]
            assert found, name
            wanted = default.strip("`").strip('"').replace(",", "")
            if wanted.isdecimal() or wanted in (
                "True",
                "False",
                "None",
                "latest",
                "read_uncommitted",
            ):
                assert wanted in map(str, found), name
                told += 1
    assert told >= 15


def test_properties_of_librdkafka_are_known() -> None:
    lists = tomllib.loads((ROOT / "kproto" / "security" / "client_names.toml").read_text("utf-8"))
    known = set(lists["librdkafka"]["names"])
    rows = first_cells(page_text("docs/coming-from/confluent-kafka.md"))
    named = {row[0].strip("`") for row in rows if len(row) == 4 and row[0].startswith("`")}
    assert len(named) >= 14
    assert named <= known
