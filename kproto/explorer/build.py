"""Builds the page: one HTML text with its style sheet, its scripts and all its data.

The page's content security policy allows only this style sheet and these scripts, by their hashes,
and no network request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ..protocol.error_meanings import error_meanings
from ..schema.definitions import union
from ..schema.secrets import SECRETS
from ..schema.specs import MessageSpec
from ..version import __version__
from . import export, facts

__all__ = ["MAX_PAGE_BYTES", "SCRIPTS", "kafka_page", "own_page", "page", "page_data"]

#: The limit that tests check for the size of a page, in bytes. Larger pages open slowly.
MAX_PAGE_BYTES: Final = 1_500_000

#: The scripts in the order in which the page has them. A script can use names that earlier scripts
#: define.
SCRIPTS: Final = (
    "model.js",
    "decode.js",
    "records.js",
    "pasted.js",
    "dumps.js",
    "frames.js",
    "dom.js",
    "grid.js",
    "message.js",
    "diff.js",
    "bytes.js",
    "search.js",
    "main.js",
)

_HERE: Final = Path(__file__).parent


#: The title of the page of Kafka's messages.
_KAFKA_TITLE: Final = "Kafka’s protocol"

#: The messages of Kafka that precede the requests and responses of any protocol.
_HEADERS: Final = ("RequestHeader", "ResponseHeader")


def kafka_page() -> str:
    """Returns the page as HTML text for Kafka's own messages, with all data of `facts`."""
    return page(
        releases=facts.releases(),
        glossary=facts.glossary(),
        kips=facts.kips(),
        former=facts.former(),
        stored=facts.stored(),
    )


def own_page(
    package: str, messages: Mapping[str, MessageSpec], secrets: Iterable[tuple[str, str]] = ()
) -> str:
    """Returns the page as HTML text for the messages of the package called `package`.

    `secrets` are pairs of a message and a field whose value the page hides. The page has Kafka's
    request and response headers, but no other data about Kafka: no error codes and no releases. The
    descriptions are the `about` texts of the definitions.
    """
    headers = {name: union()[name] for name in _HEADERS if name not in messages}
    return page(
        {**messages, **headers},
        glossary=facts.own_glossary(messages),
        own=package,
        secrets=secrets,
    )


def page(
    messages: Mapping[str, MessageSpec] | None = None,
    *,
    releases: Mapping[str, Mapping[int, tuple[int, int]]] | None = None,
    glossary: Mapping[str, Mapping[str, Any]] | None = None,
    kips: Iterable[Mapping[str, Any]] = (),
    former: Mapping[str, str] | None = None,
    stored: Mapping[str, Mapping[int, str]] | None = None,
    own: str = "",
    secrets: Iterable[tuple[str, str]] = SECRETS,
) -> str:
    """Returns the page as HTML text, for `messages` by name (Kafka's own by default).

    `releases`: for each release, oldest first, the lowest and highest version by API key.
    `glossary`: descriptions by name, under `fields`, `messages`, `structs` and `overrides`. `kips`:
    a row for each version of an API, with the keys `api`, `version`, `change` and `kips`. The value
    of `kips` is a list of mappings with `number` and, if known, `title` and `address`. `former`:
    present names of APIs by former name. `stored`: the first release by version, for each stored
    message by its name. `own`: the name of the package that defines `messages`; the page then has
    no error codes of Kafka. `secrets`: pairs of a message and a field whose value the page hides.
    """
    style = _file("style.css")
    script = "(() => {\n" + '"use strict";\n' + "".join(map(_file, SCRIPTS)) + "})();\n"
    data = page_data(
        messages,
        releases=releases,
        glossary=glossary,
        kips=kips,
        former=former,
        stored=stored,
        own=own,
        secrets=secrets,
    )
    parts = {
        "@VERSION@": __version__,
        "@TITLE@": html.escape(data["title"]),
        "@SOURCE@": html.escape(own or "Apache Kafka"),
        "@POLICY@": (
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        "@STYLE@": style,
        "@DATA@": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "@SCRIPT@": script,
    }
    marks = re.compile("|".join(parts))
    return marks.sub(lambda found: parts[found[0]], _file("page.html"))


def page_data(
    messages: Mapping[str, MessageSpec] | None = None,
    *,
    releases: Mapping[str, Mapping[int, tuple[int, int]]] | None = None,
    glossary: Mapping[str, Mapping[str, Any]] | None = None,
    kips: Iterable[Mapping[str, Any]] = (),
    former: Mapping[str, str] | None = None,
    stored: Mapping[str, Mapping[int, str]] | None = None,
    own: str = "",
    secrets: Iterable[tuple[str, str]] = SECRETS,
) -> dict[str, Any]:
    """Returns the data for the scripts of the page; the arguments are those of `page`."""
    return {
        "title": f"The protocol of {own}" if own else _KAFKA_TITLE,
        "own": bool(own),
        "messages": export.definitions(union() if messages is None else messages),
        "secrets": sorted(map(list, secrets)),
        "errors": [] if own else export.error_codes(error_meanings().values()),
        "releases": export.release_ranges(releases or {}),
        "glossary": glossary,
        "kips": [dict(row) for row in kips],
        "former": dict(former or {}),
        "stored": {name: dict(rows) for name, rows in (stored or {}).items()},
    }


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
