"""Tests that the explorer is a single file, which needs no other file and no server."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from kproto.explorer import build
from kproto.explorer.build import MAX_PAGE_BYTES, SCRIPTS, kafka_page, page, page_data
from kproto.schema.definitions import union

FOLDER = Path(build.__file__).parent


class Parts(HTMLParser):
    """Collects the tags of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"} and data.strip():
            self.texts.append((self.tags[-1][1].get("type") or self.tags[-1][0], data))


PAGE = page()
PARTS = Parts(PAGE)


def test_nothing_is_fetched() -> None:
    for tag, attributes in PARTS.tags:
        assert "src" not in attributes, tag
        if tag == "link":
            assert attributes["href"] == "data:,"
        if tag == "a":
            assert (attributes["href"] or "").startswith("#")
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\(", PAGE)


def test_the_policy_allows_this_style_and_this_script_alone() -> None:
    policy = next(
        attributes["content"] or ""
        for tag, attributes in PARTS.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    texts = dict(PARTS.texts)
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(texts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_data_stands_in_the_page_whatever_it_says() -> None:
    odd = {"fields": {"X": "</script><script>alert(1)</script> @SCRIPT@ <!--"}}
    parts = Parts(page(glossary=odd))
    found = json.loads(dict(parts.texts)["application/json"])
    assert found["glossary"] == odd
    assert found == json.loads(json.dumps(page_data(glossary=odd)))
    assert [tag for tag, _ in parts.tags] == [tag for tag, _ in PARTS.tags]


def test_the_page_is_small() -> None:
    assert len(PAGE.encode()) < MAX_PAGE_BYTES / 4
    assert len(kafka_page().encode()) < MAX_PAGE_BYTES / 2
    for file in FOLDER.iterdir():
        if file.suffix in {".js", ".css", ".html", ".py"}:
            assert len(file.read_text(encoding="utf-8").splitlines()) < 600, file.name


def test_every_script_is_in_the_page() -> None:
    assert {file.name for file in FOLDER.glob("*.js")} == set(SCRIPTS)
    assert "@" not in re.sub(r"@media|@[a-z]", "", PAGE.partition("<style>")[0])


def test_a_page_of_some_messages() -> None:
    some = {name: union()[name] for name in ("FetchRequest", "FetchResponse")}
    assert [one["n"] for one in page_data(some)["messages"]] == list(some)
