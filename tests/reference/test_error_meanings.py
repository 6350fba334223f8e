"""Compares the explanations of error codes with Kafka: definitions' comments, and clients jars."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from kproto.protocol.error_meanings import error_meanings
from tests.support.availability import not_available
from tools.releases.jars import clients_jar, clients_jars
from tools.releases.names import RELEASES
from tools.setup.maven import MavenError

pytestmark = [pytest.mark.reference, pytest.mark.exhaustive]

ERRORS_CLASS = "org/apache/kafka/common/protocol/Errors.class"


@pytest.fixture(scope="module")
def jars() -> dict[str, Path]:
    """Returns the clients jar of the last release of each release line, by line, oldest first."""
    last = {_line(release): release for release in RELEASES}
    try:
        paths = clients_jars(tuple(last.values()))
    except MavenError as error:
        not_available("the clients jars of all release lines", error)
    return dict(zip(last, paths, strict=True))


def _line(release: str) -> str:
    parts = release.split(".")
    return ".".join(parts[: 3 if parts[0] == "0" else 2])


def test_first_release_line_is_that_of_the_enum_in_the_jars(jars: dict[str, Path]) -> None:
    first: dict[str, str] = {}
    for line, path in jars.items():
        with zipfile.ZipFile(path) as jar:
            known = jar.read(ERRORS_CLASS)
        for each in error_meanings().values():
            for name in (each.name, *each.formerly):
                constant = len(name).to_bytes(2) + name.encode()
                if b"\x01" + constant in known:
                    first.setdefault(each.name, line)
    assert first == {each.name: each.since for each in error_meanings().values()}


def test_versions_are_those_of_the_comments_in_the_definitions() -> None:
    rows = {
        (each.name, response.api): response.versions
        for each in error_meanings().values()
        for response in each.responses
    }
    try:
        path = clients_jar("4.4.0")
    except MavenError as error:
        not_available("the clients jar of 4.4.0", error)
    looked = 0
    with zipfile.ZipFile(path) as jar:
        for file in jar.namelist():
            if not re.fullmatch(r"common/message/\w+Response\.json", file):
                continue
            api = Path(file).stem.removesuffix("Response")
            text = jar.read(file).decode()
            for name, versions in re.findall(r"// - ([A-Z_]+) \(version (\d+\+)\)", text):
                assert rows[name, api] == versions, (api, name)
                looked += 1
    assert looked > 150
