"""Finds the links of Markdown pages, and reports broken ones.

Imports only the standard library. Checks links to files and headings, not to web addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from os.path import normpath, relpath
from pathlib import Path
from typing import Final
from urllib.parse import unquote

__all__ = ["ROOT", "anchors", "broken_links", "pages", "rewrite_links"]

ROOT: Final = Path(__file__).resolve().parents[2]

_FENCE: Final = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK: Final = re.compile(r"(\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *(?:\{#([\w.-]+)\})?$", re.MULTILINE)
_ON_THE_WEB: Final = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def pages() -> list[Path]:
    """Returns all Markdown pages: those of `docs/` and those of the repository's root."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def broken_links(page: Path) -> list[str]:
    """Returns a line for each broken link of a page: its file or heading does not exist."""
    found = []
    name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
    for target in _targets(page.read_text(encoding="utf-8")):
        path, _, fragment = unquote(target).partition("#")
        there = page if not path else (page.parent / path).resolve()
        if not there.exists():
            found.append(f"{name}: {target}: there is no such file")
        elif fragment and there.suffix == ".md" and fragment not in anchors(there):
            found.append(f"{name}: {target}: there is no such heading")
    return found


@cache
def anchors(page: Path) -> frozenset[str]:
    """Returns the anchors of a page's headings, as the site generates them."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    found = []
    for heading, given in _HEADING.findall(text):
        slug = given or _slug(heading)
        found.append(f"{slug}_{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def rewrite_links(text: str, change: Callable[[str], str]) -> str:
    """Returns the text with `change` applied to each link's target, except links in code."""
    kept: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    text = _CODE.sub(put_away, _FENCE.sub(put_away, text))
    text = _LINK.sub(lambda match: f"{match[1]}{change(match[2])}{match[3]}", text)
    while "\0" in text:  # repeated, because inline code may contain the mark of a fence
        text = re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text)
    return text


def relative(target: str, folder: str) -> str:
    """Returns the path `target`, which is relative to the root, as a path relative to `folder`."""
    return relpath(normpath(target), folder or ".")


def _targets(text: str) -> Iterator[str]:
    for match in _LINK.finditer(_CODE.sub("", _FENCE.sub("", text))):
        if not _ON_THE_WEB.match(match[2]):
            yield match[2]


def _slug(heading: str) -> str:
    """Returns the anchor of a heading by Python-Markdown's rule."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    text = re.sub(r"[^\w\s-]", "", text).strip().lower()
    return re.sub(r"[-\s]+", "-", text)
