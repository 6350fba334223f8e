"""Tests that each message in each version has the bytes and JSON of Kafka's classes."""

from __future__ import annotations

import json
from itertools import product

import pytest

from kproto.messages import SaslAuthenticateRequest
from kproto.wire.errors import DecodeError
from tools.reference import JavaProgramOperation, KafkaJavaProgram, Outcome, comparison, question
from tools.reference.comparison import (
    ADDED_LATER,
    DIFFERENT,
    RENAMED,
    ComparisonResult,
    compare,
)
from tools.reference.conformance import comparison_summary, unexpected
from tools.reference.pairs import RELEASES, ReleaseMessageVersion, all_pairs, forms, pairs
from tools.reference.samples import SAMPLES, samples

pytestmark = [pytest.mark.reference, pytest.mark.slow]

#: The number of distinct values of message versions with few fields or none. All other message
#: versions have at least `SAMPLES` distinct values.
FEW_VALUES = {
    "ApiVersionsRequest": {0: 1, 1: 1, 2: 1},
    "ListGroupsRequest": {0: 1, 1: 1, 2: 1},
}


def pair_of(release: str, name: str, version: int) -> ReleaseMessageVersion:
    found = [pair for pair in pairs(release) if (pair.name, pair.version) == (name, version)]
    return found[0]


@pytest.mark.exhaustive
def test_messages_of_both_releases_have_equal_bytes_and_json(
    compared: dict[ReleaseMessageVersion, ComparisonResult],
) -> None:
    print(comparison_summary(compared))
    assert [str(difference) for difference in unexpected(compared)] == []


@pytest.mark.exhaustive
def test_every_message_and_version_is_compared(
    compared: dict[ReleaseMessageVersion, ComparisonResult],
) -> None:
    assert set(compared) == set(all_pairs())
    assert len(compared) == 1484
    assert len({(pair.name, pair.version) for pair in compared}) == 877
    assert {pair.release for pair in compared} == set(RELEASES)


@pytest.mark.exhaustive
def test_at_least_fifty_instances_of_each_are_compared(
    compared: dict[ReleaseMessageVersion, ComparisonResult],
) -> None:
    few: dict[str, dict[int, int]] = {}
    for pair, found in compared.items():
        if found.instances < SAMPLES:
            few.setdefault(pair.form.name, {})[pair.form.version] = found.instances
    assert few == FEW_VALUES


@pytest.mark.exhaustive
@pytest.mark.parametrize(("release", "name", "version"), DIFFERENT)
def test_listed_byte_differences_exist(
    compared: dict[ReleaseMessageVersion, ComparisonResult], release: str, name: str, version: int
) -> None:
    found = compared[pair_of(release, name, version)].differences
    assert "bytes" in {difference.check for difference in found}


@pytest.mark.parametrize(("release", "name"), RENAMED)
def test_listed_renamed_fields_had_another_name(
    judges: dict[str, KafkaJavaProgram], monkeypatch: pytest.MonkeyPatch, release: str, name: str
) -> None:
    whole = RENAMED[release, name]
    for field in whole:
        rest = {new: old for new, old in whole.items() if new != field}
        monkeypatch.setattr(comparison, "RENAMED", {**RENAMED, (release, name): rest})
        assert differing_checks(judges, release, name) == {"JSON", "reading JSON"}, field


@pytest.mark.parametrize(("release", "name"), ADDED_LATER)
def test_listed_new_fields_are_missing_in_the_older_release(
    judges: dict[str, KafkaJavaProgram], monkeypatch: pytest.MonkeyPatch, release: str, name: str
) -> None:
    whole = ADDED_LATER[release, name]
    for field in whole:
        rest = whole - {field}
        monkeypatch.setattr(comparison, "ADDED_LATER", {**ADDED_LATER, (release, name): rest})
        assert differing_checks(judges, release, name) == {"JSON", "reading JSON"}, field


def differing_checks(judges: dict[str, KafkaJavaProgram], release: str, name: str) -> set[str]:
    """Returns the failed checks of a message, except those in the table of known differences."""
    found = set()
    for pair in pairs(release):
        if pair.name == name:
            (compared,) = compare(pair.form, [pair], judges)
            found |= {difference.check for difference in compared.differences}
    return found


def test_samples_include_every_kind_of_value() -> None:
    """The samples must have each kind of value, also strings of 16,382 to 16,384 bytes."""
    form = next(form for form in forms() if (form.name, form.version) == ("FetchResponse", 16))
    made = samples(form)
    assert len(made) == SAMPLES
    assert max(map(len, made)) > 16384
    assert [form.message.decode(data, 16) for data in made] == list(made.values())
    assert list(samples(form)) == list(made)


def test_base64_is_decoded_as_in_java(judges: dict[str, KafkaJavaProgram]) -> None:
    texts = ["".join(text) for size in range(7) for text in product("Q= \n-", repeat=size)]
    nodes = [SaslAuthenticateRequest().to_json(2) | {"authBytes": text} for text in texts]
    questions = [
        question(
            JavaProgramOperation.FROM_JSON, "SaslAuthenticateRequest", 2, json.dumps(node).encode()
        )
        for node in nodes
    ]
    answers = judges["4.4.0"].ask(questions)
    read = 0
    for text, node, answer in zip(texts, nodes, answers, strict=True):
        try:
            ours = SaslAuthenticateRequest.from_json(node, 2).encode(2)
        except DecodeError:
            assert answer.outcome is Outcome.REFUSED, text
        else:
            assert (answer.outcome, answer.data) == (Outcome.DONE, ours), text
            read += 1
    assert read > 100
