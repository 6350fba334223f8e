"""Tests that public values can be pickled with every protocol of pickle, and copied.

By default a class with `__slots__` cannot be pickled with the protocols 0 and 1. Jython, old
services and `pickle.dumps(value, 0)` for text still use these protocols.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from typing import Any

import kproto_cloudevents
import pytest
from kproto_cloudevents import (
    CloudEvent,
    InvalidEvent,
    JsonMap,
    KafkaRecord,
    LazyEvent,
    NotAnEvent,
    OpaqueEvent,
    Received,
    Timestamp,
    Uri,
    UriReference,
)

import kproto
import kproto.client
import kproto.records
from kproto import (
    Ack,
    AckEvent,
    AcknowledgeResult,
    BearerToken,
    BrokerAnswer,
    ClientSettings,
    CommittedOffset,
    ConnectionEvent,
    DelegationToken,
    Delivery,
    Failure,
    FetchedBatch,
    FetchedPartition,
    FetchedRecords,
    FetchedValues,
    NewTopic,
    OpenTransaction,
    Plain,
    PreparedTransactionState,
    ProducerRecord,
    Record,
    RequestEvent,
    Retries,
    RetryEvent,
    RetryTopic,
    RunSummary,
    ScramSha256,
    ScramSha512,
    ShareRecord,
    ShareRunSummary,
    Tls,
    TopicPattern,
    Undecodable,
    UndecodableRecordError,
    Uuid,
)
from kproto.broker import Acl, Operation, ResourceType, Slow
from kproto.client import Address, EncodedRecords
from kproto.client.producer.batch import BatchDelivery, ProducerBatch
from kproto.messages import MetadataRequest
from kproto.records import (
    GrowingBatch,
    LegacyBatch,
    RecordBatch,
    encode_batch,
    encode_message_set,
)
from kproto.study import Fault, Node

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

BATCH = RecordBatch(encode_batch([(b"k", b"v", [("h", b"x"), ("n", None)], 5)]))
MESSAGE = LegacyBatch(encode_message_set([(b"k", b"v", (), 5)], magic=1))
#: Its headers are still encoded.
(READ,) = BATCH.records(topic="t", partition=3)

EVENT = CloudEvent(type="t", source="/s", id="1", data={"a": [1, None]})
HEADERS = (("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t"))
LAZY = kproto_cloudevents.lazy_from_kafka(None, b"{}", HEADERS)

#: Values of every public class whose instances are data.
VALUES: list[Any] = [
    READ,
    Record(7, 8, None, b"v", [("h", None)], 1, topic="t", partition=2),
    ShareRecord(7, 8, None, b"v", [("h", None)], 1, topic="t", partition=2),
    BATCH,
    MESSAGE,
    FetchedRecords("t", 0, [READ], 9),
    FetchedBatch("t", 0, BATCH, 9),
    FetchedValues("t", 0, [b"v", None], 1, 9),
    FetchedPartition(b"", 1, 1, 0),
    Undecodable.of(
        Record(7, 8, None, b"v", [("h", None)], topic="t", partition=2),
        UndecodableRecordError(
            "reason", topic="t", partition=2, record_offset=7, field="value", raw=b"v"
        ),
    ),
    ProducerRecord(b"v", b"k", (("h", b"x"),), 1, 2),
    EncodedRecords(b"", 1, 2),
    Ack("t", 0, 1, 2),
    AckEvent("t", 0, 1, 2, ProducerRecord(b"v"), None),
    BrokerAnswer(1, MetadataRequest(topics=[]), None, None),
    CommittedOffset(1, 2, "text"),
    ConnectionEvent("opened", "b:1", 0.5, None),
    RequestEvent("Fetch", 3, "b:1", 1, 2, 0.5, None),
    RetryEvent("fetch", "t", 0, 1, 0.5, None),  # type: ignore[arg-type]  # errors are not equal
    Failure("t", 0, 1, 2, "g", 3, "KeyError", "k", None, (("h", b"x"),)),
    NewTopic("t", 3, configs={"a": "b"}),
    Retries(attempts=5),
    RetryTopic("r", 5),
    RunSummary(1, 2),
    ShareRunSummary(1, 2),
    AcknowledgeResult("t", 0, (range(3),), None),
    OpenTransaction("id", 7, 1, 60_000, 2),
    PreparedTransactionState(7, 1),
    TopicPattern("a.*"),
    Address("h", 9092),
    ClientSettings(client_id="c"),
    Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ"),
    Plain("u", "p"),
    ScramSha256("u", "p"),
    ScramSha512("u", "p"),
    DelegationToken("id", "hmac"),
    BearerToken("token", {"a": "b"}),
    Tls(verify=False),
    EVENT,
    LAZY,
    KafkaRecord(None, b"{}", HEADERS),
    Received(EVENT, KafkaRecord(None, b"{}", HEADERS)),
    InvalidEvent(KafkaRecord(None, b"{}", HEADERS), None),  # type: ignore[arg-type]
    OpaqueEvent(KafkaRecord(None, b"{}", HEADERS), "reason"),
    NotAnEvent(KafkaRecord(None, b"{}", HEADERS), "reason"),
    Timestamp("2026-01-01T00:00:00Z"),
    Uri("https://a/b"),
    UriReference("/b"),
    JsonMap({"a": None}),
    kproto_cloudevents.JSON_NULL,
    Fault("reason", "path", 1, "", "message"),
    Node("n", "p", "int32", 0, b"abcd", 4, 4, 1),
    Acl("User:alice", Operation.READ, ResourceType.TOPIC, "orders"),
    Slow(5),
]


#: Public classes whose instances are no data: they have connections, event loops or functions, or
#: build or read data. `Acks` are pickled as a list. Errors are in `test_pickled_errors`.
NO_DATA = {
    *(
        "Acks",
        "Admin",
        "Assignor",
        "BatchBuilder",
        "BatchReader",
        "Client",
        "ClientCredentials",
        "CloudEvents",
        "Codec",
        "Consumer",
    ),
    *("BatchDelivery", "Delivery", "EventFormat", "GroupConsumer", "GrowingBatch", "ShareConsumer"),
    *("HandlerTransaction", "Hooks"),
    *(
        "MessageSetBuilder",
        "OAuthBearer",
        "Producer",
        "Profile",
        "ReadableRecord",
        "Sasl",
        "Transaction",
    ),
}


def test_every_public_class_of_data_is_tested() -> None:
    public = {
        name
        for module in (kproto, kproto.client, kproto.records, kproto_cloudevents)
        for name in module.__all__
        if inspect.isclass(found := getattr(module, name)) and not issubclass(found, BaseException)
    }
    assert public - {type(value).__name__ for value in VALUES} == NO_DATA


def by_state(value: Any) -> Any:
    """Returns the value, or the value's parts if its class does not define equality.

    A value and its copy must have equal results.
    """
    if isinstance(value, LazyEvent):
        return value.record(), value.id, value.mode
    if isinstance(value, Node):
        return {name: getattr(value, name) for name in Node.__slots__}
    return value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_value_equals_its_pickled_copy(value: Any, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(value, protocol))
    assert type(again) is type(value)
    assert by_state(again) == by_state(value)


class OwnRecord(Record):
    """A user's subclass of a record, with an additional attribute."""

    note = ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_subclass_of_a_record_keeps_its_attributes(protocol: int) -> None:
    record = OwnRecord(7, 8, None, b"v")
    record.note = "text"
    again = pickle.loads(pickle.dumps(record, protocol))
    assert type(again) is OwnRecord
    assert (again, again.note) == (record, "text")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_value_equals_its_copy(value: Any, copied: Any) -> None:
    assert by_state(copied(value)) == by_state(value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_delivery_refuses_to_be_pickled(protocol: int) -> None:
    batch = ProducerBatch("t", 0, asyncio.get_running_loop().create_future(), GrowingBatch())
    for delivery in (Delivery(batch, 0), BatchDelivery(batch)):
        with pytest.raises(TypeError, match=r"delivery belongs to an event loop.*pickle its ack"):
            pickle.dumps(delivery, protocol)
