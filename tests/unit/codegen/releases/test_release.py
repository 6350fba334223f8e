"""Tests a release's folder: a write replaces whole modules; a failed write changes nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.error_code import ErrorCode
from kproto_codegen.errors import DefinitionError
from kproto_codegen.origins import SourceFileNames
from kproto_codegen.reading.parser import parse_definition
from kproto_codegen.releases.release import (
    Release,
    format_facts,
    load_release,
    load_releases,
    write_release,
)

from kproto.schema.specs import FieldSpec, MessageSpec
from tests.support.committed_releases import committed_release

from ..samples import SCHEMAS, field, message, spec

SAMPLE = spec(
    field("Topics", "[]Topic", about="Not a fact.", fields=[field("Name", "string", mapKey=True)]),
    field("Extra", "S", versions=None, taggedVersions="1+", tag="0"),
    listeners=["broker"],
    commonStructs=[{"name": "S", "versions": "1+", "fields": [field("X", default=5)]}],
)
CODES = (ErrorCode("NONE", 0, retriable=False), ErrorCode("BUSY", 1, retriable=True))

FACTS = """\
{
  "apiKey": 900,
  "type": "request",
  "name": "SampleRequest",
  "listeners": ["broker"],
  "validVersions": "0-2",
  "flexibleVersions": "1+",
  "fields": [
    {"name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true}
    ]},
    {"name": "Extra", "type": "S", "versions": "1+", "tag": 0, "taggedVersions": "1+"}
  ],
  "commonStructs": [
    {"name": "S", "versions": "1+", "fields": [
      {"name": "X", "type": "int32", "versions": "0+", "default": "5"}
    ]}
  ]
}
"""


def without_about(entry: FieldSpec) -> FieldSpec:
    return replace(entry, about="", fields=tuple(map(without_about, entry.fields)))


def facts_of(message: MessageSpec) -> MessageSpec:
    """Returns the message without the documentation texts (`about`) of its fields."""
    return replace(message, fields=tuple(map(without_about, message.fields)))


def test_facts_have_their_form() -> None:
    assert format_facts(SAMPLE) == FACTS
    assert json.loads(FACTS)["fields"][1]["tag"] == 0


def test_facts_agree_with_the_definition() -> None:
    read = parse_definition(FACTS, file="f", module="clients").spec
    assert read == facts_of(SAMPLE)
    assert read.fields[0].about == ""


def test_a_message_without_fields() -> None:
    empty = spec(name="EmptyRequest")
    assert '"fields": []' in format_facts(empty)
    assert parse_definition(format_facts(empty), file="f", module="clients").spec == empty


def test_a_written_release_is_loaded(tmp_path: Path) -> None:
    release = Release("9.1.0", (facts_of(SAMPLE),), CODES)
    assert write_release(release, tmp_path / "schemas")
    folder = tmp_path / "schemas" / "9.1.0"
    assert (folder / "clients" / "SampleRequest.json").read_text() == FACTS
    assert (folder / "errors.json").read_text() == (
        '[\n  {"name": "NONE", "code": 0, "retriable": false, "message": null},\n'
        '  {"name": "BUSY", "code": 1, "retriable": true, "message": null}\n]\n'
    )
    assert load_release(folder) == release


def test_file_names_begin_with_the_requested_folder(tmp_path: Path) -> None:
    """If one release is loaded, file names begin with its folder, otherwise with `schemas`."""
    schemas = tmp_path / "schemas"
    write_release(Release("9.1.0", (SAMPLE,), CODES), schemas)
    files = {"SampleRequest": ("9.1.0/clients/SampleRequest.json",)}
    origins = SourceFileNames(("9.1.0",), files, ("9.1.0/errors.json",))
    assert load_release(schemas / "9.1.0").origins == origins
    (loaded,) = load_releases(schemas)
    assert loaded.origins.folders == ("schemas/9.1.0",)
    assert loaded.origins.messages == {
        "SampleRequest": ("schemas/9.1.0/clients/SampleRequest.json",)
    }
    assert loaded.origins.error_codes == ("schemas/9.1.0/errors.json",)
    write_release(Release("9.2.0", (SAMPLE,)), schemas)
    assert load_release(schemas / "9.2.0").origins.error_codes == ()


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    release = Release("9.1.0", (SAMPLE,), CODES)
    assert write_release(release, tmp_path)
    before = (tmp_path / "9.1.0" / "clients" / "SampleRequest.json").stat()
    assert not write_release(release, tmp_path)
    after = (tmp_path / "9.1.0" / "clients" / "SampleRequest.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_module_is_replaced_completely_and_others_stay(tmp_path: Path) -> None:
    raft = spec(name="RaftRequest").with_module("raft")
    write_release(Release("9.1.0", (SAMPLE, raft), CODES), tmp_path)
    other = spec(name="OtherRequest")
    assert write_release(Release("9.1.0", (other,)), tmp_path)
    loaded = load_release(tmp_path / "9.1.0")
    assert [message.name for message in loaded.messages] == ["OtherRequest", "RaftRequest"]
    assert loaded.error_codes == CODES
    assert [path.name for path in tmp_path.iterdir()] == ["9.1.0"]


def test_a_failure_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_release(Release("9.1.0", (SAMPLE,), CODES), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    written = Path.write_text

    def full_disk(path: Path, *arguments: Any, **keys: Any) -> int:
        if path.name == "BRequest.json":
            raise OSError(28, "No space left on device")
        return written(path, *arguments, **keys)

    monkeypatch.setattr(Path, "write_text", full_disk)
    two = (spec(name="ARequest"), spec(name="BRequest", apiKey=901))
    with pytest.raises(OSError, match="No space left"):
        write_release(Release("9.1.0", two), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["9.1.0"]


def test_a_failed_rename_puts_the_old_state_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_release(Release("9.1.0", (SAMPLE,), CODES), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name.startswith(".9.1.0-") and not path.name.endswith("-replaced"):
            raise OSError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="Permission denied"):
        write_release(Release("9.1.0", (spec(name="ARequest"),)), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["9.1.0"]


def test_load_reports_every_fault(tmp_path: Path) -> None:
    folder = tmp_path / "9.1.0"
    write_release(Release("9.1.0", (SAMPLE,)), tmp_path)
    (folder / "clients" / "Broken.json").write_text("{")
    bad = message(field("A", "Int8"), name="BadRequest", apiKey=901)
    (folder / "clients" / "Bad.json").write_text(json.dumps(bad))
    (folder / "raft").mkdir()
    (folder / "raft" / "Again.json").write_text(FACTS)
    with pytest.raises(DefinitionError) as caught:
        load_release(folder)
    texts = str(caught.value).splitlines()
    assert len(texts) == 3
    assert "Bad.json:1: field A: 'Int8' is no type" in texts[0]
    assert "Broken.json:1: a key in double quotes must follow" in texts[1]
    assert texts[2] == (
        f"{folder}/raft/Again.json:4: two messages are called SampleRequest: "
        f"the other is in {folder}/clients/SampleRequest.json"
    )


def test_load_without_a_release_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="is no folder of definitions"):
        load_release(tmp_path / "none")
    with pytest.raises(DefinitionError, match="holds no message definitions"):
        load_release(tmp_path)
    with pytest.raises(DefinitionError, match="is no folder of releases"):
        load_releases(tmp_path / "none")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        '[{"name": "A", "code": true, "retriable": false, "message": null}]',
        '[{"name": "A", "code": 1, "retriable": 0, "message": null}]',
        '[{"name": "A", "code": 1, "retriable": false}]',
        '[{"name": "A", "code": 1, "retriable": false, "message": 1}]',
        '[{"name": "A", "code": 1, "retriable": false, "message": null, "x": 1}]',
        '[{"name": "A", 0, 0), exit(", "code": 1, "retriable": false, "message": null}]',
        '[{"name": "", "code": 1, "retriable": false, "message": null}]',
    ],
)
def test_unreadable_error_codes_are_an_error(tmp_path: Path, text: str) -> None:
    write_release(Release("9.1.0", (SAMPLE,), CODES), tmp_path)
    (tmp_path / "9.1.0" / "errors.json").write_text(text)
    with pytest.raises(DefinitionError, match=r"errors\.json:1: "):
        load_release(tmp_path / "9.1.0")


@pytest.mark.parametrize(("name", "code", "twice"), [("B", 1, "code 1"), ("A", 2, "name A")])
def test_a_repeated_error_code_is_an_error(
    tmp_path: Path, name: str, code: int, twice: str
) -> None:
    entries = [ErrorCode("A", 1, retriable=True), ErrorCode(name, code, retriable=True)]
    write_release(Release("9.1.0", (SAMPLE,), tuple(entries)), tmp_path)
    with pytest.raises(DefinitionError, match=rf"errors\.json:3: two error codes have the {twice}"):
        load_release(tmp_path / "9.1.0")


def test_releases_are_sorted_oldest_first(tmp_path: Path) -> None:
    names = ["3.10.0", "4.0.0", "3.9.2", "4.0.0-rc1", "4.0"]
    for name in names:
        write_release(Release(name, (SAMPLE,)), tmp_path)
    (tmp_path / "notes").mkdir()
    assert [release.name for release in load_releases(tmp_path)] == [
        "3.9.2",
        "3.10.0",
        "4.0",
        "4.0.0-rc1",
        "4.0.0",
    ]


def test_a_folder_without_releases_is_a_release(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "Sample.json").write_text(FACTS)
    (own / "extra").mkdir()
    (own / "extra" / "A.json").write_text(format_facts(spec(name="ARequest")))
    (release,) = load_releases(own)
    assert release.name == "own"
    assert {message.name: message.module for message in release.messages} == {
        "SampleRequest": "",
        "ARequest": "extra",
    }


# The committed definitions

COUNTS = {
    "3.9.2": {
        "clients": 186,
        "group-coordinator": 22,
        "metadata": 25,
        "raft": 1,
        "storage": 4,
        "transaction-coordinator": 2,
    },
    "4.4.0": {
        "clients": 203,
        "group-coordinator": 44,
        "metadata": 27,
        "raft": 1,
        "share-coordinator": 4,
        "storage": 5,
        "transaction-coordinator": 2,
    },
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.slow
def test_the_committed_facts_have_their_form_and_counts(name: str, tmp_path: Path) -> None:
    release = committed_release(name)
    assert {module: len(found) for module, found in release.modules().items()} == COUNTS[name]
    shutil.copytree(SCHEMAS / name, tmp_path / name)
    assert not write_release(release, tmp_path), "the files are not in the form of format_facts"


def test_only_facts_are_committed() -> None:
    keys: set[str] = set()
    for path in SCHEMAS.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert "//" not in text
        assert text.isascii()
        todo = [json.loads(text)]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                keys |= node.keys()
            todo += node.values() if isinstance(node, dict) else node
            todo = [child for child in todo if isinstance(child, dict | list)]
    assert "about" not in keys
    assert {"apiKey", "commonStructs", "zeroCopy", "retriable"} <= keys


def releases_at(path: Path, *names: str) -> Path:
    for name in names:
        write_release(Release(name, (SAMPLE,)), path)
    return path


@pytest.mark.parametrize(
    ("names", "sorted_names"),
    [
        (["v10", "v2", "v1"], ["v1", "v2", "v10"]),
        (["rp-24.3", "rp-24.10", "rp-23.1"], ["rp-23.1", "rp-24.3", "rp-24.10"]),
        (["2024_2", "2024_10"], ["2024_2", "2024_10"]),
        (["main"], ["main"]),
    ],
)
def test_any_folder_name_is_a_release(
    tmp_path: Path, names: list[str], sorted_names: list[str]
) -> None:
    found = load_releases(releases_at(tmp_path, *names))
    assert [release.name for release in found] == sorted_names


def test_releases_without_modules_are_releases(tmp_path: Path) -> None:
    for name in ("v1", "v2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Sample.json").write_text(FACTS)
    assert [release.name for release in load_releases(tmp_path)] == ["v1", "v2"]


def test_order_is_told_by_a_file_or_by_the_caller(tmp_path: Path) -> None:
    releases_at(tmp_path, "ada", "bob", "v1")
    with pytest.raises(DefinitionError, match=r"names tell no order: list them in .*releases\.txt"):
        load_releases(tmp_path)
    assert [each.name for each in load_releases(tmp_path, ["bob", "v1", "ada"])] == [
        "bob",
        "v1",
        "ada",
    ]
    (tmp_path / "releases.txt").write_text("# oldest first\nv1\n\nada # the second\nbob\n")
    assert [each.name for each in load_releases(tmp_path)] == ["v1", "ada", "bob"]


@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        ("v1\n", r"does not name v2, which has definitions"),
        ("v1\nv2\nv3\n", r"names v3, which is no folder with definitions"),
        ("v1\nv2\nv1\n", r"names v1 twice"),
        ("# none\n", r"lists no release"),
    ],
)
def test_a_wrong_order_is_an_error(tmp_path: Path, listed: str, fault: str) -> None:
    releases_at(tmp_path, "v1", "v2")
    (tmp_path / "releases.txt").write_text(listed)
    with pytest.raises(DefinitionError, match=fault):
        load_releases(tmp_path)


def test_definitions_beside_releases_are_not_left_out(tmp_path: Path) -> None:
    releases_at(tmp_path, "v1")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "A.json").write_text(format_facts(spec(name="ARequest")))
    with pytest.raises(DefinitionError, match="has the releases v1, and definitions in extra"):
        load_releases(tmp_path)
    (tmp_path / "extra" / "A.json").rename(tmp_path / "A.json")
    with pytest.raises(DefinitionError, match=r"A\.json beside them"):
        load_releases(tmp_path)
