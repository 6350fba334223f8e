"""Collects facts about Kafka's own messages beside their definitions, in the shapes of
`build.page`.

Every fact comes from `kproto.schema`.
"""

from __future__ import annotations

from typing import Any

from ..schema import study
from ..schema.glossary import load_glossary
from ..schema.release_table import former_api_names

__all__ = ["former", "glossary", "kips", "releases"]


def releases() -> dict[str, dict[int, tuple[int, int]]]:
    """Returns each release, oldest first: for each API key the lowest and the highest version.

    Versions that are not final in a release are omitted, because clients must opt in to them.
    """
    return {
        release: {
            key: (each.stable.lowest, each.stable.highest)
            for key, each in study.ranges(release).items()
            if each.stable
        }
        for release in study.releases()
    }


def glossary() -> dict[str, dict[str, Any]]:
    """Returns the sentences by name, under `fields`, `overrides`, `messages` and `structs`."""
    known = load_glossary()
    return {
        "fields": dict(known.fields),
        "overrides": {scope: dict(texts) for scope, texts in known.overrides.items()},
        "messages": dict(known.messages),
        "structs": dict(known.structs),
    }


def kips() -> list[dict[str, Any]]:
    """Returns the changes of each version of an API, by API key and version, as far as known."""
    return [note.to_json() for key in study.api_names() for note in study.version_notes(key)]


def former() -> dict[str, str]:
    """Returns the names that releases had for an API before, each with the newest name."""
    return former_api_names()
