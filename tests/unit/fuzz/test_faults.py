"""Tests that each fault of a wrong implementation is found, with a small example.

A correct implementation has no findings.
"""

from __future__ import annotations

import json
import queue
import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis.errors import HypothesisWarning, NoSuchExample

from kproto.fuzz import implementation, report
from kproto.fuzz.case import Answer, Case, MessageVersion, Operation, Outcome
from kproto.fuzz.implementation import Implementation, ImplementationError
from kproto.fuzz.judging import Fault, judge
from kproto.fuzz.kproto_codec import KprotoCodec
from kproto.fuzz.lenient_reader import DeviationFromKafka, UnreadableMessageError, walk_message
from kproto.fuzz.page import page
from kproto.fuzz.run import CasePlan, Result, replay, run
from kproto.fuzz.settings import FuzzSettings
from kproto.fuzz.shrinking import smallest_case
from kproto.wire.errors import ConfigurationError

WRONG = Path(__file__).with_name("wrong_implementation.py")
FORMS = tuple(MessageVersion("MetadataRequest", version) for version in (1, 9, 12))
#: With a judge's long timeouts, which cover pauses of the machine.
QUICK = FuzzSettings(at_once=16, max_garbage=10, shrink_attempts=300, shrink_waits=3).of_a_judge()
#: A late command answers after half a second; a hung command never answers.
OF_LATE = replace(QUICK, answer_timeout_s=0.3, late_s=60)
OF_HUNG = replace(QUICK, answer_timeout_s=1.5, late_s=0.1)


def command(fault: str) -> str:
    return shlex.join([sys.executable, str(WRONG), fault])


def fuzzed(
    fault: str, cases: int = 132, *, shrink: bool = True, settings: FuzzSettings = QUICK
) -> Result:
    plan = CasePlan(FORMS, seed=7, cases=cases, shrink=shrink)
    with Implementation(command(fault), settings, name=fault) as tried:
        return run(tried, KprotoCodec(), plan, by_kproto=True, settings=settings)


#: Faults that take seconds, and test the same as the other faults do.
LONG = [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.mark.parametrize(
    ("fault", "found", "longest"),
    [
        pytest.param("looser", "looser", 1, marks=LONG),
        pytest.param("stricter", "stricter", 24, marks=pytest.mark.slow),
        pytest.param("bytes", "bytes", 24, marks=pytest.mark.slow),
        pytest.param("json", "json", 24, marks=LONG),
        pytest.param("end", "end", 24, marks=LONG),
        pytest.param("failed", "failed", 24, marks=LONG),
        pytest.param("crashed", "crashed", 60, marks=LONG),
        pytest.param("signal", "crashed", 60, marks=LONG),
        pytest.param("garbage", "garbage", 30, marks=LONG),
        pytest.param("other id", "garbage", 30, marks=LONG),
        pytest.param("twice", "garbage", 400, marks=LONG),
        pytest.param("wrong kind", "garbage", 60, marks=LONG),
    ],
)
def test_a_fault_is_found_and_shrunk(fault: str, found: str, longest: int) -> None:
    result = fuzzed(fault)
    kinds = {finding.verdict.fault.name.lower() for finding in result.findings}
    assert kinds == {found}
    smallest = min((finding.example for finding in result.findings), key=lambda it: len(it.content))
    assert len(smallest.content) <= longest
    assert result.harmful == result.findings


@pytest.mark.slow
def test_answers_out_of_order() -> None:
    findings = fuzzed("order", shrink=False).findings
    assert {finding.verdict.fault for finding in findings} == {Fault.ORDER}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "settings"),
    [pytest.param("hung", OF_HUNG, marks=pytest.mark.exhaustive), ("late", OF_LATE)],
    ids=["hung", "late"],
)
def test_missing_answer_is_a_hang(fault: str, settings: FuzzSettings) -> None:
    result = fuzzed(fault, 20, shrink=False, settings=settings)
    assert {finding.verdict.fault.name.lower() for finding in result.findings} == {fault}
    assert result.cases == 20


