"""Tests the attempts of tasks that are read from Spark's event log."""

from __future__ import annotations

from typing import Any

from tools.spark_repeated_tasks.attempts import attempts_of

#: The stage of the tasks that write to the topic.
STAGE = 3


def start(task: int, *, speculative: bool = False, stage: int = STAGE) -> dict[str, Any]:
    info = {"Partition ID": task, "Speculative": speculative}
    return {"Event": "SparkListenerTaskStart", "Stage ID": stage, "Task Info": info}


def end(reason: str) -> dict[str, Any]:
    event = "SparkListenerTaskEnd"
    return {"Event": event, "Stage ID": STAGE, "Task End Reason": {"Reason": reason}}


def stage(attempt: int) -> dict[str, Any]:
    info = {"Stage ID": STAGE, "Stage Attempt ID": attempt}
    return {"Event": "SparkListenerStageSubmitted", "Stage Info": info}


def test_repeated_tasks_and_reasons_are_found() -> None:
    events = [stage(0), start(0), start(1), end("ExceptionFailure"), start(1), end("Success")]
    found = attempts_of([{"Event": "SparkListenerLogStart"}, *events], {STAGE})
    assert found.repeated == {1}
    assert found.ends == {"ExceptionFailure": 1, "Success": 1}
    assert not found.speculative
    assert not found.stage_retries


def test_speculative_attempt_repeats_its_task() -> None:
    found = attempts_of([start(0), start(1), start(0, speculative=True)], {STAGE})
    assert (found.repeated, found.speculative) == ({0}, 1)


def test_second_attempt_of_a_stage_is_a_retry() -> None:
    found = attempts_of([stage(0), start(0), stage(1), start(0)], {STAGE})
    assert (found.repeated, found.stage_retries) == ({0}, 1)


def test_other_stages_are_left_out() -> None:
    found = attempts_of([start(0, stage=1), start(0, stage=1), start(0)], {STAGE})
    assert found.repeated == set()
