"""Tests the requests and results of admin calls for rights, users, replicas and the cluster."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import kproto
from kproto import ConfigurationError, Uuid
from kproto.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AdminError,
    ClientQuotaEntity,
    ClientQuotaFilter,
    DelegationTokenInfo,
    ElectionType,
    FeatureUpdate,
    LogDirDescription,
    QuotaName,
    RaftVoterEndpoint,
    ReplicaInfo,
    ReplicaLogDirInfo,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    TopicPartitionReplica,
    UpgradeType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kproto.client.admin.acls import create_acls_call, delete_acls_call, describe_acls_request
from kproto.client.admin.elections import elect_leaders_request, elected_leaders
from kproto.client.admin.features import described_features, update_features_call
from kproto.client.admin.log_dirs import (
    alter_log_dirs_request,
    described_log_dirs,
    replica_log_dir,
)
from kproto.client.admin.quorum import add_voter_request, described_quorum
from kproto.client.admin.quotas import (
    alter_quotas_call,
    describe_quotas_request,
    described_quotas,
)
from kproto.client.admin.reassignments import alter_reassignments_call
from kproto.client.admin.scram_users import (
    alter_scram_call,
    checked_alterations,
    rounds,
    salted,
)
from kproto.client.admin.tokens import create_token_request, created_token
from kproto.messages import (
    AddRaftVoterRequest,
    AlterPartitionReassignmentsResponse,
    ApiVersionsResponse,
    CreateAclsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeClientQuotasResponse,
    DescribeLogDirsResponse,
    DescribeQuorumResponse,
    ElectLeadersResponse,
    UpdateFeaturesResponse,
)
from kproto.messages import describe_client_quotas_response as quotas
from kproto.messages import describe_log_dirs_response as log_dirs
from kproto.messages import describe_quorum_response as quorum
from kproto.messages.api_versions_response import FinalizedFeatureKey, SupportedFeatureKey
from kproto.messages.create_acls_response import AclCreationResult
from kproto.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsMatchingAcl
from kproto.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from kproto.messages.update_features_response import UpdatableFeatureResult
from kproto.wire.errors import BrokerResponseError, KprotoError

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
READ = AclBinding(ResourceType.TOPIC, "a", "User:alice", AclOperation.READ)


def name_of(error: object) -> str:
    assert isinstance(error, BrokerResponseError)
    return error.name


# ACLs


def test_a_filter_without_fields_matches_every_acl() -> None:
    request = describe_acls_request(AclBindingFilter())
    decoded = DescribeAclsRequest.decode(request.encode(3), 3)
    assert (decoded.resource_name_filter, decoded.principal_filter, decoded.host_filter) == (
        None,
        None,
        None,
    )
    assert (decoded.resource_type_filter, decoded.pattern_type_filter, decoded.operation) == (
        1,
        1,
        1,
    )


def test_results_of_created_acls_are_in_the_order_of_the_request() -> None:
    other = READ._replace(name="b")
    call = create_acls_call()
    response = CreateAclsResponse(
        results=[AclCreationResult(), AclCreationResult(error_code=42, error_message="why")]
    )
    found = call.read(response, [READ, other])
    assert found[READ] is None
    assert name_of(found[other]) == "INVALID_REQUEST"


def test_an_acl_that_is_not_deleted_hides_no_deleted_acl() -> None:
    fields: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": "a",
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    result = DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(**fields),
            DeleteAclsMatchingAcl(**{**fields, "resource_name": "b", "error_code": 54}),
        ]
    )
    call = delete_acls_call()
    every = AclBindingFilter()
    error = call.read(DeleteAclsResponse(filter_results=[result]), [every])[every]
    assert isinstance(error, AdminError)
    assert list(error.results) == [READ]
    assert list(error.errors) == [READ._replace(name="b")]
    assert not call.repeats


# Quotas


def test_parts_of_a_quota_filter_match_names_defaults_or_everything() -> None:
    wanted = ClientQuotaFilter("alice", QuotaName.DEFAULT, QuotaName.ANY, strict=True)
    request = describe_quotas_request(wanted)
    assert [(each.entity_type, each.match_type, each.match) for each in request.components] == [
        ("user", 0, "alice"),
        ("client-id", 1, None),
        ("ip", 2, None),
    ]
    assert request.strict
    assert list(describe_quotas_request(ClientQuotaFilter()).components) == []


def test_quotas_are_read_by_entity() -> None:
    entry = quotas.EntryData(
        entity=[
            quotas.EntityData(entity_type="user", entity_name=None),
            quotas.EntityData(entity_type="client-id", entity_name="c"),
        ],
        values=[quotas.ValueData(key="request_percentage", value=50.0)],
    )
    response = DescribeClientQuotasResponse(entries=[entry])
    assert described_quotas(response) == {
        ClientQuotaEntity(QuotaName.DEFAULT, "c"): {"request_percentage": 50.0}
    }
    assert described_quotas(DescribeClientQuotasResponse(entries=None)) == {}


def test_a_quota_of_none_is_removed() -> None:
    entity = ClientQuotaEntity(ip=QuotaName.DEFAULT)
    call = alter_quotas_call({entity: {"x": None, "y": 1.5}}, validate_only=True)
    (entry,) = call.build([entity], 1_000).entries  # type: ignore[attr-defined]
    assert [(each.entity_type, each.entity_name) for each in entry.entity] == [("ip", None)]
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [
        ("x", 0.0, True),
        ("y", 1.5, False),
    ]


# SCRAM credentials


def test_the_salted_password_is_that_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    upsertion = UserScramCredentialUpsertion("user", SHA_256, "pencil", 4_096, salt)
    found = salted(upsertion)
    assert found.salted_password.hex() == (
        "c4a49510323ab4f952cac1fa99441939e78ea74d6be81ddf7096e87513dc615d"
    )
    assert (found.iterations, found.salt, found.mechanism) == (4_096, salt, 1)


def test_no_password_or_salt_is_in_a_repr_or_an_error() -> None:
    upsertion = UserScramCredentialUpsertion("user", SHA_512, "hunter2", 1, b"salt")
    assert "hunter2" not in repr(upsertion)
    assert "salt" not in repr(upsertion)
    with pytest.raises(ConfigurationError) as refused:
        checked_alterations([upsertion])
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(salted(UserScramCredentialUpsertion("user", SHA_512, "hunter2")))


@pytest.mark.parametrize(
    "alterations",
    [
        [UserScramCredentialUpsertion("u", SHA_256, "")],
        [UserScramCredentialUpsertion("u", SHA_256, "p", 4_095)],
        [UserScramCredentialUpsertion("u", SHA_256, "p", 16_385)],
        [UserScramCredentialUpsertion("u", ScramMechanism.UNKNOWN, "p")],
        [
            UserScramCredentialUpsertion("u", SHA_256, "p"),
            UserScramCredentialDeletion("u", SHA_256),
        ],
        ["u"],
    ],
)
def test_invalid_alterations_are_refused(alterations: Any) -> None:
    with pytest.raises(ConfigurationError):
        checked_alterations(alterations)


def test_a_request_has_one_credential_of_a_user() -> None:
    one, two = ScramCredential("u", SHA_256), ScramCredential("u", SHA_512)
    other = ScramCredential("v", SHA_256)
    assert rounds([one, two, other]) == [[one, other], [two]]
    call = alter_scram_call({one: salted(UserScramCredentialUpsertion("u", SHA_256, "p"))})
    request = call.build([one, other], 1_000)
    assert [each.name for each in request.upsertions] == ["u"]  # type: ignore[attr-defined]
    assert [each.name for each in request.deletions] == ["v"]  # type: ignore[attr-defined]


# Delegation tokens


def test_the_hmac_of_a_token_is_hidden_and_authenticates() -> None:
    response = CreateDelegationTokenResponse(
        principal_type="User",
        principal_name="alice",
        token_requester_principal_type="User",
        token_requester_principal_name="admin",
        token_id="t",
        hmac=b"hunter2",
    )
    token = created_token(response, ["User:bob"])
    assert isinstance(token, DelegationTokenInfo)
    assert (token.owner, token.requester, token.renewers) == (
        "User:alice",
        "User:admin",
        ("User:bob",),
    )
    assert "hunter2" not in repr(token)
    sasl = token.sasl("SCRAM-SHA-512")
    assert isinstance(sasl, kproto.DelegationToken)
    assert sasl.hmac == base64.b64encode(b"hunter2").decode()
    old = CreateDelegationTokenResponse(principal_type="User", principal_name="alice")
    without = created_token(old, [])
    assert isinstance(without, DelegationTokenInfo)
    assert without.requester == "User:alice"


def test_principals_of_a_token_have_a_type() -> None:
    request = create_token_request(["User:a:b"], "User:alice", -1)
    decoded = CreateDelegationTokenRequest.decode(request.encode(3), 3)
    assert decoded.owner_principal_name == "alice"
    assert [(each.principal_type, each.principal_name) for each in decoded.renewers] == [
        ("User", "a:b")
    ]
    for wrong in ("alice", ":alice", "User:", 3):
        with pytest.raises(ConfigurationError, match="no principal"):
            create_token_request([wrong], None, -1)  # type: ignore[list-item]


# Replicas


def test_a_replica_that_moves_has_two_directories() -> None:
    current = LogDirDescription(None, {("a", 0): ReplicaInfo(9, 0, False)}, None, None, False)
    future = LogDirDescription(None, {("a", 0): ReplicaInfo(4, 5, True)}, None, None, False)
    assert replica_log_dir({"/1": current, "/2": future}, ("a", 0)) == ReplicaLogDirInfo(
        "/1", 0, "/2", 5
    )
    assert replica_log_dir({"/1": current}, ("a", 1)) == ReplicaLogDirInfo()


def test_an_offline_log_directory_has_an_error() -> None:
    response = DescribeLogDirsResponse(
        results=[
            log_dirs.DescribeLogDirsResult(log_dir="/1", error_code=56),
            log_dirs.DescribeLogDirsResult(log_dir="/2", total_bytes=7, usable_bytes=5),
        ]
    )
    found = described_log_dirs(response)
    assert not isinstance(found, KprotoError)
    assert name_of(found["/1"].error) == "KAFKA_STORAGE_ERROR"
    assert (found["/2"].total_bytes, found["/2"].usable_bytes) == (7, 5)
    assert found["/1"].total_bytes is None
    refused = described_log_dirs(DescribeLogDirsResponse(error_code=31))
    assert name_of(refused) == "CLUSTER_AUTHORIZATION_FAILED"


def test_replicas_are_moved_by_path() -> None:
    one, two = TopicPartitionReplica("a", 0, 1), TopicPartitionReplica("a", 1, 1)
    request = alter_log_dirs_request({one: "/1", two: "/2"}, [one, two])
    assert [
        (each.path, topic.name, topic.partitions) for each in request.dirs for topic in each.topics
    ] == [("/1", "a", [0]), ("/2", "a", [1])]


def test_no_replicas_cancel_a_reassignment() -> None:
    call = alter_reassignments_call({("a", 0): [1, 2], ("a", 1): None}, may_change_factor=True)
    request = call.build([("a", 0), ("a", 1)], 1_000)
    (topic,) = request.topics  # type: ignore[attr-defined]
    assert [each.replicas for each in topic.partitions] == [[1, 2], None]
    assert request.encode(0)  # old brokers get it unless the factor must not change
    whole = AlterPartitionReassignmentsResponse(error_code=41)
    assert name_of(call.read(whole, [("a", 0)])["a", 0]) == "NOT_CONTROLLER"


def test_an_election_that_is_not_needed_is_no_error() -> None:
    results = [
        PartitionResult(partition_id=0),
        PartitionResult(partition_id=1, error_code=84),
        PartitionResult(partition_id=2, error_code=80, error_message="down"),
    ]
    response = ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="a", partition_result=results)]
    )
    found = elected_leaders(response)
    assert isinstance(found, dict)
    assert (found["a", 0], found["a", 1]) == (True, False)
    assert name_of(found["a", 2]) == "PREFERRED_LEADER_NOT_AVAILABLE"
    refused = elected_leaders(ElectLeadersResponse(error_code=31))
    assert name_of(refused) == "CLUSTER_AUTHORIZATION_FAILED"
    every = elect_leaders_request(ElectionType.UNCLEAN, None, 5)
    assert (every.election_type, every.topic_partitions) == (1, None)


# The cluster


def test_features_are_read_with_their_epoch() -> None:
    response = ApiVersionsResponse(
        finalized_features=[
            FinalizedFeatureKey(name="f", min_version_level=1, max_version_level=2)
        ],
        supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=3)],
        finalized_features_epoch=9,
    )
    found = described_features(response)
    assert found == ({"f": (1, 2)}, 9, {"f": (1, 3)})
    assert described_features(ApiVersionsResponse()) == ({}, None, {})


def test_an_update_of_features_has_one_error_for_all_or_one_for_each() -> None:
    updates = {"f": FeatureUpdate(2), "g": FeatureUpdate(0, UpgradeType.UNSAFE_DOWNGRADE)}
    call = update_features_call(updates, validate_only=False)
    request = call.build(["f", "g"], 1_000)
    assert [
        (each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates  # type: ignore[attr-defined]
    ] == [("f", 2, 1), ("g", 0, 3)]
    whole = call.read(UpdateFeaturesResponse(error_code=96, error_message="g"), ["f", "g"])
    assert {name_of(each) for each in whole.values()} == {"FEATURE_UPDATE_FAILED"}
    each = UpdateFeaturesResponse(
        results=[
            UpdatableFeatureResult(feature="f"),
            UpdatableFeatureResult(feature="g", error_code=96),
        ]
    )
    found = call.read(each, ["f", "g"])
    assert found["f"] is None
    assert name_of(found["g"]) == "FEATURE_UPDATE_FAILED"


def test_the_quorum_is_read_with_voters_and_endpoints() -> None:
    directory = Uuid.random()
    voter = quorum.ReplicaState(
        replica_id=1, replica_directory_id=directory, log_end_offset=7, last_fetch_timestamp=5
    )
    part = quorum.PartitionData(
        leader_id=1, leader_epoch=2, high_watermark=6, current_voters=[voter]
    )
    listener = quorum.Listener(name="CONTROLLER", host="h", port=1)
    response = DescribeQuorumResponse(
        topics=[quorum.TopicData(topic_name="__cluster_metadata", partitions=[part])],
        nodes=[quorum.Node(node_id=1, listeners=[listener])],
    )
    found = described_quorum(DescribeQuorumResponse.decode(response.encode(2), 2))
    assert not isinstance(found, KprotoError)
    assert found[:3] == (1, 2, 6)
    assert found.voters == ((1, directory, 7, 5, None),)
    assert found.nodes == {1: (RaftVoterEndpoint("CONTROLLER", "h", 1),)}
    refused = quorum.PartitionData(error_code=41)
    other = DescribeQuorumResponse(topics=[quorum.TopicData(partitions=[refused])])
    assert name_of(described_quorum(other)) == "NOT_CONTROLLER"
    assert "lacks" in str(described_quorum(DescribeQuorumResponse()))


def test_a_voter_is_added_with_its_endpoints() -> None:
    directory = Uuid.random()
    request = add_voter_request(3, directory, [RaftVoterEndpoint("C", "h", 9)], None, 700)
    decoded = AddRaftVoterRequest.decode(request.encode(0), 0)
    assert (decoded.voter_id, decoded.voter_directory_id, decoded.cluster_id) == (
        3,
        directory,
        None,
    )
    assert [(each.name, each.host, each.port) for each in decoded.listeners] == [("C", "h", 9)]


def test_update_that_is_no_feature_update_is_refused() -> None:
    updates: Any = {"metadata.version": 1}
    with pytest.raises(ConfigurationError, match=r"updates\['metadata\.version'\] is 1"):
        update_features_call(updates, validate_only=False)
