"""Tests that encoding hostile objects yields bytes, or an EncodeError that names the field.

If an object raises MemoryError, encoding raises this MemoryError unchanged.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, UserString
from collections.abc import Callable, Iterator
from itertools import count
from types import MappingProxyType
from typing import Any

import pytest

from kproto.messages import (
    ApiVersionsResponse,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    ElectLeadersRequest,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.messages.base import Message
from kproto.messages.elect_leaders_request import TopicPartitions
from kproto.messages.fetch_request import FetchTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kproto.messages.produce_request import TopicProduceData
from kproto.schema.explain import explain_encode
from kproto.testing.instances import Fill, instance
from kproto.wire.errors import EncodeError
from kproto.wire.uuid import Uuid

from .catalogue import SOME_EVERYDAY, Place, class_of, places, shape_of


class OddError(Exception):
    """An error class that no codec expects."""

    def __str__(self) -> str:
        raise OddError


def raises(*_: Any, **__: Any) -> Any:
    raise OddError


class Hostile:
    """Raises OddError for every operation."""

    __len__ = __iter__ = __index__ = __int__ = __float__ = __bool__ = raises
    __str__ = __repr__ = __eq__ = __ne__ = __contains__ = __getitem__ = raises
    __hash__ = None  # type: ignore[assignment]
    __getattr__ = encode = raises


class HostileText(str):
    """A str that cannot be encoded."""

    __slots__ = ()
    encode = __len__ = __eq__ = raises
    __hash__ = None  # type: ignore[assignment]


class HostileBytes(bytes):
    """Bytes whose length cannot be read."""

    __slots__ = ()
    __len__ = __iter__ = __eq__ = raises
    __hash__ = None  # type: ignore[assignment]


class HostileNumber(int):
    """An int that cannot be used as a number."""

    __index__ = __int__ = __eq__ = __ne__ = __repr__ = raises
    __hash__ = None  # type: ignore[assignment]


class HostileList(list[Any]):
    """A list that raises when it is iterated."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise OddError


class Liar(list[Any]):
    """A list that reports a greater length than it has."""

    def __len__(self) -> int:
        return 3


class ShortLiar(list[Any]):
    """A list that reports a smaller length than it has."""

    def __len__(self) -> int:
        return 0


class Property:
    """A struct whose fields raise when they are read."""

    _unknown_tags = None

    def __getattribute__(self, name: str) -> Any:
        raise OddError


