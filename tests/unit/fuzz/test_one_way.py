"""Tests the answers of implementations that only read or only write a message version."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from kproto.fuzz import kproto_codec, report
from kproto.fuzz.case import (
    Answer,
    Case,
    InvalidAnswerError,
    MessageVersion,
    Operation,
    Outcome,
    parse_answer,
)
from kproto.fuzz.judging import Fault, judge
from kproto.fuzz.kproto_codec import KprotoCodec
from kproto.fuzz.page import page
from kproto.fuzz.run import CasePlan, Result, run

VERSION = MessageVersion("FindCoordinatorRequest", 3)
READ_ONLY = Answer(Outcome.READ_ONLY, reason="decoder only")
WRITE_ONLY = Answer(Outcome.WRITE_ONLY, reason="encoder only")


@dataclass
class Scripted:
    """A responder whose answers a function gives."""

    answer: Callable[[Case], Answer]
    name: str = "scripted"

    def respond(self, cases: Sequence[Case]) -> list[Answer]:
        return [self.answer(case) for case in cases]

    def close(self) -> None:
        pass


def fuzzed(answer: Callable[[Case], Answer], cases: int = 110) -> Result:
    plan = CasePlan((VERSION, MessageVersion("MetadataRequest", 9)), cases=cases, shrink=False)
    return run(Scripted(answer), KprotoCodec(), plan, by_kproto=True)


def only_reads(case: Case) -> Answer:
    right = kproto_codec.answer(case)
    if case.operation is Operation.DECODE or right.outcome is not Outcome.DONE:
        return right if case.operation is not Operation.ENCODE else READ_ONLY
    return READ_ONLY._replace(taken=right.taken)


def only_writes(case: Case) -> Answer:
    return kproto_codec.answer(case) if case.operation is Operation.ENCODE else WRITE_ONLY


def test_an_implementation_that_only_reads_is_clean_and_is_tested_with_each_rewrite() -> None:
    result = fuzzed(only_reads)
    assert result.findings == []
    assert result.outcomes["read_only"] > 20
    assert result.outcomes["agreed"] > 20
    assert result.one_way == {"read_only": {VERSION, MessageVersion("MetadataRequest", 9)}}
    node = report.to_json(result)
    assert node["one_way"] == {"read_only": {"FindCoordinatorRequest": [3], "MetadataRequest": [9]}}
    assert "read only: FindCoordinatorRequest 3, MetadataRequest 9" in report.text(result)
    assert "Read only: FindCoordinatorRequest 3" in page(json.loads(json.dumps(node)))


def test_an_implementation_that_only_writes_gets_no_further_question_to_read() -> None:
    asked: list[Operation] = []

    def answer(case: Case) -> Answer:
        asked.append(case.operation)
        return only_writes(case)

    # The second batch has no question that was answered with WRITE_ONLY in the first.
    result = fuzzed(answer, 600)
    assert result.findings == []
    assert set(asked[256:]) == {Operation.ENCODE}
    assert set(result.one_way) == {"write_only"}
    assert result.outcomes["write_only"] == sum(each is not Operation.ENCODE for each in asked)


def test_reading_what_the_judge_refuses_is_a_finding() -> None:
    result = fuzzed(lambda case: READ_ONLY)
    assert {finding.verdict.fault for finding in result.findings} == {Fault.LOOSER}
    assert {finding.operation for finding in result.findings} == {Operation.REWRITE}


@pytest.mark.parametrize(("taken", "faults"), [(None, []), (3, []), (2, [Fault.END])])
def test_the_number_of_read_bytes_is_compared(taken: int | None, faults: list[Fault]) -> None:
    case = Case(Operation.REWRITE, VERSION, b"\1\0\0", "value")
    right = kproto_codec.answer(case)
    given = READ_ONLY._replace(taken=taken)
    assert [each.fault for each in judge(case, right, given, by_kproto=True) or ()] == faults


@pytest.mark.parametrize(
    ("key", "operation"),
    [("readOnly", Operation.DECODE), ("writeOnly", Operation.ENCODE)],
)
def test_a_direction_that_contradicts_the_operation_is_no_answer(
    key: str, operation: Operation
) -> None:
    node = {"id": 1, key: "half a codec"}
    with pytest.raises(InvalidAnswerError, match=f"it answers {operation.value} with {key}"):
        parse_answer(node, operation)
    assert parse_answer(node, Operation.REWRITE) == Answer(Outcome(key), reason="half a codec")


@pytest.mark.parametrize(
    ("operation", "given", "said"),
    [
        (Operation.REWRITE, READ_ONLY, "the command only reads this message version"),
        (Operation.REWRITE, WRITE_ONLY, "the command only writes this message version"),
        (Operation.DECODE, WRITE_ONLY, "the command only writes this message version"),
    ],
)
def test_a_replay_tells_that_one_direction_is_missing(
    operation: Operation, given: Answer, said: str
) -> None:
    case = Case(operation, VERSION, b"\1\0\0", "value")
    right = kproto_codec.answer(case)
    verdicts = judge(case, right, given, by_kproto=True)
    assert said in report.replay_text(case, right, given, verdicts, "the judge")
