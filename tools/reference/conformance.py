"""Writes docs/evidence/conformance.md: every message, its versions, and the results for them.

All content comes from a run of the comparisons, from the vectors, or from the results of other
libraries. If code and definitions are unchanged, the text is unchanged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kproto.fuzz.lenient_reader import DeviationFromKafka
from kproto.schema.definitions import union
from kproto.schema.versions import Versions

from .comparison import ADDED_LATER, DIFFERENT, RENAMED, ComparisonResult, Difference
from .findings import FuzzResult
from .hostile import Agreement
from .pairs import RELEASES, ReleaseMessageVersion, all_pairs
from .vectors import read

__all__ = [
    "MUTATIONS",
    "PATH",
    "SEED",
    "comparison_summary",
    "fuzz_table",
    "render",
    "unexpected",
]

ROOT: Final = Path(__file__).resolve().parents[2]

PATH: Final = ROOT / "docs" / "evidence" / "conformance.md"

#: The results of kafka-python and kio. By library and message: the versions ("0-4") on which the
#: library agrees with kproto.
SECOND_OPINIONS: Final = ROOT / "tests" / "interop" / "second_opinions.json"

#: The number of mutations of a full run, and their seed.
MUTATIONS: Final = 1_000_000
SEED: Final = 20260601

_OPINIONS: Final = (
    " The last columns have the versions at which the named library agrees with kproto, except for "
    "the differences that tests/interop/test_second_opinions.py explains."
)

INTRODUCTION: Final = """\
# Conformance

This page has the results of comparing kproto with Kafka's own Java classes, for every message of
Kafka {releases} and every version of it. `python -m tools.reference conformance`
(`make conformance`) writes this page. A test repeats the comparison, and fails if the result
differs from the page.

## Comparison

{summary}

An instance is a message whose fields have test values. `kproto.testing.instances` first creates
instances with defaults, zeroes, distinct values, bounds, nulls at every depth, lengths around 127
and 16,383, and unknown tagged fields; then it creates random instances. For each instance, Kafka's
class must

- read the bytes that kproto writes, and write the same bytes;
- write the JSON that kproto writes, except for fields of type `records`: kproto writes them as
  base64, and Kafka writes an empty string;
- encode kproto's JSON to the bytes that kproto writes for the instance, and encode Kafka's JSON to
  the same bytes.

