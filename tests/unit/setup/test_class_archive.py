"""Tests that a broker's class archive is made only once per Kafka release and Java version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.kafka import class_archive as module
from tools.kafka.class_archive import class_archive


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "CACHE", tmp_path / "kafka")
    program = tmp_path / "java"
    program.touch()
    return program


def test_it_is_made_once_for_each_release(java: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        path.write_bytes(b"classes")
        made.append(path)

    new, old = class_archive("4.4.0", java, make), class_archive("3.9.2", java, make)
    assert class_archive("4.4.0", java, make) == new
    assert made == [new, old]


def test_it_is_made_anew_for_another_java(java: Path) -> None:
    texts = iter(["of the old one", "of the new one"])

    def make(path: Path) -> None:
        path.write_text(next(texts))

    class_archive("4.4.0", java, make)
    os.utime(java, ns=(1, 1))
    found = class_archive("4.4.0", java, make)
    assert found is not None
    assert found.read_text() == "of the new one"


def test_a_java_that_writes_none_is_asked_once(java: Path) -> None:
    asked: list[Path] = []
    assert class_archive("4.4.0", java, asked.append) is None
    assert class_archive("4.4.0", java, asked.append) is None
    assert len(asked) == 1
