"""Tests values that no version can encode, in every field of every message.

Each value raises an EncodeError that names the message, the version and the path of the field. No
wrong value is written, and no other error class is raised.
"""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.messages import (
    DescribeTopicPartitionsResponse,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    QuorumStateData,
    SaslAuthenticateRequest,
)
from kproto.messages.base import Message, Struct
from kproto.messages.fetch_request import FetchPartition, FetchTopic, ReplicaState
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.schema.definitions import union
from kproto.schema.explain import explain_encode, is_default
from kproto.schema.layout import WireType
from kproto.testing.instances import Fill, instance
from kproto.wire.errors import EncodeError
from kproto.wire.tags import RawTaggedField

from .catalogue import SOME_EVERYDAY, Place, class_of, places, shape_of, structs

#: One more than the largest, and one less than the smallest, of each type.
OUTSIDE = {
    "int8": (2**7, -(2**7) - 1),
    "int16": (2**15, -(2**15) - 1),
    "uint16": (2**16, -1),
    "int32": (2**31, -(2**31) - 1),
    "uint32": (2**32, -1),
    "int64": (2**63, -(2**63) - 1),
}


def wrong_values(kind: WireType) -> Iterator[Any]:
    """Yields values that a field of this type cannot have."""
    if not kind.nullable:
        yield None
    yield object()
    match kind.kind:
        case "bool":
            yield from ("true", 1.5, 256)
        case "float64":
            yield from ("1.5", 10**400)
        case "string":
            yield from (b"bytes", 5, "\ud800", "x" * 32768, "é" * 16384)
        case "bytes" | "records":
            yield from ("text", 5, [1, 2])
        case "uuid":
            yield from (b"\1" * 15, b"\1" * 17, "A" * 16, uuid.UUID(int=1), 5)
        case "struct":
            yield from (5, "text", RawTaggedField(1, b""))
        case "array":
            assert kind.element is not None
            yield from (5, iter(()), "text", "", {}, {"name": "text"})
            yield [next(wrong_values(kind.element))]
            yield [None]
        case number:
            yield from (2.0, "1", *OUTSIDE[number])


def refused(message: Message, version: int, path: str) -> EncodeError:
    """Checks that `message` cannot be encoded because of the value at `path`; returns the error."""
    name = type(message).__name__
    with pytest.raises(EncodeError) as caught:
        message.encode(version)
    error = caught.value
    assert (error.message, error.version) == (name, version)
    assert error.field is not None, error
    assert error.field == path or error.field.startswith(f"{path}[0]"), error
    assert str(error).startswith(f"{name} v{version}, field {path}")
    return error


def one_of_each_kind(message: Message, version: int) -> list[Place]:
    """Returns one `Place` for each path that fields of `message` have without array indexes."""
    shape = shape_of(type(message)._definition().name, version)
    return list({place.kind: place for place in places(shape, message)}.values())


@pytest.mark.parametrize("name", SOME_EVERYDAY)
@pytest.mark.slow
def test_every_field_refuses_what_it_cannot_hold(name: str) -> None:
    cls = class_of(name)
    for version in sorted({cls.VALID_VERSIONS[0], cls.VALID_VERSIONS[-1]}):
        message = instance(cls, version, Fill.FULL)
        data = message.encode(version)
        for place in one_of_each_kind(message, version):
            right = place.value
            wrong_ones = [*wrong_values(place.field.type)]
            default = place.field.default
            if place.field.type.kind in OUTSIDE and isinstance(default, int):
                # The float equals the default, which a tagged field omits, but it is not an int.
                wrong_ones.append(float(default))
            for wrong in wrong_ones:
                setattr(place.owner, place.field.attribute, wrong)
                refused(message, version, place.path)
            setattr(place.owner, place.field.attribute, right)
        assert message.encode(version) == data


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_every_field_must_be_there(name: str) -> None:
    cls = class_of(name)
    version = cls.VALID_VERSIONS[-1]
    message = instance(cls, version, Fill.FULL)
    for place in one_of_each_kind(message, version):
        right = place.value
        delattr(place.owner, slot_of(place.owner, place.field.attribute))
        assert "deleted, or never set" in str(refused(message, version, place.path))
        setattr(place.owner, place.field.attribute, right)


