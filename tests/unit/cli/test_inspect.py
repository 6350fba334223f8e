"""Tests `kproto inspect`: layouts, versions side by side, lists, and unknown names."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from kproto.cli import main
from kproto.schema.definitions import union
from tests.support.environment import ROOT


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_layout(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "inspect", "FetchRequest", "--version", "13").splitlines()
    assert lines[:5] == [
        "FetchRequest (request, api key 1), version 13 of 0-18",
        "Reads record batches from partitions, for a consumer or a follower.",
        "added in Kafka 3.1.0",
        "v13: Topic ids replace topic names. (KIP-516 Topic Identifiers)",
        "at least 29 bytes, after request header v2",
    ]
    header, *rows = lines[6:]
    assert header.split()[:4] == ["OFFSET", "SIZE", "FIELD", "TYPE"]
    assert any(row.split()[:4] == ["+0", "16", "TopicId", "uuid"] for row in rows)
    assert any(row.split()[:4] == ["12", "4", "MaxBytes", "int32"] for row in rows)


def test_the_default_is_the_latest_final_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert "version 5 of 0-6" in printed(capsys, "inspect", "InitProducerIdRequest")
    assert "no fields" in printed(capsys, "inspect", "ListGroupsRequest", "--version", "0")


def test_versions_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "inspect", "FetchRequest", "--diff", "14", "16")
    assert "v15: ReplicaState" in out
    assert "v16: " in out
    assert ["removed", "ReplicaId", "int32,"] in [line.split()[:3] for line in out.splitlines()]
    assert "the layout is the same" in printed(
        capsys, "inspect", "FetchRequest", "--diff", "15", "16"
    )


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(printed(capsys, "inspect").splitlines()) == 1 + len(union())
    by_part = printed(capsys, "inspect", "fetchsnap").splitlines()
    assert [line.split()[0] for line in by_part[1:]] == [
        "FetchSnapshotRequest",
        "FetchSnapshotResponse",
    ]
    by_key = printed(capsys, "inspect", "3").splitlines()
    assert [line.split()[0] for line in by_key[1:3]] == ["MetadataRequest", "MetadataResponse"]
    assert by_key[3:] == [
        "",
        "error code 3 is UNKNOWN_TOPIC_OR_PARTITION: kproto inspect error 3",
    ]


def test_case_and_former_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "inspect", "fetchresponse").startswith("FetchResponse (response")
    former = printed(capsys, "inspect", "ListClientMetricsResourcesRequest")
    assert former.startswith("ListConfigResourcesRequest")
    of_api = printed(capsys, "inspect", "ConsumerMetadataRequest", "--version", "0")
    assert of_api.startswith("FindCoordinatorRequest")
    listed = printed(capsys, "inspect", "GroupCoordinator").splitlines()
    assert [line.split()[0] for line in listed[1:]] == [
        "FindCoordinatorRequest",
        "FindCoordinatorResponse",
    ]
    by_part = printed(capsys, "inspect", "listclientmetrics")
    assert "ListConfigResourcesResponse" in by_part


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Fetch", "--version", "3"], "'Fetch' matches 2: FetchRequest, FetchResponse"),
        (["1", "--diff", "3", "4"], "'1' matches 2: FetchRequest, FetchResponse"),
        (["--version", "3"], "need the name of one message"),
        (["nonsense", "--version", "3"], "no message has in its name 'nonsense'"),
    ],
)
def test_a_version_of_no_one_message_is_an_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_part_that_names_one_message_is_that_message(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "inspect", "fetchsnapshotreq", "--version", "0")
    assert out.startswith("FetchSnapshotRequest")


def test_layout_names_the_releases_that_added_and_removed_a_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = printed(capsys, "inspect", "FetchRequest", "--version", "3").splitlines()
    assert gone[2] == "added in Kafka 0.10.1.0, dropped in 4.0.0"
    told = json.loads(printed(capsys, "inspect", "FetchRequest", "--version", "3", "--json"))
    assert (told["broughtBy"], told["droppedBy"]) == ("0.10.1.0", "4.0.0")
    unstable = printed(capsys, "inspect", "InitProducerIdRequest", "--version", "6").splitlines()
    assert unstable[2] == "final in no release"


def test_header_is_mentioned_for_requests_and_responses_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, header in (
        (["HeartbeatRequest"], "request header v2"),
        (["HeartbeatRequest", "--version", "3"], "request header v1"),
        (["HeartbeatResponse", "--version", "3"], "response header v0"),
        (["HeartbeatResponse"], "response header v1"),
        (["ApiVersionsResponse"], "response header v0 in every version (KIP-511)"),
        (
            ["ControlledShutdownRequest", "--version", "0"],
            "request header v0, which has no client id",
        ),
        (["ControlledShutdownRequest", "--version", "1"], "request header v1"),
    ):
        assert f"bytes, after {header}\n" in printed(capsys, "inspect", *arguments)
    assert "at least 11 bytes\n" in printed(capsys, "inspect", "RequestHeader")
    assert "\n32 bytes\n" in printed(capsys, "inspect", "AbortedTxn")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_version_of_every_message_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for name, spec in union().items():
        for version in {spec.valid_versions.lowest, spec.valid_versions.highest}:
            out = printed(capsys, "inspect", name, "--version", str(version))
            assert out.startswith(f"{name} ("), name


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(printed(capsys, "inspect", "FetchRequest", "--version", "13", "--json"))
    assert (told["message"], told["version"], told["broughtBy"]) == ("FetchRequest", 13, "3.1.0")
    assert told["note"]["kips"][0]["number"] == 516
    (row,) = (row for row in told["fields"] if row["field"] == "Topics.TopicId")
    assert (row["offset"], row["countsFrom"], row["size"]) == (0, "Topics", 16)
    told = json.loads(printed(capsys, "inspect", "FetchRequest", "--diff", "12", "13", "--json"))
    assert [change["field"] for change in told["changes"]][:2] == ["Topics.Topic", "Topics.TopicId"]
    assert len(json.loads(printed(capsys, "inspect", "--json"))) == len(union())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["FechRequest"], "no message has in its name 'FechRequest'; the nearest: FetchRequest"),
        (["FetchRequest", "--version", "99"], "FetchRequest has no version 99: it has 0-18"),
        (["FetchRequest", "--version", "-1"], "FetchRequest has no version -1"),
        (["FetchRequest", "--diff", "1", "99"], "FetchRequest has no version 99"),
        (["9999"], "no message has"),
        (["☃"], "no message has"),
    ],
    ids=" ".join,
)
def test_errors_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kproto: error: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--version", "x"], ["--diff", "1"], ["a", "b"]], ids=" ".join
)
def test_wrong_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["inspect", *arguments])
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize("command", [["inspect"], ["diff", "0.8.2.0", "4.4.0"]], ids=" ".join)
@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(command: list[str]) -> None:
    line = [sys.executable, "-X", "dev", "-W", "error", "-m", "kproto", *command]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(60), said) == (0, b"")


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "how-to" / "study.md").read_text()
    examples = re.findall(
        r"^    \$ kproto (.*)\n((?:(?:    .*)?\n)+?)(?=\n?\S|\Z)", page, re.MULTILINE
    )
    assert len(examples) == 4
    for command, shown in examples:
        main(command.split())
        captured = capsys.readouterr()
        lines = [line[4:] for line in shown.rstrip().splitlines()]
        assert lines == (captured.out + captured.err).rstrip().splitlines()


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("ControlledShutdownRequest", 0, "in brokers of Kafka 0.8.2.0 or earlier"),
        ("ControlledShutdownRequest", 1, "added in Kafka 0.9.0.0"),
        ("FetchRequest", 4, "added in Kafka 0.11.0.0"),
        ("MetadataRequest", 0, "in Kafka 0.8.2.0 or earlier"),
    ],
)
def test_first_release_of_a_version_is_told_as_far_as_it_is_known(
    name: str, version: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", name, "--version", str(version)]) == 0
    assert said in capsys.readouterr().out


def test_kip_shows_the_versions_that_it_brought(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "kip-848"]) == 0
    title, _, *rows = capsys.readouterr().out.splitlines()
    assert title.startswith("KIP-848 ")
    assert ["ConsumerGroupHeartbeat", "0", "3.7.0"] in [row.split()[:3] for row in rows]
    assert main(["inspect", "KIP-848", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == len(rows)
    assert main(["inspect", "KIP-1"]) != 0
    assert "no version of an API is known to come from KIP-1" in capsys.readouterr().err
