"""Tests the golden vectors in tests/vectors: reproducible, and correct for kproto and Kafka."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kproto.fuzz.judging import without_records
from kproto.schema.definitions import union
from kproto.schema.layout import layout
from tools.reference import Answer, JavaProgramOperation, KafkaJavaProgram, Outcome, question
from tools.reference.pairs import forms
from tools.reference.vectors import FOLDER, Vector, lines, pair_of, read

#: The size limit of all vectors, because other projects copy them.
LARGEST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def vectors() -> list[Vector]:
    return read()


@pytest.mark.slow
def test_the_files_are_what_the_generator_writes() -> None:
    found = {path.name: path.read_text("utf-8").splitlines() for path in FOLDER.glob("*.jsonl")}
    assert found == lines(), "run `python -m tools.reference vectors` and commit tests/vectors"
    assert sum(path.stat().st_size for path in FOLDER.glob("*.jsonl")) < LARGEST_BYTES


@pytest.mark.slow
def test_every_message_and_version_has_vectors(vectors: list[Vector]) -> None:
    assert {vector.form for vector in vectors} == set(forms())


@pytest.mark.slow
def test_kproto_makes_the_bytes_of_the_json_and_the_json_of_the_bytes(
    vectors: list[Vector],
) -> None:
    for vector in vectors:
        message, version = vector.form.message, vector.form.version
        assert message.from_json(vector.json, version).encode(version) == vector.data, vector.form
        assert message.decode(vector.data, version).to_json(version) == vector.json, vector.form


@pytest.mark.reference
def test_kafka_makes_the_bytes_of_the_json_and_the_json_of_the_bytes(
    vectors: list[Vector], judges: dict[str, KafkaJavaProgram]
) -> None:
    """Each vector is checked by the newest Kafka release that has the vector's message version."""
    for release, judge in judges.items():
        mine = [vector for vector in vectors if pair_of(vector).release == release]
        assert mine
        made = judge.ask(
            asked(JavaProgramOperation.FROM_JSON, vector, json.dumps(vector.json).encode())
            for vector in mine
        )
        for vector, answer in zip(mine, made, strict=True):
            assert (answer.outcome, answer.data) == (Outcome.DONE, vector.data), vector.form
        written = judge.ask(
            asked(JavaProgramOperation.TO_JSON, vector, vector.data) for vector in mine
        )
        for vector, answer in zip(mine, written, strict=True):
            assert answer.taken == len(vector.data), vector.form
            assert json.loads(answer.data) == kafka_json(vector), vector.form
        again = judge.ask(
            asked(JavaProgramOperation.REWRITE, vector, vector.data) for vector in mine
        )
        for vector, answer in zip(mine, again, strict=True):
            assert answer == Answer(Outcome.DONE, vector.data, len(vector.data)), vector.form


def asked(operation: JavaProgramOperation, vector: Vector, content: bytes) -> bytes:
    pair = pair_of(vector)
    return question(operation, pair.name, pair.version, content)


def kafka_json(vector: Vector) -> Any:
    """Returns a vector's JSON as Kafka writes it, with `records` as an empty string."""
    return without_records(layout(union()[vector.form.name], vector.form.version), vector.json)