class Endless:
    """A sequence of length 1 that raises RecursionError when it is iterated."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Any]:
        raise RecursionError


HOSTILE: tuple[Callable[[], Any], ...] = (
    Hostile,
    HostileText,
    HostileBytes,
    HostileNumber,
    HostileList,
    Liar,
    lambda: ShortLiar([1]),
    lambda: ShortLiar(["a"]),
    lambda: ShortLiar([Uuid(16)]),
    Property,
    Endless,
    lambda: [Hostile()],
    lambda: [Property()],
    lambda: 10**5000,
    lambda: -(10**5000),
    lambda: 1e308 * 10,
    lambda: 1j,
    lambda: type,
    lambda: NotImplemented,
    lambda: ...,
    lambda: 2,
    lambda: -1,
    lambda: array("i", range(16)),
    lambda: array("i", range(4)),
    lambda: memoryview(bytearray(16)).cast("H"),
    lambda: range(3),
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: (value for value in "ab"),
    lambda: MetadataRequestTopic(name="a"),
    lambda: [MetadataRequestTopic(name="a")],
    lambda: MetadataRequest,
)


def one_of_each_kind(message: Message, version: int) -> list[Place]:
    shape = shape_of(type(message)._definition().name, version)
    return list({place.kind: place for place in places(shape, message)}.values())


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_any_object_in_any_field_is_encoded_or_refused(name: str) -> None:
    cls = class_of(name)
    version = cls.VALID_VERSIONS[-1]
    message = instance(cls, version, Fill.FULL)
    definition = cls._definition()
    data = message.encode(version)
    found = one_of_each_kind(message, version)
    # Each object is tried in some fields, and each field gets some of the objects.
    step = min(len(found), 13)
    for number, place in enumerate(found):
        right = place.value
        for make in HOSTILE[number % step :: step]:
            setattr(place.owner, place.field.attribute, make())
            fault: EncodeError | None = None
            try:
                assert type(message.encode(version)) is bytes
            except EncodeError as error:
                fault = error
            if fault is None:
                assert explain_encode(definition, version, message) is None
            else:
                assert (fault.message, fault.version) == (name, version)
                # Unlike the codec, the walker does not compare every value with its default.
                blind = make is HostileNumber and fault.field is None
                assert blind or (fault.field or "").startswith(place.path), fault
        setattr(place.owner, place.field.attribute, right)
    assert message.encode(version) == data


@pytest.mark.parametrize("make", HOSTILE)
def test_any_object_in_a_field_of_another_version_is_encoded_or_refused(
    make: Callable[[], Any],
) -> None:
    request = FetchRequest(topics=[FetchTopic()])
    request.replica_state = make()
    try:
        assert type(request.encode(14)) is bytes
    except EncodeError as error:
        assert error.field == "replica_state"  # noqa: PT017 - either is right


@pytest.mark.parametrize("make", HOSTILE)
def test_any_object_among_the_unknown_tags_is_encoded_or_refused(make: Callable[[], Any]) -> None:
    wrong: list[Any] = [make(), [make()], [(9, make())], [(make(), b"")]]
    for fields in wrong:
        request = MetadataRequest()
        request._unknown_tags = fields
        try:
            assert type(request.encode(9)) is bytes
        except EncodeError as error:
            assert error.message == "MetadataRequest"  # noqa: PT017 - either is right


def test_the_error_of_an_object_is_the_cause() -> None:
    request = MetadataRequest()
    request.topics = HostileList()
    with pytest.raises(EncodeError, match="raises OddError when it is read") as caught:
        request.encode(9)
    assert isinstance(caught.value.__cause__, OddError)
    assert caught.value.field == "topics"


def test_a_memory_error_is_not_reported_as_an_encode_error() -> None:
    class Full:
        def __len__(self) -> int:
            raise MemoryError

    request = MetadataRequest()
    request.topics = Full()  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        request.encode(9)


def test_a_struct_of_another_class_with_the_same_fields_is_encoded() -> None:
    # The codec does not check the class of an element, which would cost too much time.
    request = MetadataRequest(topics=[MetadataResponseTopic(name="a")])  # type: ignore[list-item]
    assert request.encode(9) == MetadataRequest(topics=[MetadataRequestTopic(name="a")]).encode(9)
    request.allow_auto_topic_creation = "no"  # type: ignore[assignment]
    with pytest.raises(EncodeError) as caught:
        request.encode(9)
    assert caught.value.field == "allow_auto_topic_creation"


def test_a_struct_of_another_class_without_the_fields_is_refused() -> None:
    request = ProduceRequest(topic_data=[TopicProduceData(), MetadataRequestTopic()])  # type: ignore[list-item]
    with pytest.raises(EncodeError) as caught:
        request.encode(9)
    assert str(caught.value) == (
        "ProduceRequest v9, field topic_data[1]: "
        "a TopicProduceData is wanted, not MetadataRequestTopic"
    )


def test_equal_numbers_of_other_types_are_encoded() -> None:
    request = FetchRequest(session_id=True, max_bytes=False)
    assert request.encode(12) == FetchRequest(session_id=1, max_bytes=0).encode(12)
    topics = MetadataRequest(allow_auto_topic_creation=0)  # type: ignore[arg-type]
    assert topics.encode(9) == MetadataRequest(allow_auto_topic_creation=False).encode(9)


@pytest.mark.parametrize("no", [False, 0, 0.0])
def test_values_equal_to_false_are_encoded_as_false(no: bool) -> None:
    assert ApiVersionsResponse(zk_migration_ready=no).encode(3) == ApiVersionsResponse().encode(3)
    request = MetadataRequest(include_topic_authorized_operations=no)
    assert request.encode(4) == MetadataRequest().encode(4)  # the version does not have the field
    creation = CreateTopicsRequest(validate_only=no)
    assert creation.encode(7) == CreateTopicsRequest().encode(7)


def test_text_of_other_classes_is_encoded() -> None:
    request = FetchRequest(rack_id=UserString("ab"))  # type: ignore[arg-type]
    assert request.encode(12) == FetchRequest(rack_id="ab").encode(12)
    assert type(request.to_json(12)["rackId"]) is str
    request.max_bytes = "5"  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="field max_bytes: "):
        request.encode(12)
    request.max_bytes = 5
    for text, reason in (
        ("a" * 40_000, "a str of 40000 bytes; at most 32767"),
        ("\ud800", "a str with a lone surrogate"),
    ):
        request.rack_id = UserString(text)  # type: ignore[assignment]
        with pytest.raises(EncodeError, match=f"field rack_id: {reason}"):
            request.encode(12)


class Sequence:
    """A sequence that can only be indexed; it has no `__iter__`."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, number: int) -> str:
        return "a" if number == 0 else [""][number]


