"""Tests Kafka's Uuid: sixteen bytes and their text."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID, Uuid


@given(st.binary(min_size=16, max_size=16))
def test_the_text_of_an_id_round_trips(raw: bytes) -> None:
    made = Uuid(raw)
    text = str(made)
    assert len(text) == 22
    assert Uuid.parse(text) == made
    assert eval(repr(made)) == made


def test_known_ids_have_their_texts() -> None:
    # Kafka's own constants: Uuid.ZERO_UUID, and Uuid.METADATA_TOPIC_ID (its least bit set).
    assert str(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert str(Uuid(bytes(15) + b"\1")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert str(Uuid(b"\xff" * 16)) == "_____________________w"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAA",
        "AAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAA=",
        "AAAAAAAAAAAAAAAAAAAAAA===",
        "AAAAAAAAAAAAAAAAAAAAA===",
        "AAAAAAAAAAAAAAAAAAAAAA\n",
        "AAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAAA!",
        "AAAAAAAAAA AAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAé",
        "00000000-0000-0000-0000-000000000000",
        None,
        5,
        b"AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_other_texts_than_ids_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no Kafka uuid: write 22 characters"):
        Uuid.parse(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("AAAAAAAAAAAAAAAAAAAAAQ==", 1),
        ("AAAAAAAAAAAAAAAAAAAAAf", 1),
        ("AAAAAAAAAAAAAAAAAAAAAR==", 1),
        ("AAAAAAAAAAAAAAAAAAAAAB", 0),
    ],
)
def test_padding_and_any_last_bits_are_accepted_as_by_java(text: str, number: int) -> None:
    """The expected ids are those of `Uuid.fromString` of Kafka 4.4.0."""
    assert Uuid.parse(text) == number.to_bytes(16, "big")


def test_an_id_equals_its_bytes() -> None:
    made = Uuid(b"0123456789abcdef")
    assert made == b"0123456789abcdef"
    assert hash(made) == hash(b"0123456789abcdef")
    assert {made: 1}[Uuid(b"0123456789abcdef")] == 1


def test_random_ids_differ_and_do_not_look_like_options() -> None:
    made = {Uuid.random() for _ in range(500)}
    assert len(made) == 500
    assert all(len(value) == 16 for value in made)
    assert not any(str(value).startswith("-") for value in made)
    assert {value[6] >> 4 for value in made} == {4}
    assert {value[8] >> 6 for value in made} == {2}
