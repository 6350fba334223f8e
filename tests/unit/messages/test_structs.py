"""Tests every generated class: defaults, equality, copies, printing and unknown tags."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from kproto.messages import (
    ApiVersionsRequest,
    EndTransactionRecord,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
)
from kproto.messages.base import Message, Request, Response, Struct
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.schema.definitions import union
from kproto.schema.explain import is_default
from kproto.testing.instances import Fill, instance, instances
from kproto.wire.errors import EncodeError
from kproto.wire.tags import RawTaggedField
from kproto.wire.uuid import Uuid

from .catalogue import NAMES, SOME_QUICK, class_of, places, shape_of


@pytest.mark.parametrize("name", SOME_QUICK)
def test_every_field_starts_at_its_default(name: str) -> None:
    cls = class_of(name)
    for version in cls.VALID_VERSIONS:
        for place in places(shape_of(name, version), cls()):
            assert is_default(place.field.spec, place.value), place.path


def test_defaults_are_fresh() -> None:
    for name in NAMES:
        cls = class_of(name)
        first, second = cls(), cls()
        for place in places(shape_of(name, cls.VALID_VERSIONS[-1]), first):
            if place.owner is first and isinstance(place.value, list | Struct):
                assert place.value is not getattr(second, place.path), (name, place.path)


def test_decoded_defaults_are_fresh() -> None:
    data = FetchRequest().encode(4)
    first, second = FetchRequest.decode(data, 4), FetchRequest.decode(data, 4)
    first.forgotten_topics_data.append(FetchTopic())  # type: ignore[arg-type]
    first.replica_state.replica_id = 7
    assert second == FetchRequest()


def test_a_list_argument_is_not_shared() -> None:
    given = [MetadataRequestTopic(name="a")]
    request = MetadataRequest(topics=given)
    given.clear()
    assert request.topics is not None
    assert len(request.topics) == 1


def test_any_iterable_becomes_a_list() -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name) for name in "ab"))
    assert request.topics == [MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]


def test_an_unknown_attribute_is_refused() -> None:
    request: Any = MetadataRequest()
    with pytest.raises(AttributeError):
        request.topcis = []
    with pytest.raises(TypeError):
        MetadataRequest(topcis=[])  # type: ignore[call-arg]


def test_equality_is_by_class_and_every_field() -> None:
    assert HeartbeatRequest(group_id="a") == HeartbeatRequest(group_id="a")
    assert HeartbeatRequest(group_id="a") != HeartbeatRequest(group_id="b")
    assert MetadataRequest() != HeartbeatRequest()
    assert HeartbeatRequest() != "HeartbeatRequest"
    with pytest.raises(TypeError, match="unhashable"):
        hash(HeartbeatRequest())


@pytest.mark.parametrize("slots", [(), ("extra",)])
def test_a_derived_class_compares_and_prints_the_fields(slots: tuple[str, ...]) -> None:
    derived = type("Derived", (HeartbeatRequest,), {"__slots__": slots})
    first, other = derived(group_id="a"), derived(group_id="b")
    assert first == derived(group_id="a")
    assert first != other
    assert first != HeartbeatRequest(group_id="a")
    assert repr(other) == repr(HeartbeatRequest(group_id="b")).replace(
        "HeartbeatRequest", "Derived"
    )
    topic = type("Topic", (MetadataRequestTopic,), {"__slots__": slots})
    assert topic(name="a") != topic(name="b")
    assert "name='a'" in repr(topic(name="a"))


class Logged(Message):
    """A mixin for messages."""

    __slots__ = ()


class Weak(Message):
    """A mixin that allows weak references to messages."""

    __slots__ = ("__weakref__",)


class Noted(Struct):
    """A mixin that allows weak references to structs."""

    __slots__ = ("__weakref__",)


class Beat(Logged, HeartbeatRequest):
    """A message with a mixin before its base."""


class Beating(HeartbeatRequest, Logged):
    """A message with a mixin after its base."""


#: Type checkers report a conflict of two classes with slots; these classes have no conflict.
WeakBeat = type("WeakBeat", (Weak, HeartbeatRequest), {})
WeakEmpty = type("WeakEmpty", (Weak, EndTransactionRecord), {})
NotedTopic = type("NotedTopic", (Noted, MetadataRequestTopic), {})


@pytest.mark.parametrize("derived", [Beat, Beating, WeakBeat])
def test_a_class_with_a_mixin_behaves_as_its_message(
    derived: type[HeartbeatRequest],
) -> None:
    message = derived(group_id="a")
    plain = HeartbeatRequest(group_id="a")
    assert message != derived(group_id="b")
    assert repr(message) == repr(plain).replace("HeartbeatRequest", derived.__name__)
    assert message.to_json(4) == plain.to_json(4)
    assert derived.from_json(plain.to_json(4), 4) == message
    message.group_id = 5  # type: ignore[assignment]  # on purpose
    with pytest.raises(EncodeError, match="field group_id: a str is wanted, not 5"):
        message.encode(4)
    assert NotedTopic(name="a") != NotedTopic(name="b")
    assert "name='a'" in repr(NotedTopic(name="a"))
    assert WeakEmpty().to_json(0) == {}
    assert WeakEmpty() == WeakEmpty()


@pytest.mark.parametrize("name", SOME_QUICK)
def test_a_change_of_any_field_breaks_equality(name: str) -> None:
    cls = class_of(name)
    version = cls.VALID_VERSIONS[-1]
    message = instance(cls, version)
    other = message.copy()
    for place in list(places(shape_of(name, version), message)):
        right = place.value
        setattr(place.owner, place.field.attribute, object())
        assert other != message, place.path
        setattr(place.owner, place.field.attribute, right)
    assert other == message


def test_equality_compares_unknown_tags() -> None:
    first, second = HeartbeatRequest(), HeartbeatRequest()
    assert first.unknown_tagged_fields == []
    assert first == second
    first.unknown_tagged_fields.append(RawTaggedField(1, b"x"))
    assert first != second
    assert second != first


def test_equality_ignores_the_order_of_unknown_tags() -> None:
    fields = [RawTaggedField(9, b"a"), RawTaggedField(5, b""), RawTaggedField(300, b"c")]
    first, second = HeartbeatRequest(), HeartbeatRequest()
    first.unknown_tagged_fields = fields
    second.unknown_tagged_fields = sorted(fields)
    assert first == second
    assert first.encode(4) == second.encode(4)
    assert HeartbeatRequest.decode(first.encode(4), 4) == first
    for other in ([*fields[:2], RawTaggedField(300, b"d")], fields[:2], [*fields, fields[0]]):
        second.unknown_tagged_fields = other
        assert first != second
        assert second != first
    assert first.unknown_tagged_fields == fields  # the order of the elements is unchanged


def test_equality_compares_invalid_unknown_tags() -> None:
    wrong: list[Any] = [[5], [()], [("a", b""), (1, b"")], [None]]
    for fields in wrong:
        first, second = HeartbeatRequest(), HeartbeatRequest()
        first._unknown_tags = fields
        second._unknown_tags = [RawTaggedField(1, b"")]
        assert first != second
        assert second != first
        assert first == first.copy()


def test_a_copy_is_deep() -> None:
    for message in (instance(FetchRequest, 17), instance(MetadataResponse, 12)):
        version = 17 if isinstance(message, FetchRequest) else 12
        made = message.copy()
        assert made == message
        assert type(made) is type(message)
        data = message.encode(version)
        for place in list(places(shape_of(type(message).__name__, version), made)):
            if isinstance(place.value, list):
                place.value.append(None)
        made.unknown_tagged_fields.clear()
        assert message.encode(version) == data


@pytest.mark.slow
def test_messages_can_be_pickled() -> None:
    for name in NAMES:
        cls = class_of(name)
        for message in instances(cls, cls.VALID_VERSIONS[-1]):
            assert pickle.loads(pickle.dumps(message)) == message


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_messages_can_be_pickled_with_each_protocol(protocol: int) -> None:
    data = PartitionProduceData(index=1, records=b"r")
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    request.unknown_tagged_fields = [RawTaggedField(9, b"x")]
    assert pickle.loads(pickle.dumps(request, protocol)) == request


def test_repr_of_a_message_is_its_constructor_call() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    names = {"MetadataRequest": MetadataRequest, "MetadataRequestTopic": MetadataRequestTopic}
    text = repr(request)
    assert text.startswith("MetadataRequest(topics=[MetadataRequestTopic(topic_id=Uuid.parse('AAA")
    plain = re.sub(r"topic_id=Uuid.parse\('A{22}'\), ", "", text)
    assert eval(plain, names) == request


def test_long_bytes_print_as_their_length() -> None:
    topic = TopicProduceData(partition_data=[PartitionProduceData(records=b"r" * 33)])
    request = ProduceRequest(topic_data=[topic])
    assert "records=<33 bytes>" in repr(request)
    topic.partition_data[0].records = b"r" * 32
    assert f"records={b'r' * 32!r}" in repr(request)


def test_long_unknown_tags_print_as_their_length() -> None:
    request = HeartbeatRequest()
    request.unknown_tagged_fields = [RawTaggedField(9, b"u" * 33), RawTaggedField(10, b"u")]
    assert repr(request).endswith(
        "unknown_tagged_fields=[RawTaggedField(tag=9, data=<33 bytes>), "
        "RawTaggedField(tag=10, data=b'u')])"
    )


SECRETS = [
    ("AlterConfigsRequest", "value"),
    ("AlterUserScramCredentialsRequest", "salt"),
    ("AlterUserScramCredentialsRequest", "salted_password"),
    ("ConfigRecord", "value"),
    ("CreateDelegationTokenResponse", "hmac"),
    ("DescribeDelegationTokenResponse", "hmac"),
    ("ExpireDelegationTokenRequest", "hmac"),
    ("IncrementalAlterConfigsRequest", "value"),
    ("RenewDelegationTokenRequest", "hmac"),
    ("SaslAuthenticateRequest", "auth_bytes"),
    ("SaslAuthenticateResponse", "auth_bytes"),
    ("UserScramCredentialRecord", "salt"),
    ("UserScramCredentialRecord", "server_key"),
    ("UserScramCredentialRecord", "stored_key"),
]


@pytest.mark.parametrize(("name", "attribute"), SECRETS)
def test_secrets_are_never_printed(name: str, attribute: str) -> None:
    cls = class_of(name)
    version = cls.VALID_VERSIONS[-1]
    message = instance(cls, version)
    hidden = [
        place
        for place in places(shape_of(name, version), message)
        if place.field.attribute == attribute
    ]
    assert hidden
    text = repr(message)
    for place in hidden:
        shown = place.value if isinstance(place.value, str) else place.value.decode()
        assert shown not in text
        assert shown not in str(place.owner)
    assert text.count(f"{attribute}=<hidden>") == len(hidden)


def test_repr_shows_if_a_secret_is_set() -> None:
    assert "auth_bytes=b''" in repr(SaslAuthenticateRequest())
    assert "auth_bytes=<hidden>" in repr(SaslAuthenticateRequest(auth_bytes=b"s"))


def test_unknown_tags_are_kept_and_written_in_order() -> None:
    data = bytes.fromhex("0263 0264 03 0401aa 0500 ff0102bbcc")
    request = ApiVersionsRequest.decode(data, 3)
    assert request.unknown_tagged_fields == [
        RawTaggedField(4, b"\xaa"),
        RawTaggedField(5, b""),
        RawTaggedField(255, b"\xbb\xcc"),
    ]
    assert request.encode(3) == data
    request.unknown_tagged_fields.reverse()
    assert request.encode(3) == data


def test_unknown_tags_are_merged_with_known_ones_by_number() -> None:
    partition = FetchPartition(high_watermark=5, replica_directory_id=Uuid(b"d" * 16))
    partition.unknown_tagged_fields = [RawTaggedField(3, b"z"), RawTaggedField(2, b"y")]
    request = FetchRequest(topics=[FetchTopic(partitions=[partition])])
    data = request.encode(18)
    section = "04" + "0010" + "64" * 16 + "0108" + "00" * 7 + "05" + "020179" + "03017a"
    assert bytes.fromhex(section) in data
    again = FetchRequest.decode(data, 18).topics[0].partitions[0]
    assert again.high_watermark == 5
    assert again.replica_directory_id == b"d" * 16
    assert again.unknown_tagged_fields == [RawTaggedField(2, b"y"), RawTaggedField(3, b"z")]


def test_classes_have_their_type_and_constants() -> None:
    assert issubclass(MetadataRequest, Request)
    assert issubclass(MetadataResponse, Response)
    assert MetadataRequest.API_KEY == MetadataResponse.API_KEY == 3
    assert MetadataRequest.LISTENERS == ("broker",)
    assert range(12, FetchResponse.VALID_VERSIONS.stop) == FetchResponse.FLEXIBLE_VERSIONS


@pytest.mark.parametrize("name", SOME_QUICK)
def test_constants_are_those_of_the_definition(name: str) -> None:
    spec, cls = union()[name], class_of(name)
    assert issubclass(cls, Message)
    assert spec.api_key == cls.API_KEY
    flexible = spec.flexible_versions.intersect(spec.valid_versions)
    assert list(cls.FLEXIBLE_VERSIONS) == list(flexible)
    assert spec.latest_stable == cls.LATEST_STABLE
    assert issubclass(cls, Request) == (spec.type == "request")
    assert issubclass(cls, Response) == (spec.type == "response")
    if issubclass(cls, Request):
        assert spec.listeners == cls.LISTENERS


def test_instances_are_the_same_each_time() -> None:
    assert instances(MetadataResponse, 12) == instances(MetadataResponse, 12)
    assert instance(MetadataResponse, 12, Fill.FULL) in instances(MetadataResponse, 12)
    with pytest.raises(ValueError, match="has versions 0-13, not 14"):
        instances(MetadataResponse, 14)
