"""Collects data about Kafka's own messages: releases, descriptions, KIPs and former names.

The data come from `kproto.schema`, and are the arguments of `build.page`.
"""

from __future__ import annotations

from typing import Any

from ..schema import study
from ..schema.glossary import load_glossary
from ..schema.release_table import former_api_names

__all__ = ["former", "glossary", "kips", "releases", "stored"]


def releases() -> dict[str, dict[int, tuple[int, int]]]:
    """Returns the lowest and highest version by API key, for each release, oldest first.

    Omits versions that are unstable in a release, because a broker serves such a version only if
    the broker's configuration enables it.
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
    """Returns the glossary: under `fields`, `messages` and `structs` a description for each name.

    `overrides` has, by message or struct, the descriptions of field names that apply only in this
    message or struct.
    """
    known = load_glossary()
    return {
        "fields": dict(known.fields),
        "overrides": {scope: dict(texts) for scope, texts in known.overrides.items()},
        "messages": dict(known.messages),
        "structs": dict(known.structs),
    }


def kips() -> list[dict[str, Any]]:
    """Returns a note for each known version of each API: its change and KIPs, as JSON data.

    The notes are in the order of API keys.
    """
    return [note.to_json() for key in study.api_names() for note in study.version_notes(key)]


def stored() -> dict[str, dict[int, str]]:
    """Returns the first release line of each version of each stored message, by its name."""
    return {name: dict(rows) for name, rows in study.stored_releases().items()}


def former() -> dict[str, str]:
    """Returns the present names of renamed APIs, by former name."""
    return former_api_names()
