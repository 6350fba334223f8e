"""Tests the reading of folders of definitions, and the comparison of what they define."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kproto_codegen.releases.folders import release_folders

from kproto.schema.definition_comparison import compare_definitions
from kproto.schema.definition_folders import (
    read_definitions,
    release_folder,
    release_names,
    release_order,
)
from kproto.schema.definitions import definitions_of_package
from kproto.schema.specs import MessageSpec
from kproto.schema.unknown_names import UnknownNameError
from kproto.wire.errors import ConfigurationError
from tests.support.environment import ROOT
from tests.support.own_protocol import RELEASES, field, message, write_releases


@pytest.fixture
def parcels(tmp_path: Path) -> Path:
    return write_releases(tmp_path / "parcels")


def write(folder: Path, *texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.json").write_text(text, encoding="utf-8")
    return folder


def spec(*arguments: object, **more: object) -> MessageSpec:
    return MessageSpec.from_json(message(*arguments, **more))  # type: ignore[arg-type]


def test_a_release_is_read_with_comments(parcels: Path) -> None:
    found = read_definitions(parcels / "v3")
    assert list(found) == sorted(each["name"] for each in RELEASES["v3"])
    assert found["ParcelEvent"] == MessageSpec.from_json(RELEASES["v3"][4])


def test_kafkas_releases_are_read_from_their_modules() -> None:
    found = read_definitions(ROOT / "schemas" / "4.4.0")
    assert found["FetchRequest"].module == "clients"
    assert len(found) > 250
    assert all(each.valid_versions for each in found.values())


def test_texts_that_look_like_comments_stay(tmp_path: Path) -> None:
    text = json.dumps(message("data", "A", "0", field("X", "string", about='see // "a" /* b */')))
    (found,) = read_definitions(write(tmp_path, f"/* a\n// b */ {text} // end")).values()
    assert found.fields[0].about == 'see // "a" /* b */'


def test_nulls_count_as_missing_keys(tmp_path: Path) -> None:
    node = message("data", "A", "0", field("X", "string", tag=None, nullableVersions=None))
    (found,) = read_definitions(write(tmp_path, json.dumps(node | {"apiKey": None}))).values()
    assert (found.api_key, found.fields[0].tag) == (None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSONDecodeError"),
        ("[1]", "no valid definition"),
        ('"text"', "no valid definition"),
        ('{"name": "A", "type": "data", "validVersions": "0+"}', "needs a highest version"),
        ('{"name": "A", "type": "data", "validVersions": "x"}', "no version range"),
        ("[" * 100_000, "too deep"),
    ],
    ids=["empty", "list", "text", "open", "range", "deep"],
)
def test_faulty_definitions_are_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        read_definitions(write(tmp_path, text))
    assert str(tmp_path / "0.json") in str(raised.value)


def test_a_struct_that_contains_itself_is_refused(tmp_path: Path) -> None:
    struct = {"name": "S", "versions": "0+", "fields": [field("Next", "[]S")]}
    node = message("data", "A", "0", field("X", "[]S"), commonStructs=[struct])
    with pytest.raises(ConfigurationError, match="contains itself"):
        read_definitions(write(tmp_path, json.dumps(node)))


@pytest.mark.parametrize(
    "names",
    [
        ("v1", "v2", "v10"),
        ("3.9.2", "3.10.0", "4.0.0-rc1", "4.0.0"),
        ("rp-24.3", "rp-25.1"),
    ],
)
def test_releases_have_the_order_of_the_generator(names: tuple[str, ...], tmp_path: Path) -> None:
    for name in reversed(names):
        write(tmp_path / name, "{}")
    assert release_names(tmp_path) == names
    assert tuple(folder.name for folder in release_folders(tmp_path)) == names


def test_releases_txt_tells_the_order(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write(tmp_path / name, "{}")
    assert release_names(tmp_path) == ()  # modules of one release
    (tmp_path / "releases.txt").write_text("old  # the first\n\nnew\n")
    assert release_names(tmp_path) == ("old", "new")
    assert tuple(folder.name for folder in release_folders(tmp_path)) == ("old", "new")


def test_a_release_of_kafka_is_found_by_name() -> None:
    assert release_names(ROOT / "schemas") == ("3.9.2", "4.4.0")
    assert release_folder(ROOT / "schemas", "4.4.0") == ROOT / "schemas" / "4.4.0"
    with pytest.raises(UnknownNameError, match=r"has no release '4\.4'; the nearest: 4\.4\.0"):
        release_folder(ROOT / "schemas", "4.4")


def test_a_renamed_message_is_the_same_message(parcels: Path) -> None:
    found = compare_definitions(
        "2", read_definitions(parcels / "v2"), "3", read_definitions(parcels / "v3")
    )
    renamed = {change.newer.name: change.older.name for change in found.changed}
    assert renamed["PrintLabelRequest"] == "LabelRequest"
    assert found.removed == ()
    assert [str(each.older) for each in found.versions] == ["0", "0", "0", "1", "1"]


def test_the_reverse_comparison_removes(parcels: Path) -> None:
    older, newer = (read_definitions(parcels / name) for name in ("v3", "v1"))
    found = compare_definitions("3", older, "1", newer)
    assert {each.name for each in found.removed} == set(older) - set(newer)
    assert (found.added, found.versions) == ((), ())
    by_name = {change.newer.name: change for change in found.changed}
    assert by_name["TrackRequest"].dropped == (1, 2)


def test_messages_without_a_common_name_and_key_are_added_and_removed() -> None:
    """Keys are compared within a type; messages without a key only by name."""
    before = {"A": spec("data", "A", "0"), "B": spec("request", "B", "0", apiKey=5)}
    after = {"C": spec("data", "C", "0"), "D": spec("response", "D", "0", apiKey=5)}
    found = compare_definitions("1", before, "2", after)
    assert [each.name for each in found.added] == ["C", "D"]
    assert [each.name for each in found.removed] == ["A", "B"]


@pytest.mark.parametrize(("kind", "is_same"), [("request", True), ("metadata", False)])
def test_the_module_counts_for_renamed_records_alone(kind: str, is_same: bool) -> None:
    before = {"A": spec(kind, "A", "0", apiKey=5, module="old")}
    after = {"B": spec(kind, "B", "0", apiKey=5, module="new")}
    found = compare_definitions("1", before, "2", after)
    assert (found.added == ()) is is_same


def test_another_layout_of_a_version_is_reported() -> None:
    before = {"A": spec("data", "A", "0-1", field("X", "int32"))}
    after = {"A": spec("data", "A", "0-1", field("Y", "int32"), field("Z", "int8", "1+"))}
    found = compare_definitions("1", before, "2", after)
    assert found.changed == ()
    kinds = [(each.version, [str(d.kind) for d in each.differences]) for each in found.altered]
    assert kinds[0] == (0, ["field renamed"])
    assert kinds[1][0] == 1
    told = found.to_json()["altered"]
    assert told[0]["differences"][0]["changesBytes"] is False
    assert any(each["changesBytes"] for each in told[1]["differences"])


def test_marks_of_fields_are_compared() -> None:
    """A mapKey and an ignorable field change no bytes, so no version is altered."""

    def with_marks(*, key: bool, ignorable: bool) -> dict[str, MessageSpec]:
        inner = [field("Id", "int32", mapKey=key), field("Note", "string", ignorable=True)]
        fields = [field("Items", "[]Item", fields=inner)]
        fields.append(field("Late", "int32", "1+", ignorable=ignorable))
        return {"A": spec("data", "A", "0-1", *fields)}

    found = compare_definitions(
        "1", with_marks(key=True, ignorable=False), "2", with_marks(key=False, ignorable=True)
    )
    assert (found.changed, found.altered) == ((), ())
    assert found.to_json()["fieldMarks"] == [
        {
            "message": "A",
            "changes": [
                {"kind": "map key dropped", "field": "Item.Id"},
                {"kind": "ignorable added", "field": "Late"},
            ],
        }
    ]
    same = with_marks(key=True, ignorable=True)
    assert compare_definitions("1", same, "2", same).field_marks == ()


def test_definitions_of_a_package_equal_those_of_its_folder() -> None:
    union = definitions_of_package("kproto.schema")
    assert union is not None
    found = compare_definitions("a", union, "b", union)
    assert not any((found.added, found.removed, found.changed, found.versions, found.altered))


def test_release_order_of_names() -> None:
    assert release_order("3.9.2") < release_order("3.10.0") < release_order("4.0.0-rc1")
    assert release_order("4.0.0-rc1") < release_order("4.0.0") < release_order("4.0.1")