"""


def render(compared: Mapping[ReleaseMessageVersion, ComparisonResult], fuzzed: FuzzResult) -> str:
    """Returns the page for the results of a comparison and a fuzz run."""
    releases = " and ".join(RELEASES)
    parts = [
        INTRODUCTION.format(releases=releases, summary=comparison_summary(compared)),
        _definitional(),
        _mutations(fuzzed),
        _messages(compared, fuzzed),
    ]
    return "".join(parts)


def unexpected(compared: Mapping[ReleaseMessageVersion, ComparisonResult]) -> list[Difference]:
    """Returns the differences that the table DIFFERENT does not explain."""
    return [
        difference
        for pair, found in compared.items()
        if (pair.release, pair.name, pair.version) not in DIFFERENT
        for difference in found.differences
    ]


def comparison_summary(compared: Mapping[ReleaseMessageVersion, ComparisonResult]) -> str:
    """Returns the result of the comparison in two sentences."""
    names = {(pair.name, pair.version) for pair in compared}
    everything = {(pair.name, pair.version) for pair in all_pairs()}
    instances = sum(found.instances for found in compared.values())
    few = Counter(found.instances for found in compared.values() if found.instances < 50)
    return (
        f"The comparison covers {len(names)} of {len(everything)} pairs of a message and a version "
        f"({len(compared)} if the pairs of each release are counted separately). It has "
        f"{instances:,} instances: at least 50 per pair, except for {few.total()} pairs whose "
        f"messages have fewer possible values. It found {len(unexpected(compared))} differences, "
        "apart from the differences between Kafka's own definitions in the next table."
    )


def _definitional() -> str:
    rows = [
        (f"{name} v{version} of {release}", f"other bytes: {reason}")
        for (release, name, version), reason in DIFFERENT.items()
    ]
    rows += [
        (f"{name} of {release}", "renamed later: " + ", ".join(_renaming(names)))
        for (release, name), names in RENAMED.items()
    ]
    rows += [
        (f"{name} of {release}", "added later without a new version: " + ", ".join(sorted(fields)))
        for (release, name), fields in ADDED_LATER.items()
    ]
    return (
        f"Kafka {' and '.join(RELEASES)} define some versions of messages differently. kproto uses "
        "the newer definition of a version, and so differs from the older release in these "
        f"messages:\n\n{_table(('Message', 'Difference'), rows)}\n"
    )


def _renaming(names: Mapping[str, str]) -> Iterable[str]:
    return (f"`{old}` to `{new}`" for new, old in names.items())


def _mutations(fuzzed: FuzzResult) -> str:
    return (
        "## Mutated encodings\n\n"
        f"{sum(fuzzed.by_pair.values()):,} mutated encodings (seed {fuzzed.seed}) were "
        "decoded by Kafka's classes and by kproto. [Hostile bytes](hostile-bytes.md) explains the "
        "cases.\n\n"
        f"{fuzz_table(fuzzed)}\n"
    )


def fuzz_table(fuzzed: FuzzResult) -> str:
    """Returns a table with the number of mutations for each `Agreement` and `DeviationFromKafka`.

    The last row has the number of mutations on which kproto and Kafka's classes disagree without a
    listed reason.
    """
    rows = [(case.value, f"{fuzzed.cases[case]:,}") for case in (*Agreement, *DeviationFromKafka)]
    rows.append(("kproto and Kafka disagree without one of these reasons", f"{fuzzed.disagreed:,}"))
    return _table(("Case", "Mutations"), rows)


def _messages(
    compared: Mapping[ReleaseMessageVersion, ComparisonResult], fuzzed: FuzzResult
) -> str:
    """Returns the table of all messages."""
    proven: dict[tuple[str, str], set[int]] = {}
    instances: Counter[str] = Counter()
    mutations: Counter[str] = Counter()
    for pair, found in compared.items():
        instances[pair.form.name] += found.instances
        if not found.differences:
            proven.setdefault((pair.form.name, pair.release), set()).add(pair.form.version)
    for pair, count in fuzzed.by_pair.items():
        mutations[pair.form.name] += count
    vectors = Counter(vector.form.name for vector in read())
    opinions = _second_opinions()
    rows = []
    for name, spec in sorted(union().items()):
        key = "" if spec.api_key is None else str(spec.api_key)
        shown = [_ranges(proven.get((name, release), ())) for release in RELEASES]
        counts = [f"{counter[name]:,}" for counter in (instances, mutations, vectors)]
        peers = [opinions[peer].get(name, "") for peer in opinions]
        rows.append((name, key, _versions(spec.valid_versions), *shown, *counts, *peers))
    heads = ("Message", "Key", "Versions", *RELEASES, "Instances", "Mutations", "Vectors")
    return (
        "## Messages\n\n"
        "The column of a Kafka release has the versions at which kproto agrees with the classes of "
        "this release in bytes and JSON, except for the fields in the table above that were "
        "renamed or added later. The columns Instances, Mutations and Vectors have the numbers of "
        "instances, mutated encodings and golden vectors of the message that were compared with "
        f"Kafka's classes.{_OPINIONS if opinions else ''}\n\n"
        f"{_table((*heads, *opinions), rows)}"
    )


def _second_opinions() -> dict[str, dict[str, str]]:
    if not SECOND_OPINIONS.exists():
        return {}
    found: dict[str, dict[str, str]] = json.loads(SECOND_OPINIONS.read_text("utf-8"))
    return found


def _versions(versions: Versions) -> str:
    return _ranges(set(versions))


def _ranges(numbers: Iterable[int]) -> str:
    """Formats numbers as ranges, such as `0-3, 5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join(f"{s[0]}-{s[-1]}" if len(s) > 1 else f"{s[0]}" for s in spans)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
