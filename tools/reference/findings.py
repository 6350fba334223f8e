"""Runs the two large comparisons with Kafka's classes, in parallel processes.

`compare_all` compares the samples of every message version of every release; `fuzz` compares a
given number of mutated encodings. Both return plain data, which tests check and `conformance`
prints.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from .comparison import ComparisonResult, compare
from .hostile import Case, Disagreement, judge, judged_pairs, mutations, seeds
from .pairs import RELEASES, KprotoMessageVersion, ReleaseMessageVersion, forms
from .workers import in_parallel, reference

__all__ = ["FuzzResult", "Progress", "compare_all", "fuzz"]

#: Called with the number of finished units of work, and their total.
Progress = Callable[[int, int], None]

#: The maximum number of disagreements of a message version in a result; others are only counted.
KEPT: Final = 3


def compare_all(
    *, processes: int | None = None, progress: Progress | None = None
) -> dict[ReleaseMessageVersion, ComparisonResult]:
    """Compares kproto with Kafka's class, on samples of each message version of each release."""
    found: dict[ReleaseMessageVersion, ComparisonResult] = {}
    tasks = list(forms().items())
    for done, part in enumerate(in_parallel(_compare, tasks, processes=processes), 1):
        found.update((compared.pair, compared) for compared in part)
        if progress:
            progress(done, len(tasks))
    return {pair: found[pair] for pair in sorted(found)}


def _compare(
    task: tuple[KprotoMessageVersion, tuple[ReleaseMessageVersion, ...]],
) -> list[ComparisonResult]:
    form, pairs = task
    return compare(form, pairs, {release: reference(release) for release in RELEASES})


class _FuzzTask(NamedTuple):
    """The number of mutations to compare for one message version of a release, and the seed."""

    pair: ReleaseMessageVersion
    mutations: int
    seed: int


class _FuzzTaskResult(NamedTuple):
    """The results of one `_FuzzTask`."""

    pair: ReleaseMessageVersion
    cases: Counter[Case]
    disagreements: list[Disagreement]
    disagreed: int


@dataclass(slots=True)
class FuzzResult:
    """The results of `fuzz`.

    `by_pair` has the number of mutations by message version. `cases` has the number of mutations by
    agreement or documented deviation. `disagreements` has up to KEPT disagreements of each message
    version; `disagreed` is the number of all disagreements.
    """

    seed: int
    by_pair: dict[ReleaseMessageVersion, int] = field(default_factory=dict)
    cases: Counter[Case] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    disagreed: int = 0


def fuzz(
    count: int, seed: int, *, processes: int | None = None, progress: Progress | None = None
) -> FuzzResult:
    """Compares Kafka's decoders with kproto's on `count` mutations, spread over `judged_pairs`.

    The same `count` and `seed` give the same result.
    """
    pairs = judged_pairs()
    share, rest = divmod(count, len(pairs))
    tasks = [_FuzzTask(pair, share + (at < rest), seed) for at, pair in enumerate(pairs)]
    result = FuzzResult(seed)
    done = 0
    for part in in_parallel(_fuzz, tasks, processes=processes):
        judged = part.cases.total() + part.disagreed
        result.by_pair[part.pair] = judged
        result.cases += part.cases
        result.disagreements += part.disagreements
        result.disagreed += part.disagreed
        done += judged
        if progress:
            progress(done, count)
    result.disagreements.sort()
    return result


def _fuzz(task: _FuzzTask) -> _FuzzTaskResult:
    pair = task.pair
    source = random.Random(f"{pair} {task.seed}")
    mutated = islice(mutations(seeds(pair.form), source), task.mutations)
    part = _FuzzTaskResult(pair, Counter(), [], 0)
    disagreed = 0
    for case in judge(pair, mutated, reference(pair.release)):
        if not isinstance(case, Disagreement):
            part.cases[case] += 1
            continue
        disagreed += 1
        if disagreed <= KEPT:
            part.disagreements.append(case)
    return part._replace(disagreed=disagreed)
