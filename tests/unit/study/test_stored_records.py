"""Tests that the annotated trees of internal records agree with what kproto.stored decodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import (
    EndTxnMarker,
    FetchResponse,
    JoinGroupRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    UserScramCredentialRecord,
)
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.records import Record, encode_batch
from kproto.stored import control_records
from kproto.stored.control_records import (
    ControlRecord,
    decode_control_record,
    encode_control_record,
)
from kproto.stored.coordinator_records import (
    COORDINATOR_TOPICS,
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from kproto.stored.metadata_log import (
    METADATA_TOPICS,
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kproto.study import (
    Node,
    annotate,
    annotate_key,
    annotate_records,
    annotate_value,
    faults,
    nodes,
    stored_records,
    to_json,
)
from kproto.study.node import TreeSizeLimit
from kproto.study.records_context import RecordsContext
from kproto.testing.instances import Fill, instance
from kproto.testing.strategies import messages
from kproto.wire.errors import ConfigurationError, DecodeError
from kproto.wire.uuid import Uuid
from tests.support.examples import examples
from tests.unit.stored.lookups import class_of

from .agreement import check_every_byte, check_values

GROUPS = "__consumer_offsets"
METADATA = "__cluster_metadata"


def stored(key: bytes | None, value: bytes | None, topic: str) -> tuple[Node, Node]:
    """Returns the nodes of the key and of the value of one record in an internal topic."""
    data = encode_batch([(key, value, (), 0)])
    root = annotate_records(data, records_of=topic)
    check_every_byte(root, data)
    record = root.children[0].child("records").children[0]
    return record.child("key"), record.child("value")


def control_nodes(key: bytes | None, value: bytes | None) -> tuple[Node, Node]:
    """Returns the nodes of the key and of the value of one control record."""
    made = []
    for name, content in (("key", key), ("value", value)):
        held = b"" if content is None else content
        made.append(
            Node(name, name, "bytes", 0, held, size=len(held), own_size=len(held), value=content)
        )
    stored_records.open_control_record(made[0], made[1], TreeSizeLimit())
    return made[0], made[1]


def test_the_table_of_control_records_is_that_of_stored() -> None:
    assert {
        kind: name for kind, (name, _) in stored_records._CONTROL.items()
    } == control_records._CLASSES
    assert {
        kind for kind, (_, own) in stored_records._CONTROL.items() if own
    } == control_records._MARKERS


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
@pytest.mark.slow
def test_every_coordinator_record(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(COORDINATOR_TOPICS)))
    name = data.draw(st.sampled_from(sorted(COORDINATOR_TOPICS[topic].values())))
    key_class, value_class = class_of(f"{name}Key"), class_of(f"{name}Value")
    key = data.draw(messages(key_class, key_class.LATEST_STABLE))
    version = data.draw(st.sampled_from(list(value_class.VALID_VERSIONS)))
    value = data.draw(messages(value_class, version))
    raw_key, raw_value = encode_coordinator_record(CoordinatorRecord(key, value, version))
    key_node, value_node = stored(raw_key, raw_value, topic)
    assert faults(key_node) == faults(value_node) == []
    check_values(key_class, key_class.LATEST_STABLE, key, key_node.children[1])
    check_values(value_class, version, value, value_node.children[1])


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
@pytest.mark.slow
def test_every_metadata_record(data: st.DataObject) -> None:
    topic = data.draw(st.sampled_from(sorted(METADATA_TOPICS)))
    cls = class_of(data.draw(st.sampled_from(sorted(METADATA_TOPICS[topic].values()))))
    version = data.draw(st.sampled_from(list(cls.VALID_VERSIONS)))
    message = data.draw(messages(cls, version))
    _, value = stored(None, encode_metadata_record(MetadataRecord(message, version)), topic)
    assert faults(value) == []
    check_values(cls, version, message, value.children[3])


bits = st.binary(max_size=40)
beginnings = st.sampled_from(
    [b"", b"\0\1", b"\0\0\0\1", b"\0\3", b"\1\2\0", b"\0\0\0\4", b"\1\3\1"]
)
almost = st.builds(lambda start, rest: start + rest, beginnings, bits)


@settings(max_examples=examples(300), deadline=None)
@given(almost, st.none() | almost)
@pytest.mark.slow
def test_broken_records_are_faults(key: bytes, value: bytes | None) -> None:
    record = Record(0, 0, key, value)
    assert refused(decode_control_record, record) == bool(_all_faults(*control_nodes(key, value)))
    for topic in COORDINATOR_TOPICS:
        expected = refused(decode_coordinator_record, record, topic=topic)
        assert expected == bool(_all_faults(*stored(key, value, topic)))
    for topic in METADATA_TOPICS:
        expected = refused(decode_metadata_record, record, topic=topic)
        assert expected == bool(_all_faults(*stored(key, value, topic)))


def refused(decode: Any, record: Record, **more: str) -> bool:
    try:
        decode(record, **more)
    except DecodeError:
        return True
    return False


def _all_faults(*found: Node) -> list[Any]:
    return [fault for node in found for fault in faults(node)]


def test_a_control_batch() -> None:
    key, value = encode_control_record(ControlRecord(0, EndTxnMarker(coordinator_epoch=5)))
    key_node, value_node = control_nodes(key, value)
    assert key_node.child("type").meaning == "ABORT"
    assert value_node.child("EndTxnMarker").child("coordinator_epoch").value == 5
    assert faults(key_node) == faults(value_node) == []


@pytest.mark.parametrize("topic", ["", GROUPS, METADATA])
def test_a_control_batch_is_shown_as_one_in_every_topic(topic: str) -> None:
    """The key 00 00 00 01 is a COMMIT marker; outside of a control batch it is another key.

    In a topic of a coordinator, it would be a LegacyOffsetCommitKey.
    """
    commit = CoordinatorRecord(OffsetCommitKey(group="g", topic="t"), OffsetCommitValue(offset=42))
    marker = encode_control_record(ControlRecord(1, EndTxnMarker(coordinator_epoch=5)))
    assert marker[0].hex() == "00000001"
    data = encode_batch([(*encode_coordinator_record(commit), (), 0)], is_transactional=True)
    data += encode_batch([(*marker, (), 0)], is_control=True, is_transactional=True, base_offset=1)
    first, control = annotate_records(data, records_of=topic).children
    assert faults(control) == []
    (record,) = control.child("records").children
    assert record.child("key").child("type").meaning == "COMMIT"
    assert record.child("value").child("EndTxnMarker").child("coordinator_epoch").value == 5
    if topic == GROUPS:
        assert faults(first) == []


def test_the_topic_of_a_fetch_says_what_its_records_are() -> None:
    key, value = encode_coordinator_record(
        CoordinatorRecord(
            OffsetCommitKey(group="g", topic="t", partition=1), OffsetCommitValue(offset=42)
        )
    )
    records = encode_batch([(key, value, (), 0)], compression="gzip")
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(topic=GROUPS, partitions=[PartitionData(records=records)])
        ]
    )
    root = annotate(response.encode(12), FetchResponse, 12)
    assert faults(root) == []
    (found,) = [node for node in nodes(root) if node.name == "OffsetCommitValue"]
    assert found.child("offset").value == 42
    assert found.child("offset").buffer == "responses[0].partitions[0].records[0].records"
    named = annotate(response.encode(12), FetchResponse, 12, records_of="other")
    assert not [node for node in nodes(named) if node.name == "OffsetCommitValue"]


def scram_record() -> bytes:
    record = UserScramCredentialRecord(
        name="me", mechanism=1, salt=b"SALTsalt", stored_key=b"STOREDkey", server_key=b"SERVERkey"
    )
    return encode_metadata_record(MetadataRecord(record, 0))


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("cut", [0, 1, 20])
def test_credentials_of_the_metadata_log_are_hidden(compression: str, cut: int) -> None:
    whole = encode_batch([(None, scram_record(), (), 0)], compression=compression)
    records = whole[: len(whole) - cut]
    topic_id = Uuid(bytes(15) + b"\1")
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(topic_id=topic_id, partitions=[PartitionData(records=records)])
        ]
    )
    root = annotate(response.encode(13), FetchResponse, 13)
    text = str(to_json(root))
    for secret in (b"SALTsalt", b"STOREDkey", b"SERVERkey", whole[70:]):
        assert secret.hex() not in text
    shown = str(to_json(root, show_secrets=True))
    assert records[61:].hex() in shown or b"STOREDkey".hex() in shown


def test_subscriptions_of_a_group_are_opened() -> None:
    from kproto.messages import ConsumerProtocolSubscription
    from kproto.messages.join_group_request import JoinGroupRequestProtocol

    metadata = b"\0\1" + ConsumerProtocolSubscription(topics=["a", "b"]).encode(1)
    request = JoinGroupRequest(
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=metadata),
            JoinGroupRequestProtocol(name="other", metadata=b"not a subscription"),
        ],
    )
    data = request.encode(9)
    root = annotate(data, JoinGroupRequest, 9)
    check_every_byte(root, data)
    first, second = [node for node in nodes(root) if node.name == "metadata"]
    topics = first.child("ConsumerProtocolSubscription").child("topics")
    assert [topic.value for topic in topics.children] == ["a", "b"]
    assert second.value == b"not a subscription"


def test_subscription_that_ends_before_a_field_is_decoded_with_a_note() -> None:
    from kproto.messages import ConsumerProtocolSubscription
    from kproto.messages.join_group_request import JoinGroupRequestProtocol

    subscription = ConsumerProtocolSubscription(topics=["a"], user_data=b"u")
    metadata = b"\0\1" + subscription.encode(0)
    for data, first_missing in (
        (metadata, "owned_partitions"),
        (metadata[: -len(b"\0\0\0\1u")], "user_data"),
    ):
        protocols = [JoinGroupRequestProtocol(name="range", metadata=data)]
        frame = JoinGroupRequest(protocol_type="consumer", protocols=protocols).encode(9)
        root = annotate(frame, JoinGroupRequest, 9)
        check_every_byte(root, frame)
        (node,) = [node for node in nodes(root) if node.name == "metadata"]
        decoded = node.child("ConsumerProtocolSubscription")
        assert decoded.value == "ConsumerProtocolSubscription v1"
        assert [topic.value for topic in decoded.child("topics").children] == ["a"]
        assert decoded.notes == [f"the bytes end before {first_missing}"]


def test_opening_is_of_one_topic() -> None:
    assert RecordsContext(TreeSizeLimit(), topic=METADATA).has_secrets
    assert not RecordsContext(TreeSizeLimit(), topic=GROUPS).has_secrets


@pytest.mark.parametrize("topic", COORDINATOR_TOPICS)
def test_a_key_and_a_value_are_read_by_themselves(topic: str) -> None:
    for number, name in COORDINATOR_TOPICS[topic].items():
        key_class, value_class = class_of(f"{name}Key"), class_of(f"{name}Value")
        record = CoordinatorRecord(
            instance(key_class, key_class.LATEST_STABLE, Fill.FULL, unknown_tags=False),
            instance(value_class, value_class.LATEST_STABLE, Fill.FULL, unknown_tags=False),
        )
        key, value = encode_coordinator_record(record)
        assert value is not None
        root = annotate_key(key, topic)
        assert faults(root) == []
        assert COORDINATOR_TOPICS[topic][int(str(root.child("type").value))] == name, number
        check_every_byte(root, key)
        for message in (name, f"{name}Value", name.lower()):
            tree = annotate_value(value, topic, message=message)
            assert faults(tree) == []
            assert f"{name}Value" in [child.name for child in tree.children]
            check_every_byte(tree, value)


def test_a_value_names_its_message_in_the_metadata_log() -> None:
    record = MetadataRecord(UserScramCredentialRecord(name="ann"), 0)
    data = encode_metadata_record(record)
    assert faults(annotate_value(data, METADATA)) == []
    with pytest.raises(ConfigurationError, match="have no key"):
        annotate_key(data, METADATA)


def test_a_value_that_may_be_several_messages_needs_a_name() -> None:
    value = OffsetCommitValue(offset=42, commit_timestamp=1).encode(3)
    stored_value = (3).to_bytes(2, "big") + value
    with pytest.raises(ConfigurationError, match="no value of __consumer_offsets fits"):
        annotate_value(stored_value + b"x", GROUPS)
    with pytest.raises(ConfigurationError, match="'Nothing' is no message of __consumer_offsets"):
        annotate_value(stored_value, GROUPS, message="Nothing")
    assert (
        annotate_value(stored_value, GROUPS).child("OffsetCommitValue").child("offset").value == 42
    )
    with pytest.raises(ConfigurationError, match="these fit the bytes: ConsumerGroupMetadata, "):
        annotate_value(bytes(7), GROUPS)


def test_other_topics_have_no_messages() -> None:
    for read in (annotate_key, annotate_value):
        with pytest.raises(ConfigurationError, match="'orders' is no internal topic of Kafka"):
            read(b"\0\0", "orders")
