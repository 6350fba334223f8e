"""Tests the fuzzer's cases, which are equal for equal seeds; also tests `walk_message`."""

from __future__ import annotations

import json
import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.fuzz.case import (
    Case,
    InvalidAnswerError,
    MessageVersion,
    Operation,
    all_message_versions,
    parse_answer,
)
from kproto.fuzz.case_generation import KINDS, generate_cases
from kproto.fuzz.explicit_defaults import with_explicit_defaults
from kproto.fuzz.lenient_reader import LengthUnit, Oddity, walk_message
from kproto.fuzz.mutations import MUTATIONS, mutate
from kproto.messages.base import Message
from kproto.testing.instances import Fill, instance
from kproto.testing.strategies import any_message
from kproto.wire.errors import ConfigurationError

FORM = MessageVersion("FetchRequest", 13)


def test_the_same_for_a_seed_and_another_for_another() -> None:
    first, again, other = (list(islice(generate_cases(FORM, seed), 200)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_kind_is_made() -> None:
    assert {case.kind for case in islice(generate_cases(FORM, 0), 50)} == set(KINDS)


@pytest.mark.slow
def test_every_form_has_cases() -> None:
    message_versions = all_message_versions()
    assert len(message_versions) > 800
    for message_version in message_versions[::20]:
        assert len(list(islice(generate_cases(message_version, 0), 12))) == 12


def test_a_case_comes_back_from_its_json() -> None:
    for case in islice(generate_cases(FORM, 3), 60):
        assert Case.from_json(case.to_json()).content == case.content


@pytest.mark.parametrize(
    ("name", "kind", "api_key"),
    [
        ("FetchRequest", "request", 1),
        ("FetchResponse", "response", 1),
        ("RequestHeader", "header", None),
        ("OffsetCommitKey", "coordinator-key", 1),
        ("TopicRecord", "metadata", 2),
    ],
)
def test_a_question_has_the_type_and_the_key_of_the_message(
    name: str, kind: str, api_key: int | None
) -> None:
    version = MessageVersion(name, 0).cls.VALID_VERSIONS[-1]
    case = next(iter(generate_cases(MessageVersion(name, version), 0)))
    asked = json.loads(case.question(7))
    assert (asked["id"], asked["message"]) == (7, name)
    assert (asked["type"], asked["apiKey"]) == (kind, api_key)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ([], "JSON object"),
        ({"operation": "x"}, "operation is 'x'"),
        ({"operation": "decode", "message": "None"}, "message is 'None'"),
        ({"operation": "decode", "message": "FetchRequest", "version": 99}, "has versions"),
        ({"operation": "decode", "message": "FetchRequest", "version": 13}, "needs the key hex"),
        ({"operation": "encode", "message": "FetchRequest", "version": 13}, "needs the key json"),
    ],
)
def test_invalid_case_is_refused(node: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Case.from_json(node)


def test_sizes_go_beyond_a_byte_and_a_varint_of_one_byte() -> None:
    """A codec whose counts and lengths have one byte must differ in a few hundred cases."""
    lengths: dict[LengthUnit, set[int]] = {unit: set() for unit in LengthUnit}
    for case in islice(generate_cases(MessageVersion("MetadataRequest", 12), 0, ("size",)), 100):
        data = case.content
        if isinstance(data, bytes):
            for each in walk_message(case.message_version.shape, data).length_fields:
                lengths[each.role].add(each.value)
    assert {126, 127, 128, 255, 256, 16384, 32767} <= lengths[LengthUnit.LENGTH]
    assert {126, 127, 128, 255, 256} <= lengths[LengthUnit.COUNT]


def test_cases_of_one_size_have_all_operations() -> None:
    cases = islice(generate_cases(FORM, 0, ("size",)), 60)
    assert {case.operation for case in cases} == set(Operation)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("FetchRequest", 17),
        ("FetchResponse", 17),
        ("ProduceResponse", 10),
        ("ApiVersionsResponse", 4),
    ],
)
def test_explicit_defaults_are_read_as_if_they_were_absent(name: str, version: int) -> None:
    message_version = MessageVersion(name, version)
    cases = [*islice(generate_cases(message_version, 0, ("default",)), 60)]
    assert {case.kind for case in cases} == {"default"}
    for case in cases:
        data = case.content
        assert isinstance(data, bytes)
        found = walk_message(message_version.shape, data)
        assert Oddity.DEFAULT in found.oddities
        assert (found.end, found.deviations) == (len(data), ())
        read = message_version.cls.decode(data, version)
        written = read.encode(version)
        assert len(written) < len(data)
        assert Oddity.DEFAULT not in walk_message(message_version.shape, written).oddities
        assert message_version.cls.decode(written, version) == read


@pytest.mark.slow
def test_default_of_every_tagged_field_is_accepted() -> None:
    tried = 0
    for message_version in all_message_versions():
        shape, version = message_version.shape, message_version.version
        data = message_version.cls().encode(version)
        sections = walk_message(shape, data).tag_sections
        source = random.Random(0)
        for _ in range(8):
            made = with_explicit_defaults(data, sections, source)
            if made is not None:
                tried += 1
                assert message_version.cls.decode(made, version).encode(version) == data
    assert tried > 300


def test_message_without_tagged_fields_gets_other_changes() -> None:
    cases = islice(generate_cases(MessageVersion("FetchRequest", 4), 0, ("default",)), 10)
    assert {case.kind for case in cases} == {"mix"}


@given(any_message())
def test_the_walk_reads_what_we_write(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    message_version = MessageVersion(type(message)._definition().name, version)
    data = message.encode(version)
    found = walk_message(message_version.shape, data)
    assert found.end == len(data)
    assert found.deviations == ()
    assert set(found.oddities) <= {Oddity.UNKNOWN_TAGS}
    for place in found.length_fields:
        assert 0 <= place.begin < place.end <= place.stop <= len(data)


@given(st.sampled_from(MUTATIONS), st.integers(0, 2**32))
def test_a_mutation_changes_one_thing(name: str, seed: int) -> None:
    data = instance(FORM.cls, FORM.version, Fill.FULL).encode(FORM.version)
    length_fields = walk_message(FORM.shape, data).length_fields
    assert {place.role for place in length_fields} == set(LengthUnit)
    made = mutate(name, data, length_fields, random.Random(seed))
    assert made is not None
    assert made != data


def test_only_an_answer_is_an_answer() -> None:
    assert parse_answer({"id": 1, "hex": "00ff"}, Operation.REWRITE).value == b"\0\xff"
    wrongs: list[dict[str, object]] = [{}, {"hex": "0"}, {"hex": 1}, {"json": {}}]
    wrongs.append({"hex": "", "refused": ""})
    for wrong in wrongs:
        with pytest.raises(InvalidAnswerError, match=r"an answer has|hexadecimal|answers"):
            parse_answer({"id": 1, **wrong}, Operation.REWRITE)
