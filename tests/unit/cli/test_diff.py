"""Tests `kproto diff` for any two releases, as tables and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kproto.cli import main
from kproto.cli.tables import ranges_text
from kproto.schema import study
from tests.support.own_protocol import field, message


def test_two_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "3.9.2", "4.4.0"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert " ".join(lines[0]) == "Kafka 3.9.2 to 4.4.0: 7 APIs added, 4 removed, 71 changed"
    assert ["88", "StreamsGroupHeartbeat", "0-1", "flexible", "0+,", "for", "broker"] in lines
    assert ["1", "Fetch", "0-17", "4-18", "18", "0-3"] in [line[:6] for line in lines]
    assert ["FetchRequest", "v18", "KIP-1166", "added"] in [line[:4] for line in lines]
    assert ["4", "LeaderAndIsr", "0-7"] in [line[:3] for line in lines]


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "3.9.2", "4.4.0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    notes = [row.pop("note") for row in told["versions"]]
    assert told == study.compare("3.9.2", "4.4.0").to_json()
    assert any(note and note["kips"][0]["number"] == 1166 for note in notes)


def test_common_versions_are_final_in_both_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "2.8.0", "3.9.2", "--common"]) == 0
    header, *lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert header == ["KEY", "API", "VERSIONS"]
    assert ["1", "Fetch", "0-12"] in lines
    assert "ListTransactions" not in [name for _, name, _ in lines], "new in 3.0"
    assert main(["diff", "0.8.2.0", "4.4.0", "--common", "--json"]) == 0
    found = {row["name"]: row["versions"] for row in json.loads(capsys.readouterr().out)}
    assert found["FindCoordinator"] == "0"
    assert "Fetch" not in found, "4.0 removed Fetch 0 to 3"
    for release in study.releases():
        same = study.common_versions(release, release)
        assert same == {
            key: each.stable for key, each in study.ranges(release).items() if each.stable
        }


def test_common_versions_of_folders_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diff", "2.8.0", "schemas/", "--common"])
    assert "--common is for two releases of Kafka" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_release_beside_the_first_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    releases = study.releases()
    for release in releases:
        for pair in ([releases[0], release], [release, releases[-1]]):
            assert main(["diff", *pair]) == 0
            assert capsys.readouterr().out.startswith(f"Kafka {pair[0]} to {pair[1]}: ")


def test_a_release_that_there_is_none_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "3.9.2", "4.5.0"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    expected = "kproto: error: no release is called '4.5.0'; the nearest: 4.4.0, "
    assert captured.err.startswith(expected)
    assert captured.err.count("\n") == 1


def test_versions_in_runs() -> None:
    assert ranges_text((0, 1, 2, 5)) == "0-2, 5"
    assert ranges_text(()) == ""


def test_renamed_fields_and_marks_have_tables_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, name, ignorable in (("old", "Id", True), ("new", "Number", False)):
        fields = [field(name, "int32"), field("Late", "int8", "1+", ignorable=ignorable)]
        (tmp_path / folder).mkdir()
        text = json.dumps(message("data", "Parcel", "0-1", *fields))
        (tmp_path / folder / "Parcel.json").write_text(text, encoding="utf-8")
    assert main(["diff", str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        [],
        ["renamed", "fields"],
        ["MESSAGE", "VERSIONS", "FIELD", "DETAIL"],
        ["Parcel", "0-1", "Number", "was", "Id"],
        [],
        ["fields", "with", "other", "marks"],
        ["MESSAGE", "FIELD", "CHANGE"],
        ["Parcel", "Late", "ignorable", "dropped"],
    ]
