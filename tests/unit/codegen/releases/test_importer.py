"""Tests the importer: from jars, folders, source trees and files to the data of a release."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.releases.importer import (
    MAX_DEFINITION_BYTES,
    Imported,
    read_release_at,
    read_releases,
)
from kproto_codegen.releases.release import Release, write_release

from tests.support.committed_releases import committed_release

from ..samples import SCHEMAS, field, message, write_jar
from .test_error_enum import CLASSES, EXPECTED, SOURCES
from .test_release import facts_of

COMMENTED = """\
// Some licence.
{
  "apiKey": 901, "type": "metadata", "name": "OtherNameRecord", // not that of the file
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [ { "name": "Id", "type": "uuid", "versions": "0+", "about": "Which." } ]
}
"""
SAMPLE = json.dumps(message(field("A", about="What it is.")))
LEGACY = '{"type": "data", "name": "Old", "validVersions": "0", "fields": []}\n}'


def clients_jar(folder: Path, name: str = "kafka-clients-9.1.0.jar") -> Path:
    return write_jar(
        folder / name,
        {
            "common/message/SampleRequest.json": SAMPLE,
            "common/message/README.md": "no definition",
            "META-INF/other.json": "{",
            **CLASSES,
        },
        version="9.1.0",
    )


def metadata_jar(folder: Path) -> Path:
    return write_jar(
        folder / "kafka-metadata-9.1.0.jar", {"common/metadata/WrongName.json": COMMENTED}
    )


def message_names(imported: Imported) -> dict[str, dict[str, list[str]]]:
    """Returns the names of the imported messages, by release and then by module."""
    return {
        entry.release.name: {
            module: [message.name for message in messages]
            for module, messages in entry.release.modules().items()
        }
        for entry in imported.releases
    }


BOTH = {"9.1.0": {"clients": ["SampleRequest"], "metadata": ["OtherNameRecord"]}}


def test_jars_are_imported(tmp_path: Path) -> None:
    imported = read_releases([clients_jar(tmp_path), metadata_jar(tmp_path)])
    assert imported.errors() == []
    assert message_names(imported) == BOTH
    release = imported.releases[0].release
    assert list(release.error_codes) == EXPECTED
    assert release.message("OtherNameRecord").fields[0].about == "Which."


def test_a_folder_with_other_jars_is_imported(tmp_path: Path) -> None:
    libs = tmp_path / "libs"
    libs.mkdir()
    clients_jar(libs)
    metadata_jar(libs)
    write_jar(libs / "netty-1.0.0.jar", {"common/message/Alien.json": "{"})
    write_jar(libs / "kafka-clients-9.1.0-test.jar", {"common/message/TestOnly.json": "{"})
    write_jar(libs / "kafka-server-9.1.0.jar", {"some.class": b""})
    (libs / "kafka-notes.txt").write_text("no jar")
    imported = read_releases([tmp_path])
    assert imported.errors() == []
    assert message_names(imported) == BOTH


@pytest.mark.parametrize(
    ("name", "version", "release", "module"),
    [
        ("kafka-clients-9.1.0.jar", "9.1.0", "9.1.0", "clients"),
        ("kafka-clients-9.1.0.jar", None, "9.1.0", "clients"),
        ("kafka-group-coordinator-9.1.0-rc2.jar", None, "9.1.0-rc2", "group-coordinator"),
        ("kafka-clients-7.6.0-ccs.jar", "7.6.0-ccs", "7.6.0-ccs", "clients"),
        ("kafka_2.13-9.1.0.jar", "9.1.0", "9.1.0", "core"),
        ("kafka_2.13-9.1.0.jar", None, "9.1.0", "core"),
        ("kafka-clients-9.1.0-sources.jar", None, "9.1.0", "clients"),
        ("connect-runtime-9.1.0.jar", None, "9.1.0", "connect-runtime"),
        ("renamed.jar", "9.1.0", "9.1.0", "renamed"),
    ],
)
def test_a_jar_has_a_release_and_a_module(
    tmp_path: Path, name: str, version: str | None, release: str, module: str
) -> None:
    jar = write_jar(tmp_path / name, {"common/message/SampleRequest.json": SAMPLE}, version)
    assert message_names(read_releases([jar])) == {release: {module: ["SampleRequest"]}}


def test_the_release_can_be_set(tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "renamed.jar", {"message/SampleRequest.json": SAMPLE})
    (error,) = read_releases([jar]).errors()
    assert "name it with --release" in str(error)
    assert message_names(read_releases([jar], release="9.1.0")) == {
        "9.1.0": {"renamed": ["SampleRequest"]}
    }


def test_two_releases_are_imported_at_once(tmp_path: Path) -> None:
    jars = [
        write_jar(tmp_path / f"kafka-raft-{name}.jar", {"common/message/Sample.json": SAMPLE})
        for name in ("9.1.0", "9.2.0")
    ]
    assert list(message_names(read_releases(jars))) == ["9.1.0", "9.2.0"]


def test_a_repeated_jar_is_imported_once(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path)
    (tmp_path / "copy").mkdir()
    copy = clients_jar(tmp_path / "copy")
    imported = read_releases([jar, copy])
    assert imported.errors() == []
    assert message_names(imported) == {"9.1.0": {"clients": ["SampleRequest"]}}


def test_a_source_tree_is_imported(tmp_path: Path) -> None:
    tree = tmp_path / "kafka"
    files = {
        "gradle.properties": "group=org.apache.kafka\nversion = 9.2.0-SNAPSHOT\n",
        "clients/src/main/resources/common/message/SampleRequest.json": SAMPLE,
        "clients/src/main/resources/other/config.json": "{",
        "clients/src/test/resources/common/message/TestOnly.json": "{",
        "storage/api/src/main/resources/message/WrongName.json": COMMENTED,
        **SOURCES,
    }
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    imported = read_releases([tree])
    assert imported.errors() == []
    assert message_names(imported) == {
        "9.2.0-SNAPSHOT": {"clients": ["SampleRequest"], "storage-api": ["OtherNameRecord"]}
    }
    assert list(imported.releases[0].release.error_codes) == EXPECTED


def test_a_source_tree_needs_a_version(tmp_path: Path) -> None:
    (tmp_path / "clients/src").mkdir(parents=True)
    (tmp_path / "gradle.properties").write_text("group=org.apache.kafka\n")
    (error,) = read_releases([tmp_path]).errors()
    assert "has no version; name the release with --release" in str(error)


def test_a_folder_of_files_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "extracted"
    for name, text in {
        "common/message/Sample.json": SAMPLE,
        "metadata/common/metadata/Other.json": COMMENTED,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (error,) = read_releases([folder]).errors()
    assert "has no kafka-version.properties; name the release with --release" in str(error)
    assert message_names(read_releases([folder], release="9.1.0")) == {
        "9.1.0": {"extracted": ["SampleRequest"], "metadata": ["OtherNameRecord"]}
    }


def test_files_directly_in_the_folder_are_of_the_module_with_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "clients"
    folder.mkdir()
    (folder / "SampleRequest.json").write_text(SAMPLE)
    assert message_names(read_releases([folder], release="9.1.0")) == {
        "9.1.0": {"clients": ["SampleRequest"]}
    }


@pytest.mark.slow
def test_facts_can_be_imported_again() -> None:
    folder = SCHEMAS / "4.4.0"
    (entry,) = read_releases([folder], release="4.4.0").releases
    assert entry.errors == []
    assert entry.release == committed_release("4.4.0")


def test_unreadable_files_are_reported_and_others_imported(tmp_path: Path) -> None:
    jar = write_jar(
        tmp_path / "kafka-clients-9.1.0.jar",
        {
            "common/message/A.json": "{ 'single': 1 }",
            "common/message/B.json": b"\xff\xfe",
            "common/message/C.json": json.dumps(message(field("A", "Int8"))),
            "common/message/D.json": " " * (MAX_DEFINITION_BYTES + 1),
            "common/message/E.json": SAMPLE.replace("SampleRequest", "GoodRequest"),
            "org/apache/kafka/common/protocol/Errors.class": b"no class",
        },
    )
    imported = read_releases([jar])
    assert message_names(imported) == {"9.1.0": {"clients": ["GoodRequest"]}}
    texts = [str(error) for error in imported.errors()]
    assert len(texts) == 5
    for name, error in zip("ABCD", texts, strict=False):
        assert f"kafka-clients-9.1.0.jar!common/message/{name}.json" in error
    assert "is larger than" in texts[3]
    assert "no class file" in texts[4]


def test_legacy_files_are_imported_and_reported(tmp_path: Path) -> None:
    jar = write_jar(tmp_path / "kafka-raft-2.8.2.jar", {"common/message/Old.json": LEGACY})
    imported = read_releases([jar])
    assert imported.errors() == []
    assert [error.reason.partition(";")[0] for error in imported.releases[0].notes] == [
        'there is no "flexibleVersions"',
        "there is content after the end of the definition",
    ]
    assert not imported.releases[0].release.messages[0].flexible_versions


def test_equal_message_names_are_reported(tmp_path: Path) -> None:
    other = json.dumps(message(field("B")))
    jar = write_jar(
        tmp_path / "kafka-clients-9.1.0.jar",
        {"common/message/A.json": SAMPLE, "common/message/B.json": other},
    )
    (error,) = read_releases([jar]).errors()
    assert str(error) == (
        "kafka-clients-9.1.0.jar!common/message/B.json:1: two messages are called SampleRequest: "
        "the other is in kafka-clients-9.1.0.jar!common/message/A.json"
    )


def test_unreadable_sources_are_reported(tmp_path: Path) -> None:
    broken = tmp_path / "kafka-clients-9.1.0.jar"
    broken.write_bytes(clients_jar(tmp_path, "whole.jar").read_bytes()[:500])
    for path, reason in (
        (tmp_path / "none.jar", "is neither a jar nor a folder"),
        (broken, "is no readable jar"),
    ):
        (error,) = read_releases([path]).errors()
        assert reason in str(error)
        assert str(path) in str(error)


def test_a_damaged_entry_is_reported(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path)
    with zipfile.ZipFile(jar) as whole:
        offset = whole.getinfo("common/message/SampleRequest.json").header_offset
    data = bytearray(jar.read_bytes())
    start = offset + 30 + len("common/message/SampleRequest.json")
    data[start : start + 20] = bytes(20)
    jar.write_bytes(data)
    (error,) = read_releases([jar]).errors()
    assert "SampleRequest.json: cannot be read" in str(error)


def test_only_sources_without_any_definitions_are_an_error(tmp_path: Path) -> None:
    empty = write_jar(tmp_path / "kafka-server-9.1.0.jar", {"some.class": b""})
    (error,) = read_releases([empty]).errors()
    assert "holds no message definitions" in str(error)
    imported = read_releases([empty, clients_jar(tmp_path)])
    assert imported.errors() == []
    assert imported.empty == [empty]


@pytest.mark.parametrize("name", ["..", "../up", "a/b", "", ".hidden", "x\n"])
def test_a_release_is_the_name_of_a_folder(tmp_path: Path, name: str) -> None:
    jar = write_jar(tmp_path / "kafka-raft-9.1.0.jar", {"common/message/Sample.json": SAMPLE})
    imported = read_releases([jar], release=name)
    assert imported.releases == []
    assert "cannot be the name of a release" in str(imported.errors()[0])


def test_any_source_is_read(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path)
    release = read_release_at(jar)
    out = tmp_path / "schemas"
    write_release(release, out)
    facts = Release(release.name, tuple(map(facts_of, release.messages)), release.error_codes)
    assert read_release_at(out / "9.1.0") == facts
    write_jar(tmp_path / "kafka-raft-9.2.0.jar", {"common/message/Sample.json": SAMPLE})
    with pytest.raises(DefinitionError, match=r"holds more than one release: 9\.1\.0, 9\.2\.0"):
        read_release_at(tmp_path)
    with pytest.raises(DefinitionError, match="neither a jar nor a folder"):
        read_release_at(tmp_path / "none")


@pytest.mark.kafka
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_the_jars_hold_what_is_committed(release: str, tmp_path: Path) -> None:
    """Importing Kafka's jars must yield the files in schemas/, byte for byte."""
    from tests.support.availability import not_available
    from tools.kafka import KafkaJarsError, resolve_jars

    try:
        jars = resolve_jars(release)
    except KafkaJarsError as error:
        not_available("the import of Kafka's jars", error)
    imported = read_releases([jars])
    assert imported.errors() == []
    write_release(imported.releases[0].release, tmp_path)

    def files(folder: Path) -> dict[str, bytes]:
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    assert files(tmp_path / release) == files(SCHEMAS / release)
