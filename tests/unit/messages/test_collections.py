"""Tests arrays of elements with a key: `find` is correct after any change of the list."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kproto.messages import MetadataResponse, ProduceRequest
from kproto.messages.metadata_response import MetadataResponseTopic, MetadataResponseTopicCollection
from kproto.messages.produce_request import TopicProduceData, TopicProduceDataCollection
from kproto.schema.definitions import union
from kproto.schema.naming import class_name
from kproto.testing.instances import instance
from kproto.wire.uuid import Uuid

from .catalogue import NAMES, class_of

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def topics(*names: str | None) -> MetadataResponseTopicCollection:
    return MetadataResponseTopicCollection(MetadataResponseTopic(name=name) for name in names)


def test_an_element_is_found_by_its_key() -> None:
    found = topics("a", "b", "c")
    assert found.find(name="b") is found[1]
    assert found.find(name="d") is None
    assert found.find(name=None) is None


def test_null_is_a_key() -> None:
    found = topics("a", None)
    assert found.find(name=None) is found[1]


def test_an_empty_list_finds_nothing() -> None:
    assert topics().find(name="a") is None
    assert topics().find_all(name="a") == []


def test_elements_appended_after_a_lookup_are_found() -> None:
    found = topics("a")
    assert found.find(name="b") is None
    found.append(MetadataResponseTopic(name="b"))
    assert found.find(name="b") is found[1]
    found += topics("c")
    assert found.find(name="c") is found[2]


def test_a_key_changed_in_place_is_found_only_by_its_new_value() -> None:
    found = topics("a", "b")
    assert found.find(name="a") is found[0]
    found[0].name = "z"
    assert found.find(name="a") is None
    assert found.find(name="z") is found[0]


def test_a_removed_element_is_not_found() -> None:
    found = topics("a", "b", "c")
    assert found.find(name="c") is found[2]
    del found[0]
    assert found.find(name="a") is None
    assert found.find(name="c") is found[1]
    found.clear()
    assert found.find(name="c") is None


def test_each_element_is_indexed_once_despite_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a failed `find` nor an append after it causes the index to be built again."""
    key_reads = 0
    key_of = MetadataResponseTopicCollection._key_of

    def counted(self: Any, element: Any) -> Any:
        nonlocal key_reads
        key_reads += 1
        return key_of(self, element)

    monkeypatch.setattr(MetadataResponseTopicCollection, "_key_of", counted)
    found = topics()
    for number in range(100):
        assert found.find(name=f"missing {number}") is None
        assert found.find(name=str(number)) is None
        found.append(MetadataResponseTopic(name=str(number)))
        assert found.find(name=str(number)) is found[-1]
    assert key_reads == 100 + 100  # once to index each element, and once to confirm each result


def test_order_may_change_after_a_lookup() -> None:
    found = topics("a", "b", "c")
    assert found.find(name="a") is found[0]
    found.reverse()
    assert found.find(name="a") is found[2]
    found.sort(key=lambda topic: topic.name or "")
    assert found.find(name="a") is found[0]


def test_find_returns_the_first_of_equal_keys_and_find_all_every_one() -> None:
    found = topics("a", "b", "a")
    assert found.find(name="a") is found[0]
    everything = found.find_all(name="a")
    assert [id(topic) for topic in everything] == [id(found[0]), id(found[2])]


def test_a_key_of_two_fields_needs_both() -> None:
    # Produce identifies topics by name before version 13, and by id from then on.
    found = TopicProduceDataCollection(
        [TopicProduceData(name="a"), TopicProduceData(topic_id=A), TopicProduceData(topic_id=B)]
    )
    assert found.find(name="a") is found[0]
    assert found.find(topic_id=B) is found[2]
    assert found.find(name="a", topic_id=A) is None
    assert ProduceRequest.decode(ProduceRequest(topic_data=found[1:]).encode(13), 13).topic_data[
        1
    ] == TopicProduceData(topic_id=B)


@given(
    st.lists(st.sampled_from("abcd"), max_size=6),
    st.lists(
        st.tuples(st.sampled_from(["append", "remove", "rename"]), st.sampled_from("abcd")),
        max_size=12,
    ),
)
def test_find_agrees_with_a_scan_after_any_changes(
    names: list[str], changes: list[tuple[str, str]]
) -> None:
    found = topics(*names)
    for change, name in changes:
        if change == "append":
            found.append(MetadataResponseTopic(name=name))
        elif change == "remove" and found:
            found.pop(0)
        elif found:
            found[-1].name = name
        for wanted in "abcd":
            element = found.find(name=wanted)
            everything = [topic for topic in found if topic.name == wanted]
            assert (element is None) == (not everything)
            assert element is None or any(element is topic for topic in everything)
            assert found.find_all(name=wanted) == everything


def test_decoding_makes_collections() -> None:
    response = instance(MetadataResponse, 12)
    decoded = MetadataResponse.decode(response.encode(12), 12)
    assert type(decoded.topics) is MetadataResponseTopicCollection
    first = decoded.topics[0]
    assert decoded.topics.find(name=first.name) is first


def test_a_collection_is_a_list() -> None:
    found = topics("a", "b")
    assert found == list(found)
    assert found[1:] == [found[1]]
    assert MetadataResponse(topics=list(found)) == MetadataResponse(topics=found)
    assert repr(found).startswith("[MetadataResponseTopic(")


def test_copies_are_independent_collections() -> None:
    found = topics("a", "b")
    found.find(name="a")
    for made in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(made) is MetadataResponseTopicCollection
        assert made == found
        made.append(MetadataResponseTopic(name="c"))
        assert made.find(name="c") is made[2]
    assert found.find(name="c") is None


def test_every_struct_with_a_key_has_a_collection_with_that_key() -> None:
    seen = 0
    for name in NAMES:
        module: Any = __import__(class_of(name).__module__, fromlist=["*"])
        for struct in union()[name].structs():
            if any(field.map_key for field in struct.fields):
                made = getattr(module, f"{class_name(struct.name)}Collection")
                assert len(made._KEY) == sum(field.map_key for field in struct.fields)
                seen += 1
    assert seen > 20
