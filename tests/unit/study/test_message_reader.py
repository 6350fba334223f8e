"""Tests the annotated tree of every message: values and faults equal those of `decode`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings

from kproto.messages.base import Message
from kproto.study import annotate, nodes
from kproto.testing.instances import instances
from kproto.testing.strategies import any_message
from tests.support.environment import ROOT
from tests.support.examples import examples
from tests.unit.messages.catalogue import FEW_EVERYDAY, SOME_EVERYDAY, class_of
from tests.unit.messages.test_broken_bytes import mutations, truncations

from .agreement import check_agreement, check_values, message_fault

VECTORS = sorted((ROOT / "tests" / "vectors").glob("*.jsonl"))


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_every_value_is_what_the_class_decodes(name: str) -> None:
    cls = class_of(name)
    for version in cls.VALID_VERSIONS:
        for built in instances(cls, version):
            data = built.encode(version)
            root = check_agreement(cls, version, data)
            assert message_fault(root) is None
            check_values(cls, version, cls.decode(data, version), root)


@settings(max_examples=examples(80), deadline=None)
@given(any_message())
def test_any_message(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    data = message.encode(version)
    root = check_agreement(type(message), version, data)
    check_values(type(message), version, type(message).decode(data, version), root)


@pytest.mark.parametrize("name", FEW_EVERYDAY)
def test_broken_bytes_have_the_fault_that_decode_tells(name: str) -> None:
    cls = class_of(name)
    source = random.Random(name)
    for version in cls.VALID_VERSIONS:
        for built in instances(cls, version):
            data = built.encode(version)
            for changed in mutations(data, source, 4):
                check_agreement(cls, version, changed)
            for cut in list(truncations(data, source))[:: max(1, len(data) // 12)]:
                check_agreement(cls, version, cut)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_the_golden_vectors(path: Path) -> None:
    with path.open(encoding="utf-8") as lines:
        for line in list(lines)[::5]:
            vector = json.loads(line)
            cls, data = class_of(vector["message"]), bytes.fromhex(vector["hex"])
            root = check_agreement(cls, vector["version"], data)
            check_values(cls, vector["version"], cls.decode(data, vector["version"]), root)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_memory_is_bounded_and_what_is_left_out_is_read() -> None:
    cls = class_of("MetadataRequest")
    count = 50_000
    data = (count).to_bytes(4, "big") + b"\0\1a" * count
    root = annotate(data, cls, 0, max_nodes=100)
    topics = root.child("topics")
    assert len(list(nodes(root))) == 101
    assert topics.left_out == count - len(topics.children)
    assert root.size == topics.size == len(data)
    broken = annotate(data[:-1] + b"\xff", cls, 0, max_nodes=100)
    fault = message_fault(annotate(data[:-1] + b"\xff", cls, 0, max_nodes=None))
    assert fault is not None
    assert fault.path == f"topics[{count - 1}].name"
    assert broken.size == len(data)
