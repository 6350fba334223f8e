"""Tests the comparison of strings that are not UTF-8, which a codec may replace or keep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.fuzz.case import Answer, Case, MessageVersion, Operation, Outcome
from kproto.fuzz.judging import Fault, judge

STANDARD = MessageVersion("FindCoordinatorRequest", 1)
COMPACT = MessageVersion("FindCoordinatorRequest", 3)
#: Has a string in a tagged field.
TAGGED = MessageVersion("FetchRequest", 12)
REPLACEMENT = "\ufffd".encode()


def standard(text: bytes, key_type: int = 0) -> bytes:
    return len(text).to_bytes(2, "big") + text + bytes([key_type])


def compact(text: bytes, key_type: int = 0) -> bytes:
    assert len(text) < 127
    return bytes([len(text) + 1]) + text + bytes([key_type, 0])


def tagged(cluster_id: bytes) -> bytes:
    """Returns a Fetch request whose tag 0, ClusterId, is the only value."""
    head = b"\xff" * 4 + bytes(4 + 4 + 4 + 1 + 4 + 4) + b"\1\1" + b"\1"
    value = bytes([len(cluster_id) + 1]) + cluster_id
    return head + bytes([1, 0, len(value)]) + value


def faults(
    version: MessageVersion, content: bytes, right: Any, given: Any, *, decode: bool = False
) -> list[Fault]:
    operation = Operation.DECODE if decode else Operation.REWRITE
    case = Case(operation, version, content, "mix")
    answers = (Answer(Outcome.DONE, value) for value in (right, given))
    return [each.fault for each in judge(case, *answers, by_kproto=False) or ()]


@pytest.mark.parametrize(
    ("version", "made"), [(STANDARD, standard), (COMPACT, compact), (TAGGED, tagged)]
)
def test_a_codec_may_keep_the_bytes_of_a_string(version: MessageVersion, made: Any) -> None:
    content, replaced = made(b"a\xffb\x80\x80"), b"a" + REPLACEMENT + b"b" + 2 * REPLACEMENT
    assert faults(version, content, made(replaced), content) == []
    other = faults(version, content, made(replaced), made(b"a\xfeb\x80\x80"))
    assert other == [Fault.BYTES]
    assert faults(version, content, made(replaced), made(b"ab")) == [Fault.BYTES]


def test_a_codec_may_replace_another_number_of_bytes() -> None:
    """Java replaces an encoded surrogate by one U+FFFD, Python by three."""
    content = standard(b"\xed\xa0\x80x")
    assert faults(STANDARD, content, standard(REPLACEMENT + b"x"), content) == []


def test_other_fields_must_be_equal() -> None:
    content = standard(b"\xff", 0)
    assert faults(STANDARD, content, standard(REPLACEMENT), standard(b"\xff", 1)) == [Fault.BYTES]


def test_a_tagged_field_must_have_the_size_of_the_kept_string() -> None:
    content, right = tagged(b"\xff\xff"), tagged(2 * REPLACEMENT)
    size = content.rindex(b"\3\3")
    wrong = content[:size] + b"\7" + content[size + 1 :]
    assert faults(TAGGED, content, right, wrong) == [Fault.BYTES]


def test_json_may_have_surrogates_for_the_bytes_of_a_string() -> None:
    content = standard(b"a\xff\x80")
    right = {"key": "a\ufffd\ufffd", "keyType": 0}
    for text, found in (("a\udcff\udc80", []), ("a\ufffd", []), ("b\udcff", [Fault.JSON])):
        given = {"key": text, "keyType": 0}
        assert faults(STANDARD, content, right, given, decode=True) == found


def test_a_right_string_must_not_be_replaced() -> None:
    right = {"key": "a\ufffd", "keyType": 0}
    given = {"key": "a\udcff", "keyType": 0}
    content = standard(b"a" + REPLACEMENT)
    assert faults(STANDARD, content, right, given, decode=True) == [Fault.JSON]
    assert faults(STANDARD, content, content, standard(b"a\xff")) == [Fault.BYTES]


@given(st.binary(max_size=60), st.binary(max_size=3))
def test_only_the_kept_bytes_are_right(text: bytes, more: bytes) -> None:
    replaced = text.decode(errors="replace").encode()
    for version, made in ((STANDARD, standard), (COMPACT, lambda it: compact(it[:120]))):
        content, right = made(text), made(replaced)
        if len(replaced) > 120:
            continue
        assert faults(version, content, right, content) == []
        if more.strip(b"\x80\xff"):
            assert faults(version, content, right, made(text + more)) == [Fault.BYTES]
