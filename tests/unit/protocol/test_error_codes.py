"""Tests the table of error codes: all codes of the newest release, and names for unknown codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kproto.protocol.error_codes import (
    ERRORS,
    code_of,
    error_code,
    error_of_code,
    raise_for_code,
)
from kproto.wire.errors import BrokerResponseError

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"


def test_the_table_is_that_of_the_release() -> None:
    node = json.loads((SCHEMAS / "4.4.0" / "errors.json").read_text(encoding="utf-8"))
    wanted = {entry["code"]: (entry["name"], entry["retriable"]) for entry in node}
    assert len(wanted) == len(node)
    assert {code: entry[1:] for code, entry in ERRORS.items()} == wanted
    assert all(entry.code == code for code, entry in ERRORS.items())


def test_no_code_of_the_older_release_is_missing() -> None:
    node = json.loads((SCHEMAS / "3.9.2" / "errors.json").read_text(encoding="utf-8"))
    assert {entry["code"] for entry in node} <= set(ERRORS)


@pytest.mark.parametrize("code", [-2, 1000, 32767, -32768])
def test_an_unknown_code_is_named_by_its_number(code: int) -> None:
    assert error_code(code) == (code, f"UNKNOWN_CODE_{code}", False)
    with pytest.raises(
        BrokerResponseError, match=rf"UNKNOWN_CODE_{code} \({code}\): asking"
    ) as told:
        raise_for_code(code, "asking")
    assert told.value.code == code
    assert not told.value.retriable


def test_a_known_code() -> None:
    with pytest.raises(
        BrokerResponseError, match=r"NOT_LEADER_OR_FOLLOWER \(6\): producing"
    ) as told:
        raise_for_code(6, "producing")
    assert (told.value.code, told.value.name, told.value.retriable) == (
        6,
        "NOT_LEADER_OR_FOLLOWER",
        True,
    )
    raise_for_code(0, "nothing is raised")


def test_by_name() -> None:
    assert {code_of(entry.name) for entry in ERRORS.values()} == set(ERRORS)
    with pytest.raises(KeyError):
        code_of("NO_SUCH_ERROR")


@pytest.mark.parametrize("code", [*ERRORS, -2, 32767])
def test_an_error_keeps_what_kafka_says_of_its_code(code: int) -> None:
    error = error_of_code(code, "asking")
    assert (error.code, error.name, error.retriable) == error_code(code)
    assert error.detail == "asking"
    assert str(error) == f"{error.name} ({code}): asking"
