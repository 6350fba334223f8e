"""Tests how a storm recognizes members that fail because of a known fault of their client."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tools.storm import Plan, running
from tools.storm.protocols import assignor_of
from tools.storm.running import Group, MemberProcess

AIOKAFKA = "aiokafka.errors.KafkaError: KafkaError: RebalanceInProgressError()"
BROKER = (
    "GroupIdNotFoundException: Cannot upgrade the classic group members to consumer group because "
    "the embedded consumer protocol is malformed."
)


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    monkeypatch.setattr(running, "peers_python", lambda: Path(sys.executable))
    monkeypatch.setattr(running, "KINDS", dict.fromkeys(running.KINDS, "this"))
    return Group("127.0.0.1:1", "topic", "group", "range", "4.4.0", tmp_path)


@pytest.mark.parametrize(
    ("kind", "version", "words", "is_known"),
    [
        ("aiokafka", "4.4.0", AIOKAFKA, True),
        ("aiokafka", "4.4.0", "KafkaError: KafkaError: CorruptRecordException()", False),
        ("confluent", "4.4.0", AIOKAFKA, False),
        ("kproto", "4.4.0", AIOKAFKA, False),
        ("java", "3.9.2", BROKER, True),
        ("kproto", "3.9.2", BROKER, False),
        ("kproto", "3.9.2", "GROUP_ID_NOT_FOUND", False),
        ("java", "4.4.0", BROKER, False),
        ("kproto", "4.4.0", BROKER, False),
    ],
)
def test_an_end_by_a_known_fault_is_recognized(
    group: Group, kind: str, version: str, words: str, is_known: bool
) -> None:
    member = MemberProcess("kproto", 1, group._replace(version=version))
    member.kill()
    member.member.harmed.clear()
    member.kind = kind
    (group.folder / "kproto-1.log").write_text(f"Traceback:\n{words}\n")
    assert member.ended_by_known_fault() is is_known
    assert len(member.told().harmed) == is_known


def test_a_starting_member_gets_no_signal_to_be_slow(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal would kill a member's process that has not installed its signal handler yet."""
    monkeypatch.setattr(running, "KINDS", {"kproto": "none"})
    member = MemberProcess("kproto", 1, group)
    signals: list[int] = []
    monkeypatch.setattr(member._process, "send_signal", signals.append)
    member.be_slow()
    assert signals == []
    (group.folder / "kproto-1.lines").write_text("started 1.0 \n")
    member.be_slow()
    assert signals == [signal.SIGUSR1]
    member.kill()


@pytest.mark.parametrize(
    ("kind", "version", "assignors"),
    [
        ("kproto", "3.9.2", {"range", "uniform", "auto"}),
        ("java", "3.9.2", {"range", "uniform"}),
        ("confluent", "4.4.0", {"range", "uniform"}),
        ("confluent", "3.9.2", {"range"}),
        ("aiokafka", "4.4.0", {"range"}),
    ],
)
def test_members_of_a_mixed_storm_have_their_assignors(
    kind: str, version: str, assignors: set[str]
) -> None:
    assert {assignor_of("mixed", kind, number, version) for number in range(4)} == assignors


@pytest.mark.parametrize(("kind", "version"), [("aiokafka", "4.4.0"), ("confluent", "3.9.2")])
def test_clients_without_the_consumer_protocol_are_not_planned(kind: str, version: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} cannot be a member"):
        Plan(kinds=(kind,), assignor="uniform", version=version)
    Plan(kinds=(kind,), assignor="mixed", version=version)
    Plan(kinds=(kind,), assignor="uniform", version=version, others=0)