@pytest.mark.slow
def test_a_flood_of_lines_is_bounded() -> None:
    result = fuzzed("flood", 20, shrink=False)
    assert {finding.verdict.fault.name.lower() for finding in result.findings} == {"garbage"}
    assert result.restarts > 0


def test_a_right_implementation_has_none() -> None:
    result = fuzzed("none", 300)
    assert result.findings == []
    assert result.restarts == 0
    assert result.outcomes == {"agreed": 300}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_is_the_same_for_the_same_seed() -> None:
    first, second = (report.to_json(fuzzed("bytes")) for _ in range(2))
    assert first == second
    assert first["findings"]


@pytest.mark.slow
def test_the_numbers_of_the_report_agree() -> None:
    result = fuzzed("stricter", 200)
    node = json.loads(json.dumps(report.to_json(result)))
    assert node["cases"] == 200 == sum(node["outcomes"].values())
    tried = [kinds for versions in node["tried"].values() for kinds in versions.values()]
    assert sum(count for kinds in tried for count in kinds.values()) == 200
    assert len(tried) == node["forms"] == len(FORMS)
    assert sum(finding["count"] for finding in node["findings"]) == node["outcomes"]["differs"]
    for finding in node["findings"]:
        assert {*finding["where"]["MetadataRequest"]} <= {1, 9, 12}


@pytest.mark.slow
def test_an_example_can_be_replayed() -> None:
    result = fuzzed("stricter")
    finding = result.findings[0]
    again = Case.from_json(json.loads(json.dumps(finding.example.to_json())))
    with Implementation(command("stricter"), QUICK) as tried:
        _, given, verdicts = replay(again, tried, KprotoCodec(), by_kproto=True)
    assert verdicts == [finding.verdict]
    assert given == finding.given


@pytest.mark.slow
def test_refused_bytes_with_string_lengths_are_shrunk() -> None:
    """The fault is a negative count of tagged fields after a long string.

    Shrinking must make the string empty, and keep the fault.
    """
    message_version = MessageVersion("FindCoordinatorRequest", 3)
    content = b"\xfb\x01" + b"text " * 50 + b"\x00" + b"\xff\xff\xff\xff\x0f"
    case = Case(Operation.REWRITE, message_version, content, "value")

    def shows(tried: Case) -> bool:
        assert isinstance(tried.content, bytes)
        try:
            found = walk_message(message_version.shape, tried.content)
        except UnreadableMessageError:
            return False
        return DeviationFromKafka.TAG_COUNT in found.deviations and found.end == len(tried.content)

    assert shows(case)
    assert smallest_case(case, shows, seed=1).content == b"\x01\x00\xff\xff\xff\xff\x0f"


@pytest.mark.slow
def test_a_command_that_never_answers_is_one_error() -> None:
    settings = FuzzSettings(start_timeout_s=0.3, late_s=0.1)
    with pytest.raises(ImplementationError, match="never answered"):
        fuzzed("mute", 10, settings=settings)


@pytest.mark.slow
def test_restarts_are_bounded() -> None:
    settings = FuzzSettings(max_restarts=2, at_once=4)
    result = fuzzed("crashed", 300, shrink=False, settings=settings)
    assert "restarted 2 times" in result.stopped


@pytest.mark.parametrize(("fault", "found"), [("ends", "crashed"), ("one id", "garbage")])
@pytest.mark.slow
def test_findings_before_the_last_restart_are_kept(fault: str, found: str) -> None:
    settings = FuzzSettings(max_restarts=2, at_once=4, max_garbage=10)
    result = fuzzed(fault, 300, shrink=False, settings=settings)
    assert result.restarts_exhausted
    assert 0 < result.cases < 300
    kinds = {finding.verdict.fault.name.lower() for finding in result.findings}
    assert found in kinds
    assert (
        sum(result.tried[message_version].total() for message_version in result.tried)
        == result.cases
    )


