"""Formats the result of a run as JSON data and as text, and the result of a replay as text.

`page` formats the HTML page.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..wire.counted import counted
from .case import ONE_WAY, Answer, Case, MessageVersion, Outcome, printable
from .judging import HARMLESS, Verdict
from .known_findings import KnownFinding, known_from_finding, spans
from .run import Finding, Result

__all__ = [
    "broker_text",
    "known_lines",
    "locations",
    "replay_text",
    "shown",
    "text",
    "to_json",
]


def to_json(result: Result) -> dict[str, Any]:
    """Returns the result as JSON data; docs/how-to/fuzzing.md describes the keys."""
    tried: dict[str, dict[str, dict[str, int]]] = {}
    for message_version in sorted(result.tried):
        counts = result.tried[message_version]
        tried.setdefault(message_version.name, {})[str(message_version.version)] = dict(
            sorted(counts.items())
        )
    return {
        "implementation": result.implementation,
        "judge": result.judge,
        "seed": result.seed,
        "cases": result.cases,
        "forms": len(result.tried),
        "outcomes": dict(sorted(result.outcomes.items())),
        "one_way": {name: _by_message(found) for name, found in sorted(result.one_way.items())},
        "restarts": result.restarts,
        "stopped": result.stopped or None,
        "findings": [_finding_to_json(finding) for finding in result.findings],
        "known": [{**each.to_json(), "count": count} for each, count in result.known.items()],
        "unseen": [each.to_json() for each in result.unseen],
        "tried": tried,
    }


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    return {
        "fault": verdict.fault.name.lower(),
        "words": verdict.fault.value,
        "harmless": finding.harmless,
        "operation": finding.operation.value,
        "trait": verdict.trait or None,
        "cause": verdict.cause or None,
        "count": finding.count,
        "where": _by_message(finding.message_versions),
        "example": finding.example.to_json(),
        "right": shown(finding.right),
        "given": shown(finding.given),
    }


def _by_message(message_versions: Iterable[MessageVersion]) -> dict[str, list[int]]:
    """Returns the sorted versions by the name of the message."""
    found: dict[str, list[int]] = {}
    for message_version in sorted(message_versions):
        found.setdefault(message_version.name, []).append(message_version.version)
    return found


def known_lines(result: Result, known: Sequence[KnownFinding]) -> str:
    """Returns the text of a file of known findings: `known`, then the harmful findings of a run."""
    found = [
        each
        for finding in result.harmful
        for each in known_from_finding(finding.verdict, finding.operation, finding.message_versions)
    ]
    return "".join(json.dumps(each.to_json()) + "\n" for each in dict.fromkeys((*known, *found)))


def shown(answer: Answer) -> dict[str, Any]:
    """Returns an answer as JSON data; docs/how-to/fuzzing.md describes the keys."""
    if answer.outcome is not Outcome.DONE:
        return {answer.outcome.value: answer.reason}
    value = answer.value
    content = {"hex": value.hex()} if isinstance(value, bytes) else {"json": _finite(value)}
    return content if answer.taken is None else {**content, "taken": answer.taken}


def _finite(node: Any) -> Any:
    """Returns data with NaN and infinity as strings, because JSON has no such numbers."""
    match node:
        case dict():
            return {key: _finite(element) for key, element in node.items()}
        case list():
            return [_finite(element) for element in node]
        case float() if not math.isfinite(node):
            return str(node)
    return node


#: Maximum number of characters of an answer in the text.
_SHOWN: Final = 300


def text(result: Result) -> str:
    """Returns the report as text for a terminal."""
    return printable("\n".join(_lines(result)) + "\n")


def _lines(result: Result) -> Iterator[str]:
    kinds: dict[str, int] = {}
    for counts in result.tried.values():
        for kind, count in counts.items():
            kinds[kind] = kinds.get(kind, 0) + count
    messages = {message_version.name for message_version in result.tried}
    yield f"{result.implementation}, judged by {result.judge}, seed {result.seed}"
    yield (
        f"{counted(result.cases, 'case')} of {counted(len(messages), 'message')}, "
        f"{counted(len(result.tried), 'version')}: "
        + ", ".join(
            f"{count} {what.replace('_', ' ')}" for what, count in sorted(result.outcomes.items())
        )
    )
    yield "kinds: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    for name, found in sorted(result.one_way.items()):
        yield f"{name.replace('_', ' ')}: {_shortened(found)}"
    if result.restarts:
        yield f"restarted {counted(result.restarts, 'time')}"
    if result.stopped:
        yield f"stopped early: {result.stopped}"
    for finding in result.findings:
        yield ""
        yield from _finding_lines(finding)
    harmless = len(result.findings) - len(result.harmful)
    yield ""
    if result.known:
        times = counted(sum(result.known.values()), "time")
        yield f"{counted(len(result.known), 'known finding')}, {times}"
    for each in result.unseen:
        yield f"known, but not found in this run: {json.dumps(each.to_json())}"
    yield (
        counted(len(result.harmful), "finding") + (f", and {harmless} harmless" if harmless else "")
        if result.findings
        else "no findings"
    )


def _finding_lines(finding: Finding) -> Iterator[str]:
    verdict = finding.verdict
    mark = " (harmless)" if finding.harmless else ""
    yield f"{finding.count} x {verdict.fault.value}{mark}, in {finding.operation.value}"
    if verdict.trait:
        yield f"    odd:     {verdict.trait}"
    if verdict.cause:
        yield f"    cause:   {verdict.cause}"
    yield f"    where:   {_shortened(finding.message_versions)}"
    yield f"    case:    {json.dumps(finding.example.to_json(), separators=(',', ':'))}"
    yield f"    judge:   {_cut(shown(finding.right))}"
    yield f"    command: {_cut(shown(finding.given))}"


def _shortened(message_versions: Iterable[MessageVersion]) -> str:
    return textwrap.shorten(locations(message_versions), 120, placeholder=" …")


def _cut(node: dict[str, Any]) -> str:
    text = json.dumps(node, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def locations(message_versions: Iterable[MessageVersion]) -> str:
    """Returns messages and versions as text, such as `FetchRequest 4-11,13`."""
    by_message = _by_message(message_versions)
    return ", ".join(f"{name} {spans(versions)}" for name, versions in by_message.items())


def broker_text(report: dict[str, Any]) -> str:
    """Returns the report of a run against a broker as text; `report` is its JSON data."""
    lines = [
        f"{report['implementation']}, seed {report['seed']}",
        f"{counted(report['cases'], 'frame')}: "
        + ", ".join(f"{count} {what}" for what, count in report["outcomes"].items()),
        "kinds: "
        + ", ".join(f"{kind} {count}" for kind, count in report["tried"]["frames"]["-"].items()),
    ]
    if report["stopped"]:
        lines.append(f"stopped early: {report['stopped']}")
    for finding in report["findings"]:
        mark = " (harmless)" if finding["harmless"] else ""
        lines += ["", f"{finding['count']} x {finding['words']}{mark}: {finding['cause']}"]
        lines.append(f"    frames: {json.dumps(finding['example'], separators=(',', ':'))}")
        if finding["unshrunk"]:
            lines.append(f"    not shrunk: {finding['unshrunk']}")
    lines += [
        "",
        counted(len(report["findings"]), "finding") if report["findings"] else "no findings",
    ]
    return printable("\n".join(lines) + "\n")


_ONE_WAY_TEXT: Final = {
    Outcome.READ_ONLY: "the command only reads this message version",
    Outcome.WRITE_ONLY: "the command only writes this message version",
}


def replay_text(
    case: Case, right: Answer, given: Answer, verdicts: list[Verdict] | None, judge: str
) -> str:
    """Returns the text for a replayed case: the case, the two answers, and the faults.

    `right` is the answer of the judge, `given` is the answer of the command.
    """
    if given.outcome is Outcome.UNSUPPORTED:
        outcome_text = "the command does not support this"
    elif not verdicts and given.outcome in ONE_WAY:
        outcome_text = _ONE_WAY_TEXT[given.outcome]
    elif verdicts is None:
        outcome_text = (
            "undecided: the judge refuses the case, but the answer of the command may be right too"
        )
    elif not verdicts:
        outcome_text = "same as the judge"
    else:
        outcome_text = "; ".join(
            ", ".join(filter(None, (each.fault.value, each.trait, each.cause)))
            + (" (harmless)" if each.fault in HARMLESS else "")
            for each in verdicts
        )
    return printable(
        f"case:    {case}\njudge:   {json.dumps(shown(right))} ({judge})\n"
        f"command: {json.dumps(shown(given))}\n{outcome_text}\n"
    )
