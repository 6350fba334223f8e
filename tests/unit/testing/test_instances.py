"""Tests generated message instances: repeatable, valid for their version, with varied values."""

from __future__ import annotations

import itertools

import pytest

from kproto.messages import ApiVersionsRequest, FetchResponse, MetadataResponse
from kproto.messages.base import Message
from kproto.testing.instances import Fill, instance, instances, random_instances


def encodings(message: type[Message], version: int, seed: int, count: int) -> list[bytes]:
    drawn = itertools.islice(random_instances(message, version, seed=seed), count)
    return [built.encode(version) for built in drawn]


def test_random_instances_are_the_same_for_the_same_seed() -> None:
    first = encodings(FetchResponse, 16, 1, 30)
    assert encodings(FetchResponse, 16, 1, 30) == first
    assert encodings(FetchResponse, 16, 2, 30) != first
    assert len(set(first)) == 30


@pytest.mark.parametrize("version", FetchResponse.VALID_VERSIONS)
def test_random_instances_survive_writing_and_reading(version: int) -> None:
    for built in itertools.islice(random_instances(FetchResponse, version), 20):
        assert FetchResponse.decode(built.encode(version), version) == built


def test_random_instances_meet_nulls_defaults_and_unknown_tags() -> None:
    drawn = list(itertools.islice(random_instances(MetadataResponse, 12), 200))
    assert any(built.cluster_id is None for built in drawn)
    assert any(built.controller_id == -1 for built in drawn)
    assert any(built.unknown_tagged_fields for built in drawn)
    assert any(topic.name is None for built in drawn for topic in built.topics)
    bare = itertools.islice(random_instances(MetadataResponse, 12, unknown_tags=False), 200)
    assert not any(built.unknown_tagged_fields for built in bare)


def test_long_instances_reach_the_third_byte_of_a_length() -> None:
    built = instance(MetadataResponse, 12, Fill.LONG)
    lengths = {len(broker.host) for broker in built.brokers}
    lengths |= {len(topic.partitions[0].replica_nodes) for topic in built.topics}
    lengths.add(len(built.cluster_id or ""))
    assert lengths <= {16382, 16383, 16384}
    assert len(lengths) > 1
    assert MetadataResponse.decode(built.encode(12), 12) == built
    assert max(len(small.encode(12)) for small in instances(MetadataResponse, 12)) < 16382


def test_a_version_that_the_message_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="ApiVersionsRequest has versions 0-5, not 6"):
        next(random_instances(ApiVersionsRequest, 6))
