"""Tests the table of releases against the definitions and class ApiKeys of every clients jar."""

from __future__ import annotations

import re
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

from kproto.schema.kips import version_notes
from tests.support.availability import not_available
from tests.support.environment import ROOT
from tools.releases.__main__ import main, read_all
from tools.releases.classes import facts_of_classes
from tools.releases.facts import facts_of_definitions
from tools.releases.jars import clients_jar, clients_jars
from tools.releases.names import DEFINITIONS_SINCE, RELEASES
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.maven import MavenError

pytestmark = [pytest.mark.reference, pytest.mark.exhaustive]


@pytest.fixture(scope="module", autouse=True)
def _jars() -> None:
    """Fetches the jars; skips the tests if the jars or Java are not available."""
    try:
        java_home()
        clients_jars(RELEASES)
    except (MavenError, JavaNotFoundError) as error:
        not_available("the clients jars of all releases", error)


@pytest.mark.thorough
def test_the_jars_give_the_same_file_again() -> None:
    assert read_all() == (ROOT / "schemas" / "versions.json").read_text()


@pytest.mark.thorough
def test_definitions_and_classes_of_a_jar_say_the_same_of_every_key() -> None:
    jars = clients_jars(RELEASES[RELEASES.index(DEFINITIONS_SINCE) :])
    declared = facts_of_classes(jars)
    for jar in jars:
        defined = facts_of_definitions(jar)
        by_class = {key: facts.versions for key, facts in declared[jar.name].items()}
        in_use = {key: facts.versions for key, facts in defined.items() if facts.versions}
        assert in_use == {key: versions for key, versions in by_class.items() if versions}, jar.name


@pytest.mark.thorough
def test_another_file_is_told_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "versions.json"
    other.write_text("{}")
    assert main(["--check", "--out", str(other)]) == 1
    assert other.read_text() == "{}"
    assert capsys.readouterr().out == f"{other}: differs\n"
    assert main(["--out", str(other)]) == 0
    assert other.read_bytes() == (ROOT / "schemas" / "versions.json").read_bytes()


def test_kips_of_the_definitions_stand_in_their_comments() -> None:
    """If a row of kips.toml cites a definition, comments in this definition must name the KIPs."""
    looked = 0
    for api in tomllib.loads((ROOT / "kproto" / "schema" / "kips.toml").read_text()):
        for note in () if api == "kips" else version_notes(api):
            kind, release = note.source.partition(" ")[::2]
            if kind == "definition":
                named = set(re.findall(r"KIP[-_](\d+)", _definitions(api, release)))
                assert {str(kip.number) for kip in note.kips} <= named, note
                looked += len(note.kips)
    assert looked > 40


@cache
def _definitions(api: str, release: str) -> str:
    with zipfile.ZipFile(clients_jar(release)) as jar:
        files = (f"common/message/{api}{kind}.json" for kind in ("Request", "Response"))
        return "".join(jar.read(file).decode() for file in files)
