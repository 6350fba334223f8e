"""Tests messages as JSON, in the form of Kafka's JsonConverter classes."""

from __future__ import annotations

import base64
import json
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from kproto.messages import (
    AlterClientQuotasRequest,
    DescribeTopicPartitionsResponse,
    FetchRequest,
    FetchResponse,
    ListConfigResourcesResponse,
    MetadataRequest,
    ProduceRequest,
    QuorumStateData,
    SaslAuthenticateRequest,
    TxnOffsetCommitRequest,
    VoteRequest,
)
from kproto.messages.alter_client_quotas_request import EntryData, OpData
from kproto.messages.base import Message
from kproto.messages.fetch_request import ReplicaState
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.wire.errors import DecodeError, EncodeError
from kproto.wire.tags import RawTaggedField
from kproto.wire.uuid import Uuid


class IsolationLevel(IntEnum):
    """An enumeration whose members are integers, but whose `repr` does not return digits."""

    COMMITTED = 1


TOPIC_ID = Uuid(bytes(15) + b"\5")


def test_a_message_is_written_as_kafkas_converter_writes_it() -> None:
    # MetadataRequestDataJsonConverter of Kafka 4.4.0 read and wrote {"topics":[...]}.
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=TOPIC_ID, name=None)])
    node = request.to_json(12)
    assert json.dumps(node, separators=(",", ":")) == (
        '{"topics":[{"topicId":"AAAAAAAAAAAAAAAAAAAABQ","name":null}],'
        '"allowAutoTopicCreation":true,"includeTopicAuthorizedOperations":false}'
    )
    assert MetadataRequest.from_json(node, 12) == request


def test_records_are_written_as_base64() -> None:
    # Kafka writes an empty string, which would lose the records, but reads base64.
    part = PartitionProduceData(index=1, records=b"\xde\xad")
    request = ProduceRequest(topic_data=[TopicProduceData(name="a", partition_data=[part])])
    node = request.to_json(9)
    assert node["topicData"][0]["partitionData"] == [{"index": 1, "records": "3q0="}]
    assert ProduceRequest.from_json(node, 9) == request


def test_every_buffer_that_is_encoded_is_written() -> None:
    for value in (bytearray(b"abc"), memoryview(b"a-b-c-")[::2]):
        message = SaslAuthenticateRequest(auth_bytes=value)  # type: ignore[arg-type]  # no bytes
        assert message.to_json(2) == {"authBytes": "YWJj"}


class Other(bytes):
    """A subclass of bytes whose `__bytes__` returns other bytes than its buffer contains."""

    def __bytes__(self) -> bytes:
        return b"others"


def test_bytes_are_taken_from_the_buffer_itself() -> None:
    number: Any = np.int32(3)
    for value in (number, Other(b"abc")):
        message = SaslAuthenticateRequest(auth_bytes=value)
        written = base64.b64decode(message.to_json(2)["authBytes"])
        assert written == SaslAuthenticateRequest.decode(message.encode(2), 2).auth_bytes


def test_a_tagged_field_at_its_default_is_left_out() -> None:
    assert "clusterId" not in FetchRequest().to_json(15)
    node = FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=1)).to_json(15)
    assert node["clusterId"] == "c"
    assert node["replicaState"] == {"replicaId": 1, "replicaEpoch": -1}


def test_unknown_tagged_fields_are_not_written_to_json() -> None:
    request = FetchRequest()
    request.unknown_tagged_fields = [RawTaggedField(99, b"x")]
    assert FetchRequest.from_json(request.to_json(15), 15) == FetchRequest()


@pytest.mark.parametrize(
    ("value", "form"), [(1.5, 1.5), (2.0, 2.0), (float("inf"), "Infinity"), (1e300, 1e300)]
)
def test_floats_are_numbers_in_json(value: float, form: object) -> None:
    node = AlterClientQuotasRequest.from_json(
        {
            "entries": [
                {"entity": [], "ops": [{"key": "k", "value": value, "remove": False}]},
            ],
            "validateOnly": False,
        },
        1,
    ).to_json(1)
    assert node["entries"][0]["ops"][0]["value"] == form


def test_kafkas_text_for_infinity_is_refused_when_read() -> None:
    node = {"entries": [{"entity": [], "ops": [{"key": "k", "value": "NaN", "remove": False}]}]}
    refused(AlterClientQuotasRequest, 1, node | {"validateOnly": False}, "entries[0].ops[0].value")


