"""Tests that a node's storage is formatted once per release; each node gets a copy with new ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.kafka import storage as module
from tools.kafka.storage import has_own_features, new_id, storage_of, write_storage

META = "#\n#Fri Nov 27 01:50:41 UTC 2026\nnode.id=1\ndirectory.id=d\nversion=1\ncluster.id=c\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(module, "CACHE", tmp_path / "kafka")
    return []


def formatted(asked: list[Path], version: str = "4.4.0") -> Path:
    def make(folder: Path) -> None:
        asked.append(folder)
        (folder / "__cluster_metadata-0").mkdir(parents=True)
        (folder / "__cluster_metadata-0" / "0.checkpoint").write_bytes(b"levels")
        (folder / "meta.properties").write_text(META)

    return storage_of(version, make)


def test_a_release_is_formatted_once(asked: list[Path]) -> None:
    assert formatted(asked) == formatted(asked)
    assert formatted(asked, "3.9.2") != formatted(asked)
    assert len(asked) == 2


def test_a_format_that_failed_is_tried_again(asked: list[Path]) -> None:
    def fail(folder: Path) -> None:
        folder.mkdir()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        storage_of("4.4.0", fail)
    assert (formatted(asked) / "meta.properties").read_text() == META


def test_a_copy_has_all_files_and_ids_of_its_own(asked: list[Path], tmp_path: Path) -> None:
    source = formatted(asked)
    (tmp_path / "second").mkdir()  # the folder may exist already
    texts = []
    for name in ("first", "second"):
        write_storage(source, tmp_path / name, node_id="2", cluster_id="other")
        copied = tmp_path / name / "__cluster_metadata-0" / "0.checkpoint"
        assert copied.read_bytes() == b"levels"
        texts.append((tmp_path / name / "meta.properties").read_text().splitlines())
    directories = {dict(line.split("=") for line in text[2:])["directory.id"] for text in texts}
    assert len(directories - {"d"}) == 2
    for text in texts:
        assert [line for line in text if "directory" not in line] == [
            "#",
            "#Fri Nov 27 01:50:41 UTC 2026",
            "node.id=2",
            "version=1",
            "cluster.id=other",
        ]


def test_a_storage_without_an_id_is_refused(tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    (tmp_path / "storage" / "meta.properties").write_text("node.id=1\ncluster.id=c\n")
    with pytest.raises(AssertionError, match=r"directory\.id"):
        write_storage(tmp_path / "storage", tmp_path / "copy", node_id="1", cluster_id="c")


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("unstable.feature.versions.enable", True),
        ("inter.broker.protocol.version", True),
        ("metadata.log.dir", True),
        ("inter.broker.listener.name", False),
        ("log.dirs", False),
    ],
)
def test_settings_of_the_tool_need_a_format_of_their_own(name: str, own: bool) -> None:
    assert has_own_features({"num.partitions": "3", name: "x"}) is own


def test_ids_are_16_bytes_without_padding() -> None:
    assert len({new_id() for _ in range(100)}) == 100
    assert {len(new_id()) for _ in range(100)} == {22}
