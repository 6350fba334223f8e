"""Tests `kproto vectors`: the lines of tests/vectors, and the lines for another package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kproto import messages
from kproto.cli import main
from kproto.fuzz.vectors import introduced_by
from kproto.messages import ApiVersionsRequest
from kproto.schema.naming import class_name
from kproto.schema.release_table import release_number
from tests.support.environment import ROOT
from tests.unit.fuzz.own_package import DEFINITIONS, make_package

GOLDEN = ROOT / "tests" / "vectors"
Captured = pytest.CaptureFixture[str]


def without_releases(line: str) -> dict[str, object]:
    node: dict[str, object] = json.loads(line)
    return {key: value for key, value in node.items() if key != "releases"}


def test_kafkas_messages_are_those_of_the_golden_files(capsys: Captured) -> None:
    names = ["ApiVersionsRequest", "MetadataResponse", "RequestHeader"]
    assert main(["vectors", "--messages", ",".join(names)]) == 0
    made = [without_releases(line) for line in capsys.readouterr().out.splitlines()]
    text = (GOLDEN / "clients.jsonl").read_text(encoding="utf-8")
    golden = [without_releases(line) for line in text.splitlines()]
    assert made == [node for node in golden if node["message"] in names]
    assert len(made) > 30


def test_the_release_that_brought_a_version_is_named(capsys: Captured) -> None:
    assert main(["vectors", "--messages", "FindCoordinatorRequest,OffsetCommitValue"]) == 0
    nodes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = {(node["message"], node["version"]): node["releases"] for node in nodes}
    first = {"message": "ConsumerMetadataRequest", "version": 0}
    assert told["FindCoordinatorRequest", 0] == {"0.8.2.0": first}
    newest = {"message": "FindCoordinatorRequest", "version": 6}
    assert told["FindCoordinatorRequest", 6] == {"3.9.0": newest}
    assert told["OffsetCommitValue", 4] == {}


@pytest.mark.slow
def test_introducing_release_agrees_with_the_golden_files() -> None:
    """The golden vectors list which of the releases 3.9.2 and 4.4.0 have a version.

    The list was made without `introduced_by`, so the test can compare both.
    """
    looked = 0
    for line in (GOLDEN / "clients.jsonl").read_text(encoding="utf-8").splitlines():
        node = json.loads(line)
        golden, cls = node["releases"], getattr(messages, class_name(node["message"]))
        for release, name in introduced_by(cls, node["version"]).items():
            looked += 1
            assert name[1] == node["version"]
            if release in golden:
                assert golden[release] == {"message": name[0], "version": name[1]}
            if "3.9.2" not in golden:
                assert release_number(release) > release_number("3.9.2")
    assert looked > 500


def test_a_vector_is_its_json_and_its_bytes(capsys: Captured) -> None:
    assert main(["vectors", "--messages", "ApiVersionsRequest"]) == 0
    for line in capsys.readouterr().out.splitlines():
        node = json.loads(line)
        read = ApiVersionsRequest.decode(bytes.fromhex(node["hex"]), node["version"])
        assert read.to_json(node["version"]) == node["json"]


def test_a_package_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    package = "greetings_for_vectors"
    make_package(tmp_path, package)
    capsys.readouterr()
    assert main(["vectors", "--package", package, "--out", "made"]) == 0
    (path,) = (tmp_path / "made").iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    message_versions = {(node["message"], node["version"]) for node in lines}
    assert message_versions == {("Greeting", 0), ("Greeting", 1), ("ShoutRequest", 0)}
    nulls = [node["hex"] for node in lines if node["json"].get("text", "") is None]
    assert [each[:4] for each in nulls] == ["0001"]
    assert all(node["releases"] == {} for node in lines)
    assert capsys.readouterr().out == f"{len(lines)} vectors in 1 file in made\n"


def test_vectors_of_an_own_package_have_lengths_beyond_a_varint_of_one_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    package = "greetings_of_all_sizes"
    make_package(tmp_path, package)
    capsys.readouterr()
    assert main(["vectors", "--package", package]) == 0
    nodes = [json.loads(line)["json"] for line in capsys.readouterr().out.splitlines()]
    texts = {len(node["text"]) for node in nodes if node.get("text")}
    assert texts >= {1, 126, 127, 128, 255, 256, 16382, 16383, 16384, 32767}
    words = [node["words"] for node in nodes if "words" in node]
    assert {len(each) for each in words} >= {1, 126, 127, 128, 255, 256, 16384}
    assert {len(word) for each in words for word in each} >= {126, 127, 128, 255, 256}


def test_sizes_follow_the_other_vectors_of_a_version(capsys: Captured) -> None:
    arguments = ["vectors", "--messages", "RequestHeader"]
    assert main(arguments) == 0
    usual = capsys.readouterr().out.splitlines()
    assert main([*arguments, "--sizes"]) == 0
    found = capsys.readouterr().out.splitlines()
    assert [line for line in found if line in usual] == usual
    for version in (1, 2):
        of_version = [line for line in found if json.loads(line)["version"] == version]
        assert of_version[0] in usual
        assert of_version[-1] not in usual


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--package", "no.such.package"], "cannot import 'no.such.package'"),
        (["--package", "json"], "is no package of messages"),
        (["--messages", "Nonsense"], "no message is called 'Nonsense'"),
        (["--messages", "ApiVersionsRequest", "--out", "/dev/null/x"], "cannot write to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_one_line(arguments: list[str], said: str, capsys: Captured) -> None:
    assert main(["vectors", *arguments]) == (1 if said == "cannot write to" else 2)
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly() -> None:
    command = f"{sys.executable} -X dev -m kproto vectors | head -n 1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=60, cwd=ROOT, check=True
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_message_without_valid_versions_has_no_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    retired = {"type": "data", "name": "Retired", "validVersions": "none", "fields": []}
    monkeypatch.setitem(DEFINITIONS, "Retired", retired)
    make_package(tmp_path, "with_retired")
    capsys.readouterr()
    assert main(["vectors", "--package", "with_retired"]) == 0
    found = {json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()}
    assert found == {"Greeting", "ShoutRequest"}
    assert main(["vectors", "--package", "with_retired", "--messages", "Retired"]) != 0
    assert "no valid version" in capsys.readouterr().err