def test_a_sequence_without_iter_is_no_array() -> None:
    request = DescribeGroupsRequest()
    request.groups = Sequence()  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="field groups: a list is wanted, not Sequence"):
        request.encode(5)


@pytest.mark.parametrize("reported_length", [0, 1])
def test_an_endless_array_is_refused(reported_length: int) -> None:
    class Counting(list[Any]):
        def __len__(self) -> int:
            return reported_length

        def __iter__(self) -> Iterator[Any]:
            return count()

    request = FetchRequest(topics=[FetchTopic()])
    request.forgotten_topics_data = Counting()
    for version in (4, 12):  # version 4 does not have the field
        with pytest.raises(EncodeError, match=r"field forgotten_topics_data"):
            request.encode(version)


@pytest.mark.parametrize("kind", [ValueError, KeyError, TypeError, RuntimeError, OddError])
def test_any_error_of_a_list_is_the_cause(kind: type[Exception]) -> None:
    class Raising(list[Any]):
        def __len__(self) -> int:
            raise kind

    request = MetadataRequest()
    request.topics = Raising()
    with pytest.raises(EncodeError, match=f"raises {kind.__name__} when it is") as caught:
        request.encode(9)
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("value", [2, 255, -1, 256, None, "yes", 0.5])
def test_a_bool_field_accepts_only_true_and_false(value: Any) -> None:
    """The encoder must refuse the value on its fast path, on its slow path, and in a tag."""
    metadata = MetadataResponse(topics=[MetadataResponseTopic(name="a")])
    metadata.topics[0].is_internal = value
    creation = CreateTopicsRequest(validate_only=value)
    features = ApiVersionsResponse(zk_migration_ready=value)
    where: list[tuple[Message, int, str]]
    where = [(metadata, 12, "topics[0].is_internal"), (metadata, 1, "topics[0].is_internal")]
    where += [(creation, 7, "validate_only"), (features, 3, "zk_migration_ready")]
    for message, version, field in where:
        with pytest.raises(EncodeError, match=f"{_shown(value)} is no bool") as caught:
            message.encode(version)
        assert caught.value.field == field


def _shown(value: Any) -> str:
    return f"str of length {len(value)}" if isinstance(value, str) else repr(value)


def test_a_uuid_of_16_items_but_more_bytes_is_refused() -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(name="a")])
    response.topics[0].topic_id = array("i", range(16))  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="a Uuid of 16 bytes is wanted, not array") as caught:
        response.encode(12)
    assert caught.value.field == "topics[0].topic_id"
    response.topics[0].topic_id = array("i", range(4))  # type: ignore[assignment]
    assert MetadataResponse.decode(response.encode(12), 12).topics[0].topic_id == bytes(
        array("i", range(4))
    )