def test_an_invalid_message_is_not_written() -> None:
    request = MetadataRequest(topics=None)
    with pytest.raises(EncodeError, match="MetadataRequest v0, field topics: null"):
        request.to_json(0)
    request.topics = 5  # type: ignore[assignment]
    with pytest.raises(EncodeError, match="MetadataRequest v9, field topics: a list is wanted"):
        request.to_json(9)


def test_unknown_fields_are_ignored() -> None:
    node = MetadataRequest().to_json(9) | {"nonsense": [1, {}]}
    assert MetadataRequest.from_json(node, 9) == MetadataRequest()


def refused(message: type[Message], version: int, node: Any, field: str) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        message.from_json(node, version)
    error = caught.value
    assert (error.message, error.version, error.field) == (message.__name__, version, field)
    return error


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"sessionId": None}, "sessionId", "null, which this version does not allow"),
        ({"sessionId": "16"}, "sessionId", "a whole number is wanted, not a string"),
        ({"sessionId": 1.0}, "sessionId", "a whole number is wanted, not 1.0"),
        ({"sessionId": True}, "sessionId", "a whole number is wanted, not True"),
        ({"sessionId": 2**31}, "sessionId", "2147483648 is no int32"),
        ({"sessionId": 10**9999}, "sessionId", "a number of 33216 bits is no int32"),
        ({"isolationLevel": -129}, "isolationLevel", "-129 is no int8"),
        ({"rackId": 5}, "rackId", "a JSON string is wanted, not 5"),
        ({"rackId": "x" * 32768}, "rackId", "a string of 32768 bytes; at most 32767"),
        ({"rackId": "\ud800"}, "rackId", "a string with a lone surrogate"),
        ({"topics": {}}, "topics", "a JSON array is wanted, not an object"),
        ({"topics": [5]}, "topics[0]", "a JSON object is wanted, not 5"),
        ({"topics": [None]}, "topics[0]", "null, which this version does not allow"),
        ({"topics": [{}]}, "topics[0].topicId", "the field is missing"),
        ({"replicaState": []}, "replicaState", "a JSON object is wanted, not an array"),
        ({"replicaId": 3}, "replicaId", "this version does not have the field"),
    ],
)
def test_wrong_values_are_refused(change: dict[str, Any], field: str, reason: str) -> None:
    error = refused(FetchRequest, 15, FetchRequest().to_json(15) | change, field)
    assert error.reason.startswith(reason)


def test_a_field_of_another_version_is_refused() -> None:
    node = QuorumStateData().to_json(1) | {"clusterId": "c"}
    assert refused(QuorumStateData, 1, node, "clusterId").reason == (
        "this version does not have the field (version 0 does); leave it out, or at its default"
    )


def test_a_missing_field_is_refused() -> None:
    node = FetchRequest().to_json(15)
    del node["maxWaitMs"]
    assert refused(FetchRequest, 15, node, "maxWaitMs").reason == "the field is missing"


@pytest.mark.parametrize("node", [None, [], "text", 5])
def test_json_without_an_object_is_refused(node: Any) -> None:
    with pytest.raises(DecodeError, match="FetchRequest v15: "):
        FetchRequest.from_json(node, 15)


@pytest.mark.parametrize(
    "text",
    ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAA", "!" * 22, "AAAAAAAAAAAAAAAAAAAAAAA", "é" * 22, "+" * 22],
)
def test_a_uuid_has_16_bytes(text: str) -> None:
    node = {"topics": [{"topicId": text, "name": None}]}
    error = refused(MetadataRequest, 12, MetadataRequest().to_json(12) | node, "topics[0].topicId")
    assert "is no Kafka uuid" in error.reason


def test_a_padded_uuid_is_read_as_kafka_reads_it() -> None:
    node = {"topics": [{"topicId": f"{TOPIC_ID}==", "name": None}]}
    request = MetadataRequest.from_json(MetadataRequest().to_json(12) | node, 12)
    assert request.topics is not None
    assert request.topics[0].topic_id == TOPIC_ID


#: Kafka's converter (Jackson's MIME_NO_LINEFEEDS) reads these, four characters at a time.
READ_AS = {
    "": b"",
    " ": b"",
    " YQ==": b"a",
    "YQ==\n": b"a",
    "YQ==\0YQ==": b"aa",
    "YWJjYQ==YWJj": b"abcaabc",
    "YR==": b"a",
}


