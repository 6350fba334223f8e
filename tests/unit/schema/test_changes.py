"""Tests the changes between versions of a message, and between releases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kproto.schema.changes import ChangeKind, changes, compare, find_message, message_layout
from kproto.schema.definitions import union
from kproto.schema.layout import StructLayout, WireType, layout
from kproto.schema.release_table import ranges, releases
from kproto.schema.unknown_names import UnknownNameError


def reported(message: str, older: int, newer: int) -> list[tuple[str, str, str]]:
    return [(c.kind.value, c.field, c.detail) for c in changes(message, older, newer)]


def neighbours() -> Iterator[tuple[str, int]]:
    for spec in union().values():
        for version in spec.valid_versions:
            if version + 1 in spec.valid_versions:
                yield spec.name, version


def test_added_and_removed_fields_are_reported() -> None:
    assert reported("FetchResponse", 12, 13) == [
        ("removed", "Responses.Topic", "string"),
        ("added", "Responses.TopicId", "uuid"),
    ]
    assert reported("FetchRequest", 14, 15) == [
        ("removed", "ReplicaId", "int32, default -1"),
        ("added", "ReplicaState", "struct, tag 1"),
        ("added", "ReplicaState.ReplicaId", "int32, default -1"),
        ("added", "ReplicaState.ReplicaEpoch", "int64, default -1"),
    ]


def test_flexible_encoding_is_reported_once() -> None:
    assert reported("HeartbeatRequest", 3, 4) == [
        ("flexible", "", "compact lengths, tagged fields"),
    ]
    assert reported("HeartbeatRequest", 4, 3) == [("flexible", "", "int lengths, no tags")]


def test_null_and_fields_over_many_versions_are_reported() -> None:
    assert ("null", "Topics", "may be null") in reported("MetadataRequest", 0, 1)
    assert ("added", "AllowAutoTopicCreation", "bool, default true") in reported(
        "MetadataRequest", 0, 9
    )


def test_a_former_name_is_known() -> None:
    assert find_message("ListClientMetricsResourcesRequest").name == "ListConfigResourcesRequest"
    assert changes("FetchRequest", 12, 12) == ()


def test_changes_are_reported_only_if_layouts_differ() -> None:
    pairs = list(neighbours())
    assert len(pairs) > 500
    for name, version in pairs:
        spec = union()[name]
        before, after = layout(spec, version), layout(spec, version + 1)
        same = _without_versions(before) == _without_versions(after)
        assert (changes(name, version, version + 1) == ()) == same, (name, version)


def test_backwards_added_fields_are_removed() -> None:
    for name, version in neighbours():
        there, back = changes(name, version, version + 1), changes(name, version + 1, version)
        came = {(c.field, c.detail) for c in there if c.kind is ChangeKind.ADDED}
        goes = {(c.field, c.detail) for c in back if c.kind is ChangeKind.REMOVED}
        assert came == goes, (name, version)
        assert {c.kind for c in there} - {ChangeKind.ADDED, ChangeKind.REMOVED} == {
            c.kind for c in back
        } - {ChangeKind.ADDED, ChangeKind.REMOVED}


def _without_versions(struct: StructLayout) -> str:
    """Returns a layout as text, with sorted fields and without its version."""
    fields = (
        f"{field.name} {_words(field.type)} {field.tag} {field.default!r}"
        for field in struct.all_fields()
    )
    return f"{struct.flexible} {sorted(fields)}"


def _words(wire: WireType) -> str:
    inner = "" if wire.element is None else _words(wire.element)
    struct = "" if wire.struct is None else _without_versions(wire.struct)
    return f"{wire.kind} {wire.compact} {wire.nullable} {inner} {struct}"


def test_releases_are_compared() -> None:
    found = compare("3.9.2", "4.4.0")
    assert {api.name for api in found.removed} == {
        "ControlledShutdown",
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
    }
    assert {api.name for api in found.added} >= {"StreamsGroupHeartbeat", "StreamsGroupDescribe"}
    fetch = next(change for change in found.changed if change.newer.name == "Fetch")
    assert (fetch.added, fetch.dropped) == ((18,), (0, 1, 2, 3))
    (new,) = (each for each in found.versions if each.message == "FetchRequest")
    assert (new.older, new.newer) == (17, 18)
    assert [change.field for change in new.changes] == ["Topics.Partitions.HighWatermark"]


def test_the_comparison_of_releases_agrees_with_their_ranges() -> None:
    for older, newer in zip(releases(), releases()[1:], strict=False):
        found, before, after = compare(older, newer), ranges(older), ranges(newer)
        assert [api.api_key for api in found.added] == sorted(after.keys() - before.keys())
        assert [api.api_key for api in found.removed] == sorted(before.keys() - after.keys())
        assert compare(newer, older).added == found.removed
        added = {
            (change.newer.name, version) for change in found.changed for version in change.added
        }
        reported = {
            (each.message.removesuffix("Request").removesuffix("Response"), each.newer)
            for each in found.versions
        }
        assert reported <= added


def test_a_release_has_no_changes_to_itself() -> None:
    found = compare("4.4.0", "4.4.0")
    assert (found.added, found.removed, found.changed, found.versions) == ((), (), (), ())


def test_unknown_messages_and_versions_raise_an_error() -> None:
    with pytest.raises(
        UnknownNameError, match="no message is called 'FetchReq'; the nearest: Fetch"
    ):
        changes("FetchReq", 1, 2)
    with pytest.raises(UnknownNameError, match="FetchRequest has no version 99: it has 0-18"):
        changes("FetchRequest", 1, 99)
    with pytest.raises(UnknownNameError, match="FetchRequest has no version -1"):
        message_layout("FetchRequest", -1)
