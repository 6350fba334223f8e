"""Builds the explorer once, and opens it in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from kproto.explorer.build import kafka_page, page

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

Open: TypeAlias = "Callable[..., Chrome]"

#: Releases, glossary and KIPs for the page; the tests need only their structure.
RELEASES: dict[str, dict[int, tuple[int, int]]] = {
    "1.0.0": {0: (0, 5), 1: (0, 6), 3: (0, 5), 4: (0, 1)},
    "2.0.0": {0: (0, 6), 1: (0, 8), 3: (0, 6), 4: (0, 1), 22: (0, 0)},
    "2.0.1": {0: (0, 6), 1: (0, 8), 3: (0, 6), 4: (0, 1), 22: (0, 0)},
    "4.0.0": {0: (3, 12), 1: (4, 17), 3: (0, 13), 22: (0, 5)},
}
GLOSSARY: dict[str, dict[str, Any]] = {
    "fields": {"MaxWaitMs": "How long to wait, in ms."},
    "messages": {"FetchRequest": "Asks for records."},
    "overrides": {"FetchRequest.FetchRequest": {"MinBytes": "How many bytes make an answer."}},
}
KIPS: list[dict[str, Any]] = [
    {
        "api": "Fetch",
        "version": 13,
        "change": "Topics have an id.",
        "kips": [{"number": 516, "title": "Topic ids", "address": "https://example.org/kip"}],
    },
    {"api": "Fetch", "version": 14, "change": "An error code is new.", "kips": []},
]
FORMER = {"GroupCoordinator": "FindCoordinator"}


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the address of an explorer page with releases, glossary, KIPs and former names."""
    file = tmp_path_factory.mktemp("explorer") / "explorer.html"
    made = page(releases=RELEASES, glossary=GLOSSARY, kips=KIPS, former=FORMER)
    file.write_text(made, encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="session")
def plain_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the address of the page that `kproto explorer` writes."""
    file = tmp_path_factory.mktemp("explorer") / "plain.html"
    file.write_text(kafka_page(), encoding="utf-8")
    return file.as_uri()


def console(browser: Any) -> list[dict[str, Any]]:
    """Returns the console messages since the last call."""
    messages: list[dict[str, Any]] = browser.get_log("browser")
    return messages


@pytest.fixture
def opened(chromium: Chrome, address: str) -> Open:
    """Returns a function that opens the explorer page at a URL fragment, in a new document."""

    def go(fragment: str = "", *, scheme: str = "light", where: str = address) -> Chrome:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        chromium.get("about:blank")
        chromium.get(where + fragment)
        return chromium

    console(chromium)  # drops the messages of an earlier test
    return go


@pytest.fixture(autouse=True)
def silent(request: pytest.FixtureRequest) -> Any:
    """Fails a test that uses `opened` if the browser logged anything to the console."""
    yield
    if "opened" in request.fixturenames:
        browser = request.getfixturevalue("chromium")
        assert console(browser) == []


def vectors() -> list[dict[str, Any]]:
    """Returns every golden vector, in the order of the files."""
    folder = Path(__file__).parent.parent / "vectors"
    lines = [
        line
        for file in sorted(folder.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [json.loads(line) for line in lines]