@pytest.mark.parametrize("text", READ_AS)
def test_base64_is_read_in_groups_of_four(text: str) -> None:
    node = SaslAuthenticateRequest().to_json(2) | {"authBytes": text}
    assert SaslAuthenticateRequest.from_json(node, 2).auth_bytes == READ_AS[text]


@pytest.mark.parametrize(
    "text",
    ["!", "A", "AA=", "AA", "é", "YWJj=", "YWJj==", "Y Q==", "YQ=", "-_==", "YQ==\x7f", "\u2028"],
)
def test_bytes_are_base64(text: str) -> None:
    error = refused(SaslAuthenticateRequest, 2, {"authBytes": text}, "authBytes")
    assert error.reason == "a string that is no base64"


def test_a_field_of_another_version_may_have_its_default() -> None:
    node = FetchRequest().to_json(14)
    for extra in ({"rackId": ""}, {"replicaId": -1}):
        assert FetchRequest.from_json(node | extra, 14).encode(14) == FetchRequest().encode(14)


# FetchRequestDataJsonConverter and MetadataRequestDataJsonConverter of Kafka 4.4.0 accept or refuse
# a field that the version does not have; the result includes writing the message again.
@pytest.mark.parametrize(
    ("message", "version", "extra", "accepted"),
    [
        (FetchRequest, 15, {"replicaId": -1}, True),
        (FetchRequest, 15, {"replicaId": 3}, False),  # the field is not ignorable
        (FetchRequest, 15, {"replicaId": "x"}, False),
        (FetchRequest, 4, {"rackId": "r"}, True),  # the field is ignorable, so it is dropped
        (FetchRequest, 4, {"rackId": 5}, False),  # a dropped field must be well-formed, too
        (FetchRequest, 4, {"rackId": None}, False),
        (FetchRequest, 4, {"clusterId": None}, True),
        (FetchRequest, 4, {"clusterId": 5}, False),
        # The version lacks the struct of the field, too, so the field cannot be read.
        (FetchRequest, 14, {"replicaState": {}}, False),
        (FetchRequest, 14, {"replicaState": {"replicaId": -1, "replicaEpoch": -1}}, False),
        (FetchRequest, 14, {"replicaState": None}, False),
        (FetchRequest, 14, {"replicaState": []}, False),
        (FetchRequest, 4, {"forgottenTopicsData": []}, True),
        (FetchRequest, 4, {"forgottenTopicsData": [{}]}, False),
        (MetadataRequest, 12, {"includeClusterAuthorizedOperations": False}, True),
        (MetadataRequest, 12, {"includeClusterAuthorizedOperations": True}, False),
        (MetadataRequest, 12, {"includeClusterAuthorizedOperations": "x"}, False),
        (MetadataRequest, 12, {"neverHeardOf": "x"}, True),
    ],
)
def test_fields_of_other_versions_are_read_as_kafka_reads_them(
    message: type[Message], version: int, extra: dict[str, Any], accepted: bool
) -> None:
    node = message().to_json(version)
    if accepted:
        assert message.from_json(node | extra, version) == message.from_json(node, version)
    else:
        with pytest.raises(DecodeError) as caught:
            message.from_json(node | extra, version)
        assert (caught.value.field or "").startswith(next(iter(extra)))


def test_numbers_are_written_as_the_type_of_their_field() -> None:
    # Python treats True as 1 and 1 as 1.0; Kafka's converter does not.
    request = FetchRequest(session_id=True, max_bytes=IsolationLevel.COMMITTED)
    node = request.to_json(15)
    assert json.dumps(node["sessionId"]) == json.dumps(node["maxBytes"]) == "1"
    assert FetchRequest.from_json(node, 15) == request
    quota = OpData(key="k", value=2)
    made = AlterClientQuotasRequest(entries=[EntryData(ops=[quota])])
    assert json.dumps(made.to_json(1)["entries"][0]["ops"][0]["value"]) == "2.0"
    topics = MetadataRequest(allow_auto_topic_creation=1)  # type: ignore[arg-type]
    assert topics.to_json(9)["allowAutoTopicCreation"] is True


def test_an_ignorable_field_of_another_version_is_dropped() -> None:
    node = FetchRequest().to_json(4) | {"rackId": "r", "logStartOffset": 5}
    assert FetchRequest.from_json(node, 4) == FetchRequest()


