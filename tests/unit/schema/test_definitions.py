"""Tests the definitions file: messages are parsed on first use, and found by former names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.schema.definitions import Definitions, definition_line, definitions_of, union
from kproto.schema.specs import FormerName, MessageSpec
from kproto.schema.versions import Versions


def definitions(folder: Path, *specs: MessageSpec) -> Definitions:
    path = folder / "definitions.jsonl"
    path.write_text("".join(f"{definition_line(spec)}\n" for spec in specs), encoding="utf-8")
    return Definitions(path.read_text(encoding="utf-8"))


def message(name: str, versions: Versions, *formerly: FormerName) -> MessageSpec:
    return MessageSpec(name, "data", versions, formerly=formerly)


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    first, second = message("First", Versions(0, 3)), message("Second", Versions(0, 0))
    made = definitions(tmp_path, first, second)
    assert list(made) == ["First", "Second"]
    assert len(made) == 2
    assert made["First"] == first
    assert made["First"] is made["First"]
    assert dict(made) == {"First": first, "Second": second}
    assert "Third" not in made
    with pytest.raises(KeyError, match="Third"):
        _ = made["Third"]


def test_former_names_and_numbers_resolve(tmp_path: Path) -> None:
    renamed = message("New", Versions(0, 5), FormerName("Old", "data", Versions(1, 2), 4))
    made = definitions(tmp_path, renamed)
    assert made.resolve("New", 5) == (renamed, 5)
    assert made.resolve("Old", 1) == (renamed, 4)
    assert made.resolve("Old", 2) == (renamed, 5)
    for version in (0, 3):
        with pytest.raises(KeyError, match=f"no release has Old v{version}"):
            made.resolve("Old", version)
    with pytest.raises(KeyError, match="no release has New v6"):
        made.resolve("New", 6)


def test_two_messages_may_have_had_one_name(tmp_path: Path) -> None:
    first = message("A", Versions(0, 0), FormerName("Old", "data", Versions(0, 0), 0))
    second = message("B", Versions(0, 0), FormerName("Old", "data", Versions(1, 1), 0))
    made = definitions(tmp_path, first, second)
    assert made.resolve("Old", 0) == (first, 0)
    assert made.resolve("Old", 1) == (second, 0)


def test_the_newest_release_wins_a_name_that_it_uses_again(tmp_path: Path) -> None:
    old = message("Legacy", Versions(0, 0), FormerName("Key", "data", Versions(0, 1), 0))
    new = message("Key", Versions(0, 0))
    made = definitions(tmp_path, old, new)
    assert made.resolve("Key", 0) == (new, 0)
    assert made.resolve("Key", 1) == (old, 1)


def test_the_union_knows_what_was_renamed_and_renumbered() -> None:
    # In 3.9, the keys of __consumer_offsets are versions of one message.
    assert union().resolve("GroupMetadataKey", 2) == (union()["GroupMetadataKey"], 0)
    assert union().resolve("OffsetCommitKey", 1) == (union()["OffsetCommitKey"], 0)
    spec, version = union().resolve("ListClientMetricsResourcesRequest", 0)
    assert (spec.name, version) == ("ListConfigResourcesRequest", 0)


def test_every_line_is_of_ascii_and_sorted() -> None:
    text = (Path(__file__).parents[3] / "kproto/schema/definitions.jsonl").read_bytes()
    assert text.isascii()
    names = [line.split(b"\t")[0].split(b" ")[0].decode() for line in text.splitlines()]
    assert names == sorted(names) == sorted(union())


def test_the_union_is_loaded_once() -> None:
    assert union() is union()
    assert definitions_of("kproto.messages.fetch_request") is union()