@pytest.mark.parametrize("reported_length", [0, 1, 3, 200])
def test_a_list_with_a_wrong_length_is_refused(reported_length: int) -> None:
    elements = [1, 2]

    class One(list[Any]):
        def __len__(self) -> int:
            return reported_length

    def refuse(message: Message, version: int, field: str) -> None:
        with pytest.raises(EncodeError, match="whose len is") as caught:
            message.encode(version)
        assert caught.value.field == field

    groups = DescribeGroupsRequest()
    groups.groups = One("a" for _ in elements)
    refuse(groups, 5, "groups")
    metadata = MetadataRequest()
    metadata.topics = One(MetadataRequestTopic(name="a") for _ in elements)
    refuse(metadata, 9, "topics")
    response = MetadataResponse(topics=[MetadataResponseTopic(name="a")])
    response.topics[0].partitions = One(MetadataResponsePartition() for _ in elements)
    refuse(response, 12, "topics[0].partitions")
    response.topics[0].partitions = [MetadataResponsePartition()]
    response.topics[0].partitions[0].isr_nodes = One(elements)
    refuse(response, 12, "topics[0].partitions[0].isr_nodes")


def test_a_set_and_a_range_are_arrays() -> None:
    request = DescribeGroupsRequest()
    request.groups = {"a"}  # type: ignore[assignment]
    assert request.encode(5) == DescribeGroupsRequest(groups=["a"]).encode(5)
    partition = MetadataResponsePartition()
    response = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=[partition])])
    numbers: list[Any] = [range(3), (0, 1, 2), {0: 1, 1: 2, 2: 3}.keys(), array("q", range(3))]
    written = set()
    for partition.isr_nodes in numbers:
        written |= {(version, response.encode(version)) for version in (1, 12)}
    partition.isr_nodes = [0, 1, 2]
    assert written == {(version, response.encode(version)) for version in (1, 12)}


@pytest.mark.parametrize("wrap", [dict, OrderedDict, MappingProxyType])
def test_a_mapping_is_no_array_of_its_keys(wrap: Callable[[Any], Any]) -> None:
    """The encoder must refuse a mapping on its fast path, on its slow path, and in a tag."""

    def refuse(message: Message, version: int, field: str) -> None:
        with pytest.raises(EncodeError, match="a list is wanted, not ") as caught:
            message.encode(version)
        assert caught.value.field == field

    groups = DescribeGroupsRequest()
    groups.groups = wrap({"a": 1})
    topic = MetadataResponseTopic(name="a", partitions=[MetadataResponsePartition()])
    response = MetadataResponse(topics=[topic])
    election = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="a")])
    assert election.topic_partitions
    for version in (0, 5):
        refuse(groups, version, "groups")
    for keys in ({}, {1: 2}, dict.fromkeys(range(200))):
        election.topic_partitions[0].partitions = wrap(keys)
        topic.partitions[0].isr_nodes = wrap(keys)
        for version in (1, 12):
            refuse(response, version, "topics[0].partitions[0].isr_nodes")
        for version in (1, 2):
            refuse(election, version, "topic_partitions[0].partitions")
    topic.partitions = wrap({MetadataRequestTopic: 1})
    refuse(response, 12, "topics[0].partitions")
    features = ApiVersionsResponse()
    features.supported_features = wrap({"a": 1})
    refuse(features, 3, "supported_features")


def test_a_lone_str_is_no_array_of_its_letters() -> None:
    # No type checker finds this: a str is an Iterable[str].
    with pytest.raises(EncodeError, match="a list of str is wanted, not one str"):
        DescribeGroupsRequest(groups="group")
    assert DescribeGroupsRequest(groups=("a", "b")).groups == ["a", "b"]
    request = DescribeGroupsRequest()
    request.groups = "group"  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="field groups: a list is wanted, not str of length 5"):
        request.encode(5)
