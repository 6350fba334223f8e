"""Sends generated cases to a judge and to an implementation, and collects the differences.

`run` returns a `Result`; `report` and `page` format it.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from ..wire.errors import KprotoError
from .case import ONE_WAY, Answer, Case, MessageVersion, Operation, Outcome
from .case_generation import KINDS, generate_cases
from .implementation import TooManyRestartsError
from .judging import HARMLESS, Fault, Verdict, judge
from .known_findings import KnownFinding, KnownFindings
from .settings import FuzzSettings
from .shrinking import check_hypothesis, smallest_case

__all__ = ["CasePlan", "Finding", "JudgeError", "Responder", "Result", "replay", "run"]


class JudgeError(KprotoError):
    """The judge gave no valid answer to a case in time, for example because it crashed."""


class Responder(Protocol):
    """The methods by which `Implementation` (a command) and `KprotoCodec` answer cases."""

    name: str

    def respond(self, cases: Sequence[Case]) -> list[Answer]:
        """Returns the answer to each case, in the order of `cases`."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the process of the responder, if it has one."""


@dataclass(frozen=True, slots=True)
class CasePlan:
    """The cases of a run: `cases` in total, of all `message_versions` and `kinds` in turn.

    After `time_s` seconds (None: no limit), cases are sent only to shrink examples. With `shrink`,
    the example of each finding is shrunk.
    """

    message_versions: tuple[MessageVersion, ...]
    seed: int = 0
    cases: int = 10_000
    time_s: float | None = None
    kinds: tuple[str, ...] = tuple(KINDS)
    shrink: bool = True


@dataclass(slots=True)
class Finding:
    """All faults of a run that have one verdict and one operation in common.

    `example` is a case with this fault. `right` is the judge's answer to the example, `given` is
    the implementation's answer to it. `count` is the number of faults; `message_versions` counts
    them by message version.
    """

    verdict: Verdict
    operation: Operation
    example: Case
    right: Answer
    given: Answer
    count: int = 0
    message_versions: Counter[MessageVersion] = field(default_factory=Counter)

    @property
    def harmless(self) -> bool:
        """Returns True if the fault does not affect messages as Kafka writes them."""
        return self.verdict.fault in HARMLESS


