"""Tests the explanations of error codes: every code has one, and its responses exist."""

from __future__ import annotations

import re

import pytest

from kproto.protocol.error_codes import ERRORS
from kproto.protocol.error_meanings import error_meaning, error_meanings, find_error
from kproto.protocol.error_table import ERROR_TABLE
from kproto.schema import study
from kproto.schema.definitions import union
from kproto.schema.kips import version_notes
from kproto.schema.unknown_names import UnknownNameError
from kproto.schema.versions import Versions

APIS = set(study.api_names().values())


def test_every_code_has_an_explanation_and_no_other_name_has_one() -> None:
    assert list(error_meanings()) == [code for code, _, _ in ERROR_TABLE]
    for code, each in error_meanings().items():
        assert (each.code, each.name, each.retriable) == ERRORS[code]


def test_sentences_are_short_and_in_ascii() -> None:
    for each in error_meanings().values():
        for sentence in (each.meaning, each.client):
            assert sentence.endswith("."), each
            assert sentence.isascii(), each
            assert len(sentence) <= 170, each
        assert any(release.startswith(f"{each.since}.") for release in study.releases()), each


def test_responses_exist_in_the_versions_that_a_row_names() -> None:
    counted = 0
    for each in error_meanings().values():
        apis = [response.api for response in each.responses]
        assert len(set(apis)) == len(apis), each
        assert set(apis) <= APIS, each
        assert apis == sorted(apis, key=lambda api: study.api_name(api)[0]), each
        for response in each.responses:
            valid = union()[f"{response.api}Response"].valid_versions
            if response.versions:
                counted += 1
                named = Versions.parse(response.versions)
                assert named.lowest in valid, response
    assert counted > 300


def test_the_version_of_a_code_is_that_of_the_note_of_the_version() -> None:
    """Every note of `kips.toml` with "may have" and a code agrees with the row of the code."""
    looked = 0
    for api in APIS:
        for note in version_notes(api):
            for name in re.findall(r"may have ([A-Z_]+)", note.change):
                found = [str(each) for each in error_meaning(name).responses if each.api == api]
                assert found == [f"{api} {note.version}+"], note
                looked += 1
    assert looked > 15


@pytest.mark.parametrize("text", [6, "6", "not_leader_or_follower", "NOT_LEADER_FOR_PARTITION"])
def test_code_is_found_by_number_name_and_former_name(text: int | str) -> None:
    found = error_meaning(text)
    assert (found.code, found.name) == (6, "NOT_LEADER_OR_FOLLOWER")
    assert found.to_json()["responses"][0] == {"api": "Produce", "versions": "0+"}


@pytest.mark.parametrize("text", ["", "-", "--1", "999", "9" * 5000, "²", "nonsense", 999])
def test_unknown_code_is_refused_with_the_nearest_names(text: int | str) -> None:
    assert find_error(text) is None
    with pytest.raises(UnknownNameError, match="no error code is"):
        error_meaning(text)


def test_a_misspelled_code_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="the nearest: NOT_COORDINATOR"):
        error_meaning("NOT_CORDINATOR")
