"""Tests fetching jars with Maven, and the errors; a shell script takes the place of `mvn`."""

from __future__ import annotations

import stat
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.setup import java, maven


class Setting(NamedTuple):
    """A folder for the jars, a template of a pom, and the folder that is the whole PATH."""

    folder: Path
    pom: Path
    programs: Path

    def answer(self, script: str) -> None:
        """Creates an `mvn` script that logs its arguments and then runs `script`.

        In `script`, $out is the output folder.
        """
        program = self.programs / "mvn"
        program.write_text(
            "#!/bin/sh\n"
            'printf "%s\\n" "$@" >> arguments\n'
            "for each do case $each in -DoutputDirectory=*) out=${each#*=};; esac; done\n"
            f"{script}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def fetch(self, **filled: str) -> Path:
        return maven.fetch_jars(
            self.folder,
            self.pom,
            name="Thing 1.2",
            sign="thing-*.jar",
            otherwise="name a running thing",
            **filled,
        )

    def arguments(self) -> list[str]:
        return (self.folder / "arguments").read_text().splitlines()


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    programs = tmp_path / "programs"
    programs.mkdir()
    pom = tmp_path / "pom.xml.template"
    pom.write_text("<version>$version</version>")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(java, "environment", lambda: {"PATH": str(programs)})
    return Setting(tmp_path / "cache" / "1.2", pom, programs)


def test_jars_are_fetched_once(setting: Setting) -> None:
    setting.answer('/bin/mkdir "$out"; /usr/bin/touch "$out/thing-1.2.jar" "$out/other.jar"')
    jars = setting.fetch(version="1.2")
    assert jars == setting.folder / "jars"
    assert {jar.name for jar in jars.iterdir()} == {"thing-1.2.jar", "other.jar"}
    assert (setting.folder / "pom.xml").read_text() == "<version>1.2</version>"
    assert f"--file={setting.folder / 'pom.xml'}" in setting.arguments()
    assert "--strict-checksums" in setting.arguments()
    setting.answer("exit 1")
    assert setting.fetch(version="1.2") == jars


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no such artefact; exit 1", r"(?s)could not fetch Thing 1\.2.*no such artefact"),
        ('/bin/mkdir "$out"; echo all well', r"(?s)no thing-\*\.jar.*all well"),
    ],
)
def test_a_failed_fetch_leaves_no_jars(setting: Setting, script: str, message: str) -> None:
    setting.answer(script)
    with pytest.raises(maven.MavenError, match=message):
        setting.fetch(version="1.2")
    assert not (setting.folder / "jars").exists()
    setting.answer('/bin/mkdir "$out"; /usr/bin/touch "$out/thing-1.2.jar"')
    assert (setting.fetch(version="1.2") / "thing-1.2.jar").exists()


def test_jars_of_an_interrupted_fetch_are_not_used(setting: Setting) -> None:
    left = setting.folder / "jars.unfinished" / "half.jar"
    left.parent.mkdir(parents=True)
    left.touch()
    setting.answer('/bin/mkdir "$out"; /usr/bin/touch "$out/thing-1.2.jar"')
    jars = setting.fetch(version="1.2")
    assert [jar.name for jar in jars.iterdir()] == ["thing-1.2.jar"]


def test_a_hanging_fetch_times_out(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "FETCH_TIMEOUT_S", 0.1)
    setting.answer("exec /bin/sleep 60")
    with pytest.raises(maven.MavenError, match=r"could not fetch Thing 1\.2: .*not done after"):
        setting.fetch(version="1.2")


def test_without_maven_the_error_says_what_to_install(setting: Setting) -> None:
    with pytest.raises(
        maven.MavenError, match=r"not on the PATH.*Thing 1\.2.*install it.*or name a running thing"
    ):
        setting.fetch(version="1.2")


def test_without_java_the_error_says_so(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dict[str, str]:
        raise java.JavaNotFoundError("no Java here")

    setting.answer("exit 0")
    monkeypatch.setattr(java, "environment", none)
    with pytest.raises(maven.MavenError, match=r"could not fetch Thing 1\.2: no Java here"):
        setting.fetch(version="1.2")


def test_one_jar_is_fetched_once(setting: Setting) -> None:
    setting.answer('/usr/bin/touch "$out/compiler-3.45.0.jar"')

    def fetch() -> Path:
        return maven.fetch_jar(setting.folder, "org.x:compiler:3.45.0", otherwise="write it")

    jar = fetch()
    assert jar == setting.folder / "compiler-3.45.0.jar"
    pom = setting.folder / "wanted.xml"
    assert f"--file={pom}" in setting.arguments()
    assert "<version>3.45.0</version>" in pom.read_text()
    setting.answer("exit 1")
    assert fetch() == jar


def test_missing_jars_are_fetched_by_one_call(setting: Setting) -> None:
    setting.folder.mkdir(parents=True)
    (setting.folder / "a-1.jar").touch()
    setting.answer('/usr/bin/touch "$out/b-2.jar" "$out/b-3.jar"')
    wanted = ["org.x:a:1", "org.x:b:2", "org.y:b:3"]
    jars = maven.fetch_each(setting.folder, wanted, otherwise="write them")
    assert [jar.name for jar in jars] == ["a-1.jar", "b-2.jar", "b-3.jar"]
    pom = ET.parse(setting.folder / "wanted.xml")
    items = [[each.text for each in item] for item in pom.iter("artifactItem")]
    assert items == [["org.x", "b", "2"], ["org.y", "b", "3"]]
    assert setting.arguments().count("--batch-mode") == 1


def test_a_jar_that_is_not_fetched_is_an_error(setting: Setting) -> None:
    setting.answer("echo thought of something else")
    with pytest.raises(maven.MavenError, match=r"(?s)did not leave .*something else"):
        maven.fetch_jar(setting.folder, "org.x:compiler:3.45.0", otherwise="write it")
