"""Tests that a cache entry is made only once, and that no reader sees an incomplete entry."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tools.setup.once import finished_at_once, locked, made_from


def test_one_thread_at_a_time_has_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "cache" / "lock"
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        with locked(lock):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_the_lock_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="broken"), locked(tmp_path / "lock"):
        raise OSError("broken")
    with locked(tmp_path / "lock"):
        pass


def test_a_folder_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "4.4.0-abc"
    with finished_at_once(folder) as unfinished:
        assert not unfinished.exists()
        unfinished.mkdir()
        (unfinished / "file").touch()
        assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["4.4.0-abc"]
    assert (folder / "file").exists()


def test_a_failed_folder_is_started_again(tmp_path: Path) -> None:
    folder = tmp_path / "jars"

    def fail() -> None:
        with finished_at_once(folder) as unfinished:
            unfinished.mkdir()
            (unfinished / "half").touch()
            raise OSError("cut off")

    with pytest.raises(OSError, match="cut off"):
        fail()
    assert not folder.exists()
    with finished_at_once(folder) as unfinished:
        assert not unfinished.exists()
        unfinished.mkdir()
    assert list(folder.iterdir()) == []


def test_a_folder_made_from_the_same_source_is_kept(tmp_path: Path) -> None:
    folder, stamp = tmp_path / "made", tmp_path / "stamp"
    made = []

    def make() -> None:
        made.append(folder.exists())
        folder.mkdir()

    made_from("first", folder, stamp, make)
    made_from("first", folder, stamp, make)
    assert made == [False]
    (folder / "old").touch()
    made_from("second", folder, stamp, make)
    assert made == [False, False]
    assert list(folder.iterdir()) == []
    assert stamp.read_text() == "second"


def test_an_incomplete_folder_is_made_again(tmp_path: Path) -> None:
    folder, stamp = tmp_path / "made", tmp_path / "stamp"

    def fail() -> None:
        folder.mkdir()
        raise OSError("cut off")

    stamp.write_text("old")
    for _ in range(2):
        with pytest.raises(OSError, match="cut off"):
            made_from("new", folder, stamp, fail)
        assert not stamp.exists()
    made_from("new", folder, stamp, folder.mkdir)
    assert stamp.read_text() == "new"
