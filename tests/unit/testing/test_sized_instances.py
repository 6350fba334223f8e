"""Tests the instances in which one field has a length at the border of an encoding."""

from __future__ import annotations

import pytest

from kproto import messages
from kproto.messages import FetchRequest, MetadataRequest, MetadataResponse, RequestHeader
from kproto.messages.base import Message
from kproto.testing.sized_instances import SIZES, sized_fields, sized_instance


def test_each_string_bytes_and_array_is_found_also_in_structs() -> None:
    found = {field.path: field.sizes for field in sized_fields(MetadataResponse, 12)}
    assert found["ClusterId",] == SIZES
    assert max(found["Brokers",]) == 256
    assert max(found["Topics", "Partitions", "ReplicaNodes"]) == 16384
    assert ("Topics", "Partitions", "LeaderEpoch") not in found


def test_strings_in_an_array_are_found() -> None:
    paths = [field.path for field in sized_fields(FetchRequest, 4)]
    assert ("Topics", "Topic") in paths
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("size", SIZES)
def test_field_has_the_length_and_all_others_their_defaults(size: int) -> None:
    made = sized_instance(RequestHeader, 2, ("ClientId",), size)
    assert made == RequestHeader(client_id="x" * size)
    data = made.encode(2)
    assert RequestHeader.decode(data, 2) == made


def test_array_of_structs_has_the_count_and_different_map_keys() -> None:
    made = sized_instance(MetadataResponse, 12, ("Brokers",), 128)
    assert len({broker.node_id for broker in made.brokers}) == 128
    assert MetadataResponse.decode(made.encode(12), 12) == made


def test_arrays_on_the_path_have_one_element() -> None:
    made = sized_instance(MetadataRequest, 12, ("Topics", "Name"), 127)
    assert made.topics is not None
    assert [topic.name for topic in made.topics] == ["x" * 127]


@pytest.mark.slow
def test_every_message_of_kafka_has_its_instances_encoded_and_decoded() -> None:
    for name in sorted(messages.MODULES)[::7]:
        cls: type[Message] = getattr(messages, name)
        version = cls.VALID_VERSIONS[-1]
        for field in sized_fields(cls, version):
            for size in field.sizes[2:8]:
                made = sized_instance(cls, version, field.path, size)
                data = made.encode(version)
                assert cls.decode(data, version) == made
                node = made.to_json(version)
                assert cls.from_json(node, version).encode(version) == data
