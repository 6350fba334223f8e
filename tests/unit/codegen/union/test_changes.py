"""Tests incompatible changes: the rules of Kafka's guide, and the changes between its releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.cli import main
from kproto_codegen.releases.release import Release, write_release
from kproto_codegen.union.changes import Change, format_changes, release_changes

from kproto.schema.specs import MessageSpec
from tests.support.committed_releases import committed_release

from ..samples import SCHEMAS, field, spec


def changes(older: MessageSpec, newer: MessageSpec | None, *others: MessageSpec) -> list[Change]:
    """Returns the changes between two releases.

    The older release has `older` and `others`. The newer release has `newer`, or nothing if `newer`
    is None.
    """
    now = () if newer is None else (newer,)
    return release_changes(Release("1.0", (older, *others)), Release("2.0", now))


def change_keys(older: MessageSpec, newer: MessageSpec | None) -> set[tuple[str, str, str, bool]]:
    """Returns each change as (kind, versions joined with commas, field, whether it is breaking)."""
    return {
        (change.kind, ",".join(map(str, change.versions)), change.field, change.breaking)
        for change in changes(older, newer)
    }


BASE = (field("A"), field("B", "string"), field("C", "[]int32"))


def test_the_same_release_has_no_changes() -> None:
    assert change_keys(spec(*BASE), spec(*BASE)) == set()


def test_new_versions_and_their_fields_are_listed() -> None:
    added = field("D", "[]S", versions="3-4", fields=[field("X", versions="3-4")])
    newer = spec(*BASE, added, field("E", versions="4+"), validVersions="0-4")
    assert change_keys(spec(*BASE), newer) == {
        ("version added", "3,4", "", False),
        ("field added", "3,4", "D", False),
        ("field added", "4", "E", False),
    }


def test_field_of_a_known_struct_is_listed_by_its_path() -> None:
    older = spec(field("A", "[]S", fields=[field("X")]))
    inner = [field("X"), field("Y", versions="3+")]
    newer = spec(field("A", "[]S", fields=inner), validVersions="0-3")
    assert ("field added", "3", "A.Y", False) in change_keys(older, newer)


def test_new_message_is_listed_once() -> None:
    found = release_changes(
        Release("1.0", (spec(*BASE),)),
        Release("2.0", (spec(*BASE), spec(field("A"), name="NewRequest", apiKey=901))),
    )
    assert found == [Change("NewRequest", (0, 1, 2), "message added", "", "", False)]


def test_renumbered_versions_are_not_new() -> None:
    newer = spec(*BASE, name="NewRequest", validVersions="0-3")
    assert change_keys(spec(*BASE), newer) == {
        ("message renamed", "0,1,2", "", False),
        ("version added", "3", "", False),
    }


def test_renamed_request_of_another_module_is_found() -> None:
    """The API keys of requests are global; those of other types belong to their module."""
    older = spec(*BASE).with_module("kafka")
    newer = spec(*BASE, name="NewRequest").with_module("rpc")
    assert change_keys(older, newer) == {("message renamed", "0,1,2", "", False)}
    same = {"type": "metadata", "flexibleVersions": "0+"}
    older = spec(*BASE, **same).with_module("kafka")
    newer = spec(*BASE, name="NewRecord", **same).with_module("rpc")
    assert ("message dropped", "0,1,2", "", True) in change_keys(older, newer)


def test_dropped_map_key_is_listed() -> None:
    def keyed(*, key: bool) -> MessageSpec:
        return spec(field("A", "[]S", fields=[field("X", mapKey=key), field("Y")]))

    assert change_keys(keyed(key=True), keyed(key=False)) == {
        ("map key dropped", "0,1,2", "S.X", False)
    }
    assert change_keys(keyed(key=False), keyed(key=True)) == set()


def test_dropped_ignorable_is_listed() -> None:
    def marked(*, ignorable: bool) -> MessageSpec:
        inner = [field("X"), field("Y", versions="1+", ignorable=ignorable)]
        later = field("Z", versions="1+", ignorable=ignorable)
        return spec(field("A", "[]S", fields=inner), later)

    assert change_keys(marked(ignorable=True), marked(ignorable=False)) == {
        ("ignorable dropped", "0,1,2", "S.Y", False),
        ("ignorable dropped", "0,1,2", "Z", False),
    }
    assert change_keys(marked(ignorable=False), marked(ignorable=True)) == set()


def test_changed_listeners_are_listed_and_another_order_is_not() -> None:
    older = spec(*BASE, listeners=["broker", "controller"])
    (found,) = changes(older, spec(*BASE, listeners=["broker"]))
    assert (found.kind, found.versions, found.breaking) == ("listeners changed", (0, 1, 2), False)
    assert found.detail == "was broker, controller; is broker"
    assert changes(older, spec(*BASE, listeners=["controller", "broker"])) == []


def test_changed_field_of_a_renamed_request_is_named() -> None:
    newer = spec(field("A", "uint32"), *BASE[1:], name="NewRequest", validVersions="0-3")
    assert change_keys(spec(*BASE), newer) == {
        ("message renamed", "0,1,2", "", False),
        ("type changed", "0,1,2", "A", True),
        ("version added", "3", "", False),
    }


def test_message_with_the_key_of_a_kept_message_is_not_a_renamed_one() -> None:
    """The newer release keeps the older message, in another module than the added message."""
    kept = spec(*BASE)
    found = release_changes(
        Release("1.0", (kept,)),
        Release("2.0", (kept, spec(name="NewRequest").with_module("other"))),
    )
    assert [(each.message, each.kind) for each in found] == [("NewRequest", "message added")]


@pytest.mark.parametrize(
    ("newer", "found"),
    [
        (
            spec(*BASE, field("D")),
            {("fields changed", "0,1,2", "", True)},
        ),
        (
            spec(*BASE[:2]),
            {("fields changed", "0,1,2", "", True)},
        ),
        (
            spec(BASE[1], BASE[0], BASE[2]),
            {("fields re-ordered", "0,1,2", "", True)},
        ),
        (
            spec(field("A", default=1), *BASE[1:]),
            {("default changed", "0,1,2", "A", True)},
        ),
        (
            spec(*BASE, type="data"),
            {("message type changed", "0,1,2", "", True)},
        ),
        (
            spec(field("A", "int64"), *BASE[1:]),
            {("type changed", "0,1,2", "A", True)},
        ),
        (
            spec(BASE[0], field("B", "string", nullableVersions="1+"), BASE[2]),
            {("type changed", "1,2", "B", True)},
        ),
        (
            spec(*BASE, validVersions="1-2"),
            {("version dropped", "0", "", True)},
        ),
        (
            spec(*BASE, validVersions="none"),
            {("message dropped", "0,1,2", "", True)},
        ),
        (None, {("message dropped", "0,1,2", "", True)}),
        (
            spec(*BASE, flexibleVersions="2+"),
            {
                ("flexible versions changed", "1", "", True),
                ("type changed", "1", "B", True),
                ("type changed", "1", "C", True),
            },
        ),
        (
            spec(*BASE, apiKey=901),
            {("api key changed", "0,1,2", "", True)},
        ),
        (
            spec(*BASE, field("D", versions=None, taggedVersions="2+", tag=0)),
            {("tagged field added", "2", "D", False)},
        ),
        (
            spec(field("Z"), *BASE[1:]),
            {("field renamed", "0,1,2", "Z", False)},
        ),
        (
            spec(*BASE, name="NewRequest"),
            {("message renamed", "0,1,2", "", False)},
        ),
    ],
)
def test_each_change_is_found(
    newer: MessageSpec | None, found: set[tuple[str, str, str, bool]]
) -> None:
    assert change_keys(spec(*BASE), newer) == found


def test_a_message_without_versions_may_become_anything() -> None:
    never = spec(*BASE, validVersions="none")
    assert change_keys(never, spec(*BASE, type="data")) == set()


def test_data_becomes_coordinator_keys_by_number() -> None:
    """A newer release may define each version of a data message as a coordinator key.

    Version n of the data message is then compared with the coordinator key whose API key is n. If
    such a key is missing, the comparison reports a change of the message type, and raises no
    DefinitionError.
    """
    older = spec(*BASE, name="SampleKey", type="data", apiKey=None, flexibleVersions="none")
    same = {"type": "coordinator-key", "validVersions": "0", "flexibleVersions": "none"}
    keys = [
        spec(*BASE, name=name, apiKey=number, **same)
        for number, name in enumerate(("SampleKey", "OtherKey", "ThirdKey"))
    ]
    release = Release("1.0", (older,))
    assert release_changes(release, Release("2.0", (*keys,)))[0].kind == "message renumbered"
    change, *added = release_changes(release, Release("2.0", (*keys[:2],)))
    assert (change.kind, change.versions) == ("message type changed", (0, 1, 2))
    assert [each.message for each in added] == ["OtherKey"]


def test_an_array_of_primitives_may_become_one_of_single_field_structs() -> None:
    def boxed(kind: str, **keys: str) -> MessageSpec:
        return spec(field("A", "[]S", fields=[field("X", kind)]), **keys)

    plain = spec(field("A", "[]int32"), flexibleVersions="none")
    assert change_keys(plain, boxed("int32", flexibleVersions="none")) == {
        ("array of single-field structs", "0,1,2", "A", False)
    }
    assert change_keys(plain, boxed("int64", flexibleVersions="none")) == {
        ("type changed", "0,1,2", "A", True)
    }
    # A flexible struct ends with its tagged fields, so its bytes differ.
    assert change_keys(spec(field("A", "[]int32")), boxed("int32")) == {
        ("array of single-field structs", "0", "A", False),
        ("type changed", "1,2", "A", True),
    }


def test_a_tag_may_go_and_may_not_be_used_again() -> None:
    older = spec(field("T", "string", None, taggedVersions="1+", tag=0))
    assert change_keys(older, spec()) == {("tagged field dropped", "1,2", "T", False)}
    reused = spec(field("U", "int8", None, taggedVersions="1+", tag=0))
    assert change_keys(older, reused) == {("type changed", "1,2", "U", True)}


def test_two_tags_of_one_type_may_not_be_swapped() -> None:
    def tags(first: str, second: str) -> MessageSpec:
        return spec(
            field(first, versions=None, taggedVersions="2+", tag=0),
            field(second, versions=None, taggedVersions="2+", tag=1),
        )

    assert change_keys(tags("A", "B"), tags("B", "A")) == {
        ("tag changed", "2", "A", True),
        ("tag changed", "2", "B", True),
    }
    assert change_keys(tags("A", "B"), tags("B", "C")) == {
        ("tag changed", "2", "B", True),
        ("tagged field added", "2", "C", False),
        ("tagged field dropped", "2", "A", False),
    }


def test_reordered_fields_are_found_beside_a_renamed_field() -> None:
    found = {("fields re-ordered", "0,1,2", "", True), ("fields changed", "0,1,2", "", True)}
    older = spec(field("A"), field("B"), field("C"))
    assert change_keys(older, spec(field("C"), field("A"), field("D"))) == found
    assert change_keys(older, spec(field("B"), field("C"), field("D"))) == found


def test_changes_inside_structs_are_found() -> None:
    older = spec(field("A", "[]S", fields=[field("X"), field("Y")]))
    newer = spec(field("A", "[]S", fields=[field("Y"), field("X"), field("Z", versions="1+")]))
    assert change_keys(older, newer) == {
        ("fields re-ordered", "0", "A", True),
        ("fields changed", "1,2", "A", True),
    }


def test_an_unstable_version_may_change() -> None:
    older = spec(field("A"), latestVersionUnstable=True)
    newer = spec(field("A", "int64", "2+"), field("B", versions="0-1"))
    found = changes(older, newer)
    assert {(change.versions, change.breaking) for change in found} == {
        ((0, 1), False),
        ((2,), False),
    }
    assert {c.detail for c in found if c.versions == (2,)} == {
        "was int32; is int64 (unstable before)"
    }


def test_a_response_is_unstable_with_its_request() -> None:
    request = spec(latestVersionUnstable=True)
    response = spec(field("A"), name="SampleResponse", type="response")
    found = changes(response, spec(name="SampleResponse", type="response"), request)
    breaking = {change.versions for change in found if change.breaking}
    assert breaking == {(0, 1)}
    assert {change.versions for change in found if "unstable" in change.detail} == {(2,)}


def test_breaking_changes_come_first_and_versions_are_ranges() -> None:
    older = spec(field("A"), *BASE[1:], validVersions="0-5")
    newer = spec(field("Z"), *BASE[1:], validVersions="3-5")
    table = format_changes(changes(older, newer)).splitlines()
    assert [line.split() for line in table] == [
        ["MESSAGE", "VERSIONS", "CHANGE", "FIELD", "DETAIL"],
        ["breaking", "SampleRequest", "0-2", "version", "dropped", "now", "3-5"],
        ["compatible", "SampleRequest", "3-5", "field", "renamed", "Z", "was", "A"],
    ]
    assert len({line.index("SampleRequest") for line in table[1:]}) == 1


@pytest.mark.slow
def test_changes_between_kafka_releases_are_found() -> None:
    found = release_changes(committed_release("3.9.2"), committed_release("4.4.0"))
    by_kind: dict[tuple[str, bool], set[str]] = {}
    for change in found:
        by_kind.setdefault((change.kind, change.breaking), set()).add(change.message)
    zookeeper = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
    assert by_kind["message dropped", True] == {
        *(name + suffix for name in zookeeper for suffix in ("Request", "Response")),
        "ShareGroupPartitionMetadataKey",
        "ShareGroupPartitionMetadataValue",
    }
    dropped = {name.removesuffix("Request").removesuffix("Response") for name in DROPPED}
    assert by_kind["version dropped", True] == {
        *(name + suffix for name in dropped for suffix in ("Request", "Response")),
        "RequestHeader",
    }
    shares = ("ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat", "ShareGroupDescribe")
    assert by_kind["version dropped", False] == {
        name + suffix for name in shares for suffix in ("Request", "Response")
    }
    assert by_kind["fields changed", True] == {"ShareGroupMetadataValue"}
    assert by_kind["fields changed", False] == {"ReadShareGroupStateSummaryResponse"}
    assert by_kind["message added", False] >= {"StreamsGroupHeartbeatRequest"}
    added = [change for change in found if change.kind == "field added"]
    assert ("StreamsGroupHeartbeatRequest", "") not in {(c.message, c.field) for c in added}
    assert ("FetchRequest", "Topics.Partitions.HighWatermark") in {
        (change.message, change.field) for change in added
    }
    compatible = {"message renamed", "message renumbered", "field renamed", "tagged field added"}
    compatible |= {"message added", "version added", "field added"}
    compatible |= {"ignorable dropped", "listeners changed"}
    assert by_kind["ignorable dropped", False] == {
        "RequestHeader",
        "ShareFetchRequest",
        "ShareFetchResponse",
        "ShareAcknowledgeResponse",
    }
    assert set(by_kind) == {
        ("message dropped", True),
        ("version dropped", True),
        ("version dropped", False),
        ("fields changed", True),
        ("fields changed", False),
        *((kind, False) for kind in compatible),
    }


def raw_versions(release: str) -> dict[tuple[str, int], set[int]]:
    """Returns {(message name, api key or -1): valid versions}, read without kproto."""
    found: dict[tuple[str, int], set[int]] = {}
    for path in (SCHEMAS / release).glob("*/*.json"):
        node = json.loads(path.read_text())
        low, _, high = node["validVersions"].partition("-")
        versions = set() if low == "none" else set(range(int(low), int(high or low) + 1))
        found[node["name"], node.get("apiKey", -1)] = versions
    return found


@pytest.mark.slow
def test_exactly_the_versions_dropped_by_kafka_are_reported() -> None:
    change_keys = {
        (change.message, version)
        for change in release_changes(committed_release("3.9.2"), committed_release("4.4.0"))
        if change.kind in {"message dropped", "version dropped"}
        for version in change.versions
    }
    later = raw_versions("4.4.0")
    kept = {(name, version) for (name, _), versions in later.items() for version in versions}
    gone = {
        (name, version)
        for (name, _), versions in raw_versions("3.9.2").items()
        for version in versions
        if (name, version) not in kept
    }
    # These messages got another name or number: coordinator keys, whose version became their api
    # key, and the two messages that were renamed.
    keys = {(name, key) for name, key in later if name.endswith("Key") and key >= 0}
    stayed = {pair for pair in gone if pair in keys or pair[0].startswith("ListClientMetrics")}
    assert len(stayed) == 10 + 2
    assert change_keys == gone - stayed
    assert len(change_keys) == 121


#: The requests of which KIP-896 removed old versions.
DROPPED = {
    "AlterPartition",
    "AlterReplicaLogDirs",
    "CreateAcls",
    "CreateDelegationToken",
    "CreateTopics",
    "DeleteAcls",
    "DeleteTopics",
    "DescribeAcls",
    "DescribeConfigs",
    "DescribeDelegationToken",
    "DescribeLogDirs",
    "ExpireDelegationToken",
    "Fetch",
    "ListOffsets",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "RenewDelegationToken",
    "WriteTxnMarkers",
}


# The command


@pytest.fixture
def two_releases(tmp_path: Path) -> tuple[str, str]:
    write_release(Release("1.0", (spec(*BASE),)), tmp_path)
    write_release(Release("2.0", (spec(*BASE, validVersions="1-2"),)), tmp_path)
    return str(tmp_path / "1.0"), str(tmp_path / "2.0")


def test_check_ends_with_1_on_a_breaking_change(
    two_releases: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two_releases
    assert main(["check", old, new]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("breaking  SampleRequest  0")
    assert lines[-1] == "1 breaking change, 0 compatible changes"


def test_check_ends_with_0_if_versions_are_only_added(
    two_releases: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two_releases
    assert main(["check", new, old]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "            MESSAGE        VERSIONS  CHANGE         FIELD  DETAIL",
        "compatible  SampleRequest  0         version added",
        "0 breaking changes, 1 compatible change",
    ]


def test_check_prints_json(
    two_releases: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--json", *two_releases]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {
            "message": "SampleRequest",
            "versions": [0],
            "kind": "version dropped",
            "field": "",
            "detail": "now 1-2",
            "breaking": True,
        }
    ]


@pytest.mark.parametrize("fault", ["{", '{"name": "A"}', None])
def test_check_ends_with_2_when_a_definition_cannot_be_read(
    fault: str | None, two_releases: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two_releases
    (path,) = Path(new).rglob("*.json")
    path.unlink()
    if fault is not None:
        path.write_text(fault)
    for arguments in ([old, new], [new, old], ["--json", old, new]):
        assert main(["check", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith(f"kproto-codegen: {new}")
        assert captured.out == ""


def test_check_ends_with_2_when_the_disk_fails(
    two_releases: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert main(["check", *two_releases]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_check_ends_with_2_when_it_is_called_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["one"], ["one", "two", "three"], ["--xml", "one", "two"]):
        with pytest.raises(SystemExit) as caught:
            main(["check", *arguments])
        assert caught.value.code == 2
    assert "usage: kproto-codegen check" in capsys.readouterr().err


def test_check_ends_with_2_when_a_release_cannot_be_read(
    two_releases: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", two_releases[0], str(tmp_path / "none")]) == 2
    assert (
        capsys.readouterr().err
        == f"kproto-codegen: {tmp_path / 'none'}: is neither a jar nor a folder\n"
    )


def test_defaults_are_compared_by_their_bytes() -> None:
    zero = spec(field("A", "float64", default="0.0"))
    (found,) = changes(zero, spec(field("A", "float64", default="-0.0")))
    assert (found.kind, found.detail) == ("default changed", "was 0.0; is -0.0")
    assert changes(zero, spec(field("A", "float64", default="0"))) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "detail"),
    [
        ("bool", None, "true", "was false; is true"),
        ("int8", "-1", "0x10", "was -1; is 16"),
        ("float64", "1e3", "-0.5", "was 1000.0; is -0.5"),
        ("string", None, 'it\'s \\ "quoted"', 'was ""; is "it\'s \\\\ \\"quoted\\""'),
        ("string", "null", "null and void", 'was null; is "null and void"'),
        ("bytes", "null", None, 'was null; is ""'),
        ("[]int32", None, "null", 'was ""; is null'),
        (
            "uuid",
            None,
            "_w-AAAAAAAAAAAAAAAAAAQ",
            "was AAAAAAAAAAAAAAAAAAAAAA; is _w-AAAAAAAAAAAAAAAAAAQ",
        ),
    ],
)
def test_a_default_is_reported_as_a_definition_writes_it(
    kind: str, old: str | None, new: str | None, detail: str
) -> None:
    keys: dict[str, Any] = {"nullableVersions": "0+"} if "null" in (old, new) else {}
    older, newer = (spec(field("A", kind, default=text, **keys)) for text in (old, new))
    (found,) = changes(older, newer)
    assert (found.kind, found.detail) == ("default changed", detail)


def test_a_struct_default_is_null_or_not() -> None:
    keys: dict[str, Any] = {"fields": [field("X")], "nullableVersions": "0+"}
    older, newer = spec(field("A", "S", default="null", **keys)), spec(field("A", "S", **keys))
    (found,) = changes(older, newer)
    assert found.detail == "was null; is not null"


def test_a_changed_message_type_is_reported() -> None:
    (found,) = changes(spec(*BASE, type="data"), spec(*BASE, type="header"))
    assert (found.message, found.detail) == ("SampleRequest", "was data; is header")
