"""Tests the options of the bench of compiled code, and the environment of its workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools.bench import compiled
from tools.bench.clients import processes
from tools.bench.clients.rows import ROWS
from tools.bench.clients.task import Task

WORKER = """
import json, kproto
print(json.dumps({"file": kproto.__file__}))
"""


def test_the_rows_of_the_client_exist() -> None:
    assert set(compiled.CLIENT_ROWS) <= {row.name for row in ROWS}


def test_an_unknown_table_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compiled", "--tables", "records,nothing"])
    with pytest.raises(SystemExit):
        compiled.main()
    assert "--tables: some of messages, records, client" in capsys.readouterr().err


def test_a_worker_imports_kproto_from_the_named_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kproto").mkdir()
    (tmp_path / "kproto" / "__init__.py").write_text("")
    (tmp_path / "told.py").write_text(WORKER)
    monkeypatch.setitem(os.environ, processes.PACKAGE, str(tmp_path))
    task = Task("kproto", "produce", "nowhere:1", "topic", 1)
    told = processes.run_task(task, tmp_path / "cache", worker="told")
    assert told == {"file": str(tmp_path / "kproto" / "__init__.py")}
