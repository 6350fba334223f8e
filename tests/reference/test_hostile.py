"""Tests a million mutated encodings: Kafka and kproto must accept the same encodings.

docs/evidence/hostile-bytes.md describes the encodings that only one of them accepts.
"""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kproto.fuzz.lenient_reader import DeviationFromKafka
from kproto.messages import FetchRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from tools.reference import KafkaJavaProgram
from tools.reference.conformance import MUTATIONS, fuzz_table
from tools.reference.findings import FuzzResult
from tools.reference.hostile import (
    Agreement,
    Case,
    Disagreement,
    judge,
    judged_pairs,
    mutations,
    seeds,
)
from tools.reference.pairs import forms, pairs

pytestmark = pytest.mark.reference

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "hostile-bytes.md"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_kafka_and_kproto_agree_on_mutated_encodings(fuzzed: FuzzResult) -> None:
    print(fuzz_table(fuzzed))
    assert [str(disagreement) for disagreement in fuzzed.disagreements] == []
    assert fuzzed.disagreed == 0
    assert fuzzed.cases.total() == sum(fuzzed.by_pair.values()) == MUTATIONS


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_agreement_and_deviation_occurs(fuzzed: FuzzResult) -> None:
    """The mutations must include an example of each `Agreement` and each `DeviationFromKafka`."""
    assert {case for case, count in fuzzed.cases.items() if count} == {
        *Agreement,
        *DeviationFromKafka,
    }


def test_every_form_is_judged_by_a_release_that_has_it() -> None:
    assert {pair.form for pair in judged_pairs()} == set(forms())


def test_document_names_every_deviation() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for case in (*Agreement, *DeviationFromKafka):
        assert case.value in text


def test_mutations_are_the_same_for_the_same_seed() -> None:
    sound = seeds(next(iter(forms())))
    first = list(islice(mutations(sound, random.Random("7")), 200))
    assert list(islice(mutations(sound, random.Random("7")), 200)) == first
    assert list(islice(mutations(sound, random.Random("8")), 200)) != first
    assert len(set(first)) > 100


@pytest.mark.parametrize(
    ("version", "data", "case"),
    [
        (4, "0267 00000001 026d 00 00", Agreement.SAME),
        (4, "0267 00000001 026d 00 00 ff", Agreement.MORE),
        (4, "0267 00000001 026d 00", Agreement.NEITHER),
        (4, "0267 00000001 026d 8080808008 00", Agreement.NEITHER),
        (4, "0267 00000001 026d ffffffff0f 00", DeviationFromKafka.LENGTH),
        (3, "000167 00000001 00016d fffe", DeviationFromKafka.LENGTH),
        (4, "0267 00000001 026d 00 8080808008", DeviationFromKafka.TAG_COUNT),
        (4, "0267 00000001 026d 00 02 0500 0500", DeviationFromKafka.TAG_ORDER),
        (4, "0267 00000001 026d 00 02 0600 0500", DeviationFromKafka.TAG_ORDER),
        (4, "02ff 00000001 026d 00 00", DeviationFromKafka.UTF8),
        (4, "0267 00000001 026d 00 01 ffffffff0f 00", DeviationFromKafka.TAG_NUMBER),
    ],
)
def test_example_of_each_case_is_classified(
    judges: dict[str, KafkaJavaProgram], version: int, data: str, case: Case
) -> None:
    """Uses Kafka 3.9, because Kafka 4.4 is stricter: it also checks the count of tagged fields."""
    (pair,) = [p for p in pairs("3.9.2") if (p.name, p.version) == ("HeartbeatRequest", version)]
    assert list(judge(pair, [bytes.fromhex(data)], judges["3.9.2"])) == [case]


@pytest.mark.parametrize(
    ("name", "version", "data", "case"),
    [
        ("FetchRequest", 12, "01 00 02 0161", DeviationFromKafka.TAG_SIZE),
        ("FetchRequest", 12, "01 01 01 00", Agreement.NEITHER),
    ],
)
def test_invalid_known_tags_are_classified(
    judges: dict[str, KafkaJavaProgram], name: str, version: int, data: str, case: Case
) -> None:
    """In FetchRequest, tag 0 is ClusterId since v12, and tag 1 is ReplicaState since v15."""
    (pair,) = [p for p in pairs("4.4.0") if (p.name, p.version) == (name, version)]
    sound = pair.form.message().encode(version)
    mutated = sound[:-1] + bytes.fromhex(data)
    assert list(judge(pair, [mutated], judges["4.4.0"])) == [case]


@pytest.mark.parametrize(
    ("release", "case"), [("3.9.2", DeviationFromKafka.TAG_VERSION), ("4.4.0", Agreement.NEITHER)]
)
def test_tag_of_a_later_version_is_classified(
    judges: dict[str, KafkaJavaProgram], release: str, case: Case
) -> None:
    """In FetchRequest v18, which Kafka 3.9 lacks, tag 1 of a partition is HighWatermark."""
    (pair,) = [p for p in pairs(release) if (p.name, p.version) == ("FetchRequest", 17)]
    partition = FetchPartition(high_watermark=5)
    data = FetchRequest(topics=[FetchTopic(partitions=[partition])]).encode(18)
    assert list(judge(pair, [data], judges[release])) == [case]


def test_disagreement_is_detected(
    judges: dict[str, KafkaJavaProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test makes kproto's decoder wrong; the comparison must report the difference."""
    (pair,) = [p for p in pairs("4.4.0") if (p.name, p.version) == ("HeartbeatRequest", 4)]
    message = pair.form.message
    sound = message().encode(4)
    read = message._read_fields

    def read_wrongly(data: bytes, pos: int, version: int) -> tuple[Any, int]:
        made: Any
        made, end = read(data, pos, version)
        made.group_id += "x"
        return made, end

    monkeypatch.setattr(message, "_read_fields", read_wrongly)
    (case,) = judge(pair, [sound], judges["4.4.0"])
    assert isinstance(case, Disagreement)
    assert case.data == sound