@pytest.mark.parametrize(
    ("key_type", "fault"),
    [(128, Fault.STRICTER_ON_ODD), (256, Fault.STRICTER_ON_ODD), (127, Fault.STRICTER)],
)
def test_a_number_that_kafka_changes_may_be_refused(key_type: int, fault: Fault) -> None:
    """For an int8, Kafka's JSON converter accepts the numbers 128 to 256, and subtracts 128."""
    content = json.dumps({"keyType": key_type, "coordinatorKeys": []})
    case = Case(Operation.ENCODE, MessageVersion("FindCoordinatorRequest", 4), content, "json")
    right = Answer(Outcome.DONE, bytes([key_type % 128, 1, 0]))
    refused = Answer(Outcome.REFUSED, reason="no int8")
    (verdict,) = judge(case, right, refused, by_kproto=False) or []
    assert verdict.fault is fault


@pytest.mark.parametrize(
    ("reasons", "cause"),
    [
        (
            [
                f"NumberFormatException: {name}: expected an integer, but got STRING"
                for name in ("HeartbeatResponseData", "DescribeConfigsResult")
            ],
            "NumberFormatException: expected an integer, but got STRING",
        ),
        (
            ['a second answer to one question: {"id": 1', 'a second answer to one question: {"id'],
            "a second answer to one question",
        ),
        (
            ["MetadataRequest v1, field topics: " + "many words " * 20],
            "many words " * 8 + "…",
        ),
    ],
)
def test_a_cause_is_the_same_whatever_the_message(reasons: list[str], cause: str) -> None:
    case = Case(Operation.REWRITE, FORMS[0], b"\0\0\0\0", "value")
    right = Answer(Outcome.DONE, b"\0\0\0\0", taken=4)
    for reason in reasons:
        given = Answer(Outcome.FAILED, reason=reason)
        (verdict,) = judge(case, right, given, by_kproto=True) or []
        assert verdict.cause == cause


class WritesOneLine:
    """Fakes a running command that has written one line and writes no more."""

    def __init__(self, *_: object) -> None:
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.lines.put(b"what is this?\n")
        self.outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.answered = 0

    def end(self) -> None:
        pass

    def error_line(self) -> str:
        return ""


def test_a_command_that_says_other_things_alone_is_told_what_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "a line that is no JSON: what is this"
    with pytest.raises(ImplementationError, match=f"it wrote 4 lines such as {said}"):
        fuzzed("chatter", 10, settings=replace(QUICK, max_garbage=3, max_silent_starts=1))
    monkeypatch.setattr(implementation, "_RunningCommand", WritesOneLine)
    with pytest.raises(ImplementationError, match=f"it wrote {said}"):
        fuzzed("chatter", 10, settings=FuzzSettings(start_timeout_s=0.01, late_s=0.01))


@pytest.mark.parametrize("text", ["", "  ", "'open"])
def test_a_command_that_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="command"):
        Implementation(text)


def test_a_program_that_is_not_there() -> None:
    missing = Implementation("/no/such/program")
    with pytest.raises(ImplementationError, match="cannot run"):
        run(missing, KprotoCodec(), CasePlan(FORMS, cases=1), by_kproto=True)


@pytest.mark.slow
def test_the_page_escapes_what_came_from_outside() -> None:
    result = fuzzed("stricter", 60)
    result.implementation = "<script>alert(1)</script>"
    text = page(report.to_json(result))
    assert "<script>" not in text
    assert "light-dark" in text
    assert "http" not in text


@pytest.mark.parametrize(("fault", "shown"), [("id as text", '"0"'), ("id as float", r"0\.0")])
def test_an_id_of_another_type_is_told_at_once(fault: str, shown: str) -> None:
    with pytest.raises(ImplementationError, match=rf"has the id {shown}: it must be the number"):
        fuzzed(fault, shrink=False, settings=replace(QUICK, answer_timeout_s=60))


def test_warnings_of_hypothesis_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis warns authors of tests, for example of large examples."""

    def find(*_: object, **__: object) -> Case:
        warnings.warn("an example is large", HypothesisWarning, stacklevel=1)
        raise NoSuchExample("no example")

    monkeypatch.setattr("hypothesis.find", find)
    case = Case(Operation.REWRITE, MessageVersion("MetadataRequest", 1), b"\0\0\0\0", "value")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert smallest_case(case, lambda _: False, seed=0) == case
