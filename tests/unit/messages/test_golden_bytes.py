"""Tests bytes that the classes of kafka-clients 4.4.0 and two more jars have written.

The other jars are kafka-metadata and kafka-group-coordinator. Kafka's own Java class wrote the
bytes of each entry from the values that are listed with the entry. RawTaggedField wrote unknown
tagged fields. kproto wrote no entry.
"""

from __future__ import annotations

from typing import TypeVar

import pytest

from kproto.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupMemberMetadataValue,
    DescribeTopicPartitionsResponse,
    FetchRequest,
    FetchResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaderChangeMessage,
    MetadataResponse,
    OffsetCommitKey,
    PartitionRecord,
    ProduceRequest,
    RequestHeader,
)
from kproto.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kproto.messages.api_versions_response import (
    ApiVersion,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kproto.messages.base import Message
from kproto.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from kproto.messages.describe_topic_partitions_response import Cursor
from kproto.messages.fetch_request import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kproto.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from kproto.messages.group_metadata_value import MemberMetadata
from kproto.messages.join_group_request import JoinGroupRequestProtocol
from kproto.messages.join_group_response import JoinGroupResponseMember
from kproto.messages.leader_change_message import Voter
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.wire.tags import RawTaggedField
from kproto.wire.uuid import ZERO_UUID, Uuid

M = TypeVar("M", bound=Message)

FIVE = Uuid(bytes(15) + b"\x05")
SIX = Uuid(bytes(15) + b"\x06")


def with_tag(message: M, tag: int, data: bytes) -> M:
    message.unknown_tagged_fields = [RawTaggedField(tag, data)]
    return message


GOLDEN: list[tuple[int, Message, str]] = [
    (
        3,
        ApiVersionsRequest(client_software_name="kproto", client_software_version="0.1.0"),
        "076b70726f746f06302e312e3000",
    ),
    (
        5,
        with_tag(
            ApiVersionsRequest(
                client_software_name="kproto",
                client_software_version="0.1.0",
                cluster_id="c1",
                node_id=7,
            ),
            5000,
            b"ab",
        ),
        "076b70726f746f06302e312e3003633100000007018827026162",
    ),
    (
        4,
        ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=0, min_version=0, max_version=13),
                ApiVersion(api_key=18, min_version=0, max_version=5),
            ],
            throttle_time_ms=3,
            supported_features=[
                SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30)
            ],
            finalized_features_epoch=9,
            finalized_features=[
                FinalizedFeatureKey(
                    name="metadata.version", max_version_level=29, min_version_level=7
                )
            ],
            zk_migration_ready=True,
        ),
        (
            "00000300000000000d00001200000005000000000304001702116d657461646174612e76657273696f6e000700"
            "1e0001080000000000000009021702116d657461646174612e76657273696f6e001d000700030101"
        ),
    ),
    (
        1,
        RequestHeader(request_api_key=3, request_api_version=8, correlation_id=42, client_id="me"),
        "000300080000002a00026d65",
    ),
    (
        2,
        with_tag(
            RequestHeader(
                request_api_key=3, request_api_version=12, correlation_id=-2, client_id=None
            ),
            7,
            b"\xff",
        ),
        "0003000cfffffffeffff010701ff",
    ),
    (
        12,
        MetadataResponse(
            throttle_time_ms=1,
            brokers=[
                MetadataResponseBroker(node_id=1, host="a.example", port=9092, rack="r1"),
                MetadataResponseBroker(node_id=2, host="b.example", port=9093),
            ],
            cluster_id="cluster",
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="orders",
                    topic_id=FIVE,
                    partitions=[
                        MetadataResponsePartition(
                            error_code=5,
                            leader_id=1,
                            leader_epoch=4,
                            replica_nodes=[1, 2],
                            isr_nodes=[1],
                            offline_replicas=[2],
                        )
                    ],
                    topic_authorized_operations=3576,
                ),
                MetadataResponseTopic(error_code=100, name=None, topic_id=FIVE, is_internal=True),
            ],
        ),
        (
            "0000000103000000010a612e6578616d706c650000238403723100000000020a622e6578616d706c6500002385"
            "000008636c757374657200000001030000076f7264657273000000000000000000000000000000050002000500"
            "0000000000000100000004030000000100000002020000000102000000020000000df800006400000000000000"
            "000000000000000000050101800000000000"
        ),
    ),
    (
        15,
        FetchRequest(
            cluster_id="cluster",
            replica_state=ReplicaState(replica_id=3, replica_epoch=11),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1048576,
            isolation_level=1,
            session_id=77,
            session_epoch=2,
            topics=[
                FetchTopic(
                    topic_id=FIVE,
                    partitions=[
                        FetchPartition(
                            partition=1,
                            current_leader_epoch=9,
                            fetch_offset=123456789012,
                            last_fetched_epoch=8,
                            partition_max_bytes=65536,
                        )
                    ],
                )
            ],
            forgotten_topics_data=[ForgottenTopic(topic_id=FIVE, partitions=[2, 3])],
            rack_id="rack",
        ),
        (
            "000001f40000000100100000010000004d00000002020000000000000000000000000000000502000000010000"
            "00090000001cbe991a1400000008ffffffffffffffff0001000000000200000000000000000000000000000005"
            "03000000020000000300057261636b02000808636c7573746572010d00000003000000000000000b00"
        ),
    ),
    (
        18,
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[
                FetchTopic(
                    topic_id=FIVE,
                    partitions=[
                        FetchPartition(
                            partition=1,
                            current_leader_epoch=9,
                            fetch_offset=5,
                            partition_max_bytes=65536,
                            replica_directory_id=SIX,
                            high_watermark=44,
                        )
                    ],
                )
            ],
        ),
        (
            "000001f4000000017fffffff0000000000ffffffff020000000000000000000000000000000502000000010000"
            "00090000000000000005ffffffffffffffffffffffff0001000002001000000000000000000000000000000006"
            "0108000000000000002c00010100"
        ),
    ),
    (
        16,
        with_tag(
            FetchResponse(
                session_id=5,
                responses=[
                    FetchableTopicResponse(
                        topic_id=FIVE,
                        partitions=[
                            PartitionData(
                                error_code=6,
                                high_watermark=10,
                                last_stable_offset=9,
                                log_start_offset=1,
                                diverging_epoch=EpochEndOffset(epoch=3, end_offset=8),
                                current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
                                snapshot_id=SnapshotId(end_offset=6, epoch=1),
                                aborted_transactions=[
                                    AbortedTransaction(producer_id=1000, first_offset=4)
                                ],
                                preferred_read_replica=2,
                                records=b"\0\1\2",
                            ),
                            PartitionData(
                                partition_index=1, aborted_transactions=None, records=None
                            ),
                        ],
                    )
                ],
                node_endpoints=[NodeEndpoint(node_id=2, host="b.example", port=9093)],
            ),
            900,
            b"\0",
        ),
        (
            "00000000000000000005020000000000000000000000000000000503000000000006000000000000000a0000"
            "00000000000900000000000000010200000000000003e8000000000000000400000000020400010203000d00"
            "0000030000000000000008000109000000020000000400020d00000000000000060000000100000000010000"
            "0000000000000000ffffffffffffffffffffffffffffffff00ffffffff00000002001502000000020a622e65"
            "78616d706c6500002385000084070100"
        ),
    ),
    (
        9,
        ProduceRequest(
            transactional_id="tx",
            acks=-1,
            timeout_ms=1500,
            topic_data=[
                TopicProduceData(
                    name="orders",
                    partition_data=[
                        PartitionProduceData(records=b"\xde\xad\xbe\xef"),
                        PartitionProduceData(index=1, records=None),
                    ],
                )
            ],
        ),
        "037478ffff000005dc02076f7264657273030000000005deadbeef000000000100000000",
    ),
    (
        3,
        ProduceRequest(
            acks=1,
            timeout_ms=1500,
            topic_data=[
                TopicProduceData(
                    name="orders",
                    partition_data=[PartitionProduceData(records=b"\xde\xad\xbe\xef")],
                )
            ],
        ),
        "ffff0001000005dc0000000100066f7264657273000000010000000000000004deadbeef",
    ),
    (
        9,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10000,
            rebalance_timeout_ms=300000,
            member_id="m-1",
            group_instance_id="static",
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=b"\0\1"),
                JoinGroupRequestProtocol(name="sticky"),
            ],
            reason="because",
        ),
        (
            "026700002710000493e0046d2d310773746174696309636f6e73756d6572030672616e67650300010007737469"
            "636b790100086265636175736500"
        ),
    ),
    (
        9,
        JoinGroupResponse(
            generation_id=3,
            protocol_type="consumer",
            protocol_name="range",
            leader="m-1",
            skip_assignment=True,
            member_id="m-1",
            members=[JoinGroupResponseMember(member_id="m-1", metadata=b"\0\1")],
        ),
        "0000000000000000000309636f6e73756d65720672616e6765046d2d3101046d2d3102046d2d31000300010000",
    ),
    (
        0,
        DescribeTopicPartitionsResponse(
            next_cursor=Cursor(topic_name="orders", partition_index=12)
        ),
        "000000000101076f72646572730000000c0000",
    ),
    (0, DescribeTopicPartitionsResponse(next_cursor=None), "0000000001ff00"),
    (
        1,
        AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[EntityData(entity_type="user", entity_name=None)],
                    ops=[OpData(key="producer_byte_rate", value=1048576.5)],
                )
            ],
            validate_only=True,
        ),
        "020205757365720000021370726f64756365725f627974655f7261746541300000800000000000000100",
    ),
    (
        2,
        PartitionRecord(
            partition_id=3,
            topic_id=FIVE,
            replicas=[1, 2, 3],
            isr=[1, 2],
            leader=1,
            leader_recovery_state=1,
            leader_epoch=7,
            partition_epoch=8,
            directories=[FIVE, FIVE, FIVE],
            eligible_leader_replicas=[3],
        ),
        (
            "000000030000000000000000000000000000000504000000010000000200000003030000000100000002010100"
            "000001000000070000000804000000000000000000000000000000050000000000000000000000000000000500"
            "0000000000000000000000000000050200010101050200000003"
        ),
    ),
    (0, GroupMetadataKey(group="g"), "000167"),
    (
        3,
        GroupMetadataValue(
            protocol_type="consumer",
            generation=4,
            protocol="range",
            leader="m-1",
            current_state_timestamp=1700000000000,
            members=[
                MemberMetadata(
                    member_id="m-1",
                    client_id="me",
                    client_host="/127.0.0.1",
                    rebalance_timeout=300000,
                    session_timeout=10000,
                    subscription=b"\0\1",
                )
            ],
        ),
        (
            "0008636f6e73756d657200000004000572616e676500036d2d310000018bcfe568000000000100036d2d31ffff"
            "00026d65000a2f3132372e302e302e31000493e00000271000000002000100000000"
        ),
    ),
    (
        0,
        OffsetCommitKey(group="g", topic="orders", partition=2),
        "00016700066f726465727300000002",
    ),
    (
        0,
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id="r",
            client_id="me",
            client_host="/h",
            subscribed_topic_names=["a", "b"],
            subscribed_topic_regex=None,
            rebalance_timeout_ms=45000,
            server_assignor="uniform",
            classic_member_metadata=None,
        ),
        "000272036d65032f680302610262000000afc808756e69666f726d01000100",
    ),
    (
        0,
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id=None,
            client_id="me",
            client_host="/h",
            subscribed_topic_regex="a.*",
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=9000,
                supported_protocols=[ClassicProtocol(name="range", metadata=b"\0")],
            ),
        ),
        "026900036d65032f680104612e2affffffff000100100100002328020672616e676502000000",
    ),
    (
        1,
        with_tag(
            LeaderChangeMessage(
                version=1,
                leader_id=3,
                voters=[
                    Voter(voter_id=1, voter_directory_id=FIVE),
                    Voter(voter_id=3, voter_directory_id=ZERO_UUID),
                ],
                granting_voters=[Voter(voter_id=3, voter_directory_id=FIVE)],
            ),
            1,
            b"\2\3",
        ),
        (
            "000100000003030000000100000000000000000000000000000005000000000300000000000000000000000000"
            "00000000020000000300000000000000000000000000000005000101020203"
        ),
    ),
]


@pytest.mark.parametrize(("version", "message", "written"), GOLDEN)
def test_bytes_are_those_of_kafkas_classes(version: int, message: Message, written: str) -> None:
    data = bytes.fromhex(written)
    assert message.encode(version).hex() == written
    assert message.size(version) == len(data)
    assert type(message).decode(data, version) == message