def sample_values(name: str) -> dict[tuple[str, str], Any]:
    """Returns a value of each (struct, field) that differs from the field's default.

    The value is from the newest version that has the field.
    """
    cls = class_of(name)
    found: dict[tuple[str, str], Any] = {}
    for version in cls.VALID_VERSIONS:
        message = instance(cls, version, Fill.FULL, unknown_tags=False)
        for struct, shape, _, _ in structs(shape_of(name, version), message):
            for field in shape.all_fields():
                found[shape.name, field.name] = getattr(struct, field.attribute)
    return found


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_a_field_of_other_versions_is_dropped_if_ignorable_and_else_refused(name: str) -> None:
    cls = class_of(name)
    values = sample_values(name)
    for version in cls.VALID_VERSIONS:
        shape = shape_of(name, version)
        message = instance(cls, version, Fill.FULL)
        data = message.encode(version)
        for struct, inner, path, _ in structs(shape, message):
            assert isinstance(struct, Struct)
            for spec in inner.absent:
                value = values[inner.name, spec.name]
                attribute = slot_of(struct, spec.name).lstrip("_")
                default = getattr(struct, attribute)
                assert is_default(spec, default)
                setattr(struct, attribute, value)
                if spec.ignorable:
                    assert message.encode(version) == data
                else:
                    error = refused(message, version, f"{path}.{attribute}".lstrip("."))
                    assert "this version does not have the field" in str(error)
                setattr(struct, attribute, default)
        assert message.encode(version) == data


def slot_of(struct: Struct, name: str) -> str:
    """Returns the name of the Python slot that stores the field `name`."""
    wanted = name.replace("_", "").lower()
    (found,) = (slot for slot in struct.__slots__ if slot.replace("_", "") == wanted)
    return found


def test_null_does_not_pass_for_a_default_that_is_empty() -> None:
    # Both are tagged fields, which are omitted at their default; null is not the default.
    response = class_of("ProduceResponse")()
    response.node_endpoints = None  # type: ignore[attr-defined]
    refused(response, 10, "node_endpoints")
    features = class_of("ApiVersionsResponse")()
    features.zk_migration_ready = None  # type: ignore[attr-defined]
    refused(features, 3, "zk_migration_ready")


def test_a_nullable_struct_may_be_null_and_nothing_else() -> None:
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    assert DescribeTopicPartitionsResponse.decode(response.encode(0), 0) == response
    response.next_cursor = ()  # type: ignore[assignment]
    assert "a Cursor is wanted, not tuple" in str(refused(response, 0, "next_cursor"))


def test_a_subclass_is_written_and_explained_as_its_base() -> None:
    class Mine(MetadataRequest):
        """A user's subclass."""

    request = Mine(topics=[MetadataRequestTopic(name="a")])
    assert request.encode(9) == MetadataRequest(topics=request.topics).encode(9)
    assert isinstance(Mine.decode(request.encode(9), 9), Mine)
    assert Mine.from_json(request.to_json(9), 9) == request
    request.allow_auto_topic_creation = "no"  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="field allow_auto_topic_creation: str of length 2"):
        request.encode(9)


def test_a_struct_of_a_derived_class_is_at_its_defaults_as_its_base_is() -> None:
    class Mine(ReplicaState):
        def __init__(self, replica_id: int) -> None:
            super().__init__(replica_id=replica_id)

    request = FetchRequest(replica_state=Mine(-1))
    for version in (12, 15):
        assert request.encode(version) == FetchRequest().encode(version)
        assert request.to_json(version) == FetchRequest().to_json(version)
    request.rack_id = 3  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="field rack_id: a str is wanted, not 3"):
        request.encode(12)
    request = FetchRequest(replica_state=Mine(4))
    assert request.to_json(15)["replicaState"] == {"replicaId": 4, "replicaEpoch": -1}
    with pytest.raises(EncodeError, match="field replica_state: this version does not have"):
        request.encode(12)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([RawTaggedField(0, b"")], "tag 0 is a field of this version, or is there twice"),
        ([RawTaggedField(9, b"a"), RawTaggedField(9, b"b")], "tag 9 is a field of this version"),
        ([RawTaggedField(-1, b"")], "-1 is no tag number"),
        ([RawTaggedField(2**32, b"")], "4294967296 is no tag number"),
        ([RawTaggedField(2**31 - 1, b"")], "2147483647 is no tag number, which are from 0 to"),
        ([("9", b"")], "a list of RawTaggedField"),
        ([(9, "text")], "a list of RawTaggedField"),
        ([(9, None)], "a list of RawTaggedField"),
        ([5], "a list of RawTaggedField"),
    ],
)
def test_wrong_unknown_tags_are_refused(fields: list[Any], reason: str) -> None:
    request = FetchRequest()  # Tag 0, the cluster id, stays at its default.
    request.unknown_tagged_fields = fields
    assert reason in str(refused(request, 12, "unknown_tagged_fields"))
    nested = FetchRequest(topics=[FetchTopic(), FetchTopic(partitions=[FetchPartition()])])
    nested.topics[1].partitions[0].unknown_tagged_fields = fields
    refused(nested, 17, "topics[1].partitions[0].unknown_tagged_fields")


