"""Tests the import of real releases: old jars with faults, repeated keys, and a source tree."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePath

import pytest
from kproto_codegen.cli import main
from kproto_codegen.releases.importer import ImportedRelease, read_releases
from kproto_codegen.releases.release import load_release, write_release
from kproto_codegen.union.release_union import unite

from tests.support.availability import not_available
from tests.support.committed_releases import committed_release
from tools.kafka import KafkaJarsError, resolve_jars
from tools.setup.maven import MavenError, fetch_jar

from ..samples import ROOT, SCHEMAS

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]

OLD_JARS = ROOT / ".cache" / "kafka" / "old-clients"

#: Release → (number of definitions in kafka-clients, number of those without flexibleVersions).
RELEASES = {"2.3.1": (92, 92), "2.8.2": (136, 10), "3.0.2": (144, 0)}


def clients_jar(release: str) -> Path:
    """Returns the kafka-clients jar of a release; Maven downloads it on first use."""
    coordinates = f"org.apache.kafka:kafka-clients:{release}"
    try:
        return fetch_jar(OLD_JARS, coordinates, otherwise=f"put the jar into {OLD_JARS}")
    except MavenError as error:
        not_available("the import of old releases", error)


def imported(release: str) -> ImportedRelease:
    (entry,) = read_releases([clients_jar(release)]).releases
    return entry


@pytest.mark.parametrize("release", RELEASES)
def test_an_old_release_is_accepted_and_each_exception_reported(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definitions, without = RELEASES[release]
    entry = imported(release)
    assert entry.errors == []
    assert len(entry.release.messages) == definitions
    lacking = [note for note in entry.notes if 'no "flexibleVersions"' in note.reason]
    assert len(lacking) == without
    assert all(note.file and note.line for note in entry.notes)
    behind = [str(note) for note in entry.notes if "content after the end" in note.reason]
    place = "kafka-clients-2.8.2.jar!common/message/DescribeProducersRequest.json:31: "
    reason = "there is content after the end of the definition"
    assert behind == ([place + reason] if release == "2.8.2" else [])
    assert main(["import", "--out", str(tmp_path), str(clients_jar(release))]) == 0
    printed = capsys.readouterr().out.splitlines()
    taken = [line for line in printed if line.startswith("  note: ")]
    assert len(taken) == len(entry.notes)
    loaded = load_release(tmp_path / release)  # no profile is needed any more
    assert len(loaded.messages) == definitions
    assert loaded.error_codes == entry.release.error_codes


@pytest.mark.parametrize(
    ("release", "repeated"),
    [
        (
            "3.9.2",
            [
                "DescribeTopicPartitionsRequest.json:28",
                "DescribeTopicPartitionsRequest.json:36",
                "DescribeTopicPartitionsResponse.json:62",
            ],
        ),
        ("4.4.0", []),
    ],
)
def test_the_keys_that_kafka_repeats_are_reported(release: str, repeated: list[str]) -> None:
    """Some of Kafka's definitions have the key `versions` twice, with the same value.

    So the importer reports a repeated key only as a note, not as an error.
    """
    (entry,) = read_releases([_jars(release)]).releases
    assert entry.errors == []
    twice = [note for note in entry.notes if "occurs twice" in note.reason]
    assert [f"{PurePath(note.file or '').name}:{note.line}" for note in twice] == repeated
    assert all("the key 'versions' occurs twice" in note.reason for note in twice)
    page = (ROOT / "docs" / "how-to" / "definitions.md").read_text()
    assert all(f"`{place.partition(':')[0]}`" in page for place in repeated)


def _jars(release: str) -> Path:
    """Returns the folder of a release's jars."""
    try:
        return resolve_jars(release)
    except KafkaJarsError as error:
        not_available("the import of a release", error)


def test_old_and_new_releases_unite() -> None:
    releases = [imported(name).release for name in RELEASES]
    made = unite([*releases, committed_release("3.9.2"), committed_release("4.4.0")])
    for release in releases:
        for message in release.messages:
            for version in message.valid_versions:
                found, number = made.resolve(message.name, version, message.type)
                assert number in found.valid_versions


#: Artifact → the folder in Kafka's source tree that has the artifact's definitions.
RESOURCES = {
    "kafka-clients": "clients/src/main/resources",
    "kafka-group-coordinator": "group-coordinator/src/main/resources",
    "kafka-metadata": "metadata/src/main/resources",
    "kafka-raft": "raft/src/main/resources",
    "kafka-share-coordinator": "share-coordinator/src/main/resources",
    "kafka-storage": "storage/src/main/resources",
    "kafka-transaction-coordinator": "transaction-coordinator/src/main/resources",
}


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_source_tree_gives_the_committed_files(release: str, tmp_path: Path) -> None:
    """The test builds a tree with the layout of Kafka's sources and the jars' definitions."""
    jars = _jars(release)
    tree = tmp_path / "kafka"
    (tree / "clients/src/main/java").mkdir(parents=True)
    (tree / "gradle.properties").write_text(f"group=org.apache.kafka\nversion={release}\n")
    for artefact, resources in RESOURCES.items():
        for jar in jars.glob(f"{artefact}-{release}.jar"):
            with zipfile.ZipFile(jar) as opened:
                wanted = [
                    name
                    for name in opened.namelist()
                    if re.search(r"(message|metadata)/\w+\.json$", name)
                ]
                opened.extractall(tree / resources, wanted)
    (entry,) = read_releases([tree]).releases
    assert entry.errors == []
    write_release(entry.release, tmp_path / "schemas")
    for path in (SCHEMAS / release).glob("*/*.json"):
        made = tmp_path / "schemas" / path.relative_to(SCHEMAS)
        assert made.read_bytes() == path.read_bytes(), path.name
    assert len(entry.release.messages) == len(committed_release(release).messages)
