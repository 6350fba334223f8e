"""Tests the union of releases.

The union has every version of every message. A version has the bytes that it has in the newest
release with this version. The union lists the differences of the other releases.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from kproto_codegen.error_code import ErrorCode
from kproto_codegen.errors import DefinitionError
from kproto_codegen.releases.release import Release, load_releases
from kproto_codegen.union.merge import wire_form
from kproto_codegen.union.release_union import (
    Difference,
    Union,
    layout_differences,
    unite,
)

from kproto import messages
from kproto.messages.base import Message
from kproto.schema.definitions import union as shipped_union
from kproto.schema.layout import layout
from kproto.schema.layout_comparison import DifferenceKind
from kproto.schema.naming import class_name
from kproto.schema.specs import FieldSpec, MessageSpec
from tests.support.committed_releases import committed_release as release

from ..samples import SCHEMAS, field, spec, wire

RELEASES = ("3.9.2", "4.4.0")


@cache
def kafka() -> Union:
    """Returns the union of the committed releases."""
    return unite(load_releases(SCHEMAS))


def released_versions() -> set[tuple[str, int]]:
    """Returns (message name, version) for each version of each message in the releases.

    A message that has been renamed is listed under all its names.
    """
    return {
        (message.name, version)
        for name in RELEASES
        for message in release(name).messages
        for version in message.valid_versions
    }


def fields_of(message: MessageSpec) -> Iterator[tuple[str, FieldSpec]]:
    """Yields (path, field) of every field, also of the fields in structs."""

    def walk(fields: tuple[FieldSpec, ...], prefix: str) -> Iterator[tuple[str, FieldSpec]]:
        for entry in fields:
            yield prefix + entry.name, entry
            yield from walk(entry.fields, f"{prefix}{entry.name}.")

    yield from walk(message.fields, "")
    for struct in message.common_structs:
        yield from walk(struct.fields, f"{struct.name}.")


# Kafka's two releases


@pytest.mark.slow
def test_the_union_has_every_released_version() -> None:
    assert kafka().releases == RELEASES
    assert len(released_versions()) == 877
    # Ten coordinator keys were renumbered, and two messages of one version were renamed.
    assert sum(len(message.valid_versions) for message in kafka().messages) == 877 - 12
    assert len(kafka().messages) == 288
    assert len(kafka().error_codes) == 138


@pytest.mark.slow
def test_each_version_has_the_bytes_of_its_newest_release() -> None:
    newest: dict[tuple[str, int, str], MessageSpec] = {}
    for name in RELEASES:
        for message in release(name).messages:
            for version in message.valid_versions:
                newest[message.name, version, message.type] = message
    assert {(name, version) for name, version, _ in newest} == released_versions()
    later = {(message.name, message.type) for message in release("4.4.0").messages}
    for (name, version, kind), message in newest.items():
        united, number = kafka().resolve(name, version, kind)
        same = wire_form(layout(united, number)) == wire_form(layout(message, version))
        # Only a name and type that 4.4.0 lacks may differ: 3.9.2 has coordinator keys as data.
        assert same or (name, kind) not in later, (name, version)


@pytest.mark.slow
def test_every_released_version_has_a_class_and_every_name_resolves() -> None:
    for name, version in released_versions():
        made, number = shipped_union().resolve(name, version)
        cls = getattr(messages, class_name(made.name))
        assert number in cls.VALID_VERSIONS, (name, version)
        assert issubclass(getattr(messages, class_name(name)), Message)
    names = {name for name, _ in released_versions()}
    assert names - set(messages.MODULES) == set(messages.FORMER_NAMES)


@pytest.mark.slow
def test_every_difference_to_a_release_is_listed() -> None:
    found: dict[str, set[tuple[str, int, str, str]]] = {}
    for entry in layout_differences(kafka(), [release(name) for name in RELEASES]):
        assert entry.release == "3.9.2", "the newest release defines the union"
        place = (entry.message, entry.version, entry.field, entry.detail)
        found.setdefault(entry.kind, set()).add(place)
    assert found == NAMED
    assert sum(map(len, NAMED.values())) == len(kafka().differences)


def _key(name: str, number: int) -> tuple[str, int, str, str]:
    return (name, 0, "", f"was {name} v{number}")


NAMED = {
    "message renumbered": {
        _key("OffsetCommitKey", 1),
        _key("GroupMetadataKey", 2),
        _key("ConsumerGroupMetadataKey", 3),
        _key("ConsumerGroupPartitionMetadataKey", 4),
        _key("ConsumerGroupMemberMetadataKey", 5),
        _key("ConsumerGroupTargetAssignmentMetadataKey", 6),
        _key("ConsumerGroupTargetAssignmentMemberKey", 7),
        _key("ConsumerGroupCurrentMemberAssignmentKey", 8),
        _key("ShareGroupMemberMetadataKey", 10),
        _key("ShareGroupMetadataKey", 11),
    },
    "message renamed": {
        ("LegacyOffsetCommitKey", 0, "", "was OffsetCommitKey"),
        ("ListConfigResourcesRequest", 0, "", "was ListClientMetricsResourcesRequest"),
        ("ListConfigResourcesResponse", 0, "", "was ListClientMetricsResourcesResponse"),
    },
    "field renamed": {
        ("ListConfigResourcesResponse", 0, "ConfigResources", "was ClientMetricsResources"),
        ("ListConfigResourcesResponse", 0, "ConfigResources.ResourceName", "was Name"),
        ("TxnOffsetCommitRequest", 3, "GenerationIdOrMemberEpoch", "was GenerationId"),
        ("TxnOffsetCommitRequest", 4, "GenerationIdOrMemberEpoch", "was GenerationId"),
        ("VoteRequest", 0, "Topics.Partitions.ReplicaEpoch", "was CandidateEpoch"),
        ("VoteRequest", 0, "Topics.Partitions.ReplicaId", "was CandidateId"),
        ("VoteRequest", 1, "Topics.Partitions.ReplicaEpoch", "was CandidateEpoch"),
        ("VoteRequest", 1, "Topics.Partitions.ReplicaId", "was CandidateId"),
        ("VoteRequest", 1, "Topics.Partitions.ReplicaDirectoryId", "was CandidateDirectoryId"),
    },
    "fields changed": {
        ("ReadShareGroupStateSummaryResponse", 0, "Results.Partitions", "now has LeaderEpoch"),
        ("ShareGroupMetadataValue", 0, "", "now has MetadataHash"),
    },
    "tagged field added": {
        *(
            ("ConsumerGroupCurrentMemberAssignmentValue", 0, f"{struct}.AssignmentEpochs", "tag 0")
            for struct in ("AssignedPartitions", "PartitionsPendingRevocation")
        ),
        ("ConsumerGroupMetadataValue", 0, "MetadataHash", "tag 0"),
        ("ConsumerGroupTargetAssignmentMetadataValue", 0, "AssignmentTimestamp", "tag 0"),
        ("OffsetCommitValue", 4, "topicId", "tag 0"),
        ("RemoteLogSegmentMetadataRecord", 0, "TxnIndexEmpty", "tag 0"),
        ("RemoteLogSegmentMetadataSnapshotRecord", 0, "TxnIndexEmpty", "tag 0"),
        ("TransactionLogValue", 1, "PreviousProducerId", "tag 0"),
        ("TransactionLogValue", 1, "NextProducerId", "tag 1"),
        ("TransactionLogValue", 1, "ClientTransactionVersion", "tag 2"),
        ("TransactionLogValue", 1, "NextProducerEpoch", "tag 3"),
    },
}


@pytest.mark.slow
def test_dropped_messages_are_kept_unchanged() -> None:
    for name in ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"):
        for suffix in ("Request", "Response"):
            assert not release("4.4.0").message(name + suffix).valid_versions
            assert kafka().message(name + suffix) == release("3.9.2").message(name + suffix)


@pytest.mark.parametrize(
    ("message", "path", "versions", "behind"),
    [
        ("ListOffsetsRequest", "Topics.Partitions.MaxNumOffsets", "0", "Timestamp"),
        ("ListOffsetsResponse", "Topics.Partitions.OldStyleOffsets", "0", "ErrorCode"),
        ("AlterPartitionRequest", "Topics.TopicName", "0-1", None),
        ("AlterPartitionResponse", "Topics.TopicName", "0-1", None),
        ("OffsetCommitRequest", "Topics.Partitions.CommitTimestamp", "1", "CommittedLeaderEpoch"),
        ("DescribeConfigsResponse", "Results.Configs.IsDefault", "0", "ReadOnly"),
    ],
)
@pytest.mark.slow
def test_dropped_fields_are_restored(
    message: str, path: str, versions: str, behind: str | None
) -> None:
    fields = dict(fields_of(kafka().message(message)))
    assert str(fields[path].versions) == versions
    assert path not in dict(fields_of(release("4.4.0").message(message)))
    siblings = [key for key in fields if key.rpartition(".")[0] == path.rpartition(".")[0]]
    before = siblings[siblings.index(path) - 1] if siblings[0] != path else None
    assert (before.rpartition(".")[2] if before else None) == behind


@pytest.mark.slow
def test_the_client_id_stays_ignorable_for_header_version_0() -> None:
    header = kafka().message("RequestHeader")
    assert str(header.valid_versions) == "0-2"
    client_id = dict(fields_of(header))["ClientId"]
    assert client_id.ignorable
    assert str(client_id.versions) == "1+"
    assert not dict(fields_of(release("4.4.0").message("RequestHeader")))["ClientId"].ignorable


@pytest.mark.slow
def test_aliases_keep_the_older_names() -> None:
    found = {
        (message.name, path): entry.aliases
        for message in kafka().messages
        for path, entry in fields_of(message)
        if entry.aliases
    }
    assert found == {
        ("ListConfigResourcesResponse", "ConfigResources"): ("ClientMetricsResources",),
        ("ListConfigResourcesResponse", "ConfigResources.ResourceName"): ("Name",),
        ("TxnOffsetCommitRequest", "GenerationIdOrMemberEpoch"): ("GenerationId",),
        ("VoteRequest", "Topics.Partitions.ReplicaEpoch"): ("CandidateEpoch",),
        ("VoteRequest", "Topics.Partitions.ReplicaId"): ("CandidateId",),
        ("VoteRequest", "Topics.Partitions.ReplicaDirectoryId"): ("CandidateDirectoryId",),
    }


def tagged(name: str, tag: int, kind: str = "string", **keys: Any) -> Any:
    return field(name, kind, "1+", taggedVersions="1+", tag=tag, **keys)


@pytest.mark.parametrize(
    "more",
    [
        [],
        [tagged("Extra", 1)],
        [field("Later", versions="3+")],
    ],
)
def test_a_renamed_tag_keeps_its_older_name(more: list[Any]) -> None:
    inside = [field("X"), tagged("Inner", 0, "int8")]
    older = spec(field("A"), tagged("Mood", 0), field("L", "[]S", fields=inside))
    inside = [field("X"), tagged("Core", 0, "int8"), tagged("Shell", 1)]
    highest = "0-3" if more and more[0]["name"] == "Later" else "0-2"
    newer = spec(
        *(field("A2"), tagged("Humour", 0), field("L", "[]S", fields=inside), *more),
        validVersions=highest,
    )
    (united,) = unite([Release("1.0", (older,)), Release("2.0", (newer,))]).messages
    aliases = {path: entry.aliases for path, entry in fields_of(united) if entry.aliases}
    assert aliases == {"A2": ("A",), "Humour": ("Mood",), "L.Core": ("Inner",)}


def test_a_reused_tag_has_no_older_name() -> None:
    older = spec(field("A"), tagged("M", 0, "S", fields=[field("X")]), tagged("N", 1))
    inside = [field("Y", "string"), field("Z")]
    newer = spec(field("A"), tagged("H", 0, "T", fields=inside), tagged("O", 1, "int32"))
    (united,) = unite([Release("1.0", (older,)), Release("2.0", (newer,))]).messages
    assert [path for path, entry in fields_of(united) if entry.aliases] == []


@pytest.mark.slow
def test_reused_names_and_numbers_differ_by_type() -> None:
    union = kafka()
    legacy, version = union.resolve("OffsetCommitKey", 0, "data")
    assert (legacy.name, version) == ("LegacyOffsetCommitKey", 0)
    own, version = union.resolve("OffsetCommitKey", 0, "coordinator-key")
    assert (own.name, version) == ("OffsetCommitKey", 0)
    assert union.resolve("OffsetCommitKey", 1, "data") == (own, 0)
    assert union.resolve("TransactionLogKey", 0, "data")[0].type == "coordinator-key"
    dropped, version = union.resolve("ShareGroupPartitionMetadataKey", 9, "data")
    assert (dropped.type, version) == ("data", 9)
    with pytest.raises(KeyError, match="no release has OffsetCommitKey v2"):
        union.resolve("OffsetCommitKey", 2, "data")
    with pytest.raises(KeyError, match="the union has no message Nothing"):
        union.message("Nothing")


# Small releases made for these tests


def made(*messages: MessageSpec, name: str = "1.0") -> Release:
    return Release(name, messages)


def united(older: MessageSpec, newer: MessageSpec) -> MessageSpec:
    (message,) = unite([made(older, name="1.0"), made(newer, name="2.0")]).messages
    return message


def names(message: MessageSpec, version: int) -> list[str]:
    found = layout(message, version)
    return [entry.name for entry in found.all_fields()]


def test_one_release_is_its_own_union() -> None:
    only = spec(field("A"))
    assert unite([made(only)]).messages == (only,)
    assert unite([made(only)]).differences == ()
    with pytest.raises(DefinitionError, match="no release to unite"):
        unite([])


def test_a_newer_release_with_every_version_is_kept_unchanged() -> None:
    newer = spec(field("A"), field("B", versions="3+"), validVersions="0-3")
    assert united(spec(field("A")), newer) == newer


def test_dropped_versions_come_from_the_older() -> None:
    older = spec(
        field("A"),
        field("Gone", "string", "0-1"),
        field("B", "[]S", "0+", fields=[field("X"), field("Lost", versions="0")]),
    )
    newer = spec(
        field("A", versions="2+"),
        field("B", "[]S", "2+", fields=[field("X", versions="2+"), field("Y", versions="3+")]),
        validVersions="2-3",
    )
    message = united(older, newer)
    assert (str(message.valid_versions), str(message.flexible_versions)) == ("0-3", "1+")
    assert {path: str(entry.versions) for path, entry in fields_of(message)} == {
        "A": "0+",
        "Gone": "0-1",
        "B": "0+",
        "B.X": "0+",
        "B.Lost": "0",
        "B.Y": "3+",
    }


def test_a_new_field_does_not_reach_into_older_versions() -> None:
    # The newer release writes 0+ because it has no versions below 2.
    newer = spec(field("A"), field("New", versions="0+"), validVersions="2-3")
    older = spec(field("A"), validVersions="0-1")
    message = united(older, newer)
    assert names(message, 1) == ["A"]
    assert names(message, 2) == ["A", "New"]


def test_versions_above_the_newer_come_from_the_older() -> None:
    older = spec(
        field("A"), field("B", versions="3+"), validVersions="0-3", latestVersionUnstable=True
    )
    message = united(older, spec(field("A")))
    assert str(message.valid_versions) == "0-3"
    assert names(message, 3) == ["A", "B"]
    assert names(message, 2) == ["A"]
    assert message.latest_stable == 2


def test_fields_match_by_position_where_the_bytes_agree() -> None:
    older = spec(field("Old", "string", "0+"), field("Same"), validVersions="0-2")
    newer = spec(field("New", "string", "0+"), field("Same"), validVersions="1-2")
    message = united(older, newer)
    assert [(entry.name, entry.aliases) for entry in message.fields] == [
        ("New", ("Old",)),
        ("Same", ()),
    ]
    assert names(message, 0) == ["New", "Same"]


def test_names_mislead_where_they_were_swapped() -> None:
    older = spec(field("A"), field("B"))
    newer = spec(field("B"), field("A"), validVersions="1-2")
    message = united(older, newer)
    assert names(message, 0) == ["B", "A"]
    assert all(not entry.aliases for entry in message.fields)


def test_structs_that_were_renamed_are_one() -> None:
    older = spec(field("A", "[]Old", fields=[field("X"), field("Gone", versions="0")]))
    newer = spec(field("A", "[]New", fields=[field("X", mapKey=True)]), validVersions="1-2")
    message = united(older, newer)
    assert [struct.name for struct in message.structs()] == ["New"]
    assert names_of_struct(message, 0) == ["X", "Gone"]
    assert names_of_struct(message, 1) == ["X"]


def names_of_struct(message: MessageSpec, version: int) -> list[str]:
    first = layout(message, version).fields[0].type
    struct = first.struct or (first.element and first.element.struct)
    assert struct
    return [entry.name for entry in struct.all_fields()]


def test_a_struct_that_became_common_is_united() -> None:
    older = spec(field("A", "[]S", fields=[field("X"), field("Gone", versions="0")]))
    newer = spec(
        field("A", "[]S"),
        field("B", "S", "2+"),
        validVersions="1-2",
        commonStructs=[{"name": "S", "versions": "1+", "fields": [field("X")]}],
    )
    message = united(older, newer)
    assert [struct.name for struct in message.common_structs] == ["S"]
    assert names_of_struct(message, 0) == ["X", "Gone"]
    assert names(message, 2) == ["A", "B"]


def test_a_struct_of_only_the_older_release_is_kept() -> None:
    older = spec(
        field("A"),
        field("Gone", "[]S", "0"),
        field("Too", "[]S", "0"),
        commonStructs=[
            {"name": "S", "versions": "0", "fields": [field("X"), field("In", "T", "0")]},
            {"name": "T", "versions": "0", "fields": [field("Z"), field("Not", versions="1+")]},
        ],
    )
    message = united(older, spec(field("A"), validVersions="1-2"))
    assert names(message, 0) == ["A", "Gone", "Too"]
    assert sorted(struct.name for struct in message.common_structs) == ["S", "T"]
    assert names(message, 1) == ["A"]


def test_null_tag_and_flexibility_of_the_older_are_kept() -> None:
    older = spec(
        field("A", "string", nullableVersions="0+"),
        field("T", "string", "0+", taggedVersions="0+", tag=0),
        field("F", "string", flexibleVersions="none"),
        flexibleVersions="0+",
    )
    newer = spec(
        field("A", "string"),
        field("T", "string", "0+"),
        field("F", "string"),
        validVersions="1-2",
        flexibleVersions="0+",
    )
    fields = dict(fields_of(united(older, newer)))
    assert str(fields["A"].nullable_versions) == "0"
    assert (fields["T"].tag, str(fields["T"].tagged_versions)) == (0, "0")
    assert str(fields["F"].flexible_versions) == "1+"


def test_ignorable_is_kept_if_the_older_release_needs_it() -> None:
    newer = spec(field("A"), validVersions="1-2")
    assert united(spec(field("A", versions="1+", ignorable=True)), newer).fields[0].ignorable
    assert not united(spec(field("A", versions="0+", ignorable=True)), newer).fields[0].ignorable


def test_a_name_that_got_another_type_keeps_both() -> None:
    older = spec(field("A", "int32"), field("B"), validVersions="0-1")
    newer = spec(field("A", "string", "2+"), field("B"), validVersions="2")
    message = united(older, newer)
    assert [(entry.name, entry.type) for entry in message.fields] == [
        ("AV0", "int32"),
        ("A", "string"),
        ("B", "int32"),
    ]


def test_a_gap_between_versions_is_an_error() -> None:
    with pytest.raises(DefinitionError, match="leave a gap that no release fills"):
        united(spec(field("A"), validVersions="0"), spec(field("A"), validVersions="2"))


def test_versions_with_a_hole_are_an_error() -> None:
    older = spec(field("A"), flexibleVersions="0+")
    newer = spec(field("A"), validVersions="1", flexibleVersions="none")
    with pytest.raises(DefinitionError, match="versions with a gap"):
        united(older, newer)


def test_a_field_with_a_hole_becomes_two() -> None:
    older = spec(field("A"), validVersions="0-1")
    newer = spec(field("A", versions="3+"), validVersions="1-3")
    message = united(older, newer)
    assert [wire(entry) for entry in message.fields] == [("AV0", "0"), ("A", "3+")]


def test_a_changed_version_is_reported_and_taken_from_the_newer() -> None:
    older = spec(field("A"), field("B", "int8", default=1), field("C", "[]int32"))
    newer = spec(
        field("A", "int64"),
        field("B", "int8", default=2),
        field("C", "[]S", fields=[field("X")]),
        flexibleVersions="2+",
    )
    both = [made(older), made(newer, name="2.0")]
    assert unite(both).messages == (newer,)
    found = {(d.version, d.kind, d.field) for d in unite(both).differences}
    assert found == {
        (0, DifferenceKind.FIELD_TYPE, "A"),
        (1, DifferenceKind.FIELD_TYPE, "A"),
        (2, DifferenceKind.FIELD_TYPE, "A"),
        (0, DifferenceKind.DEFAULT, "B"),
        (1, DifferenceKind.DEFAULT, "B"),
        (2, DifferenceKind.DEFAULT, "B"),
        (0, DifferenceKind.FIELD_BOXED, "C"),
        (1, DifferenceKind.FLEXIBLE, ""),
        (1, DifferenceKind.FIELD_TYPE, "C"),
        (2, DifferenceKind.FIELD_TYPE, "C"),
    }


def test_records_and_bytes_have_the_same_encoding() -> None:
    older = spec(field("R", "bytes", nullableVersions="0+"))
    newer = spec(field("R", "records", nullableVersions="0+"), validVersions="1-2")
    message = united(older, newer)
    assert [(entry.name, entry.type) for entry in message.fields] == [("R", "records")]


def test_a_renamed_message_is_known_by_its_api_key_and_bytes() -> None:
    older = spec(field("A"), name="OldRequest")
    newer = spec(field("B"), name="NewRequest", validVersions="0-3")
    found = unite([made(older), made(newer, name="2.0")])
    assert [message.name for message in found.messages] == ["NewRequest"]
    assert found.resolve("OldRequest", 2, "request") == (found.messages[0], 2)
    assert {d.kind for d in found.differences} == {"message renamed", "field renamed"}


def test_a_reused_api_key_is_another_message() -> None:
    older = spec(field("A"), name="OldRequest")
    newer = spec(field("B", "string"), name="NewRequest")
    found = unite([made(older), made(newer, name="2.0")])
    assert [message.name for message in found.messages] == ["NewRequest", "OldRequest"]


def test_former_names_add_up_over_releases() -> None:
    one = spec(field("A"), name="OneRequest", validVersions="0")
    two = spec(field("A"), name="TwoRequest", validVersions="0-1")
    three = spec(field("A"), name="ThreeRequest", validVersions="0-2")
    found = unite([made(one), made(two, name="2.0"), made(three, name="3.0")])
    (message,) = found.messages
    assert message.name == "ThreeRequest"
    assert found.resolve("OneRequest", 0, "request") == (message, 0)
    assert found.resolve("TwoRequest", 1, "request") == (message, 1)
    again = unite([made(one), made(two, name="2.0"), made(three, name="3.0"), made(three)])
    assert again.messages == found.messages


def test_the_type_of_a_name_cannot_change_at_will() -> None:
    older = spec(name="Sample", type="data", apiKey=None)
    newer = spec(name="Sample", type="header", apiKey=None)
    with pytest.raises(DefinitionError, match="is of type data in one release and of type header"):
        united(older, newer)


def test_a_key_without_its_number_in_the_next_release_is_an_error() -> None:
    older = spec(name="SampleKey", type="data", apiKey=None, validVersions="4")
    newer = spec(
        name="SampleKey",
        type="coordinator-key",
        apiKey=5,
        validVersions="0",
        flexibleVersions="none",
    )
    with pytest.raises(DefinitionError, match="no coordinator key with the api key 4"):
        unite([made(older), made(newer, name="2.0")])


def test_error_codes_are_united() -> None:
    none, busy = ErrorCode("NONE", 0, retriable=False), ErrorCode("BUSY", 1, retriable=False)
    again = ErrorCode("BUSY", 1, retriable=True)
    releases = [Release("1.0", (spec(),), (none, busy)), Release("2.0", (spec(),), (again,))]
    assert unite(releases).error_codes == (none, again)


def test_a_difference_has_its_position() -> None:
    entry = Difference("AResponse", 3, "type changed", "Topics.X", "was int8; is int16", "3.9.2")
    assert str(entry) == (
        "AResponse v3, field Topics.X: type changed: was int8; is int16 (Kafka 3.9.2)"
    )