def test_unknown_tags_need_a_flexible_version() -> None:
    request = FetchRequest()
    request.unknown_tagged_fields = [RawTaggedField(9, b"")]
    assert "is not flexible" in str(refused(request, 11, "unknown_tagged_fields"))


def test_the_tag_of_a_field_is_taken_in_every_version() -> None:
    # Tag 1 is ReplicaState from version 15 on; Kafka's classes read it in no earlier version.
    request = FetchRequest(cluster_id="c")
    request.unknown_tagged_fields = [RawTaggedField(1, b"x")]
    for version in (14, 15):
        refused(request, version, "unknown_tagged_fields")


def test_the_place_is_named_with_every_index() -> None:
    request = ProduceRequest(
        topic_data=[
            TopicProduceData(name="a"),
            TopicProduceData(name="b", partition_data=[PartitionProduceData(index=2**31)]),
        ]
    )
    with pytest.raises(EncodeError) as caught:
        request.encode(9)
    assert str(caught.value) == (
        "ProduceRequest v9, field topic_data[1].partition_data[0].index: "
        "2147483648 is no int32, a whole number from -2147483648 to 2147483647"
    )


def test_a_field_of_other_versions_and_a_field_that_is_ignorable() -> None:
    request = FetchRequest(replica_state=ReplicaState(replica_id=5))
    assert "(versions 15+ do); leave it at its default" in str(
        refused(request, 14, "replica_state")
    )
    state = QuorumStateData(cluster_id="c", leader_id=1)
    assert str(refused(state, 1, "cluster_id")).endswith(
        ": this version does not have the field (version 0 does); leave it at its default"
    )
    # RackId is ignorable: a version before 11 omits it.
    assert FetchRequest(rack_id="a").encode(10) == FetchRequest().encode(10)


@pytest.mark.parametrize("version", [-1, 5, 32767, None, "4"])
def test_a_version_that_is_not_valid_is_an_error(version: int) -> None:
    with pytest.raises(EncodeError, match=r"HeartbeatRequest: version .* is not one of 0 to 4"):
        class_of("HeartbeatRequest")().encode(version)


def test_secrets_are_not_in_the_error() -> None:
    request = SaslAuthenticateRequest(auth_bytes="the password")  # type: ignore[arg-type]
    with pytest.raises(EncodeError) as caught:
        request.encode(2)
    assert "bytes are wanted, not str of length 12" in str(caught.value)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"a-b-c-d-")[::2]]
)
def test_any_buffer_is_written_as_its_bytes(value: Any) -> None:
    plain, compact = SaslAuthenticateRequest(auth_bytes=value), b"\x05abcd\x00"
    assert plain.encode(1) == b"\0\0\0\4abcd"
    assert plain.encode(2) == compact


def test_the_items_of_a_buffer_do_not_count_as_bytes() -> None:
    request = SaslAuthenticateRequest(auth_bytes=array("i", [1, 2]))  # type: ignore[arg-type]
    assert len(request.encode(1)) == 4 + 8
    decoded = SaslAuthenticateRequest.decode(request.encode(2), 2)
    assert decoded.auth_bytes == array("i", [1, 2]).tobytes()


def test_the_walker_finds_nothing_in_what_was_written() -> None:
    response = instance(MetadataResponse, 12, Fill.HIGH)
    response.encode(12)
    assert explain_encode(union()["MetadataResponse"], 12, response) is None
