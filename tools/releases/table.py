"""The table of all releases: for each API, one row per release in which its facts changed.

Owns the form of `schemas/versions.json`. Plain data in, text out; knows no jar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto.schema.versions import NO_VERSIONS

from .facts import Facts

__all__ = ["format_table"]


def format_table(releases: Sequence[str], found: Mapping[str, Mapping[int, Facts]]) -> str:
    """Returns the text of the file.

    `releases` are oldest first, by number and not by date; `found` has the facts of each by api
    key. A row is valid from its release to the next row; an API has none before its first release.
    An API has the name that the newest release with it uses.
    """
    keys = sorted({key for facts in found.values() for key in facts})
    lines = [
        "{",
        f'"releases": [\n{_wrapped(releases)}\n],',
        '"apis": [',
        ",\n".join(_api(key, releases, found) for key in keys),
        "]",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _wrapped(releases: Sequence[str]) -> str:
    """Returns the releases of one number (4.0, 0.10.2) on a line."""
    lines: dict[str, list[str]] = {}
    for release in releases:
        lines.setdefault(release.rpartition(".")[0], []).append(json.dumps(release))
    return ",\n".join(", ".join(line) for line in lines.values())


def _api(key: int, releases: Sequence[str], found: Mapping[str, Mapping[int, Facts]]) -> str:
    name = next(found[release][key].name for release in reversed(releases) if key in found[release])
    rows: list[str] = []
    before: dict[str, Any] | None = None
    for release in releases:
        facts = found[release].get(key)
        if facts is None and before is None:
            continue
        row = (facts or Facts(name, NO_VERSIONS)).to_json(name)
        if row != before:
            rows.append(json.dumps({"since": release, **row}))
        before = row
    body = ",\n    ".join(rows)
    return f'{{"key": {key}, "name": {json.dumps(name)}, "rows": [\n    {body}]}}'