def test_a_null_struct_round_trips() -> None:
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    node = response.to_json(0)
    assert node == {"throttleTimeMs": 0, "topics": [], "nextCursor": None}
    assert DescribeTopicPartitionsResponse.from_json(node, 0) == response


def test_an_invalid_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="version 99 is not one of"):
        FetchRequest.from_json({}, 99)
    with pytest.raises(EncodeError, match="version 99 is not one of"):
        FetchRequest().to_json(99)


def test_a_former_name_is_read() -> None:
    # Kafka 3.9.2 used these names for the resources and for their names.
    old = {"throttleTimeMs": 3, "errorCode": 0, "clientMetricsResources": [{"name": "a"}]}
    read = ListConfigResourcesResponse.from_json(old, 0)
    assert [resource.resource_name for resource in read.config_resources] == ["a"]
    node = read.to_json(0)
    assert node["configResources"] == [{"resourceName": "a"}]
    assert ListConfigResourcesResponse.from_json(node, 0) == read


def test_a_former_name_inside_a_struct_is_read() -> None:
    partition = {"partitionIndex": 1, "lastOffsetEpoch": 2, "lastOffset": 3}
    node = VoteRequest().to_json(1)
    former = {"candidateEpoch": 7, "candidateId": 5, "candidateDirectoryId": str(TOPIC_ID)}
    former |= {"voterDirectoryId": str(TOPIC_ID)}
    node["topics"] = [{"topicName": "t", "partitions": [partition | former]}]
    (read,) = VoteRequest.from_json(node, 1).topics[0].partitions
    assert (read.replica_epoch, read.replica_id, read.replica_directory_id) == (7, 5, TOPIC_ID)


def test_an_error_names_the_field_as_the_json_does() -> None:
    node = TxnOffsetCommitRequest().to_json(3)
    node["generationId"] = node.pop("generationIdOrMemberEpoch")
    assert TxnOffsetCommitRequest.from_json(node, 3) == TxnOffsetCommitRequest()
    refused(TxnOffsetCommitRequest, 3, node | {"generationId": "x"}, "generationId")
    node["generationIdOrMemberEpoch"] = 5
    with pytest.raises(DecodeError, match="the field occurs twice, as generationId too"):
        TxnOffsetCommitRequest.from_json(node, 3)


def test_a_former_name_of_a_field_of_another_version_is_read() -> None:
    node = TxnOffsetCommitRequest().to_json(2)
    assert TxnOffsetCommitRequest.from_json(node | {"generationId": -1}, 2)
    refused(TxnOffsetCommitRequest, 2, node | {"generationId": 4}, "generationId")


def written_and_read(request: FetchRequest) -> FetchRequest:
    """Returns a request after converting it to JSON and back."""
    return FetchRequest.from_json(request.to_json(15), 15)


def test_a_tagged_struct_of_unknown_tags_alone_stays_in_json() -> None:
    request = FetchRequest()
    request.replica_state.unknown_tagged_fields = [RawTaggedField(9, b"x")]
    node = request.to_json(15)
    assert node["replicaState"] == {"replicaId": -1, "replicaEpoch": -1}
    read = written_and_read(written_and_read(request))
    assert read.to_json(15) == node
    assert read.copy().to_json(15) == node
    # The field is encoded as a struct at its default, and compares equal to one.
    assert (read, read.encode(15), repr(read)) == (
        FetchRequest(),
        FetchRequest().encode(15),
        repr(FetchRequest()),
    )
    read.replica_state.unknown_tagged_fields.append(RawTaggedField(9, b"x"))
    assert read == request


@pytest.mark.parametrize("name", ["current_leader", "diverging_epoch", "snapshot_id"])
def test_tagged_structs_of_unknown_tags_alone_stay_inside_others(name: str) -> None:
    part = PartitionData()
    getattr(part, name).unknown_tagged_fields = [RawTaggedField(0, b"")]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])
    node = response.to_json(16)
    assert len(node["responses"][0]["partitions"][0]) == 9
    assert FetchResponse.from_json(node, 16).to_json(16) == node


def test_reading_the_unknown_tags_of_a_default_adds_nothing_to_json() -> None:
    request = FetchRequest()
    assert request.replica_state.unknown_tagged_fields == []
    assert "replicaState" not in request.to_json(15)
