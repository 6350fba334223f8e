"""A member of another client that ended is told from one that was ended by what we did."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.storm import running
from tools.storm.running import Group, Running

KNOWN = "aiokafka.errors.KafkaError: KafkaError: RebalanceInProgressError()"


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    monkeypatch.setattr(running, "peers_python", lambda: Path(sys.executable))
    monkeypatch.setattr(running, "KINDS", dict.fromkeys(running.KINDS, "this"))
    return Group("127.0.0.1:1", "topic", "group", "range", tmp_path)


@pytest.mark.parametrize(
    ("kind", "words", "is_theirs"),
    [
        ("aiokafka", KNOWN, True),
        ("aiokafka", "aiokafka.errors.KafkaError: KafkaError: CorruptRecordException()", False),
        ("confluent", KNOWN, False),
        ("kproto", KNOWN, False),
    ],
)
def test_an_end_by_a_known_fault(group: Group, kind: str, words: str, is_theirs: bool) -> None:
    member = Running(kind, 1, group)
    member.kill()
    member.member.harmed.clear()
    (group.folder / f"{kind}-1.log").write_text(f"Traceback:\n{words}\n")
    assert member.ended_by_its_fault() is is_theirs
    assert len(member.told().harmed) == is_theirs
