"""Writes the table of all releases as text: the content of `schemas/versions.json`.

For each API, the table has a row for each release in which the facts of the API changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto.schema.versions import NO_VERSIONS

from .facts import ReleaseApi

__all__ = ["format_table"]


def format_table(releases: Sequence[str], found: Mapping[str, Mapping[int, ReleaseApi]]) -> str:
    """Returns the content of the table of releases, as JSON.

    `releases` are in ascending order of version, not of date. `found` has the facts of each release
    by api key. A row is valid from its release until the release of the next row; an API has no row
    before its first release. The name of an API is the name in the newest release that has the API.
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
    """Returns the releases as JSON strings; each release line (4.0, 0.10.2) is a line of text."""
    lines: dict[str, list[str]] = {}
    for release in releases:
        lines.setdefault(release.rpartition(".")[0], []).append(json.dumps(release))
    return ",\n".join(", ".join(line) for line in lines.values())


def _api(key: int, releases: Sequence[str], found: Mapping[str, Mapping[int, ReleaseApi]]) -> str:
    name = next(found[release][key].name for release in reversed(releases) if key in found[release])
    rows: list[str] = []
    before: dict[str, Any] | None = None
    for release in releases:
        facts = found[release].get(key)
        if facts is None and before is None:
            continue
        row = (facts or ReleaseApi(name, NO_VERSIONS)).to_json(name)
        if row != before:
            rows.append(json.dumps({"since": release, **row}))
        before = row
    body = ",\n    ".join(rows)
    return f'{{"key": {key}, "name": {json.dumps(name)}, "rows": [\n    {body}]}}'
