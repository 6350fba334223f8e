"""Tests the head comments of generated files: the style, and the source definitions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from kproto_codegen.cli import main
from kproto_codegen.emit.kafka_messages import DATA_PATH
from kproto_codegen.emit.output import MARK
from kproto_codegen.releases.release import load_error_codes, load_releases

from kproto.protocol import error_table
from kproto.schema.definitions import union as shipped_union
from kproto.schema.naming import module_name

from ..packages import classes, generate, imported, try_every_version, write_definitions
from ..samples import ROOT, SCHEMAS, field, message

MESSAGES = ROOT / "kproto" / "messages"


def head(file: Path) -> list[str]:
    """Returns the lines of the head comment, which follows the module docstring."""
    text = file.read_text(encoding="utf-8")
    _, _, rest = text.partition("\n\n")
    return rest.partition("\n\n")[0].split("\n")


def made_from(file: Path) -> list[str]:
    lines = head(file)
    return [line.removeprefix("#   ") for line in lines[lines.index("# Made from:") + 1 :]]


@pytest.mark.slow
def test_every_kafka_module_names_its_style_and_existing_files() -> None:
    named = set()
    for name in shipped_union():
        file = MESSAGES / f"{module_name(name)}.py"
        if not file.exists():
            assert not shipped_union()[name].valid_versions
            continue
        mark, style, _, newest, *older = head(file)
        assert mark == MARK
        assert style.startswith("# Style: straight-line") == (name in DATA_PATH)
        assert style.startswith("# Style: branches") == (name not in DATA_PATH)
        files = made_from(file)
        assert files == [line.removeprefix("#   ") for line in (newest, *older)]
        # each part of a release's version has one digit, so a text sort orders the releases
        assert files == sorted(files, reverse=True)
        named.update(files)
    definitions = [
        (file, spec.valid_versions)
        for release in load_releases(SCHEMAS)
        for spec in release.messages
        for file in release.origins.messages[spec.name]
    ]
    assert {file for file, versions in definitions if versions} == named
    assert all((ROOT / file).is_file() for file, _ in definitions)


def test_a_head_names_the_files_of_its_message() -> None:
    """A message is in both releases, with one name or with two names, or in only one release.

    Release 4.4.0 defines LeaderAndIsrRequest without versions, so the head of this message does not
    name the file of 4.4.0.
    """
    assert made_from(MESSAGES / "fetch_response.py") == [
        "schemas/4.4.0/clients/FetchResponse.json",
        "schemas/3.9.2/clients/FetchResponse.json",
    ]
    assert made_from(MESSAGES / "legacy_offset_commit_key.py") == [
        "schemas/4.4.0/group-coordinator/LegacyOffsetCommitKey.json",
        "schemas/3.9.2/group-coordinator/OffsetCommitKey.json",
    ]
    assert made_from(MESSAGES / "share_group_heartbeat_request.py") == [
        "schemas/4.4.0/clients/ShareGroupHeartbeatRequest.json",
        "schemas/3.9.2/clients/ShareGroupHeartbeatRequest.json",
    ]
    assert made_from(MESSAGES / "streams_group_heartbeat_request.py") == [
        "schemas/4.4.0/clients/StreamsGroupHeartbeatRequest.json"
    ]
    assert made_from(MESSAGES / "leader_and_isr_request.py") == [
        "schemas/3.9.2/clients/LeaderAndIsrRequest.json"
    ]


def test_the_package_and_the_error_codes_name_the_releases() -> None:
    assert head(MESSAGES / "__init__.py") == [
        MARK,
        "# Made from:",
        "#   schemas/4.4.0",
        "#   schemas/3.9.2",
    ]
    assert error_table.__file__ is not None
    files = made_from(Path(error_table.__file__))
    codes = {entry.code for file in files for entry in load_error_codes(ROOT / file)}
    assert codes == {code for code, _, _ in error_table.ERROR_TABLE}


def test_a_package_of_own_messages_has_heads(tmp_path: Path) -> None:
    """The head of a user's FetchRequest names the style "branches".

    The head of Kafka's FetchRequest names the style "straight-line" instead.
    """
    schemas = write_definitions(tmp_path / "far" / "mine", [message(name="FetchRequest")])
    assert generate(schemas, tmp_path / "own") == 0
    branching = "# Style: branches on the version where the layout changes."
    assert head(tmp_path / "own" / "fetch_request.py") == [
        MARK,
        branching,
        "# Made from:",
        "#   mine/0.json",
    ]
    assert head(tmp_path / "own" / "__init__.py") == [MARK, "# Made from:", "#   mine"]


def test_heads_do_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = write_definitions(tmp_path / "mine" / "1.0" / "some", [message(field("A"))])
    assert generate(schemas.parents[1], tmp_path / "one" / "own") == 0
    monkeypatch.chdir(schemas.parents[1])
    out = str(tmp_path / "two" / "own")
    (tmp_path / "two").mkdir()
    assert main(["generate", "--schemas", ".", "--package", "own", "--out", out]) == 0
    for name in ("__init__.py", "sample_request.py"):
        one, two = (tmp_path / each / "own" / name for each in ("one", "two"))
        assert one.read_text() == two.read_text()
    assert made_from(tmp_path / "one" / "own" / "sample_request.py") == ["mine/1.0/some/0.json"]


@pytest.mark.parametrize(
    "name",
    [
        "a\nimport os.json",
        "a\rb.json",
        "a\u2028b.json",
        "\udcff.json",
        "(" + "long, " * 30 + ").json",
    ],
)
def test_file_names_stay_inside_the_comment(name: str, tmp_path: Path) -> None:
    schemas = write_definitions(tmp_path / "mine", [message(field("A"))])
    (schemas / "0.json").rename(schemas / name)
    assert generate(schemas, tmp_path / "own") == 0
    text = (tmp_path / "own" / "sample_request.py").read_text(encoding="utf-8")
    assert not re.search(r"^(import os|long)", text, re.MULTILINE)
    assert len(made_from(tmp_path / "own" / "sample_request.py")) == 1
    ast.parse(text)
    with imported(tmp_path / "own") as package:
        assert sum(map(try_every_version, classes(package))) > 1


def test_modules_with_older_heads_are_replaced(tmp_path: Path) -> None:
    schemas = write_definitions(tmp_path / "mine", [message(field("A"))])
    assert generate(schemas, tmp_path / "own") == 0
    file = tmp_path / "own" / "sample_request.py"
    now = file.read_text()
    file.write_text(re.sub(r"^# (Style|Made from|  ).*\n", "", now, flags=re.MULTILINE))
    assert head(file) == [MARK]
    assert generate(schemas, tmp_path / "own") == 0
    assert file.read_text() == now
