"""Tests that the page decodes bytes as Python does: to equal values, or with an equal error.

The page and Python use the same message definitions, but their decoders share no code: the page
runs JavaScript in Chromium, and Python runs the generated classes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import kproto.messages
from kproto.messages.base import Message
from kproto.wire.errors import DecodeError
from tests.unit.messages.test_broken_bytes import mutations

from .conftest import Open, vectors

pytestmark = pytest.mark.browser

SEED = 20_260_101
MUTATIONS = 2  # mutations of each vector: about six thousand in all

ASK = """
return arguments[0].map(([name, version, hex]) => {
  const read = kproto.decode(name, version, hex);
  return read.fault ? read.fault : read.json;
});
"""

Case = tuple[str, int, bytes]


def class_of(name: str) -> type[Message]:
    cls: type[Message] = getattr(kproto.messages, name)
    return cls


def answers(browser: Any, cases: list[Case]) -> list[Any]:
    """Returns, for each case, the JSON text of the value that the page decoded.

    If the page refuses the bytes of a case, the result is a dict with `reason`, `path` and `offset`
    instead of a text.
    """
    requested = [[name, version, data.hex()] for name, version, data in cases]
    answered: list[Any] = browser.execute_script(ASK, requested)
    return answered


def same_value(cls: type[Message], version: int, value: Message, text: str) -> bool:
    """Returns whether the page's JSON represents the value that Python decoded.

    Python's JSON omits a tagged field with its default value, but the page shows the field if the
    bytes contain it. If the two JSON texts differ, compares the messages parsed from them.
    """
    ours, theirs = value.to_json(version), json.loads(text)
    return ours == theirs or cls.from_json(ours, version) == cls.from_json(theirs, version)


def check(browser: Any, cases: list[Case]) -> Iterator[str]:
    """Checks that page and Python agree on each case.

    Yields "broken" for a case that the page and Python refuse, and "whole" for a case that the page
    and Python decode.
    """
    for (name, version, data), said in zip(cases, answers(browser, cases), strict=True):
        cls = class_of(name)
        where = f"{name} v{version}: {data[:4000].hex()}"
        try:
            value = cls.decode(data, version)
        except DecodeError as fault:
            # Python's reason ends with a hint to another Python function.
            reason = fault.reason.partition("; decode_from")[0]
            ours = {"reason": reason, "path": fault.field or "", "offset": fault.offset}
            assert said == ours, where
            yield "broken"
        else:
            assert isinstance(said, str), f"{where}: {said}"
            assert same_value(cls, version, value, said), where
            yield "whole"


def test_every_vector_is_decoded_to_its_json(opened: Open) -> None:
    every_vector = vectors()
    cases = [(one["message"], one["version"], bytes.fromhex(one["hex"])) for one in every_vector]
    every = {
        (name, version)
        for name in kproto.messages.__all__
        if isinstance(cls := getattr(kproto.messages, name), type) and issubclass(cls, Message)
        for version in getattr(cls, "VALID_VERSIONS", ())
    }
    assert {(name, version) for name, version, _ in cases} == every
    for one, text in zip(every_vector, answers(opened(), cases), strict=True):
        assert isinstance(text, str), f"{one['message']} v{one['version']}: {text}"
        assert json.loads(text) == one["json"], f"{one['message']} v{one['version']}"


@pytest.mark.exhaustive
def test_mutated_vectors_get_the_result_of_python(opened: Open) -> None:
    source = random.Random(SEED)
    cases = [
        (one["message"], one["version"], changed)
        for one in vectors()
        for changed in mutations(bytes.fromhex(one["hex"]), source, MUTATIONS)
    ]
    verdicts = Counter(check(opened(), cases))
    assert verdicts["broken"] > 2000
    assert verdicts["whole"] > 500


#: Cases that mutations rarely or never produce.
ODD: list[Case] = [
    ("ApiVersionsRequest", 3, bytes.fromhex("8f80808010")),  # a varint of five bytes
    ("ApiVersionsRequest", 3, bytes.fromhex("ffffffffff01")),  # a varint of six bytes
    ("ApiVersionsRequest", 3, bytes.fromhex("80808080")),  # a cut varint
    ("ApiVersionsRequest", 3, bytes.fromhex("818001") + b"a" * 0x80),  # a cut compact string
    ("ApiVersionsRequest", 3, bytes.fromhex("81808002") + b"a" * 40_000),  # too long a string
    ("ApiVersionsRequest", 3, bytes.fromhex("0161" + "0161" + "91ce00")),  # 10,001 tags
    ("ApiVersionsRequest", 3, bytes.fromhex("0101" + "01" + "ffffffff0f00")),  # too large a tag
    ("ApiVersionsRequest", 3, bytes.fromhex("0101" + "02" + "07000700")),  # a tag twice
    ("ApiVersionsRequest", 3, bytes.fromhex("0101" + "02" + "09000700")),  # tags out of order
    ("ApiVersionsRequest", 3, bytes.fromhex("0101" + "01" + "0705aa")),  # too long a tagged field
    ("FetchRequest", 12, bytes.fromhex("00" * 25 + "01" * 3 + "01" + "00" + "03" + "0361")),
    ("MetadataRequest", 1, bytes.fromhex("fffffffe")),  # a length of -2
    ("MetadataRequest", 0, bytes.fromhex("ffffffff")),  # null in a non-nullable field
    ("MetadataRequest", 0, bytes.fromhex("00000001ffff")),
    ("MetadataRequest", 0, bytes.fromhex("7fffffff")),  # more elements than bytes
    ("ControlledShutdownResponse", 0, bytes.fromhex("0000000f4241") + b"x" * 2_000_000),
    *(
        ("MetadataRequest", 0, bytes.fromhex("00000001") + bytes([0, len(text)]) + text)
        for text in (
            b"\x80",
            b"a\xc1\x81",
            b"\xc3",
            b"\xc3(",
            b"\xe0\x9f\x80",
            b"\xed\xa0\x80",
            b"\xe2\x82",
            b"\xe2(\xa1",
            b"\xf0\x8f\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\xf0\x9f\x98",
            b"\xf0\x9f\x98\x80",
            b"\xef\xbb\xbfa",  # a byte order mark counts as a character
            b"\x00",
        )
    ),
    ("MetadataRequest", 0, bytes.fromhex("000f4241") + b"\0\0" * 1_000_001),  # 1,000,001 elements
]


def test_rare_bytes_get_the_result_of_python(opened: Open) -> None:
    verdicts = Counter(check(opened(), ODD))
    assert verdicts["broken"] > 20
    assert verdicts["whole"] >= 3
