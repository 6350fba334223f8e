"""Compares the page of other clients' API versions with the installed clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.schema import study
from tests.support.availability import not_available
from tests.support.environment import ROOT
from tools.client_versions import client_versions, kmsg_folder, markdown, ranges_text


@pytest.mark.peers
def test_the_page_has_the_versions_of_the_installed_clients(peers_python: Path) -> None:
    assert peers_python.exists()
    if not kmsg_folder().exists():
        not_available("kmsg in Go's module cache", FileNotFoundError(str(kmsg_folder())))
    clients = client_versions()
    page = (ROOT / "docs" / "reference" / "client-versions.md").read_text(encoding="utf-8")
    assert page.endswith("\n\n" + markdown(clients))
    for name, rows in clients.items():
        for key, versions in rows.items():
            assert study.api_name(key), (name, key)
            assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("versions", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 1, 2, 5], "0-2, 5"), ([1, 3, 4], "1, 3-4")],
)
def test_ranges(versions: list[int], text: str) -> None:
    assert ranges_text(versions) == text


def test_table_has_a_row_for_each_api_of_any_client_but_java() -> None:
    made = markdown({"Java 4.4.0": {0: [3, 4], 7: [1]}, "other 1.0": {0: [0], 999: [1]}})
    assert made == (
        "| key | API | Java 4.4.0 | other 1.0 |\n"
        "| --- | --- | --- | --- |\n"
        "| 0 | Produce | 3-4 | 0 |\n"
    )