@dataclass(slots=True)
class Result:
    """The result of a run.

    `tried` counts the cases by message version and kind. `outcomes` counts them by `agreed`,
    `differs`, `undecided` (see `judging.judge`), `unsupported`, `read_only`, `write_only` and
    `known`. A case counts as `known` if all its faults are known findings. `known` has, by known
    finding, the number of its faults; `unseen` has the known findings that match no fault, although
    the run has cases of them. `unsupported` counts unsupported cases by operation and message.
    `one_way` has, by `read_only` and `write_only`, the message versions that the implementation
    only reads or only writes, by its own answers. `stopped` is the reason if the run ended early,
    else "". `restarts_exhausted` is True if the command was restarted too often, `interrupted` is
    True after Ctrl-C.
    """

    seed: int
    judge: str
    implementation: str
    tried: dict[MessageVersion, Counter[str]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    unsupported: dict[str, Counter[str]] = field(default_factory=dict)
    one_way: dict[str, set[MessageVersion]] = field(default_factory=dict)
    known: dict[KnownFinding, int] = field(default_factory=dict)
    unseen: list[KnownFinding] = field(default_factory=list)
    restarts: int = 0
    stopped: str = ""
    restarts_exhausted: bool = False
    interrupted: bool = False

    @property
    def cases(self) -> int:
        """Returns how many cases were tried."""
        return sum(self.outcomes.values())

    @property
    def harmful(self) -> list[Finding]:
        """Returns the findings that are not harmless."""
        return [finding for finding in self.findings if not finding.harmless]


#: Called with the number of answered cases, and the number of all cases.
Progress = Callable[[int, int], None]

_BATCH = 256

_GroupKey = tuple[Verdict, Operation]


def run(
    implementation: Responder,
    right: Responder,
    plan: CasePlan,
    *,
    by_kproto: bool,
    known: Sequence[KnownFinding] = (),
    settings: FuzzSettings | None = None,
    progress: Progress | None = None,
) -> Result:
    """Sends the cases of `plan` to `implementation` and to the judge, and compares the answers.

    With `plan.shrink`, then shrinks the example case of each finding. `right` is the judge;
    `by_kproto` must be True if the judge is kproto's codec. Faults that match one of `known` are
    counted, but are not findings. The same seed and the same answers
    produce the same result. Ctrl-C ends the run early; `run` then returns the findings so far.

    Raises ImplementationError if the command never answers, JudgeError if the judge fails, and
    ConfigurationError if `plan.shrink` is True and hypothesis is not installed.
    """
    if plan.shrink:
        check_hypothesis()
    limits = settings or FuzzSettings()
    result = Result(plan.seed, right.name, implementation.name)
    collector = _FindingCollector(result, limits, KnownFindings(known))
    deadline = None if plan.time_s is None else time.monotonic() + plan.time_s
    try:
        for batch in _batches(_cases(plan, collector.unsupported), plan.cases):
            batch, given, restarts_exhausted = _answered_cases(implementation, batch)
            expected_answers = _expected_answers(right, batch)
            for case, expected, actual in zip(batch, expected_answers, given, strict=True):
                collector.add_case(case, expected, actual, by_kproto=by_kproto)
            if restarts_exhausted is not None:
                raise restarts_exhausted
            if progress:
                progress(result.cases, plan.cases)
            if deadline is not None and time.monotonic() > deadline:
                result.stopped = f"the limit of {plan.time_s:g} s was reached"
                break
        if plan.shrink:
            for finding in collector.groups.values():
                _shrink(finding, implementation, right, plan, limits, by_kproto=by_kproto)
    except TooManyRestartsError as error:
        result.stopped = str(error)
        result.restarts_exhausted = True
    except KeyboardInterrupt:
        result.stopped = "interrupted"
        result.interrupted = True
    result.findings = _merged(collector.groups.values())
    result.known = {each: count for each, count in collector.known.counts.items() if count}
    result.unseen = collector.known.unseen()
    result.restarts = getattr(implementation, "restarts", 0)
    return result


def replay(
    case: Case, implementation: Responder, right: Responder, *, by_kproto: bool
) -> tuple[Answer, Answer, list[Verdict] | None]:
    """Returns the judge's answer to a case, the implementation's answer, and the faults.

    The faults are as `judging.judge` returns them.
    """
    (expected,) = _expected_answers(right, [case])
    (given,) = implementation.respond([case])
    return expected, given, judge(case, expected, given, by_kproto=by_kproto)


def _answered_cases(
    implementation: Responder, batch: list[Case]
) -> tuple[list[Case], list[Answer], TooManyRestartsError | None]:
    """Returns the cases of a batch that were answered, their answers, and an error or None.

    The error is None if all cases were answered, else TooManyRestartsError.
    """
    try:
        return batch, implementation.respond(batch), None
    except TooManyRestartsError as error:
        answers = sorted(error.answers.items())
        return [batch[index] for index, _ in answers], [answer for _, answer in answers], error


def _batches(cases: Iterator[Case], count: int) -> Iterator[list[Case]]:
    remaining = count
    while remaining:
        batch = list(islice(cases, min(remaining, _BATCH)))
        if not batch:
            return
        remaining -= len(batch)
        yield batch


def _cases(plan: CasePlan, unsupported: set[tuple[Operation, MessageVersion]]) -> Iterator[Case]:
    """Yields a case of each message version in turn.

    Skips operations that are unsupported for a message version; `unsupported` grows during the run.
    """
    streams: dict[MessageVersion, Iterator[Case]] = {}
    # Shuffled, so that a short run covers many messages.
    message_versions = list(plan.message_versions)
    random.Random(plan.seed).shuffle(message_versions)  # noqa: S311 - an order for tests, not a secret
    operations = tuple(Operation)
    while message_versions:
        for message_version in message_versions:
            if message_version not in streams:
                streams[message_version] = generate_cases(message_version, plan.seed, plan.kinds)
            case = next(streams[message_version])
            if (case.operation, message_version) not in unsupported:
                yield case
        message_versions = [
            message_version
            for message_version in message_versions
            if not all((operation, message_version) in unsupported for operation in operations)
        ]


def _expected_answers(right: Responder, cases: Iterable[Case]) -> list[Answer]:
    listed = list(cases)
    answers = right.respond(listed)
    for case, answer in zip(listed, answers, strict=True):
        if answer.outcome not in (Outcome.DONE, Outcome.REFUSED, Outcome.UNSUPPORTED):
            raise JudgeError(f"{right.name} {answer.outcome.value} ({answer.reason}) on {case}")
    return answers


#: The keys of `Result.outcomes` for answers without a fault and without a compared value.
_NAMES: Final = {
    Outcome.UNSUPPORTED: "unsupported",
    Outcome.READ_ONLY: "read_only",
    Outcome.WRITE_ONLY: "write_only",
}


class _FindingCollector:
    """Adds the outcomes of cases to `result`, and groups their faults into findings."""

    def __init__(self, result: Result, settings: FuzzSettings, known: KnownFindings) -> None:
        self.result = result
        self.known = known
        self.settings = settings
        self.groups: dict[_GroupKey, Finding] = {}
        self.unsupported: set[tuple[Operation, MessageVersion]] = set()

    def add_case(self, case: Case, right: Answer, given: Answer, *, by_kproto: bool) -> None:
        """Counts the outcome of a case, and adds its faults."""
        result = self.result
        result.tried.setdefault(case.message_version, Counter())[case.kind] += 1
        if Outcome.UNSUPPORTED in (right.outcome, given.outcome):
            self.unsupported.add((case.operation, case.message_version))
            result.unsupported.setdefault(case.operation.value, Counter())[
                case.message_version.name
            ] += 1
        if right.outcome is Outcome.UNSUPPORTED:
            result.outcomes["unsupported"] += 1
            return
        verdicts = judge(case, right, given, by_kproto=by_kproto)
        if given.outcome in ONE_WAY:
            self.add_one_way(case, given)
        self.known.add_case(case.operation, case.message_version)
        if not verdicts:
            usual = "undecided" if verdicts is None else "agreed"
            result.outcomes[_NAMES.get(given.outcome, usual)] += 1
            return
        new = [
            verdict
            for verdict in verdicts
            if not self.known.count(verdict, case.operation, case.message_version)
        ]
        result.outcomes["differs" if new else "known"] += 1
        for verdict in new:
            self.add(verdict, case, right, given)

    def add_one_way(self, case: Case, given: Answer) -> None:
        """Adds the message version of a case to those that are only read or only written.

        No further question has the same operation and message version, except if the operation is
        REWRITE and the implementation has read the bytes: then each case tests how it reads.
        """
        name = _NAMES[given.outcome]
        self.result.one_way.setdefault(name, set()).add(case.message_version)
        if given.outcome is Outcome.WRITE_ONLY or case.operation is Operation.ENCODE:
            self.unsupported.add((case.operation, case.message_version))

    def add(self, verdict: Verdict, case: Case, right: Answer, given: Answer) -> None:
        """Adds a fault to its finding, and keeps the shortest example.

        After `max_findings` findings, the faults that match none of these findings are grouped only
        by `Fault` and operation.
        """
        key = (verdict, case.operation)
        if key not in self.groups and len(self.groups) >= self.settings.max_findings:
            key = (verdict._replace(trait="", cause="causes beyond max_findings"), case.operation)
        finding = self.groups.get(key)
        if finding is None:
            finding = self.groups[key] = Finding(key[0], case.operation, case, right, given)
        elif len(case.content) < len(finding.example.content):
            finding.example, finding.right, finding.given = case, right, given
        finding.count += 1
        finding.message_versions[case.message_version] += 1


#: Faults that cost a timeout or a restart at each occurrence.
_WAITING = frozenset({Fault.CRASHED, Fault.HUNG, Fault.LATE, Fault.GARBAGE})


def _shrink(
    finding: Finding,
    implementation: Responder,
    right: Responder,
    plan: CasePlan,
    settings: FuzzSettings,
    *,
    by_kproto: bool,
) -> None:
    """Replaces the example of a finding by the smallest case found that has the same fault."""
    known: dict[bytes | str, tuple[Verdict | None, Answer, Answer]] = {
        finding.example.content: (finding.verdict, finding.right, finding.given)
    }
    waits = 0

    def reproduces(case: Case) -> bool:
        nonlocal waits
        if case.content in known:
            return known[case.content][0] is not None
        if len(known) > settings.shrink_attempts or waits > settings.shrink_waits:
            return False
        expected, given, verdicts = replay(case, implementation, right, by_kproto=by_kproto)
        waits += given.outcome in (Outcome.CRASHED, Outcome.HUNG, Outcome.LATE, Outcome.GARBAGE)
        same = [verdict for verdict in verdicts or () if _is_same_kind(verdict, finding.verdict)]
        known[case.content] = same[0] if same else None, expected, given
        return bool(same)

    try:
        found = smallest_case(finding.example, reproduces, seed=plan.seed)
    except TooManyRestartsError:
        yes = (content for content, result in known.items() if result[0] is not None)
        found = finding.example.with_content(min(yes, key=len))
    finding.example = found
    verdict, finding.right, finding.given = known[found.content]
    finding.verdict = verdict or finding.verdict


#: Faults whose cause identifies them. A smaller example of such a fault may have no traits.
_WITH_CAUSE = frozenset(
    {Fault.LOOSER, Fault.STRICTER, Fault.STRICTER_ON_ODD, Fault.JSON, Fault.FAILED}
)


def _is_same_kind(verdict: Verdict, expected: Verdict) -> bool:
    """Returns True if a smaller case with `verdict` shows the same fault as `expected`."""
    if expected.fault in _WAITING:  # the cause of a crash may quote the case
        return verdict.fault is expected.fault
    if verdict[::2] != expected[::2]:
        return False
    traits = set(verdict.trait.split(", ")) - {""}
    # Bytes without traits may have another fault than bytes with traits.
    return traits <= set(expected.trait.split(", ")) and (
        expected.fault in _WITH_CAUSE or bool(traits) == bool(expected.trait)
    )


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Merges findings with equal verdict and operation, and sorts them in the order of `Fault`."""
    found: dict[_GroupKey, Finding] = {}
    for finding in findings:
        merged = found.setdefault((finding.verdict, finding.operation), finding)
        if merged is finding:
            continue
        merged.count += finding.count
        merged.message_versions += finding.message_versions
        if len(finding.example.content) < len(merged.example.content):
            merged.example, merged.right, merged.given = (
                finding.example,
                finding.right,
                finding.given,
            )
    order = list(Fault)
    return sorted(
        found.values(),
        key=lambda it: (
            order.index(it.verdict.fault),
            -it.count,
            it.verdict[1:],
            it.operation.value,
        ),
    )
