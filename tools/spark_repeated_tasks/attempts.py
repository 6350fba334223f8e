"""Reads the attempts of tasks from Spark's event log. Works on plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Attempts", "attempts_of"]


@dataclass
class Attempts:
    """The attempts of the tasks of some stages.

    `repeated` has the tasks with more than one attempt, `speculative` counts attempts by
    speculation, `ends` counts attempts by the reason of their end, and `stage_retries` counts the
    attempts of stages after the first.
    """

    repeated: set[int] = field(default_factory=set)
    speculative: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    stage_retries: int = 0


def attempts_of(events: Iterable[Mapping[str, Any]], stages: set[int]) -> Attempts:
    """Returns the attempts of the tasks of `stages`, from the lines of an event log."""
    found = Attempts()
    started: Counter[int] = Counter()
    for event in events:
        if event.get("Stage ID", event.get("Stage Info", {}).get("Stage ID")) not in stages:
            continue
        match event["Event"]:
            case "SparkListenerTaskStart":
                started[event["Task Info"]["Partition ID"]] += 1
                found.speculative += event["Task Info"]["Speculative"]
            case "SparkListenerTaskEnd":
                found.ends[event["Task End Reason"]["Reason"]] += 1
            case "SparkListenerStageSubmitted":
                found.stage_retries += event["Stage Info"]["Stage Attempt ID"] > 0
    found.repeated = {task for task, attempts in started.items() if attempts > 1}
    return found
